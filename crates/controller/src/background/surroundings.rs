//! What nodes must know of everything around them: where guests don't go, and who answers for our zones.
//!
//! What Corpus is made of is looked up again and again, by each server, and kept in the database,
//! so that a node is told the same by all of them. A host that can't be resolved stays where
//! it was last seen, and the log says so. When something changes, a host, a node, a zone or whom they keep out, each
//! node in service is told at once, and one that was away when it is back. That is no job: it makes
//! nothing that was not there, and a node that was given back meanwhile takes nothing.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use corpus_domain::NodeId;
use corpus_protocol::Request;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::nodes::{Call, NodeError};
use crate::store::surroundings::{self, Notice};
use crate::store::{infrastructure, links, nodes};
use crate::{Controller, Error, Result};

/// How often it is looked around.
const INTERVAL: Duration = Duration::from_secs(30);
/// How long a name may take to resolve.
const LOOKUP: Duration = Duration::from_secs(5);
/// How long a node may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Nodes that are told at once.
const CONCURRENT_NODES: usize = 16;

impl Controller {
    /// Looks around and tells the nodes until `stop`.
    pub(crate) async fn follow_surroundings(self, stop: CancellationToken) {
        let (mut told, mut lost) = (HashMap::new(), BTreeSet::new());
        loop {
            let round = async {
                self.look_around(&mut lost).await?;
                self.tell_nodes(&mut told).await
            };
            if let Err(error) = round.await {
                tracing::warn!(error = &error as &dyn std::error::Error, "what is around the nodes could not be read");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.services.surroundings_changed.notified() => {}
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Keeps where everything is now. What is `lost` was told of in the log already.
    async fn look_around(&self, lost: &mut BTreeSet<String>) -> Result<()> {
        let mut found: Vec<(String, Option<Vec<Ipv4Addr>>)> = Vec::new();
        for host in &self.services.settings.surroundings.hosts {
            let addresses = resolve(host).await;
            if addresses.is_some() {
                lost.remove(host);
            } else if lost.insert(host.clone()) {
                tracing::warn!(host, "can't be resolved: guests are kept from where it was last seen");
            }
            found.push((host.clone(), addresses));
        }
        let mut conn = self.services.db.acquire().await?;
        let of_nodes: Vec<Ipv4Addr> = infrastructure::of_nodes(&mut conn).await?;
        let own = own_addresses(nodes::endpoints(&mut conn).await?.iter().map(|node| node.address.to_string())).await;
        found.push(("the servers".to_owned(), Some(own)));
        found.push(("the nodes".to_owned(), Some(of_nodes.into_iter().filter(|ip| !ip.is_private()).collect())));
        for (host, addresses) in found {
            match addresses {
                Some(addresses) => infrastructure::saw(&mut conn, &host, &addresses).await?,
                None => infrastructure::asked(&mut conn, &host).await?,
            }
        }
        Ok(infrastructure::forget_unasked(&mut conn).await?)
    }

    /// Tells each node in service what it was not told yet.
    async fn tell_nodes(&self, told: &mut HashMap<NodeId, Notice>) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let now = surroundings::read(&mut conn, self.services.around()).await?;
        let mut waiting = infrastructure::nodes_in_service(&mut conn).await?;
        // Those that missed a plan, or are known to others not for long any more.
        let mut behind = links::behind(&mut conn).await?;
        behind.extend(links::due(&mut conn).await?);
        drop(conn);
        told.retain(|node, _| waiting.contains(node));
        waiting.retain(|node| behind.contains(node) || told.get(node) != Some(&now));
        let mut telling = JoinSet::new();
        while !waiting.is_empty() || !telling.is_empty() {
            while telling.len() < CONCURRENT_NODES
                && let Some(node) = waiting.pop()
            {
                let controller = self.clone();
                telling.spawn(async move { (node, controller.tell(node).await) });
            }
            match telling.join_next().await {
                Some(Ok((node, Ok(())))) => drop(told.insert(node, now.clone())),
                Some(Ok((node, Err(error)))) => {
                    tracing::warn!(node.id = %node, error = &error as &dyn std::error::Error, "a node was not told what is around it");
                }
                Some(Err(_)) | None => {}
            }
        }
        Ok(())
    }

    async fn tell(&self, id: NodeId) -> Result<()> {
        let mut tx = self.services.begin().await?;
        let Some(node) = nodes::get(&mut tx, id).await? else { return Ok(()) };
        let plan = self.services.next_plan(&mut tx, id).await?;
        tx.commit().await?;
        let (revision, certificates) = (plan.revision, plan.all_certificates().cloned().collect::<Vec<_>>());
        let Ok(endpoint) = node.endpoint() else { return Ok(()) };
        // Without them everything else is told all the same.
        let put = |request| async {
            let call = Call::new(request, LIMIT).observing();
            self.services.nodes.call(&endpoint, call, drop).await.map_err(|error| {
                let message = format!("{} did not take certificates", endpoint.address);
                Error::Unavailable { message, source: Box::new(error) }
            })
        };
        if let Err(error) = self.services.bring_certificates(&certificates, put).await {
            tracing::warn!(node.id = %id, error = &error as &dyn std::error::Error, "certificates were not brought to a node");
        }
        let call = Call::new(Request::RefreshNode { plan: Box::new(plan) }, LIMIT).observing();
        match self.services.nodes.call(&endpoint, call, drop).await {
            // A later plan was read later: it says all that this one does.
            Err(NodeError::Remote(error)) if error.kind == corpus_protocol::ErrorKind::Fenced => {}
            Err(error) => {
                let message = format!("{} was not told what is around it", node.address);
                return Err(Error::Unavailable { message, source: Box::new(error) });
            }
            Ok(_) => {}
        }
        Ok(links::told(&mut *self.services.db.acquire().await?, id, revision).await?)
    }
}

/// The IPv4 addresses of a host; none when they can't be told. A loopback address leads nowhere from a node.
async fn resolve(host: &str) -> Option<Vec<Ipv4Addr>> {
    let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host((host, 0))).await.ok()?.ok()?;
    Some(found.filter_map(|at| as_v4(at.ip())).collect())
}

fn as_v4(ip: IpAddr) -> Option<Ipv4Addr> {
    match ip.to_canonical() {
        IpAddr::V4(ip) if !ip.is_loopback() && !ip.is_unspecified() => Some(ip),
        _ => None,
    }
}

/// The addresses of this server, as the nodes see it. Nothing is sent for that.
async fn own_addresses(nodes: impl Iterator<Item = String>) -> Vec<Ipv4Addr> {
    let mut found = BTreeSet::new();
    for node in nodes {
        for to in resolve(&node).await.unwrap_or_default() {
            let towards = async {
                let socket = tokio::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
                socket.connect((to, 9)).await?;
                socket.local_addr()
            };
            found.extend(towards.await.ok().and_then(|own| as_v4(own.ip())));
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_of_hosts() {
        assert_eq!(resolve("192.0.2.7").await, Some(vec![Ipv4Addr::new(192, 0, 2, 7)]));
        assert_eq!(resolve("localhost").await, Some(Vec::new()), "it leads nowhere from a node");
        assert_eq!(resolve("nobody.invalid").await, None);
        assert_eq!(own_addresses(["127.0.0.1".to_owned()].into_iter()).await, Vec::<Ipv4Addr>::new());
    }
}
