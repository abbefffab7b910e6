//! What all nodes are told of what is around them, from the rows.

use corpus_protocol::{Egress, ZoneServers};
use sqlx::PgConnection;

use super::{infrastructure, zones};
use crate::surroundings::Surroundings;

/// What all nodes are told.
pub type Notice = (Egress, Vec<ZoneServers>);

/// Reads what all nodes are told.
pub async fn read(conn: &mut PgConnection, decided: &Surroundings) -> sqlx::Result<Notice> {
    let sites = infrastructure::sites(conn).await?;
    let mut denied = infrastructure::addresses(conn).await?;
    denied.extend(&sites);
    denied.sort_unstable();
    denied.dedup();
    let egress = Egress { denied, sites, allowed: decided.allowed.clone() };
    let Some(authority) = decided.authority else { return Ok((egress, Vec::new())) };
    let zones = zones::names(conn).await?.into_iter();
    Ok((egress, zones.map(|zone| ZoneServers { zone, servers: vec![authority] }).collect()))
}
