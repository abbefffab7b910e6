//! The DNS names of nodes themselves: their addresses, and what their addresses point back to.

use std::net::IpAddr;

use corpus_api::Denied;
use corpus_api::names::{GetNodeDnsName, NodeDnsName, SetNodeDnsName};
use corpus_domain::DnsName;
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use sqlx::PgConnection;

use super::zones::dns_error;
use crate::Controller;
use crate::dns::{Content, DnsError, Owner, Record, reverse};
use crate::store::names::Held;
use crate::store::pointers as guest_pointers;
use crate::store::{names, node_dns_names, nodes, zones};

impl Handle<GetNodeDnsName> for Controller {
    async fn handle(&self, permit: Permit<GetNodeDnsName>) -> Result<NodeDnsName> {
        let found = node_dns_names::get(&mut *permit.connection().await?, permit.node).await?;
        Ok(NodeDnsName { name: found.map(|(name, _)| name) })
    }
}

impl Handle<SetNodeDnsName> for Controller {
    async fn handle(&self, mut change: Change<SetNodeDnsName>) -> Result<Committed<SetNodeDnsName>> {
        let (id, name) = (change.node, change.name.clone());
        let tx = change.transaction().await?;
        nodes::lock(tx, id).await?;
        let node = nodes::get(tx, id).await?.ok_or(Denied::NotFound)?;
        let before = node_dns_names::get(tx, id).await?;
        let addresses: Vec<IpAddr> =
            node.public_ip.iter().chain(&node.public_ipv6).filter_map(|ip| ip.parse().ok()).collect();
        let held = match &name {
            Some(name) => Some(keep(tx, &node, name, &addresses).await?),
            None => None,
        };
        if name.is_none() {
            node_dns_names::delete(tx, id).await?;
        }
        let pointers = pointers(tx, &addresses).await?;
        if let (Some(name), Some(held)) = (&name, &held) {
            self.write(name, held, &addresses).await?;
            for (of, held) in &pointers {
                self.point(of, held, name).await?;
            }
        } else {
            for (of, held) in &pointers {
                self.erase(of, held).await?;
            }
        }
        if let Some((old, held)) = before.as_ref().filter(|(old, _)| Some(old) != name.as_ref()) {
            self.erase(old, held).await?;
        }
        let detail = json!({ "name": name, "before": before.map(|(old, _)| old) });
        let subject = node.address.to_string();
        let entry = Entry::new("node.dns_name", &subject).id(id.0).detail(detail);
        change.commit(entry, NodeDnsName { name }).await
    }
}

/// Keeps the name, if it is one that a node may have.
async fn keep(conn: &mut PgConnection, node: &nodes::Node, name: &DnsName, addresses: &[IpAddr]) -> Result<Held> {
    if addresses.is_empty() {
        return Err(Error::field("name", "The node's public address is not known; initialize it again."));
    }
    let Some((zone, held)) = zones::of_name(conn, name).await? else {
        return Err(Error::field("name", format!("{name} is in no zone of ours: make its zone under DNS.")));
    };
    names::hold_all(conn).await?;
    if node_dns_names::is_taken(conn, name, node.id).await? {
        return Err(Error::field("name", format!("{name} leads somewhere already; take another name.")));
    }
    node_dns_names::set(conn, node.id, name, zone).await?;
    Ok(held)
}

/// The reverse names of addresses, as far as zones of ours hold them.
async fn pointers(conn: &mut PgConnection, addresses: &[IpAddr]) -> Result<Vec<(DnsName, Held)>> {
    let mut found = Vec::new();
    for (address, of) in addresses.iter().filter_map(|address| Some((address, reverse(*address)?))) {
        // One that a guest of another node has as well, and was given first, says that guest's name.
        if guest_pointers::is_of_guest(conn, &address.to_string()).await? {
            continue;
        }
        if let Some((_, held)) = zones::of_name(conn, &of).await? {
            found.push((of, held));
        }
    }
    Ok(found)
}

impl Controller {
    async fn write(&self, name: &DnsName, held: &Held, addresses: &[IpAddr]) -> Result<()> {
        let content = Content::Addresses(addresses.to_vec());
        let record = Record { zone: held.zone.clone(), owner: Owner::from(name), content, ttl_s: held.ttl_s };
        self.provider(&held.provider)?.dns.ensure_record(&record).await.map_err(dns_error)
    }

    /// What others say of an address stays as it is.
    async fn point(&self, of: &DnsName, held: &Held, to: &DnsName) -> Result<()> {
        let content = Content::Pointer(to.clone());
        let record = Record { zone: held.zone.clone(), owner: Owner::from(of), content, ttl_s: held.ttl_s };
        match self.provider(&held.provider)?.dns.ensure_record(&record).await {
            Ok(()) | Err(DnsError::Foreign { .. }) => Ok(()),
            Err(error) => Err(dns_error(error)),
        }
    }

    async fn erase(&self, name: &DnsName, held: &Held) -> Result<()> {
        let dns = &self.provider(&held.provider)?.dns;
        dns.remove_record(&held.zone, &Owner::from(name)).await.map(drop).map_err(dns_error)
    }
}
