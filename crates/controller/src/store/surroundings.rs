//! What all nodes are told of what is around them, and whom they keep out for a while, from the rows.

use corpus_domain::SourceAddress;
use corpus_protocol::{Egress, ZoneServers};
use sqlx::PgConnection;

use super::intrusion::blocks;
use super::{infrastructure, zones};
use crate::surroundings::Around;

/// What all nodes are told.
pub type Notice = (Egress, Vec<ZoneServers>, Vec<SourceAddress>);

/// Reads what all nodes are told.
pub async fn read(conn: &mut PgConnection, around: Around<'_>) -> sqlx::Result<Notice> {
    let sites = infrastructure::sites(conn).await?;
    let mut denied = infrastructure::addresses(conn).await?;
    denied.extend(&sites);
    denied.sort_unstable();
    denied.dedup();
    let egress = Egress { denied, sites, allowed: around.decided.allowed.clone() };
    let zones = zones::names(conn).await?.into_iter().filter_map(|(zone, provider)| {
        let server = around.dns.get(&provider)?.resolver?;
        Some(ZoneServers { zone, servers: vec![server] })
    });
    let zones = zones.collect();
    Ok((egress, zones, blocks::in_force(conn).await?))
}
