//! Requesting a guest: everything that can be refused is refused here, at the form.

use std::net::Ipv4Addr;

use corpus_domain::{
    Backing, ChosenLimits, DnsName, Driver, Environment, GuestId, GuestName, ImageName, JobId, MacAddress, Mode,
    NodeId, NodeState, ProjectId, Reachability, Reason, Room, SizeProfile,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use uuid::Uuid;

use super::jobs_error;
use crate::authz::{Denied, Operation, Principal};
use crate::sagas::guest_create;
use crate::store::{Transaction, guests, nodes, room};
use crate::views::NodeView;
use crate::{Controller, Error, Result};

/// How often a node is chosen anew when others take its room meanwhile.
const TRIES: u32 = 8;

/// A guest as a member asks for it.
#[derive(Debug, Clone)]
pub struct RequestGuest {
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectId,
    /// Its environment.
    pub environment: Environment,
    /// The node, or any.
    pub node: Option<NodeId>,
    /// How much storage it may fill.
    pub size: SizeProfile,
    /// What it may take of its node; what is not chosen is the size profile's.
    pub limits: ChosenLimits,
    /// Where its root file system lives.
    pub backing: Backing,
    /// What makes it.
    pub driver: Driver,
    /// What it is a clone of.
    pub image: ImageName,
    /// How its configuration is managed.
    pub mode: Mode,
    /// An address, or any.
    pub ip: Option<Ipv4Addr>,
    /// A MAC, or the one of the address.
    pub mac: Option<MacAddress>,
    /// A password, or a generated one.
    pub password: Option<SecretString>,
    /// Names to attach once it runs.
    pub names: Vec<DnsName>,
    /// Whether the node starts it at boot.
    pub autostart: bool,
    /// Why its root is to be root on the node, if it is: only operators may ask for that.
    pub privileged: Option<Reason>,
    /// Of the form: the same form sent twice is one request.
    pub form_id: Option<Uuid>,
}

impl Controller {
    /// Requests a guest. Everything that can be refused is refused here, at the form.
    pub async fn request_guest(&self, principal: &Principal, wanted: RequestGuest) -> Result<(GuestId, JobId)> {
        let _permit = principal.permit_in(Operation::GuestRequest, wanted.project)?;
        if wanted.privileged.is_some() {
            let _permit = principal.permit_in(Operation::GuestPrivilege, wanted.project)?;
        }
        if let Some(twin) = self.sent_before(principal, wanted.form_id).await? {
            return Ok(twin);
        }
        supported(&wanted)?;
        for name in &wanted.names {
            let free = self.is_nobody_elses(principal, wanted.project, name).await;
            free.map_err(|error| at_field(error, "names"))?;
        }
        let (mut tx, node) = self.pick_node(&wanted).await?;
        self.can_be_called(&mut tx, principal, wanted.project, &wanted.name).await?;
        let id = GuestId(Uuid::now_v7());
        let sealed = wanted.password.as_ref().map(|password| self.seal_password(id, password)).transpose()?;
        let row = guests::NewGuest {
            id,
            name: &wanted.name,
            node: node.id,
            project: wanted.project,
            environment: wanted.environment,
            driver: wanted.driver,
            image: &wanted.image,
            backing: wanted.backing,
            size: wanted.size,
            limits: wanted.limits.over(wanted.size.limits()),
            mode: wanted.mode,
            ip: wanted.ip,
            mac: wanted.mac,
            password_sealed: sealed.as_deref(),
            autostart: wanted.autostart,
            privileged: wanted.privileged.as_ref(),
        };
        if let Err(error) = guests::insert(&mut tx, &row, principal.id).await {
            drop(tx);
            let twin = self.sent_before(principal, wanted.form_id).await?;
            return twin.ok_or_else(|| taken(error, &wanted));
        }
        self.audit_guest(&mut tx, principal, "guest.request", id, &wanted.name, json!({ "node": node.address }))
            .await?;
        if let Some(reason) = &wanted.privileged {
            let detail = json!({ "node": node.address, "reason": reason });
            self.audit_guest(&mut tx, principal, "guest.privilege", id, &wanted.name, detail).await?;
        }
        let guest = guests::get(&mut tx, id).await?.ok_or(Denied::NotFound)?;
        let mut new = guest_create::job(&guest);
        if let Some(form) = wanted.form_id {
            new = new.idempotency_key(form_key(principal, form));
        }
        let job = self.submit(&mut tx, principal, new).await?;
        for name in &wanted.names {
            let attached = self.want_name(&mut tx, principal, &guest, name).await;
            attached.map_err(|error| at_field(error, "names"))?;
        }
        tx.commit().await?;
        Ok((id, job))
    }

    /// The guest and job that the same form made before, if it was sent before.
    async fn sent_before(&self, principal: &Principal, form: Option<Uuid>) -> Result<Option<(GuestId, JobId)>> {
        let Some(form) = form else { return Ok(None) };
        let found = self.jobs.by_idempotency_key(&form_key(principal, form)).await.map_err(jobs_error)?;
        Ok(found.and_then(|job| Some((job.guest_id?, job.id))))
    }

    /// A transaction that holds the node asked for, or of those that take guests of the environment
    /// the one with the most room, and that node. Between the choice and the lock another request may
    /// have taken the room: then the choice is made again.
    async fn pick_node(&self, wanted: &RequestGuest) -> Result<(Transaction, NodeView)> {
        let needed = Room::of_guest(wanted.limits.over(wanted.size.limits()), wanted.backing, wanted.size);
        for _ in 0..TRIES {
            let mut tx = self.services.begin().await?;
            let Some(id) = room::pick(&mut tx, wanted.environment, wanted.node, needed).await? else {
                return Err(no_node(&nodes::list(&mut tx, wanted.node).await?, wanted, needed));
            };
            nodes::lock(&mut tx, id).await?;
            if room::pick(&mut tx, wanted.environment, Some(id), needed).await?.is_none() {
                tx.rollback().await?;
                continue;
            }
            let node = nodes::get(&mut tx, id).await?.ok_or(Denied::NotFound)?;
            if let Some(ip) = wanted.ip.filter(|ip| !node.network.takes(*ip)) {
                let message = format!("{ip} is not an address for guests in {}.", node.network);
                return Err(Error::field("ip", message));
            }
            return Ok((tx, node));
        }
        Err(Error::Conflict("Many guests are being requested at once. Try again.".to_owned()))
    }

    fn seal_password(&self, id: GuestId, password: &SecretString) -> Result<Vec<u8>> {
        let length = password.expose_secret().chars().count();
        if !(12..=128).contains(&length) || password.expose_secret().chars().any(char::is_control) {
            return Err(Error::field(
                "password",
                "A password has 12 to 128 characters; leave it empty for a generated one.",
            ));
        }
        self.services.seal_password(id, password)
    }
}

/// What this release can make; the rest of the design's words are known and refused.
fn supported(wanted: &RequestGuest) -> Result<()> {
    if wanted.driver != Driver::Lxc {
        return Err(Error::field("driver", "Only lxc guests can be made so far."));
    }
    if !matches!(wanted.backing, Backing::Dir | Backing::Overlayfs | Backing::Loop) {
        return Err(Error::field("backing", "Only overlayfs, loop and dir can be used so far."));
    }
    if wanted.mode != Mode::Masterless {
        return Err(Error::field("mode", "Only masterless can be used so far."));
    }
    if wanted.image.as_str() != guest_create::IMAGE {
        return Err(Error::field("image", format!("There is no image {}.", wanted.image)));
    }
    Ok(())
}

/// Why no node takes the guest: what is the matter with the one asked for, or what the one with the most room lacks.
fn no_node(nodes: &[NodeView], wanted: &RequestGuest, needed: Room) -> Error {
    let obstacle = |node: &NodeView| obstacle(node, wanted.environment);
    let message = match (wanted.node, nodes) {
        (Some(_), [node]) => obstacle(node).unwrap_or_else(|| lacks(node, needed)),
        (Some(_), _) => return Denied::NotFound.into(),
        (None, _) => {
            let able = nodes.iter().filter(|node| obstacle(node).is_none());
            let best = able.max_by_key(|node| node.free().map(|free| (free.holds(needed), free.memory)));
            match best {
                Some(node) => format!("{} Choose less, link another node, or destroy a guest.", lacks(node, needed)),
                None => format!("No node takes guests of {} now. Link or initialize one.", wanted.environment),
            }
        }
    };
    Error::field("node", message)
}

fn lacks(node: &NodeView, needed: Room) -> String {
    match node.free() {
        Some(free) if free.holds(needed) == 0 => {
            format!("{} has {free} free, and {needed} are needed: it has no slot for this guest.", node.address)
        }
        _ => format!("{} has no free slot: all {} are in use.", node.address, node.slots),
    }
}

/// Why a node takes no guests of an environment now, whatever they need.
fn obstacle(node: &NodeView, environment: Environment) -> Option<String> {
    if node.state != NodeState::Ready {
        return Some(format!("{} is {}, not ready.", node.address, node.state));
    }
    if !node.environments.contains(&environment) {
        return Some(format!("{} takes no guests of {environment}.", node.address));
    }
    match node.reachability {
        Reachability::Reachable => None,
        Reachability::Unknown => Some(format!("{} has not been read yet; try again in a few seconds.", node.address)),
        Reachability::Unreachable | Reachability::HostKeyChanged => {
            Some(format!("{} does not answer now.", node.address))
        }
    }
}

/// Which unique rule was broken, as an error at its field.
fn taken(error: sqlx::Error, wanted: &RequestGuest) -> Error {
    let rule = match &error {
        sqlx::Error::Database(inner) => inner.constraint().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    match rule.as_str() {
        "guests_node_id_ip_key" => {
            Error::taken(error, "ip", "This address is in use on the node; leave it empty for a free one.")
        }
        "guests_node_id_mac_key" => {
            Error::taken(error, "mac", "This MAC is in use on the node; leave it empty for a free one.")
        }
        _ => Error::taken(error, "name", format!("{} is taken already; choose another name.", wanted.name)),
    }
}

fn at_field(error: Error, field: &'static str) -> Error {
    match error {
        Error::Field { message, .. } => Error::field(field, message),
        other => other,
    }
}

fn form_key(principal: &Principal, form: Uuid) -> String {
    format!("{}/{form}", principal.id)
}
