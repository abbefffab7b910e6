//! Compute nodes: what is wanted of them and what was last observed.

mod lines;

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use corpus_api::nodes::NodePool;
use corpus_domain::{
    Backing, Bytes, Environment, Factor, GuestNetwork, NodeAddress, NodeId, NodeName, NodeState, Overcommit,
    Reachability, Room, UnixUser, UserId,
};
use corpus_protocol::{Facts, Reading};
use sqlx::PgConnection;
use uuid::Uuid;

pub use lines::{Line, line, lines};

use super::drift::Finding;
use super::{fingerprint, json_opt, node_gateways, number, room, word, word_opt};
use crate::nodes::{Gateway, InvalidHostKey, NodeEndpoint};

/// A node with all that is known of it.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// Where it answers SSH; also its name on pages.
    pub address: NodeAddress,
    /// Its SSH port.
    pub ssh_port: u16,
    /// The account that the controller uses.
    pub ssh_user: UnixUser,
    /// The pinned host key, `algorithm base64`.
    pub host_key: String,
    /// Its fingerprint as `ssh-keygen -l` prints it, `SHA256:…`.
    pub fingerprint: String,
    /// What it is reached through, if it does not answer from here.
    pub gateway: Option<Box<Gateway>>,
    /// Where its guests' names point to.
    pub public_ip: Option<String>,
    /// The same by IPv6.
    pub public_ipv6: Option<String>,
    /// The environments it takes guests of.
    pub environments: Vec<Environment>,
    /// What it is good for.
    pub state: NodeState,
    /// Why, for a failed one.
    pub state_reason: Option<String>,
    /// Whether it answers.
    pub reachability: Reachability,
    /// What was wrong at the last reading.
    pub reachability_reason: Option<String>,
    /// The guests' network.
    pub network: GuestNetwork,
    /// The bridge.
    pub bridge: String,
    /// Room for guests: those that are there, and how many more of size `small` fit.
    pub slots: u32,
    /// Slots in use.
    pub guests: u32,
    /// What it has, once it told.
    pub capacity: Option<Room>,
    /// What its guests were promised: of storage, in the file system that they share.
    pub promised: Room,
    /// Pools in which guests on some backings lie instead.
    pub pools: Vec<NodePool>,
    /// How much more than it has may be promised.
    pub overcommit: Overcommit,
    /// What it is.
    pub facts: Option<Facts>,
    /// When that was read.
    pub facts_at: Option<DateTime<Utc>>,
    /// How it was at the last reading.
    pub reading: Option<Reading>,
    /// What was not as it should be at the last check.
    pub drift: Vec<Finding>,
    /// When that check was.
    pub checked_at: Option<DateTime<Utc>>,
}

impl Node {
    /// Where it answers, and by what it is recognised.
    pub fn endpoint(&self) -> Result<NodeEndpoint, InvalidHostKey> {
        Ok(NodeEndpoint {
            id: self.id,
            address: self.address.clone(),
            port: self.ssh_port,
            user: self.ssh_user.clone(),
            pinned_host_key: self.host_key.parse()?,
            gateway: self.gateway.clone(),
        })
    }

    /// What may be promised still; none when it has not told yet what it has.
    pub fn free(&self) -> Option<Room> {
        Some(self.capacity?.overcommitted(self.overcommit).without(self.promised))
    }

    /// The same for guests on this backing, whose storage may be in a pool of its own.
    pub fn free_on(&self, backing: Backing) -> Option<Room> {
        let pool = self.pool(backing).map(|pool| {
            let all = Room { storage: pool.room, ..Room::default() }.overcommitted(self.overcommit);
            Bytes(all.storage.0.saturating_sub(pool.promised.0))
        });
        self.free().map(|free| Room { storage: pool.unwrap_or(free.storage), ..free })
    }

    /// The pool that guests on this backing lie in, if that is not the file system that the others share.
    pub fn pool(&self, backing: Backing) -> Option<&NodePool> {
        self.pools.iter().find(|pool| pool.backing == backing)
    }

    /// How many more guests of size `small` fit; none unless it is ready.
    pub fn free_slots(&self) -> u32 {
        if self.state == NodeState::Ready { self.slots.saturating_sub(self.guests) } else { 0 }
    }
}

/// A host that is about to become a node.
#[derive(Debug)]
pub struct NewNode<'a> {
    /// Its id, chosen by the caller.
    pub id: NodeId,
    /// Where it answers SSH.
    pub address: &'a NodeAddress,
    /// Its SSH port.
    pub ssh_port: u16,
    /// The account on it.
    pub ssh_user: &'a UnixUser,
    /// The confirmed host key, `algorithm base64`.
    pub host_key: &'a str,
    /// The environments that it takes guests of.
    pub environments: &'a [Environment],
    /// The guests' network.
    pub network: GuestNetwork,
    /// The bridge.
    pub bridge: &'a str,
}

/// Keeps a node that is being linked; an address and port that are there already break the unique rule.
pub async fn insert(conn: &mut PgConnection, node: &NewNode<'_>, by: UserId) -> sqlx::Result<()> {
    let environments: Vec<String> = node.environments.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "insert into nodes (id, address, ssh_port, ssh_user, host_key, environments, state, network, bridge, created_by)
         values ($1, $2, $3, $4, $5, $6, 'linking', $7, $8, $9)",
        node.id.0,
        node.address.to_string(),
        i32::from(node.ssh_port),
        node.ssh_user.as_str(),
        node.host_key,
        &environments,
        node.network.to_string(),
        node.bridge,
        by.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// All nodes, or the one; by address.
pub async fn list(conn: &mut PgConnection, only: Option<NodeId>) -> sqlx::Result<Vec<Node>> {
    let rows = sqlx::query!(
        "select n.*, p.guests as \"guests!\", p.memory as \"promised_memory!\", p.cpu_millis as \"promised_cpu!\",
                p.storage as \"promised_storage!\", l.pools as pools_told,
                (select to_jsonb(w) from node_gateways w where w.node_id = n.id) as gateway
         from nodes n cross join lateral (
             select count(*) as guests, coalesce(sum(g.memory), 0)::bigint as memory,
                 coalesce(sum(g.cpu_millis), 0)::bigint as cpu_millis,
                 coalesce(sum(g.storage) filter (where not n.pools ? g.backing), 0)::bigint as storage
             from guests g where g.node_id = n.id) p
         cross join lateral (
             select jsonb_agg(jsonb_build_object('backing', key, 'room', value, 'promised', (
                 select coalesce(sum(g.storage), 0) from guests g where g.node_id = n.id and g.backing = key))
                 order by key) as pools
             from jsonb_each(n.pools)) l
         where $1::uuid is null or n.id = $1 order by n.address, n.ssh_port",
        only.map(|id| id.0),
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let capacity = room::of(row.memory, row.cpu_millis, row.storage)?;
            let overcommit = Overcommit {
                memory: room::factor(row.memory_overcommit)?,
                cpu: room::factor(row.cpu_overcommit)?,
                storage: room::factor(row.storage_overcommit)?,
            };
            let promised = room::of(Some(row.promised_memory), Some(row.promised_cpu), Some(row.promised_storage))?;
            let promised = promised.unwrap_or_default();
            let free = capacity.map(|has| has.overcommitted(overcommit).without(promised));
            Ok(Node {
                id: NodeId(row.id),
                address: word(&row.address)?,
                ssh_port: number(row.ssh_port)?,
                ssh_user: word(&row.ssh_user)?,
                fingerprint: fingerprint(&row.host_key)?,
                host_key: row.host_key,
                gateway: node_gateways::read(row.gateway)?,
                public_ip: row.public_ip,
                public_ipv6: row.public_ipv6,
                environments: row.environments.iter().map(|text| word(text)).collect::<sqlx::Result<_>>()?,
                state: word(&row.state)?,
                state_reason: row.state_reason,
                reachability: word(&row.reachability)?,
                reachability_reason: row.reachability_reason,
                network: word(&row.network)?,
                bridge: row.bridge,
                slots: room::slots(number(row.slots)?, number(row.guests)?, free),
                guests: number(row.guests)?,
                capacity,
                promised,
                pools: json_opt(row.pools_told)?.unwrap_or_default(),
                overcommit,
                facts: json_opt(row.facts)?,
                facts_at: row.facts_at,
                reading: json_opt(row.reading)?,
                drift: json_opt(Some(row.drift))?.unwrap_or_default(),
                checked_at: row.checked_at,
            })
        })
        .collect()
}

/// The one node.
pub async fn get(conn: &mut PgConnection, id: NodeId) -> sqlx::Result<Option<Node>> {
    Ok(list(conn, Some(id)).await?.pop())
}

/// Whether a node is linked, or about to be, at this address and port.
pub async fn is_known(conn: &mut PgConnection, address: &NodeAddress, port: u16) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        "select exists (select from nodes where address = $1 and ssh_port = $2) as \"known!\"",
        address.to_string(),
        i32::from(port),
    );
    found.fetch_one(conn).await
}

/// How much more than the node has may be promised.
pub async fn overcommit(conn: &mut PgConnection, id: NodeId) -> sqlx::Result<Option<Overcommit>> {
    let row =
        sqlx::query!("select memory_overcommit, cpu_overcommit, storage_overcommit from nodes where id = $1", id.0);
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    Ok(Some(Overcommit {
        memory: room::factor(row.memory_overcommit)?,
        cpu: room::factor(row.cpu_overcommit)?,
        storage: room::factor(row.storage_overcommit)?,
    }))
}

/// Gives the node a name, which no other one has, or takes it away.
pub async fn set_name(conn: &mut PgConnection, id: NodeId, name: Option<&NodeName>) -> sqlx::Result<()> {
    let named = sqlx::query!("update nodes set name = $2 where id = $1", id.0, name.map(NodeName::as_str));
    named.execute(conn).await.map(drop)
}

/// The name that people know it by.
pub async fn name(conn: &mut PgConnection, id: NodeId) -> sqlx::Result<Option<NodeName>> {
    let found = sqlx::query_scalar!("select name from nodes where id = $1", id.0).fetch_optional(conn).await?;
    word_opt(found.flatten().as_deref())
}

/// Holds the node's row until the transaction ends, so that slots are counted by one at a time.
pub async fn lock(conn: &mut PgConnection, id: NodeId) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!("select id from nodes where id = $1 for update", id.0).fetch_optional(conn).await
}

/// Moves the node to a state if it is in one of `from`; tells whether it was.
pub async fn set_state(
    conn: &mut PgConnection,
    id: NodeId,
    from: &[NodeState],
    to: NodeState,
    reason: Option<&str>,
) -> sqlx::Result<bool> {
    let from: Vec<String> = from.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "update nodes set state = $3, state_reason = $4 where id = $1 and state = any($2)",
        id.0,
        &from,
        to.as_str(),
        reason,
    )
    .execute(conn)
    .await
    .map(|done| done.rows_affected() == 1)
}

/// Keeps what the host is, and where names of its guests point to.
pub async fn set_facts(conn: &mut PgConnection, id: NodeId, facts: &Facts, public_ip: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update nodes set facts = $2, facts_at = now(), public_ip = $3, public_ipv6 = $4 where id = $1",
        id.0,
        serde_json::to_value(facts).map_err(|error| sqlx::Error::Encode(Box::new(error)))?,
        public_ip,
        public_v6(facts),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Keeps what the host is where that is not what was known; what it uses is in its readings.
pub async fn refresh_facts(conn: &mut PgConnection, id: NodeId, facts: &Facts) -> sqlx::Result<()> {
    sqlx::query!(
        "update nodes set facts = $2, facts_at = now()
         where id = $1 and facts #- '{storage,used}' #- '{storage,promised}' #- '{listeners}'
             is distinct from $2 #- '{storage,used}' #- '{storage,promised}' #- '{listeners}'",
        id.0,
        serde_json::to_value(facts).map_err(|error| sqlx::Error::Encode(Box::new(error)))?,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The first of its addresses that is reached from everywhere by IPv6 (RFC 4291, section 2.4: `2000::/3`).
fn public_v6(facts: &Facts) -> Option<String> {
    facts.addresses.iter().find_map(|address| match address {
        IpAddr::V6(v6) if v6.segments().first().is_some_and(|first| first & 0xe000 == 0x2000) => Some(v6.to_string()),
        _ => None,
    })
}

/// Keeps a reading: the node answers.
pub async fn set_reading(conn: &mut PgConnection, id: NodeId, reading: &Reading) -> sqlx::Result<()> {
    sqlx::query!(
        "update nodes set reading = $2, reading_at = now() where id = $1",
        id.0,
        serde_json::to_value(reading).map_err(|error| sqlx::Error::Encode(Box::new(error)))?,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whether a node is linked and stays so.
pub async fn is_linked(conn: &mut PgConnection, id: NodeId) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        "select exists (select from nodes where id = $1 and state not in ('linking', 'unlinking')) as \"linked!\"",
        id.0,
    );
    found.fetch_one(conn).await
}

/// Where all nodes answer that are linked and stay so.
pub async fn endpoints(conn: &mut PgConnection) -> sqlx::Result<Vec<NodeEndpoint>> {
    let rows = sqlx::query!(
        "select id, address, ssh_port, ssh_user, host_key,
                (select to_jsonb(w) from node_gateways w where w.node_id = nodes.id) as gateway
         from nodes where state not in ('linking', 'unlinking')"
    )
    .fetch_all(conn)
    .await?;
    let endpoints = rows.into_iter().map(|row| {
        // A key that can't be read was never confirmed by anybody: that node is not entered.
        let Ok(pinned_host_key) = row.host_key.parse() else { return Ok(None) };
        let (address, port, user) = (word(&row.address)?, number(row.ssh_port)?, word(&row.ssh_user)?);
        let gateway = node_gateways::read(row.gateway)?;
        Ok(Some(NodeEndpoint { id: NodeId(row.id), address, port, user, pinned_host_key, gateway }))
    });
    endpoints.filter_map(Result::transpose).collect()
}

/// Keeps whether the node answers; `reachability_since` moves only with a change, and a node
/// that comes back is due for a check.
pub async fn set_reachability(
    conn: &mut PgConnection,
    id: NodeId,
    reachability: Reachability,
    reason: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update nodes set reachability_since = case when reachability = $2 then reachability_since else now() end,
             check_due_at = case when reachability = $2 then check_due_at else now() end,
             reachability = $2, reachability_reason = $3 where id = $1",
        id.0,
        reachability.as_str(),
        reason,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Pins another host key, after a person confirmed it; none, and that of its gateway was.
pub async fn set_host_key(conn: &mut PgConnection, id: NodeId, host_key: Option<&str>) -> sqlx::Result<()> {
    sqlx::query!(
        "update nodes set host_key = coalesce($2, host_key), reachability = 'unknown', reachability_since = now(),
             reachability_reason = null where id = $1",
        id.0,
        host_key,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Sets how much more than the node has may be promised.
pub async fn set_overcommit(conn: &mut PgConnection, id: NodeId, overcommit: Overcommit) -> sqlx::Result<()> {
    let percent = |factor: Factor| i32::try_from(factor.percent()).unwrap_or(i32::MAX);
    sqlx::query!(
        "update nodes set memory_overcommit = $2, cpu_overcommit = $3, storage_overcommit = $4 where id = $1",
        id.0,
        percent(overcommit.memory),
        percent(overcommit.cpu),
        percent(overcommit.storage),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Sets how many guests the node takes at most.
pub async fn set_slots(conn: &mut PgConnection, id: NodeId, slots: u32) -> sqlx::Result<()> {
    sqlx::query!("update nodes set slots = $2 where id = $1", id.0, i32::try_from(slots).unwrap_or(i32::MAX))
        .execute(conn)
        .await
        .map(drop)
}

/// Forgets a node; a guest still on it breaks the foreign key.
pub async fn delete(conn: &mut PgConnection, id: NodeId) -> sqlx::Result<()> {
    sqlx::query!("delete from nodes where id = $1", id.0).execute(conn).await.map(drop)
}
