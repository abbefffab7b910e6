//! Addresses that are kept out of all nodes for a while: one row says it for all of them, and is in force until its
//! time is over or somebody lifts it.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use corpus_api::intrusion::BlockedAddress;
use corpus_domain::{BlockId, NodeId, SourceAddress, UserId};
use corpus_protocol::MAX_BLOCKED;
use ipnet::IpNet;
use sqlx::PgConnection;

use super::super::{infrastructure, number, word, word_opt};

/// Serializes who adds blocks, so that there are never more than fit in a plan.
const ADDING: i64 = 0x6275_6c6f_636b;

/// A block that is new.
#[derive(Debug)]
pub struct NewBlock<'a> {
    /// Its id, chosen by the caller.
    pub id: BlockId,
    /// Which address.
    pub address: SourceAddress,
    /// Why, for people.
    pub why: &'a str,
    /// For how long.
    pub minutes: u32,
    /// Who decided it; none: Corpus itself.
    pub by: Option<UserId>,
    /// The one node that told of it.
    pub node: Option<NodeId>,
}

/// Keeps a block; an address that is blocked already breaks the unique rule.
pub async fn insert(conn: &mut PgConnection, block: &NewBlock<'_>) -> sqlx::Result<DateTime<Utc>> {
    let until = sqlx::query_scalar!(
        "insert into blocked_addresses (id, address, why, until, blocked_by, by_hand, told, node_id)
         values ($1, $2, $3, now() + make_interval(mins => $4), $5::uuid, $5 is not null, $5 is not null, $6)
         returning until",
        block.id.0,
        block.address.to_string(),
        block.why,
        i32::try_from(block.minutes).unwrap_or(i32::MAX),
        block.by.map(|id| id.0),
        block.node.map(|id| id.0),
    );
    until.fetch_one(conn).await
}

/// Holds the adding of blocks until the transaction ends, and ends those whose time is over: tells how many more there
/// may be, and whether any ended.
pub async fn hold_adding(conn: &mut PgConnection) -> sqlx::Result<(usize, bool)> {
    sqlx::query!("select pg_advisory_xact_lock($1)::text as held", ADDING).fetch_one(&mut *conn).await?;
    let ended = end_expired(conn).await?;
    let there = usize::try_from(count(conn).await?).unwrap_or(MAX_BLOCKED);
    Ok((MAX_BLOCKED.saturating_sub(there), ended))
}

/// How many are in force.
pub async fn count(conn: &mut PgConnection) -> sqlx::Result<u32> {
    let count = sqlx::query_scalar!(
        "select count(*) as \"count!\" from blocked_addresses where ended_at is null and until > now()"
    );
    number(count.fetch_one(conn).await?)
}

/// How many are in force that this node alone told of.
pub async fn told_by(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<u32> {
    let count = sqlx::query_scalar!(
        "select count(*) as \"count!\" from blocked_addresses where ended_at is null and node_id = $1",
        node.0
    );
    number(count.fetch_one(conn).await?)
}

/// Ends those whose time is over; tells whether there were any.
async fn end_expired(conn: &mut PgConnection) -> sqlx::Result<bool> {
    let ended = sqlx::query!("update blocked_addresses set ended_at = until where ended_at is null and until <= now()");
    Ok(ended.execute(conn).await?.rows_affected() > 0)
}

/// Whether there is a block of which operators were not told.
pub async fn any_untold(conn: &mut PgConnection) -> sqlx::Result<bool> {
    let any = sqlx::query_scalar!("select exists (select from blocked_addresses where not told) as \"any!\"");
    any.fetch_one(conn).await
}

/// Marks all of them as told; tells their addresses.
pub async fn take_untold(conn: &mut PgConnection) -> sqlx::Result<Vec<SourceAddress>> {
    let rows = sqlx::query_scalar!("update blocked_addresses set told = true where not told returning address");
    rows.fetch_all(conn).await?.iter().map(|address| word(address)).collect()
}

/// The addresses that nodes are told to keep out, in an order that stays.
pub async fn in_force(conn: &mut PgConnection) -> sqlx::Result<Vec<SourceAddress>> {
    let rows = sqlx::query_scalar!(
        "select address from blocked_addresses where ended_at is null and until > now() order by address limit $1",
        i64::try_from(MAX_BLOCKED).unwrap_or(i64::MAX),
    );
    rows.fetch_all(conn).await?.iter().map(|address| word(address)).collect()
}

/// Lifts one that is in force; tells its address.
pub async fn lift(conn: &mut PgConnection, id: BlockId, by: UserId) -> sqlx::Result<Option<SourceAddress>> {
    let address = sqlx::query_scalar!(
        "update blocked_addresses set ended_at = now(), lifted = true, lifted_by = $2
         where id = $1 and ended_at is null and until > now() returning address",
        id.0,
        by.0,
    );
    address.fetch_optional(conn).await?.as_deref().map(word).transpose()
}

/// Those that are in force, or those that ended, the newest first; those before one of them.
pub async fn list(
    conn: &mut PgConnection,
    ended: bool,
    before: Option<BlockId>,
    limit: i64,
) -> sqlx::Result<Vec<BlockedAddress>> {
    let rows = sqlx::query!(
        r#"select b.id, b.address, b.why, b.since, b.until, u.login as "by?", l.login as "lifted_by?",
               case when b.ended_at is not null or b.until <= now() then coalesce(b.ended_at, b.until) end as ended_at
           from blocked_addresses b left join users u on u.id = b.blocked_by left join users l on l.id = b.lifted_by
           where (b.ended_at is not null or b.until <= now()) = $1 and ($2::uuid is null or b.id < $2)
           order by b.id desc limit $3"#,
        ended,
        before.map(|id| id.0),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(BlockedAddress {
            id: BlockId(row.id),
            address: word(&row.address)?,
            why: row.why,
            since: row.since,
            until: row.until,
            by: word_opt(row.by.as_deref())?,
            ended_at: row.ended_at,
            lifted_by: word_opt(row.lifted_by.as_deref())?,
        })
    });
    rows.collect()
}

/// Networks of which no address is ever blocked, whoever asks for it.
#[derive(Debug)]
pub struct Spared(Vec<IpNet>);

/// Reads them: what is configured, what Corpus is made of, where nodes are, the networks of guests, and those that
/// operators gave a name, but for those that they keep out by it.
pub async fn spared(conn: &mut PgConnection, configured: &[IpNet]) -> sqlx::Result<Spared> {
    let mut all = configured.to_vec();
    let ours = infrastructure::addresses(conn).await?.into_iter().chain(infrastructure::sites(conn).await?);
    all.extend(ours.map(|address| IpNet::from(IpAddr::V4(address))));
    // What a node says of its own addresses keeps nobody out, but spares.
    let told = sqlx::query_scalar!(
        "select distinct a as \"address!\" from nodes, jsonb_array_elements_text(facts->'addresses') a
         where jsonb_typeof(facts->'addresses') = 'array'"
    );
    let told = told.fetch_all(&mut *conn).await?;
    all.extend(told.iter().filter_map(|text| text.parse::<IpAddr>().ok()).map(IpNet::from));
    let texts = sqlx::query_scalar!(
        r#"select network as "network!" from nodes
           union select unnest(w.networks) from named_networks w
           where not exists (select from firewall_rules r where r.network_id = w.id and r.action = 'block')"#
    );
    // An address with the bits of its network is how a node's network is kept.
    let networks = texts.fetch_all(conn).await?;
    all.extend(networks.iter().filter_map(|text| text.parse::<IpNet>().ok()).map(|network| network.trunc()));
    Ok(Spared(all))
}

impl Spared {
    /// The network for whose sake this address is not blocked.
    pub fn holds(&self, address: SourceAddress) -> Option<IpNet> {
        let first = address.first();
        let is_nowhere = first.is_loopback() || first.is_unspecified() || first.is_multicast();
        let own = match address {
            SourceAddress::V4(address) => IpNet::from(IpAddr::V4(address)),
            SourceAddress::V6(_) => IpNet::new(first, 64).unwrap_or_else(|_| IpNet::from(first)),
        };
        if is_nowhere {
            return Some(own);
        }
        // A single address of a network of IPv6 spares all of it.
        self.0.iter().find(|net| net.contains(&own) || own.contains(*net)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spared() {
        let nets = ["192.0.2.0/24", "2001:db8:1:2::7/128", "2001:db8:8000::/33"].map(|net| net.parse().unwrap());
        let spared = Spared(nets.into());
        let holds = |text: &str| spared.holds(text.parse().unwrap()).is_some();
        for ours in ["192.0.2.7", "2001:db8:1:2::8", "2001:db8:8000:1::1", "127.0.0.1", "::1", "0.0.0.0", "224.0.0.1"] {
            assert!(holds(ours), "{ours}");
        }
        for other in ["192.0.3.7", "2001:db8:1:3::7", "2001:db8:1::1"] {
            assert!(!holds(other), "{other}");
        }
    }
}
