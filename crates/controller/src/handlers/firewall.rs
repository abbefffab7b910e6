//! Firewalls: who may reach guests, by whose word, and what was kept out.
//!
//! A rule of a guest or an environment is decided by its project. It lets in addresses, and guests of the same
//! project; never the guests of others, by whatever address. What operators keep out no project lifts.

mod allow;
mod networks;
mod nodes;
mod ports;

use corpus_api::firewall::{
    AllowToGuest, EnvironmentFirewall, GetEnvironmentFirewall, GetGuestFirewall, GuestFirewall, RemoveFirewallRule,
    UnpublishPort,
};
use corpus_api::jobs::JobAccepted;
use corpus_api::{Denied, Operation, Write};
use corpus_domain::{FirewallRuleId, Ipv4Network, RuleAction, RuleState};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use sqlx::PgConnection;

use crate::Controller;
use crate::sagas::firewall_apply;
use crate::store::firewall::{self, Of, RuleChange, RuleRow};
use crate::store::{far, guests, intrusion, nodes as node_rows};

impl Handle<GetGuestFirewall> for Controller {
    async fn handle(&self, permit: Permit<GetGuestFirewall>) -> Result<GuestFirewall> {
        let (id, who, project) = (permit.guest, permit.who(), permit.project()?);
        let environments = permit.environments();
        let mut conn = permit.connection().await?;
        let guest = guests::get(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        let counting = far::counting(&mut conn, id).await?;
        self.services.looked_at.note_firewalls(counting.into_iter().chain([guest.node_id]));
        let node = node_rows::get(&mut conn, guest.node_id).await?.ok_or(Denied::NotFound)?;
        Ok(GuestFirewall {
            guest: id,
            rules: firewall::of(&mut conn, Of::Guest(id)).await?,
            drops: firewall::drops(&mut conn, id).await?,
            signs: intrusion::of_guest(&mut conn, id).await?,
            read_at: firewall::read_at(&mut conn, guest.node_id).await?,
            sources: firewall::sources(&mut conn, Some(project), Some(id), environments.as_deref()).await?,
            may_change: who.can::<AllowToGuest>(Some(project)),
            name: guest.name,
            project: guest.project,
            environment: guest.environment,
            node: guest.node_id,
            node_address: node.public_ip.unwrap_or_else(|| node.address.to_string()),
        })
    }
}

impl Handle<GetEnvironmentFirewall> for Controller {
    async fn handle(&self, permit: Permit<GetEnvironmentFirewall>) -> Result<EnvironmentFirewall> {
        let (asked, who, project) = (permit.operation(), permit.who(), permit.project()?);
        let environments = permit.environments();
        let mut conn = permit.connection().await?;
        Ok(EnvironmentFirewall {
            project: asked.project.clone(),
            environment: asked.environment,
            rules: firewall::of(&mut conn, Of::Environment(project, asked.environment)).await?,
            sources: firewall::sources(&mut conn, Some(project), None, environments.as_deref()).await?,
            may_change: who.can::<AllowToGuest>(Some(project)),
        })
    }
}

impl Handle<RemoveFirewallRule> for Controller {
    async fn handle(&self, mut change: Change<RemoveFirewallRule>) -> Result<Committed<RemoveFirewallRule>> {
        let rule = change.rule;
        let (entry, job) = self.remove_rule(&mut change, rule, None).await?;
        change.commit(entry.entry(), JobAccepted { job }).await
    }
}

impl Handle<UnpublishPort> for Controller {
    async fn handle(&self, mut change: Change<UnpublishPort>) -> Result<Committed<UnpublishPort>> {
        let rule = change.rule;
        let (entry, job) = self.remove_rule(&mut change, rule, Some(RuleAction::Publish)).await?;
        change.commit(entry.entry(), JobAccepted { job }).await
    }
}

/// What the audit tells of a rule that goes.
struct Removed {
    id: FirewallRuleId,
    row: RuleRow,
}

impl Removed {
    fn entry(&self) -> Entry<'_> {
        let action = match self.row.action {
            RuleAction::Allow => "firewall.forbid",
            RuleAction::Publish => "port.unpublish",
            RuleAction::Block => "firewall.unblock",
        };
        let RuleRow { protocol, ports, node_port, .. } = &self.row;
        let detail = json!({ "protocol": protocol, "ports": ports, "node_port": node_port });
        Entry::new(action, &self.row.about).id(self.id.0).detail(detail)
    }
}

impl Controller {
    /// Marks a rule as one that goes, and queues the job that takes it from its nodes.
    async fn remove_rule<O: Operation<Kind = Write>>(
        &self,
        change: &mut Change<O>,
        id: FirewallRuleId,
        only: Option<RuleAction>,
    ) -> Result<(Removed, corpus_domain::JobId)> {
        let tx = change.transaction().await?;
        let row = firewall::hold(tx, id).await?.ok_or(Denied::NotFound)?;
        if only.is_some_and(|action| action != row.action) {
            return Err(Denied::NotFound.into());
        }
        match row.state {
            RuleState::InForce => {}
            RuleState::Wanted => {
                let message = "This rule is just being brought to its node. Cancel that job, or wait for it.";
                return Err(Error::Conflict(message.to_owned()));
            }
            RuleState::Removing => return Err(Error::Conflict("This rule is being removed already.".to_owned())),
        }
        let nodes = firewall::nodes_of(tx, &[id]).await?;
        firewall::set_state(tx, &[id], RuleState::Removing).await?;
        let title = match (row.node_port, row.protocol) {
            (Some(port), Some(protocol)) => format!("Unpublish port {port}/{protocol} of {}", row.about),
            _ => format!("Remove a firewall rule of {}", row.about),
        };
        let removed = RuleChange { removed: vec![id], ..RuleChange::default() };
        let job = firewall_apply::job(title, nodes, removed);
        let job = row.project.into_iter().fold(job, corpus_jobs::NewJob::project);
        let job = row.guest.into_iter().fold(job, corpus_jobs::NewJob::guest);
        let job = self.queue(change, job).await?;
        Ok((Removed { id, row }, job))
    }
}

/// Refuses addresses that are guests: they are let in by name, and only by their own project.
async fn are_no_guests(conn: &mut PgConnection, field: &'static str, networks: &[Ipv4Network]) -> Result<()> {
    for guests in firewall::guest_networks(conn).await? {
        let own = Ipv4Network::new(guests.network(), guests.prefix());
        if let Some(inside) = networks.iter().find(|one| own.holds(**one)) {
            let message = format!("{inside} is in the network of guests, {own}: name a guest of the project instead.");
            return Err(Error::field(field, message));
        }
    }
    Ok(())
}
