//! Published ports: a port of a node that leads to one of a guest, whose it may be, and for whom.

use corpus_api::Denied;
use corpus_api::firewall::{MOST_RULES, PortAccepted, PublishPort};
use corpus_api::words::Label;
use corpus_domain::{
    FirewallRuleId, NodeAddress, PUBLISHED_PORTS, PortRange, RuleAction, RuleSource, SSH_PORTS, Transport,
};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::json;
use uuid::Uuid;

use super::allow::{outside_source, standing};
use crate::quotas::More;
use crate::sagas::firewall_apply;
use crate::store::firewall::{self, NewRule, RuleChange, Target};
use crate::store::nodes;
use crate::{Controller, quotas};

impl Handle<PublishPort> for Controller {
    async fn handle(&self, mut change: Change<PublishPort>) -> Result<Committed<PublishPort>> {
        let (asked, who) = (change.operation(), change.who());
        let guest = standing(&mut change, asked.guest).await?;
        if let Some(port) = asked.node_port {
            may_be_published(port.number(), who.ops)?;
        }
        let more = More { ports: 1, ..More::default() };
        quotas::take(&mut change, guest.project_id, more, |_| "node_port").await?;
        let tx = change.transaction().await?;
        let from = asked.from.clone().unwrap_or(RuleSource::Anywhere);
        let source = outside_source(tx, &from).await?;
        let target = Target::Guest(guest.project_id, guest.id);
        firewall::hold_adding(tx, target).await?;
        if firewall::count(tx, target).await? >= MOST_RULES {
            return Err(Error::Conflict(format!("{} has {MOST_RULES} rules already: remove one.", guest.name)));
        }
        // Who takes a port has the node: of two that take the next free one, the second sees the first.
        nodes::lock(tx, guest.node_id).await?;
        let node = nodes::get(tx, guest.node_id).await?.ok_or(Denied::NotFound)?;
        let port = match asked.node_port {
            Some(port) => port.number(),
            None => {
                firewall::free_port(tx, guest.node_id, asked.protocol).await?.ok_or_else(|| all_taken(&node.address))?
            }
        };
        let (id, to) = (FirewallRuleId(Uuid::now_v7()), asked.port.number());
        let rule = NewRule {
            id,
            action: RuleAction::Publish,
            target,
            from: source,
            only: PortRange::between(to, to).map(|ports| (asked.protocol, ports)),
            published: Some((guest.node_id, port)),
            comment: asked.comment.as_ref().map(Label::as_str),
        };
        let inserted = firewall::insert(tx, &rule, who.id).await;
        inserted.map_err(|error| not_free(error, (asked.protocol, port), &node.address))?;
        let added = RuleChange { added: vec![id], ..RuleChange::default() };
        let title = format!("Publish {to}/{} of {} as port {port} of {}", asked.protocol, guest.name, node.address);
        let job = firewall_apply::job(title, vec![guest.node_id], added).project(guest.project_id).guest(guest.id);
        let job = self.queue(&mut change, job).await?;
        let detail = json!({ "protocol": asked.protocol, "port": to, "node_port": port, "from": from });
        let entry = Entry::new("port.publish", guest.name.as_str()).id(guest.id.0).detail(detail);
        change.commit(entry, PortAccepted { rule: id, node_port: port, job }).await
    }
}

/// Ports below 1024 are the node's own services', those of SSH lead to guests already. Others than the usual ones may
/// be something else's on this host: who runs it knows.
fn may_be_published(port: u16, by_ops: bool) -> Result<()> {
    let (first, last) = (PUBLISHED_PORTS.start(), PUBLISHED_PORTS.end());
    let why = if port < 1024 {
        format!("Port {port} is for the node's own services: choose one from {first} to {last}.")
    } else if SSH_PORTS.contains(&port) {
        format!("Port {port} is one of those that lead to SSH of guests: choose one from {first} to {last}.")
    } else if !by_ops && !PUBLISHED_PORTS.contains(&port) {
        format!("Choose a port from {first} to {last}; another one is for an operator to publish.")
    } else {
        return Ok(());
    };
    Err(Error::field("node_port", why))
}

fn all_taken(node: &NodeAddress) -> Error {
    Error::field("node_port", format!("All ports of {node} that can be published are taken."))
}

/// A breach of the database's rules as what it means. Whose a port is that is taken is not told.
fn not_free(error: sqlx::Error, (protocol, port): (Transport, u16), node: &NodeAddress) -> Error {
    let constraint = match &error {
        sqlx::Error::Database(inner) => inner.constraint().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    match constraint.as_str() {
        "firewall_rules_own_line" => {
            Error::field("node_port", format!("Corpus reaches {node} by port {port}: choose another one."))
        }
        "firewall_rules_node_port" => Error::field("node_port", format!("Port {port} can't be published.")),
        _ => Error::taken(error, "node_port", format!("Port {port}/{protocol} of {node} is published already.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_somebody_elses() {
        for (port, by_member, by_ops) in [
            (22, false, false),
            (80, false, false),
            (1023, false, false),
            (8080, false, true),
            (30_000, true, true),
            (39_999, true, true),
            (40_000, false, false),
            (50_000, false, false),
            (50_001, false, true),
        ] {
            let may = (may_be_published(port, false).is_ok(), may_be_published(port, true).is_ok());
            assert_eq!(may, (by_member, by_ops), "{port}");
        }
    }
}
