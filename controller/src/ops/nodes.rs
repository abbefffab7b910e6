//! Compute nodes: link, initialize, unlink.

use std::time::Duration;

use corpus_domain::{Environment, GuestNetwork, JobId, NodeAddress, NodeId, NodeState, Overcommit, UnixUser};
use secrecy::SecretString;
use serde_json::json;
use sqlx::PgTransaction;
use uuid::Uuid;

use super::jobs::{fill_node_jobs, open_rows};
use crate::authz::{Denied, Operation, Principal};
use crate::nodes::{Credential, HostKey, NodeEndpoint, NodeError, SeenHostKey, authorize, connect, probe_host_key};
use crate::sagas::{node_initialize, node_link, node_repair, node_unlink};
use crate::store::{audit, guests, nodes};
use crate::views::NodeView;
use crate::{Controller, Error, Result};

/// How long a person at a form waits for a host.
const AT_THE_FORM: Duration = Duration::from_secs(8);

/// A host as a person asks to link it.
#[derive(Debug, Clone)]
pub struct LinkNode {
    /// Where it answers SSH.
    pub address: NodeAddress,
    /// Its SSH port.
    pub port: u16,
    /// Root, or an account with `sudo` without a password.
    pub user: UnixUser,
    /// The host key that the person has compared, as the probe gave it.
    pub host_key: String,
    /// To let the controller's key in: used once, now, and forgotten.
    pub password: Option<SecretString>,
    /// The environments that it takes guests of.
    pub environments: Vec<Environment>,
    /// The guests' network, if not the usual one.
    pub network: Option<GuestNetwork>,
}

impl Controller {
    /// All nodes.
    pub async fn nodes(&self, principal: &Principal) -> Result<Vec<NodeView>> {
        let _permit = principal.permit(Operation::NodeSee)?;
        self.nodes_of(principal, None).await
    }

    /// One node.
    pub async fn node(&self, principal: &Principal, id: NodeId) -> Result<NodeView> {
        let _permit = principal.permit(Operation::NodeSee)?;
        Ok(self.nodes_of(principal, Some(id)).await?.pop().ok_or(Denied::NotFound)?)
    }

    async fn nodes_of(&self, principal: &Principal, only: Option<NodeId>) -> Result<Vec<NodeView>> {
        let mut conn = self.services.db.acquire().await?;
        let mut found = nodes::list(&mut conn, only).await?;
        if !principal.may(Operation::NodeRepair, None) {
            let visible = principal.visible_projects().unwrap_or_default();
            let own = guests::count_on_nodes(&mut conn, &visible).await?;
            for node in &mut found {
                tell_only_of(node, own.get(&node.id).copied().unwrap_or_default());
            }
        }
        fill_node_jobs(principal, &mut found, &open_rows(&mut conn, None).await?);
        Ok(found)
    }

    /// The line that lets the controller in, for a host's `authorized_keys`.
    pub fn control_public_key(&self, principal: &Principal) -> Result<String> {
        let _permit = principal.permit(Operation::NodeLink)?;
        Ok(self.services.control_public_line.clone())
    }

    /// Asks a host for its key, so that a person can compare it.
    pub async fn probe_node(&self, principal: &Principal, address: &NodeAddress, port: u16) -> Result<SeenHostKey> {
        let _permit = principal.permit(Operation::NodeLink)?;
        probe_host_key(address, port, AT_THE_FORM).await.map_err(|error| Error::field("address", error.to_string()))
    }

    /// Links a host whose key a person has compared. With a password the controller's key is
    /// let in first, at once: the password is used here and stored nowhere.
    pub async fn link_node(&self, principal: &Principal, wanted: LinkNode) -> Result<(NodeId, JobId)> {
        let _permit = principal.permit(Operation::NodeLink)?;
        if wanted.environments.is_empty() {
            return Err(Error::field("environments", "Choose at least one environment that the node takes guests of."));
        }
        let id = NodeId(Uuid::now_v7());
        let pinned: HostKey = wanted
            .host_key
            .parse()
            .map_err(|error| Error::field("host_key", format!("The host key was not read: {error}")))?;
        self.not_linked_yet(&wanted).await?;
        let endpoint = NodeEndpoint {
            id,
            address: wanted.address.clone(),
            port: wanted.port,
            user: wanted.user.clone(),
            pinned_host_key: pinned,
        };
        let key_installed = match &wanted.password {
            Some(password) => self.let_in(&endpoint, password).await?,
            None => false,
        };
        let mut tx = self.services.begin().await?;
        let row = nodes::NewNode {
            id,
            address: &wanted.address,
            ssh_port: wanted.port,
            ssh_user: &wanted.user,
            host_key: &endpoint.pinned_host_key.to_string(),
            environments: &wanted.environments,
            network: wanted.network.unwrap_or(self.services.settings.network),
            bridge: &self.services.settings.bridge,
        };
        nodes::insert(&mut tx, &row, principal.id).await.map_err(|error| linked_already(error, &wanted))?;
        let detail = json!({ "fingerprint": endpoint.pinned_host_key.seen().fingerprint, "user": wanted.user });
        audit_node(&mut tx, principal, "node.link", id, &wanted.address, detail).await?;
        let job = self.submit(&mut tx, principal, node_link::job(id, &wanted.address, key_installed)).await?;
        tx.commit().await?;
        Ok((id, job))
    }

    async fn not_linked_yet(&self, wanted: &LinkNode) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let known = nodes::list(&mut conn, None).await?;
        if known.iter().any(|node| node.address == wanted.address && node.ssh_port == wanted.port) {
            return Err(linked_message(wanted));
        }
        Ok(())
    }

    /// Installs the control key by the one-time password.
    async fn let_in(&self, endpoint: &NodeEndpoint, password: &SecretString) -> Result<bool> {
        let credential = Credential::Password(password.clone());
        let attempt = async {
            let connection = connect(endpoint, &credential).await?;
            authorize(&connection, &self.services.control_key).await
        };
        match tokio::time::timeout(AT_THE_FORM, attempt).await {
            Ok(Ok(added)) => Ok(added),
            Ok(Err(error @ NodeError::Auth { .. })) => Err(Error::field("password", error.to_string())),
            Ok(Err(error)) => Err(Error::field("address", error.to_string())),
            Err(_) => {
                Err(Error::field("address", format!("{} did not answer within {AT_THE_FORM:?}.", endpoint.host())))
            }
        }
    }

    /// Sets a linked node up to take guests; repeating it brings a ready one up to date.
    pub async fn initialize_node(&self, principal: &Principal, id: NodeId) -> Result<JobId> {
        let _permit = principal.permit(Operation::NodeInitialize)?;
        let node = self.node(principal, id).await?;
        let from = [NodeState::Linked, NodeState::Ready, NodeState::Failed];
        let mut tx = self.services.begin().await?;
        move_node(&mut tx, &node, &from, NodeState::Initializing).await?;
        audit_node(&mut tx, principal, "node.initialize", id, &node.address, json!({})).await?;
        let job = self.submit(&mut tx, principal, node_initialize::job(&node)).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Brings a node back to what it should be: files, units, firewall, routes, image, guests
    /// that run or rest, keys in them.
    pub async fn repair_node(&self, principal: &Principal, id: NodeId) -> Result<JobId> {
        let _permit = principal.permit(Operation::NodeRepair)?;
        let node = self.node(principal, id).await?;
        if !matches!(node.state, NodeState::Ready | NodeState::Draining) {
            return Err(Error::Conflict(format!(
                "{} is {} now; only a node in service can be repaired. Initialize it.",
                node.address, node.state
            )));
        }
        let mut tx = self.services.begin().await?;
        let found: Vec<&str> = node.drift.iter().map(|one| one.text.as_str()).collect();
        audit_node(&mut tx, principal, "node.repair", id, &node.address, json!({ "found": found })).await?;
        let job = self.submit(&mut tx, principal, node_repair::job(&node)).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Sets how much more than a node has may be promised to its guests.
    pub async fn overcommit_node(&self, principal: &Principal, id: NodeId, to: Overcommit) -> Result<()> {
        let _permit = principal.permit(Operation::NodeOvercommit)?;
        let node = self.node(principal, id).await?;
        let mut tx = self.services.begin().await?;
        nodes::set_overcommit(&mut tx, id, to).await?;
        let detail = json!({ "from": node.overcommit, "to": to });
        audit_node(&mut tx, principal, "node.overcommit", id, &node.address, detail).await?;
        Ok(tx.commit().await?)
    }

    /// Takes everything of ours from a node without guests and forgets it. With `force` it is
    /// forgotten even when it can't be reached.
    pub async fn unlink_node(&self, principal: &Principal, id: NodeId, force: bool) -> Result<JobId> {
        let _permit = principal.permit(Operation::NodeUnlink)?;
        let node = self.node(principal, id).await?;
        let mut tx = self.services.begin().await?;
        nodes::lock(&mut tx, id).await?;
        let guests = nodes::get(&mut tx, id).await?.map_or(0, |node| node.guests);
        if guests > 0 {
            return Err(Error::Conflict(format!("{} still has {guests} guests; destroy them first.", node.address)));
        }
        let from = [NodeState::Linked, NodeState::Ready, NodeState::Draining, NodeState::Failed];
        move_node(&mut tx, &node, &from, NodeState::Unlinking).await?;
        audit_node(&mut tx, principal, "node.unlink", id, &node.address, json!({ "force": force })).await?;
        let job = self.submit(&mut tx, principal, node_unlink::job(&node, force)).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Pins the key that a known host shows now, after a person has compared it.
    pub async fn confirm_host_key(&self, principal: &Principal, id: NodeId, host_key: &str) -> Result<()> {
        let _permit = principal.permit(Operation::NodeLink)?;
        let node = self.node(principal, id).await?;
        let pinned: HostKey = host_key
            .parse()
            .map_err(|error| Error::field("host_key", format!("The host key was not read: {error}")))?;
        let mut tx = self.services.begin().await?;
        nodes::set_host_key(&mut tx, id, &pinned.to_string()).await?;
        let detail = json!({ "from": node.fingerprint, "to": pinned.seen().fingerprint });
        audit_node(&mut tx, principal, "node.confirm_host_key", id, &node.address, detail).await?;
        tx.commit().await?;
        self.services.nodes.forget(id);
        Ok(())
    }
}

/// A node as members may know it: the room that is left, and the slots of their own guests. What
/// differs, what was read and why it failed names guests and routes of every project: that is for
/// those who repair.
fn tell_only_of(node: &mut NodeView, own: u32) {
    let left = node.slots.saturating_sub(node.guests);
    node.slots = left.saturating_add(own);
    node.guests = own;
    node.drift.clear();
    node.state_reason = None;
    node.reachability_reason = None;
    if let Some(reading) = &mut node.reading {
        reading.guests.clear();
    }
}

async fn move_node(tx: &mut PgTransaction<'_>, node: &NodeView, from: &[NodeState], to: NodeState) -> Result<()> {
    if nodes::set_state(tx, node.id, from, to, None).await? {
        return Ok(());
    }
    Err(Error::Conflict(format!("{} is {} now; this can't be done in that state.", node.address, node.state)))
}

async fn audit_node(
    tx: &mut PgTransaction<'_>,
    principal: &Principal,
    action: &'static str,
    id: NodeId,
    address: &NodeAddress,
    detail: serde_json::Value,
) -> Result<()> {
    let entry = audit::Entry { action, subject: &address.to_string(), subject_id: Some(id.0), detail };
    Ok(audit::write(tx, principal, entry).await?)
}

fn linked_already(error: sqlx::Error, wanted: &LinkNode) -> Error {
    match &error {
        sqlx::Error::Database(inner) if inner.is_unique_violation() => linked_message(wanted),
        _ => Error::Database(error),
    }
}

fn linked_message(wanted: &LinkNode) -> Error {
    Error::field("address", format!("{} port {} is linked already.", wanted.address, wanted.port))
}
