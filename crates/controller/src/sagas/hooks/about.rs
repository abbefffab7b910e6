//! What a job is about, as its hooks are told: facts, never a secret. Names in it were chosen by members.

use corpus_domain::{DeploymentId, Environment, GuestId, HookHost, JobKind, NodeId, ProjectName};
use serde_json::{Value, json};

use super::Ctx;
use crate::jobs::{StepContext, StepError};
use crate::nodes::{GuestEndpoint, NodeEndpoint};
use crate::sagas::guest_calls::On;
use crate::services::Services;
use crate::store::guests::{self, GuestRow};
use crate::store::nodes::{self, Node};
use crate::store::users;

/// What a job is about, as its rows say now.
pub struct About {
    /// The project.
    pub project: Option<ProjectName>,
    /// The environment.
    pub environment: Option<Environment>,
    node: Option<Node>,
    guest: Option<(GuestRow, Option<String>)>,
    deployment: Option<DeploymentId>,
    actor: Option<String>,
}

/// Where a hook runs.
pub enum Host {
    /// Here.
    Controller,
    /// On a node.
    Node(Box<NodeEndpoint>),
    /// In a guest.
    Guest(Box<GuestEndpoint>, String),
}

impl Host {
    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Self::Controller => "controller".to_owned(),
            Self::Node(endpoint) => endpoint.address.to_string(),
            Self::Guest(_, name) => name.clone(),
        }
    }
}

impl About {
    /// By the parameters of a job of a node or a guest.
    pub async fn of_params(ctx: &Ctx) -> Result<Self, StepError> {
        let id = |key: &str| serde_json::from_value(ctx.params().get(key).cloned().unwrap_or_default()).ok();
        Self::read(ctx, id("guest").map(GuestId), id("node").map(NodeId), None).await
    }

    /// By what a run was told, of which the ids count.
    pub async fn of_facts(ctx: &Ctx, facts: &Value) -> Result<Self, StepError> {
        let id = |key: &str| serde_json::from_value(facts.pointer(key).cloned().unwrap_or_default()).ok();
        let deployment = id("/deployment").map(DeploymentId);
        Self::read(ctx, id("/guest/id").map(GuestId), id("/node/id").map(NodeId), deployment).await
    }

    /// A deployment on one of its guests.
    pub async fn of_deployment<P: Send + Sync>(
        ctx: &StepContext<Services, P>,
        on: &On,
        deployment: DeploymentId,
    ) -> Result<Self, StepError> {
        let about = Self::read(ctx, Some(on.guest), Some(on.node), Some(deployment)).await?;
        Ok(Self { project: Some(on.name.clone()), environment: Some(on.environment), ..about })
    }

    async fn read<P: Send + Sync>(
        ctx: &StepContext<Services, P>,
        guest: Option<GuestId>,
        node: Option<NodeId>,
        deployment: Option<DeploymentId>,
    ) -> Result<Self, StepError> {
        let mut conn = ctx.services().db.acquire().await?;
        let row = match guest {
            Some(id) => guests::get(&mut conn, id).await?,
            None => None,
        };
        let host_key = match &row {
            Some(row) => guests::host_key(&mut conn, row.id).await?,
            None => None,
        };
        let node = match node.or(row.as_ref().map(|row| row.node_id)) {
            Some(id) => nodes::get(&mut conn, id).await?,
            None => None,
        };
        let actor = match ctx.created_by() {
            Some(id) => users::login(&mut conn, id).await?,
            None => None,
        };
        Ok(Self {
            project: row.as_ref().map(|row| row.project.clone()),
            environment: row.as_ref().map(|row| row.environment),
            node,
            guest: row.map(|row| (row, host_key)),
            deployment,
            actor: actor.map(|login| login.to_string()),
        })
    }

    /// What a hook is told, but for what is of this run.
    pub fn facts(&self) -> Value {
        let node = self.node.as_ref().map(|node| {
            json!({
                "id": node.id, "address": node.address, "public_ip": node.public_ip, "network": node.network,
                "bridge": node.bridge,
            })
        });
        let guest = self.guest.as_ref().map(|(guest, _)| {
            json!({
                "id": guest.id, "name": guest.name, "ip": guest.ip, "mac": guest.mac, "ssh_port": guest.ssh_port,
                "driver": guest.driver, "image": guest.image, "backing": guest.backing, "size": guest.size,
                "autostart": guest.autostart,
            })
        });
        json!({
            "actor": self.actor, "node": node, "guest": guest, "project": self.project,
            "environment": self.environment, "deployment": self.deployment,
        })
    }

    /// Where a hook runs.
    pub fn host(&self, host: HookHost) -> Result<Host, StepError> {
        match host {
            HookHost::Controller => Ok(Host::Controller),
            HookHost::Node => {
                let node = self.node.as_ref().ok_or_else(|| StepError::permanent("the node is not linked any more"))?;
                let unreadable = |error| StepError::permanent("the pinned host key can't be read").caused_by(error);
                Ok(Host::Node(Box::new(node.endpoint().map_err(unreadable)?)))
            }
            HookHost::Guest => {
                let gone = || StepError::permanent("the guest has no SSH port or host key");
                let (guest, host_key) = self.guest.as_ref().ok_or_else(gone)?;
                let host_key = host_key.as_deref().and_then(|key| key.parse().ok()).ok_or_else(gone)?;
                let endpoint = GuestEndpoint {
                    id: guest.id,
                    address: guest.node_address.clone(),
                    port: guest.ssh_port.ok_or_else(gone)?.get(),
                    user: "root".parse().map_err(|error| StepError::permanent("no account").caused_by(error))?,
                    pinned_host_key: host_key,
                    gateway: self.node.as_ref().and_then(|node| node.gateway.clone()),
                };
                Ok(Host::Guest(Box::new(endpoint), guest.name.to_string()))
            }
        }
    }

    /// Whether the undo of such a job removes what a hook did there anyway.
    pub fn goes_with(kind: JobKind, host: HookHost) -> bool {
        host == HookHost::Guest && kind == JobKind::GuestCreate
    }
}
