//! What operators decide of firewalls: who reaches all guests of a node, and who reaches none of any.

use corpus_api::firewall::RuleAccepted;
use corpus_api::firewall::nodes::{AllowToNode, BlockAtNode, BlockEverywhere, GetNodeFirewall, NodeFirewall};
use corpus_api::words::Label;
use corpus_api::{Denied, Operation, Write};
use corpus_domain::{Ipv4Network, NodeId, NodeState, PortRange, RuleAction, RuleSource, Transport};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use sqlx::PgConnection;

use super::allow::{New, outside_source, told};
use super::are_no_guests;
use crate::Controller;
use crate::store::firewall::{self, Of, Source, Target, networks};
use crate::store::infrastructure;
use crate::store::nodes::{self, Node};

impl Handle<GetNodeFirewall> for Controller {
    async fn handle(&self, permit: Permit<GetNodeFirewall>) -> Result<NodeFirewall> {
        let id = permit.node;
        self.services.looked_at.note_firewalls([id]);
        let mut conn = permit.connection().await?;
        let node = nodes::get(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        Ok(NodeFirewall {
            node: id,
            address: node.address,
            rules: firewall::of(&mut conn, Of::Node(id)).await?,
            published: firewall::published_on(&mut conn, id).await?,
            sources: firewall::sources(&mut conn, None, None, None).await?,
        })
    }
}

impl Handle<AllowToNode> for Controller {
    async fn handle(&self, mut change: Change<AllowToNode>) -> Result<Committed<AllowToNode>> {
        let asked = change.operation();
        let node = in_service(&mut change, asked.node).await?;
        let only = Some((asked.protocol, asked.ports));
        let new = New {
            action: RuleAction::Allow,
            target: Target::Node(node.id),
            from: outside_source(change.transaction().await?, &asked.from).await?,
            only,
            comment: asked.comment.as_ref(),
            title: format!(
                "Let {} in to {}/{} of all guests on {}",
                asked.from, asked.ports, asked.protocol, node.address
            ),
        };
        let (rule, job) = self.add_rule(&mut change, new).await?;
        let subject = node.address.to_string();
        let entry = Entry::new("firewall.allow", &subject).id(node.id.0).detail(told(&asked.from, only));
        change.commit(entry, RuleAccepted { rule, job }).await
    }
}

impl Handle<BlockAtNode> for Controller {
    async fn handle(&self, mut change: Change<BlockAtNode>) -> Result<Committed<BlockAtNode>> {
        let asked = change.operation();
        let node = in_service(&mut change, asked.node).await?;
        let (target, subject) = (Target::Node(node.id), node.address.to_string());
        let block = Block { from: &asked.from, protocol: asked.protocol, ports: asked.ports };
        let (accepted, only) =
            self.block(&mut change, (target, subject.as_str()), block, asked.comment.as_ref()).await?;
        let entry = Entry::new("firewall.block", &subject).id(node.id.0).detail(told(&asked.from, only));
        change.commit(entry, accepted).await
    }
}

impl Handle<BlockEverywhere> for Controller {
    async fn handle(&self, mut change: Change<BlockEverywhere>) -> Result<Committed<BlockEverywhere>> {
        let asked = change.operation();
        let (target, subject) = (Target::Everywhere, "all nodes");
        let block = Block { from: &asked.from, protocol: asked.protocol, ports: asked.ports };
        let (accepted, only) = self.block(&mut change, (target, subject), block, asked.comment.as_ref()).await?;
        let entry = Entry::new("firewall.block", subject).id(accepted.rule.0).detail(told(&asked.from, only));
        change.commit(entry, accepted).await
    }
}

/// What is to be kept out.
struct Block<'a> {
    from: &'a RuleSource,
    protocol: Option<Transport>,
    ports: Option<PortRange>,
}

impl Controller {
    async fn block<O: Operation<Kind = Write>>(
        &self,
        change: &mut Change<O>,
        (target, subject): (Target, &str),
        block: Block<'_>,
        comment: Option<&Label>,
    ) -> Result<(RuleAccepted, Option<(Transport, PortRange)>)> {
        let only = match (block.protocol, block.ports) {
            (None, None) => None,
            (Some(protocol), ports) => Some((protocol, ports.unwrap_or(PortRange::ALL))),
            (None, Some(_)) => return Err(Error::field("protocol", "Choose TCP or UDP for these ports.")),
        };
        let tx = change.transaction().await?;
        let from = outside_source(tx, block.from).await?;
        let networks = match from {
            Source::Addresses(network) => vec![network],
            Source::Network(id) => {
                networks::list(tx, Some(id)).await?.into_iter().flat_map(|one| one.networks).collect()
            }
            _ => {
                return Err(Error::field("from", "Everybody can't be kept out: choose addresses, or a named network."));
            }
        };
        cuts_nothing_of_ours(tx, "from", &networks).await?;
        let title = format!("Keep {} out of {subject}", block.from);
        let new = New { action: RuleAction::Block, target, from, only, comment, title };
        let (rule, job) = self.add_rule(change, new).await?;
        Ok((RuleAccepted { rule, job }, only))
    }
}

/// Refuses to keep out what Corpus is made of: the servers reach nodes and guests by what would be closed. The node
/// itself refuses too, by where its line comes from.
pub(super) async fn cuts_nothing_of_ours(
    conn: &mut PgConnection,
    field: &'static str,
    networks: &[Ipv4Network],
) -> Result<()> {
    are_no_guests(conn, field, networks).await?;
    for address in infrastructure::addresses(conn).await? {
        if let Some(holds) = networks.iter().find(|one| one.holds(address.into())) {
            let message = format!("{holds} holds {address}, which is a part of Corpus: it would cut itself off.");
            return Err(Error::field(field, message));
        }
    }
    Ok(())
}

/// A node that has a firewall of ours.
async fn in_service<O: Operation<Kind = Write>>(change: &mut Change<O>, id: NodeId) -> Result<Node> {
    let tx = change.transaction().await?;
    nodes::lock(tx, id).await?;
    let node = nodes::get(tx, id).await?.ok_or(Denied::NotFound)?;
    if matches!(node.state, NodeState::Ready | NodeState::Draining) {
        return Ok(node);
    }
    Err(Error::Conflict(format!("{} is {}; it has rules once it is in service.", node.address, node.state)))
}
