//! Where a guest is on its node: its address, MAC, SSH port and ids, none of which another one there has, or is promised.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use corpus_domain::{GuestId, GuestNetwork, IdRange, MacAddress, NodeId, SSH_PORTS, SshPort};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::{id_range, ssh_port};
use crate::store::{nodes, word_opt};

/// A guest's place on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its MAC.
    pub mac: MacAddress,
    /// The node's port that leads to its SSH.
    pub ssh_port: SshPort,
    /// What its users are on the node; none for a privileged guest, and for one that an older release placed.
    #[serde(default)]
    pub ids: Option<IdRange>,
}

/// What guests of a node have, those that come to it or have left it, and those that are tried there.
#[derive(Debug, Default)]
pub struct Taken {
    ips: HashSet<String>,
    macs: HashSet<String>,
    ports: HashSet<i32>,
    ranges: HashSet<i64>,
}

impl Taken {
    /// The one asked for if it is free, or the lowest free one.
    pub fn ip(&self, network: GuestNetwork, wanted: Option<Ipv4Addr>) -> Option<Ipv4Addr> {
        let is_free = |ip: &Ipv4Addr| !self.ips.contains(&ip.to_string());
        let wanted = wanted.filter(|ip| network.takes(*ip) && is_free(ip));
        wanted.or_else(|| network.guest_addresses().find(is_free))
    }

    /// The one asked for if it is free, or that of the address.
    pub fn mac(&self, ip: Ipv4Addr, wanted: Option<MacAddress>) -> MacAddress {
        let is_free = |mac: &MacAddress| !self.macs.contains(&mac.to_string());
        wanted.filter(is_free).unwrap_or_else(|| MacAddress::for_ip(ip))
    }

    /// The one asked for if it is free, or the lowest free one.
    pub fn port(&self, wanted: Option<SshPort>) -> Option<i32> {
        let wanted = wanted.map(|port| i32::from(port.get()));
        let is_free = |port: &i32| !self.ports.contains(port);
        wanted.filter(is_free).or_else(|| SSH_PORTS.map(i32::from).find(is_free))
    }

    /// The lowest free ones.
    pub fn ids(&self) -> Option<IdRange> {
        IdRange::all().find(|range| !self.ranges.contains(&i64::from(range.first())))
    }
}

/// What is taken on the node, which is held meanwhile.
pub async fn taken(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Taken> {
    nodes::lock(conn, node).await?;
    let rows = sqlx::query!(
        "select ip, mac, ssh_port, id_range from guests where node_id = $1
         union all
         select ip, mac, ssh_port, id_range from guest_moves where node_id = $1
         union all
         select ip, mac, ssh_port, id_range from backup_proofs where node_id = $1",
        node.0
    );
    let mut taken = Taken::default();
    for row in rows.fetch_all(conn).await? {
        taken.ips.extend(row.ip);
        taken.macs.extend(row.mac);
        taken.ports.extend(row.ssh_port);
        taken.ranges.extend(row.id_range);
    }
    Ok(taken)
}

/// The place of a guest, once it has one.
pub async fn place(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<Option<Place>> {
    let row = sqlx::query!("select ip, mac, ssh_port, id_range from guests where id = $1", id.0);
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    of(row.ip.as_deref(), row.mac.as_deref(), row.ssh_port, row.id_range)
}

/// The place of these columns; none where it was not chosen yet.
pub fn of(ip: Option<&str>, mac: Option<&str>, port: Option<i32>, range: Option<i64>) -> sqlx::Result<Option<Place>> {
    let (Some(ip), Some(mac), Some(port)) = (word_opt(ip)?, word_opt(mac)?, port) else { return Ok(None) };
    Ok(Some(Place { ip, mac, ssh_port: ssh_port(port)?, ids: id_range(range)? }))
}

/// Gives the guest the lowest free address, SSH port and ids of its node, and the MAC of the address,
/// where it has none yet; none of it when something is used up. The node's row is locked meanwhile; the
/// unique rules hold it in any case.
pub async fn allocate(
    conn: &mut PgConnection,
    id: GuestId,
    node: NodeId,
    network: GuestNetwork,
) -> sqlx::Result<Option<Place>> {
    let taken = taken(conn, node).await?;
    let own = sqlx::query!(
        r#"select ip, mac, ssh_port, id_range, privileged_reason is not null as "privileged!"
           from guests where id = $1 and node_id = $2"#,
        id.0,
        node.0
    );
    let Some(own) = own.fetch_optional(&mut *conn).await? else { return Ok(None) };
    let ip = match word_opt(own.ip.as_deref())? {
        Some(ip) => Some(ip),
        None => taken.ip(network, None),
    };
    let port = own.ssh_port.or_else(|| taken.port(None));
    let ids = match id_range(own.id_range)? {
        None if !own.privileged => taken.ids(),
        given => given,
    };
    let (Some(ip), Some(port)) = (ip, port) else { return Ok(None) };
    if ids.is_none() && !own.privileged {
        return Ok(None);
    }
    let mac = word_opt(own.mac.as_deref())?.unwrap_or_else(|| MacAddress::for_ip(ip));
    sqlx::query!(
        "update guests set ip = $2, mac = $3, ssh_port = $4, id_range = $5 where id = $1",
        id.0,
        ip.to_string(),
        mac.to_string(),
        port,
        ids.map(|ids| i64::from(ids.first())),
    )
    .execute(conn)
    .await?;
    Ok(Some(Place { ip, mac, ssh_port: ssh_port(port)?, ids }))
}
