//! Guests of one node that rules let in to guests of another: who goes where, who is open to whom, and by which address each
//! is reached.
//!
//! A guest that is reached from other nodes has an address that stands in for its own, the same at all of them, since
//! networks of nodes may be alike. It is given one when a node is first told of it, and keeps it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use corpus_api::firewall::FarGuest;
use corpus_domain::{FirewallRuleId, GuestId, GuestName, NodeId, PortRange, Transport};
use corpus_protocol::{FirewallRule, OpenGuest, OpenTo, Way, stand_in};
use sqlx::PgConnection;
use uuid::Uuid;

use super::firewall::range;
use super::{number, word};

/// Guests that are told of with a rule.
const TOLD: usize = 20;

/// What of a node's plan is between its guests and those of others.
#[derive(Debug, Default)]
pub struct Far {
    /// Guests of other nodes that those of this one may reach.
    pub ways: Vec<Way>,
    /// Who may reach them.
    pub let_out: Vec<FirewallRule>,
    /// Guests of this node that those of others may reach.
    pub open: Vec<OpenGuest>,
}

impl Far {
    /// Whether there is anything.
    pub const fn is_empty(&self) -> bool {
        self.ways.is_empty() && self.open.is_empty()
    }

    /// The nodes that come to this one.
    pub fn others(&self) -> BTreeSet<NodeId> {
        self.open.iter().flat_map(|one| &one.to).map(|to| to.node).collect()
    }
}

/// Serializes who gives guests their addresses.
const GIVING_CLASS: i32 = 0x6661_7221;

/// Gives an address to each guest that those of this node may reach and that has none. When all are given, such a guest is
/// not reached.
pub async fn give_addresses(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<()> {
    let without = sqlx::query_scalar!(
        r#"select distinct f.target_id as "id!" from far_guests f
           where f.source_node = $1 and f.is_there and f.state <> 'removing'
             and not exists (select from guest_stand_ins i where i.guest_id = f.target_id)
           order by 1"#,
        node.0,
    );
    let without = without.fetch_all(&mut *conn).await?;
    if without.is_empty() {
        return Ok(());
    }
    sqlx::query!("select pg_advisory_xact_lock($1, 0)::text as held", GIVING_CLASS).fetch_one(&mut *conn).await?;
    for guest in without {
        sqlx::query!(
            "insert into guest_stand_ins (guest_id, number)
             select $1, free.number from (
                 select 1 as number where not exists (select from guest_stand_ins where number = 1)
                 union all
                 (select i.number + 1 from guest_stand_ins i
                  where i.number < 65534 and not exists (select from guest_stand_ins o where o.number = i.number + 1)
                  order by i.number limit 1)
                 order by 1 limit 1) free
             on conflict (guest_id) do nothing",
            guest,
        )
        .execute(&mut *conn)
        .await?;
    }
    Ok(())
}

/// What is between the guests of this node and those of others.
pub async fn of_node(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Far> {
    let (ways, let_out) = ways(conn, node).await?;
    Ok(Far { ways, let_out, open: open(conn, node).await? })
}

async fn ways(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<(Vec<Way>, Vec<FirewallRule>)> {
    let rows = sqlx::query!(
        r#"select f.rule_id as "rule_id!", f.first_port, f.last_port, f.source_ip as "source_ip!",
             f.target_name as "target_name!", f.target_node as "target_node!", i.number, n.address, n.public_ip
           from far_guests f join guest_stand_ins i on i.guest_id = f.target_id join nodes n on n.id = f.target_node
           where f.source_node = $1 and f.is_there and f.state <> 'removing'
           order by f.rule_id, i.number, f.source_ip"#,
        node.0,
    );
    let mut ways: BTreeMap<Ipv4Addr, Way> = BTreeMap::new();
    let mut rules: BTreeMap<FirewallRuleId, (PortRange, BTreeSet<Ipv4Addr>, BTreeSet<Ipv4Addr>)> = BTreeMap::new();
    for row in rows.fetch_all(conn).await? {
        let at = [row.public_ip, Some(row.address)].into_iter().flatten().find_map(|text| text.parse().ok());
        // Where that node is nobody knows.
        let Some(((node_ip, stand_in), ports)) =
            at.zip(stand_in(number(row.number)?)).zip(range(row.first_port, row.last_port)?)
        else {
            continue;
        };
        let node = NodeId(row.target_node);
        ways.insert(stand_in, Way { guest: word(&row.target_name)?, stand_in, node, node_ip });
        let new = || (ports, BTreeSet::new(), BTreeSet::new());
        let (_, from, to) = rules.entry(FirewallRuleId(row.rule_id)).or_insert_with(new);
        from.insert(word(&row.source_ip)?);
        to.insert(stand_in);
    }
    let rule = |(id, (ports, from, to)): (_, (_, BTreeSet<Ipv4Addr>, BTreeSet<_>))| FirewallRule {
        id,
        from: from.into_iter().map(Into::into).collect(),
        to: to.into_iter().collect(),
        protocol: Transport::Tcp,
        ports,
    };
    Ok((ways.into_values().collect(), rules.into_iter().map(rule).collect()))
}

async fn open(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<OpenGuest>> {
    let rows = sqlx::query!(
        r#"select distinct f.target_name as "name!", f.target_ip as "ip!", f.source_node as "node!", f.first_port, f.last_port
           from far_guests f where f.target_node = $1 and f.is_there and f.state <> 'removing'"#,
        node.0,
    );
    let mut open: BTreeMap<GuestName, (Ipv4Addr, BTreeMap<NodeId, BTreeSet<u16>>)> = BTreeMap::new();
    for row in rows.fetch_all(conn).await? {
        let Some(ports) = range(row.first_port, row.last_port)? else { continue };
        let ip = word(&row.ip)?;
        let (_, to) = open.entry(word(&row.name)?).or_insert_with(|| (ip, BTreeMap::new()));
        to.entry(NodeId(row.node)).or_default().extend(ports.first()..=ports.last());
    }
    let to = |(node, ports): (_, BTreeSet<u16>)| OpenTo { node, ports: ports.into_iter().collect() };
    let one = |(guest, (ip, nodes)): (_, (_, BTreeMap<_, _>))| OpenGuest {
        guest,
        ip,
        to: nodes.into_iter().map(to).collect(),
    };
    Ok(open.into_iter().map(one).collect())
}

/// The other nodes with guests that this one reaches, or is reached by; whether it has a route or not.
pub async fn beside(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<BTreeSet<NodeId>> {
    let rows = sqlx::query_scalar!(
        r#"select source_node as "node!" from far_guests where target_id = $1
           union
           select target_node from far_guests where source_id = $1"#,
        guest.0,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// The nodes that count what rules of this guest let in from there.
pub async fn counting(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<NodeId>> {
    let rows = sqlx::query_scalar!(
        r#"select distinct source_node as "node!" from far_guests where target_id = $1 and is_there"#,
        guest.0,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// By which addresses guests are reached from other nodes, of each of these rules.
pub async fn reached(conn: &mut PgConnection, rules: &[Uuid]) -> sqlx::Result<BTreeMap<FirewallRuleId, Vec<FarGuest>>> {
    let rows = sqlx::query!(
        r#"select distinct f.rule_id as "rule!", f.target_name as "name!", i.number
           from far_guests f join guest_stand_ins i on i.guest_id = f.target_id
           where f.rule_id = any($1) and f.is_there order by 1, 2"#,
        rules,
    );
    let mut reached: BTreeMap<FirewallRuleId, Vec<FarGuest>> = BTreeMap::new();
    for row in rows.fetch_all(conn).await? {
        let of_rule = reached.entry(FirewallRuleId(row.rule)).or_default();
        if let Some(address) = stand_in(number(row.number)?).filter(|_| of_rule.len() < TOLD) {
            of_rule.push(FarGuest { guest: word(&row.name)?, address });
        }
    }
    Ok(reached)
}
