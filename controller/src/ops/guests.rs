//! Guests: to see, power and destroy them, and to reveal their passwords.

use corpus_domain::{
    ChosenLimits, GuestId, GuestName, GuestState, JobId, Limits, NodeId, Room, SizeProfile, processors,
};
use secrecy::SecretString;
use serde_json::json;
use sqlx::PgTransaction;

use super::jobs::{fill_guest_jobs, fill_name_jobs, open_rows};
use crate::authz::{Denied, Operation, Principal};
use crate::jobs::{JobParams, NewJob};
use crate::sagas::{guest_destroy, guest_enlarge, guest_limit, guest_power};
use crate::store::{audit, drift, environments, guests, names, nodes};
use crate::views::{GuestView, NodeView};
use crate::{Controller, Error, Result};

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
        let mut guest = self.guests_of(guests::Of::Guest(id)).await?.pop().ok_or(Denied::NotFound)?;
        let _permit = principal.permit_in(Operation::GuestSee, guest.project_id)?;
        let mut conn = self.services.db.acquire().await?;
        guest.drift = drift::known(&mut conn, guest.node_id).await?;
        guest.drift.retain(|one| one.guest.as_ref() == Some(&guest.name));
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
        let open = open_rows(&mut conn, None).await?;
        fill_name_jobs(&mut all, &open);
        for name in all {
            if let Some(guest) = found.iter_mut().find(|guest| guest.id == name.guest_id) {
                guest.names.push(name);
            }
        }
        fill_guest_jobs(&mut conn, &mut found).await?;
        Ok(found)
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
        let mut tx = self.services.begin().await?;
        move_guest(&mut tx, &guest, change.from, change.to).await?;
        self.audit_guest(&mut tx, principal, change.action, id, &guest.name, json!({})).await?;
        let job = self.submit(&mut tx, principal, job(&guest)).await?;
        if change.to == GuestState::Starting {
            self.environment_follows(&mut tx, principal, id).await?;
        }
        tx.commit().await?;
        Ok(job)
    }

    /// Enlarges a guest's storage, whether it runs or not.
    pub async fn enlarge_guest(&self, principal: &Principal, id: GuestId, size: SizeProfile) -> Result<JobId> {
        let guest = self.guest(principal, id).await?;
        let _permit = principal.permit_in(Operation::GuestEnlarge, guest.project_id)?;
        let mut tx = self.services.begin().await?;
        nodes::lock(&mut tx, guest.node_id).await?;
        guests::hold(&mut tx, id).await?;
        let guest = guests::get(&mut tx, id).await?.ok_or(Denied::NotFound)?;
        let node = nodes::get(&mut tx, guest.node_id).await?.ok_or(Denied::NotFound)?;
        enlargeable(&guest, &node, size)?;
        let detail = json!({ "from": guest.size, "to": size });
        self.audit_guest(&mut tx, principal, "guest.enlarge", id, &guest.name, detail).await?;
        let job = self.submit(&mut tx, principal, guest_enlarge::job(&guest, size)).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Changes what a guest may take of its node, whether it runs or not.
    pub async fn limit_guest(&self, principal: &Principal, id: GuestId, chosen: ChosenLimits) -> Result<JobId> {
        let guest = self.guest(principal, id).await?;
        let _permit = principal.permit_in(Operation::GuestLimit, guest.project_id)?;
        let mut tx = self.services.begin().await?;
        nodes::lock(&mut tx, guest.node_id).await?;
        guests::hold(&mut tx, id).await?;
        let guest = guests::get(&mut tx, id).await?.ok_or(Denied::NotFound)?;
        let to = chosen.over(guest.limits);
        limitable(&guest, to)?;
        if guests::is_being_limited(&mut tx, id).await? {
            let message = format!("The limits of {} are just being changed. Try again when that is done.", guest.name);
            return Err(Error::Conflict(message));
        }
        let node = nodes::get(&mut tx, guest.node_id).await?.ok_or(Denied::NotFound)?;
        let most = guest.limits.most(to);
        promisable(&guest, &node, most)?;
        guests::set_limits(&mut tx, id, most).await?;
        let detail = json!({ "from": guest.limits, "to": to });
        self.audit_guest(&mut tx, principal, "guest.limit", id, &guest.name, detail).await?;
        let job = self.submit(&mut tx, principal, guest_limit::job(&guest, to)).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Pins the key that a guest shows in the place of its own, after a person has compared it.
    pub async fn confirm_guest_host_key(&self, principal: &Principal, id: GuestId, compared: &str) -> Result<()> {
        let guest = self.guest(principal, id).await?;
        let _permit = principal.permit_in(Operation::GuestConfirmHostKey, guest.project_id)?;
        let mut tx = self.services.begin().await?;
        if !guests::confirm_host_key(&mut tx, id, compared).await? {
            return Err(Error::Conflict(format!(
                "{} does not show that key any more. Look at its page again, and compare what is shown now.",
                guest.name
            )));
        }
        let detail = json!({ "from": guest.host_fingerprint, "to": compared });
        self.audit_guest(&mut tx, principal, "guest.confirm_host_key", id, &guest.name, detail).await?;
        tx.commit().await?;
        self.services.guests.forget(id);
        Ok(())
    }

    /// Destroys a guest and all that belongs to it.
    pub async fn destroy_guest(&self, principal: &Principal, id: GuestId) -> Result<JobId> {
        let guest = self.guest(principal, id).await?;
        let _permit = principal.permit_in(Operation::GuestDestroy, guest.project_id)?;
        let mut tx = self.services.begin().await?;
        let from = [GuestState::Running, GuestState::Stopped, GuestState::Failed];
        move_guest(&mut tx, &guest, &from, GuestState::Destroying).await?;
        if let Some(stands) = environments::on_guest(&mut tx, id).await? {
            return Err(Error::Conflict(format!(
                "{}'s {} stands on {}. Remove that environment first; then the guest can be destroyed.",
                stands.name, stands.environment, guest.name
            )));
        }
        self.audit_guest(&mut tx, principal, "guest.destroy", id, &guest.name, json!({})).await?;
        let job = self.submit(&mut tx, principal, guest_destroy::job(&guest)).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// Opens the sealed root password; who did is in the audit before it is answered.
    pub async fn reveal_password(&self, principal: &Principal, id: GuestId) -> Result<SecretString> {
        let guest = self.guest(principal, id).await?;
        let _permit = principal.permit_in(Operation::GuestReveal, guest.project_id)?;
        let mut tx = self.services.begin().await?;
        let sealed = guests::password(&mut tx, id)
            .await?
            .ok_or_else(|| Error::Conflict(format!("{} has no password yet.", guest.name)))?;
        self.audit_guest(&mut tx, principal, "guest.reveal_password", id, &guest.name, json!({})).await?;
        tx.commit().await?;
        self.services.open_password(id, &sealed)
    }

    pub(super) async fn audit_guest(
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

fn limitable(guest: &GuestView, to: Limits) -> Result<()> {
    if !matches!(guest.state, GuestState::Running | GuestState::Stopped) {
        return Err(Error::Conflict(format!(
            "{} is {} now; this can't be done in that state.",
            guest.name, guest.state
        )));
    }
    if to == guest.limits {
        return Err(Error::field("memory", "These are its limits already: change one of them."));
    }
    Ok(())
}

/// What the guest gets more must be free on its node; what it gets less needs no room.
fn promisable(guest: &GuestView, node: &NodeView, most: Limits) -> Result<()> {
    let room = |limits| Room::of_guest(limits, guest.backing, guest.size);
    let more = room(most).without(room(guest.limits));
    let Some(free) = node.free() else { return Ok(()) };
    let refused = |field, has: String, needed: String| {
        let message = format!("{} has {has} free, and {needed} more are needed. Choose less.", node.address);
        Err(Error::field(field, message))
    };
    if more.memory > free.memory {
        return refused("memory", free.memory.gib(), more.memory.gib());
    }
    if more.cpu_millis > free.cpu_millis {
        return refused("cpu", processors(free.cpu_millis), processors(more.cpu_millis));
    }
    Ok(())
}

fn enlargeable(guest: &GuestView, node: &NodeView, size: SizeProfile) -> Result<()> {
    if !guest.backing.has_size() {
        return Err(Error::Conflict(format!(
            "{} is on {}, which fills its node's disk: it has no size to enlarge.",
            guest.name, guest.backing
        )));
    }
    if !matches!(guest.state, GuestState::Running | GuestState::Stopped) {
        return Err(Error::Conflict(format!(
            "{} is {} now; this can't be done in that state.",
            guest.name, guest.state
        )));
    }
    if !guest.size.larger_than().any(|larger| larger == size) {
        let message = format!("It has {} already, and storage does not shrink: choose a larger size.", guest.size);
        return Err(Error::field("size", message));
    }
    guest.storage_free(node, size).map_err(|why| Error::field("size", format!("{why}. Choose a smaller size.")))
}
