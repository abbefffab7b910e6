//! Guests: request, power, destroy, and their passwords.

use std::net::Ipv4Addr;

use corpus_domain::{
    Backing, DnsName, Driver, Environment, GuestId, GuestName, GuestState, ImageName, JobId, MacAddress, Mode, NodeId,
    NodeState, ProjectId, Reachability, SizeProfile,
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sqlx::PgTransaction;
use uuid::Uuid;

use crate::authz::{Denied, Operation, Principal};
use crate::jobs::{JobParams, NewJob};
use crate::ops::jobs_error;
use crate::sagas::{guest_create, guest_destroy, guest_power};
use crate::store::{audit, guests, names, nodes};
use crate::views::{GuestView, NodeView};
use crate::{Controller, Error, Result};

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
    /// Of the form: the same form sent twice is one request.
    pub form_id: Option<Uuid>,
}

impl Controller {
    /// The guests that the principal may see.
    pub async fn guests(&self, principal: &Principal) -> Result<Vec<GuestView>> {
        let visible = principal.visible_projects();
        self.guests_of(guests::Of::Projects(visible.as_deref())).await
    }

    /// The guests on a node that the principal may see.
    pub async fn node_guests(&self, principal: &Principal, node: NodeId) -> Result<Vec<GuestView>> {
        let mut found = self.guests_of(guests::Of::Node(node)).await?;
        found.retain(|guest| principal.may(Operation::GuestSee, Some(guest.project_id)));
        Ok(found)
    }

    /// One guest.
    pub async fn guest(&self, principal: &Principal, id: GuestId) -> Result<GuestView> {
        let guest = self.guests_of(guests::Of::Guest(id)).await?.pop().ok_or(Denied::NotFound)?;
        let _permit = principal.permit_in(Operation::GuestSee, guest.project_id)?;
        Ok(guest)
    }

    async fn guests_of(&self, of: guests::Of<'_>) -> Result<Vec<GuestView>> {
        let mut conn = self.services.db.acquire().await?;
        let mut found = guests::list(&mut conn, of).await?;
        let of_names = match of {
            guests::Of::Guest(id) => names::Of::Guest(id),
            _ => names::Of::Projects(None),
        };
        let mut all = names::list(&mut conn, of_names).await?;
        drop(conn);
        self.fill_name_jobs(&mut all).await?;
        for name in all {
            if let Some(guest) = found.iter_mut().find(|guest| guest.id == name.guest_id) {
                guest.names.push(name);
            }
        }
        self.fill_guest_jobs(&mut found).await?;
        Ok(found)
    }

    /// Requests a guest. Everything that can be refused is refused here, at the form.
    pub async fn request_guest(&self, principal: &Principal, wanted: RequestGuest) -> Result<(GuestId, JobId)> {
        let _permit = principal.permit_in(Operation::GuestRequest, wanted.project)?;
        if let Some(twin) = self.sent_before(principal, wanted.form_id).await? {
            return Ok(twin);
        }
        supported(&wanted)?;
        let mut tx = self.services.db.begin().await?;
        let node = pick_node(&mut tx, &wanted).await?;
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
            mode: wanted.mode,
            ip: wanted.ip,
            mac: wanted.mac,
            password_sealed: sealed.as_deref(),
            autostart: wanted.autostart,
        };
        if let Err(error) = guests::insert(&mut tx, &row, principal.id).await {
            drop(tx);
            let twin = self.sent_before(principal, wanted.form_id).await?;
            return twin.ok_or_else(|| taken(error, &wanted));
        }
        self.audit_guest(&mut tx, principal, "guest.request", id, &wanted.name, json!({ "node": node.address }))
            .await?;
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

    /// Starts a stopped guest.
    pub async fn start_guest(&self, principal: &Principal, id: GuestId) -> Result<JobId> {
        let change = Power { action: "guest.start", from: &[GuestState::Stopped], to: GuestState::Starting };
        self.power(principal, id, change, guest_power::start).await
    }

    /// Stops a running guest.
    pub async fn stop_guest(&self, principal: &Principal, id: GuestId) -> Result<JobId> {
        let change = Power { action: "guest.stop", from: &[GuestState::Running], to: GuestState::Stopping };
        self.power(principal, id, change, guest_power::stop).await
    }

    /// Stops and starts a running guest.
    pub async fn restart_guest(&self, principal: &Principal, id: GuestId) -> Result<JobId> {
        let change = Power { action: "guest.restart", from: &[GuestState::Running], to: GuestState::Starting };
        self.power(principal, id, change, guest_power::restart).await
    }

    async fn power<P: JobParams>(
        &self,
        principal: &Principal,
        id: GuestId,
        change: Power,
        job: fn(&GuestView) -> NewJob<P>,
    ) -> Result<JobId> {
        let guest = self.guest(principal, id).await?;
        let _permit = principal.permit_in(Operation::GuestPower, guest.project_id)?;
        let mut tx = self.services.db.begin().await?;
        move_guest(&mut tx, &guest, change.from, change.to).await?;
        self.audit_guest(&mut tx, principal, change.action, id, &guest.name, json!({})).await?;
        let job = self.submit(&mut tx, principal, job(&guest)).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Destroys a guest and all that belongs to it.
    pub async fn destroy_guest(&self, principal: &Principal, id: GuestId) -> Result<JobId> {
        let guest = self.guest(principal, id).await?;
        let _permit = principal.permit_in(Operation::GuestDestroy, guest.project_id)?;
        let mut tx = self.services.db.begin().await?;
        let from = [GuestState::Running, GuestState::Stopped, GuestState::Failed];
        move_guest(&mut tx, &guest, &from, GuestState::Destroying).await?;
        self.audit_guest(&mut tx, principal, "guest.destroy", id, &guest.name, json!({})).await?;
        let job = self.submit(&mut tx, principal, guest_destroy::job(&guest)).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Opens the sealed root password; who did is in the audit before it is answered.
    pub async fn reveal_password(&self, principal: &Principal, id: GuestId) -> Result<SecretString> {
        let guest = self.guest(principal, id).await?;
        let _permit = principal.permit_in(Operation::GuestReveal, guest.project_id)?;
        let mut tx = self.services.db.begin().await?;
        let sealed = guests::password(&mut tx, id)
            .await?
            .ok_or_else(|| Error::Conflict(format!("{} has no password yet.", guest.name)))?;
        self.audit_guest(&mut tx, principal, "guest.reveal_password", id, &guest.name, json!({})).await?;
        tx.commit().await?;
        self.services.open_password(id, &sealed)
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

    async fn audit_guest(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        action: &'static str,
        id: GuestId,
        name: &GuestName,
        detail: serde_json::Value,
    ) -> Result<()> {
        let entry = audit::Entry { action, subject: name.as_str(), subject_id: Some(id.0), detail };
        Ok(audit::write(tx, principal, entry).await?)
    }
}

struct Power {
    action: &'static str,
    from: &'static [GuestState],
    to: GuestState,
}

async fn move_guest(tx: &mut PgTransaction<'_>, guest: &GuestView, from: &[GuestState], to: GuestState) -> Result<()> {
    if guests::set_state(tx, guest.id, from, to, None).await? {
        return Ok(());
    }
    Err(Error::Conflict(format!("{} is {} now; this can't be done in that state.", guest.name, guest.state)))
}

/// What this release can make; the rest of the design's words are known and refused.
fn supported(wanted: &RequestGuest) -> Result<()> {
    if wanted.driver != Driver::Lxc {
        return Err(Error::field("driver", "Only lxc guests can be made so far."));
    }
    if !matches!(wanted.backing, Backing::Dir | Backing::Overlayfs) {
        return Err(Error::field("backing", "Only dir and overlayfs can be used so far."));
    }
    if wanted.mode != Mode::Masterless {
        return Err(Error::field("mode", "Only masterless can be used so far."));
    }
    if wanted.image.as_str() != guest_create::IMAGE {
        return Err(Error::field("image", format!("There is no image {}.", wanted.image)));
    }
    Ok(())
}

/// The node asked for, or of those that take guests of the environment the one with the most
/// free slots; its row stays locked, so that the last slot is given once.
async fn pick_node(tx: &mut PgTransaction<'_>, wanted: &RequestGuest) -> Result<NodeView> {
    let mut all = nodes::list(tx, wanted.node).await?;
    if let Some(id) = wanted.node {
        let node = all.first().filter(|node| node.id == id).ok_or(Denied::NotFound)?;
        if let Some(obstacle) = obstacle(node, wanted.environment) {
            return Err(Error::field("node", obstacle));
        }
    }
    all.retain(|node| obstacle(node, wanted.environment).is_none());
    let Some(chosen) = all.into_iter().max_by_key(NodeView::free_slots) else {
        let message =
            format!("No node has a free slot for {} now. Link another node, or destroy a guest.", wanted.environment);
        return Err(Error::field("node", message));
    };
    nodes::lock(tx, chosen.id).await?;
    let node = nodes::get(tx, chosen.id).await?.ok_or(Denied::NotFound)?;
    if let Some(obstacle) = obstacle(&node, wanted.environment) {
        return Err(Error::field("node", obstacle));
    }
    if let Some(ip) = wanted.ip.filter(|ip| !node.network.takes(*ip)) {
        let message = format!("{ip} is not an address for guests in {}.", node.network);
        return Err(Error::field("ip", message));
    }
    Ok(node)
}

/// Why a node can't take a guest of an environment now.
fn obstacle(node: &NodeView, environment: Environment) -> Option<String> {
    if node.state != NodeState::Ready {
        return Some(format!("{} is {}, not ready.", node.address, node.state));
    }
    if !node.environments.contains(&environment) {
        return Some(format!("{} takes no guests of {environment}.", node.address));
    }
    if node.free_slots() == 0 {
        return Some(format!("{} has no free slot: all {} are in use.", node.address, node.slots));
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
        "guests_node_id_ip_key" => Error::taken(error, "ip", "This address is taken by another guest of the node."),
        "guests_node_id_mac_key" => Error::taken(error, "mac", "This MAC is taken by another guest of the node."),
        _ => Error::taken(error, "name", format!("A guest named {} is there already.", wanted.name)),
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
