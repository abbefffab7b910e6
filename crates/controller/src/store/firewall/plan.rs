//! What the rules come to on one node, for the guests that are on it now.
//!
//! A guest is let in by its address, and only where it is: on this node, with a route. So when guests come and go,
//! which brings their node a new plan anyway, the rules follow.

use std::net::Ipv4Addr;

use corpus_domain::{FirewallRuleId, GuestNetwork, Ipv4Network, NodeId, RuleAction};
use corpus_protocol::{Block, FirewallRule, PublishedPort};
use sqlx::PgConnection;

use super::super::{number, word};
use super::range;

/// The parts of a plan that come from rules.
#[derive(Debug, Default)]
pub struct Parts {
    /// What is let in.
    pub rules: Vec<FirewallRule>,
    /// What is published.
    pub published: Vec<PublishedPort>,
    /// What is kept out.
    pub blocks: Vec<Block>,
}

/// Reads them. Addresses inside the guests' network are guests, and let in by their names only.
pub async fn read(conn: &mut PgConnection, node: NodeId, network: GuestNetwork) -> sqlx::Result<Parts> {
    let rows = sqlx::query!(
        r#"with here as (
               select id, project_id, environment, ip from guests
               where node_id = $1 and routed and ip is not null)
           select r.id, r.action, r.source, r.network, coalesce(w.networks, '{}') as "networks!", r.protocol,
               r.first_port, r.last_port, r.node_port,
               array(select t.ip from here t
                     where case when r.guest_id is not null then t.id = r.guest_id
                         when r.environment is not null
                             then t.project_id = r.project_id and t.environment = r.environment
                         else r.action = 'allow' end order by t.ip) as "targets!: Vec<String>",
               array(select s.ip from here s
                     where s.id = r.source_guest_id
                         or (s.project_id = r.project_id and s.environment = r.source_environment)
                     order by s.ip) as "sources!: Vec<String>"
           from firewall_rules r left join named_networks w on w.id = r.network_id
           where r.state <> 'removing' and r.id in (
               select id from firewall_rules where node_id = $1
               union select id from firewall_rules where action = 'block' and node_id is null
               union select f.id from firewall_rules f join here h on h.id = f.guest_id
               union select f.id from firewall_rules f
               join here h on h.project_id = f.project_id and h.environment = f.environment)
           order by r.id"#,
        node.0,
    )
    .fetch_all(conn)
    .await?;
    let own = Ipv4Network::new(network.network(), network.prefix());
    let mut plan = Parts::default();
    for row in rows {
        let id = FirewallRuleId(row.id);
        let targets = row.targets.iter().map(|ip| word(ip)).collect::<sqlx::Result<Vec<Ipv4Addr>>>()?;
        let mut from: Vec<Ipv4Network> = match row.source.as_str() {
            "anywhere" => vec![Ipv4Network::ANY],
            "addresses" => row.network.as_deref().map(word).into_iter().collect::<sqlx::Result<_>>()?,
            "network" => row.networks.iter().map(|one| word(one)).collect::<sqlx::Result<_>>()?,
            _ => Vec::new(),
        };
        from.retain(|one| !own.holds(*one));
        for guest in &row.sources {
            from.push(word::<Ipv4Addr>(guest)?.into());
        }
        let ports = range(row.first_port, row.last_port)?;
        let only = row.protocol.as_deref().map(word).transpose()?.zip(ports);
        match (word::<RuleAction>(&row.action)?, only, row.node_port, targets.first().copied()) {
            (RuleAction::Allow, Some((protocol, ports)), _, Some(_)) if !from.is_empty() => {
                plan.rules.push(FirewallRule { id, from, to: targets, protocol, ports });
            }
            (RuleAction::Publish, Some((protocol, ports)), Some(port), Some(to)) if !from.is_empty() => {
                let (port, to_port) = (number(port)?, ports.first());
                plan.published.push(PublishedPort { id, protocol, port, to, to_port, from });
            }
            (RuleAction::Block, only, ..) if !from.is_empty() => plan.blocks.push(Block { id, from, only }),
            _ => {}
        }
    }
    Ok(plan)
}
