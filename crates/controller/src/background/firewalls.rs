//! Reading what firewalls counted, and what they kept from guests last, while somebody looks at it.
//!
//! Nobody is told of it by itself, so a node is asked only while a page shows its firewall. What it told stays with
//! its time, and grows old.

use std::time::Duration;

use chrono::Utc;
use corpus_domain::NodeId;
use corpus_protocol::{Answer, Request};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::nodes::Call;
use crate::store::firewall::readings;
use crate::store::nodes;
use crate::{Controller, Error, Result};

/// How often a firewall that somebody looks at is read.
const SOON: Duration = Duration::from_secs(5);
/// How often it is looked what is due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long a node may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Nodes asked at once.
const NODES_AT_ONCE: usize = 16;

impl Controller {
    /// Reads the firewalls that are looked at until `stop`.
    pub(crate) async fn read_firewalls(self, stop: CancellationToken) {
        let mut look = tokio::time::interval(POLL_INTERVAL);
        let mut asking = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = asking.join_next() => {}
                _ = look.tick() => {
                    let room = NODES_AT_ONCE.saturating_sub(asking.len());
                    for node in self.services.looked_at.take_firewalls(SOON, room) {
                        let controller = self.clone();
                        asking.spawn(async move { controller.ask_firewall(node).await });
                    }
                }
            }
        }
    }

    /// A node that does not answer keeps what was last seen, which grows old.
    async fn ask_firewall(&self, node: NodeId) {
        if let Err(error) = self.firewall_of(node).await {
            tracing::debug!(node.id = %node, error = &error as &dyn std::error::Error, "a firewall was not read");
        }
    }

    /// Reads a node's firewall, and keeps what it tells.
    pub(crate) async fn firewall_of(&self, id: NodeId) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let node = nodes::get(&mut conn, id).await?;
        drop(conn);
        let Some((node, endpoint)) = node.and_then(|node| node.endpoint().ok().map(|endpoint| (node, endpoint))) else {
            return Ok(());
        };
        let at = Utc::now();
        let call = Call::new(Request::ReadFirewall, ANSWER_TIMEOUT).observing();
        let answer = self.services.nodes.call(&endpoint, call, drop).await.map_err(|error| Error::Unavailable {
            message: format!("the firewall of {} was not read", node.address),
            source: Box::new(error),
        })?;
        let Answer::Firewall(reading) = answer else { return Ok(()) };
        let mut tx = self.services.begin().await?;
        readings::keep(&mut tx, id, at, &reading).await?;
        Ok(tx.commit().await?)
    }
}
