//! Reading what the proxies of nodes counted, once a minute.
//!
//! Whoever asks first has a node for that minute, so it is asked by one of several servers. A node keeps its minutes for a
//! day: what was not read while it was away, or no server ran, is read then.

use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_domain::NodeId;
use corpus_protocol::{Answer, Request, TrafficReading};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::nodes::{Call, NodeEndpoint, NodeError};
use crate::store::nodes;
use crate::store::traffic::{self, readings};
use crate::{Controller, Error, Result};

/// How often a node is read.
const EVERY: Duration = Duration::from_mins(1);
/// How often it is looked what is due.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How long a node may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Nodes asked at once.
const NODES_AT_ONCE: usize = 16;
/// As many readings of a node at a time: what is left then comes a minute later.
const READINGS_AT_ONCE: usize = 8;
/// How often it is looked for what is old.
const FORGET_EVERY: Duration = Duration::from_mins(5);

impl Controller {
    /// Reads what is due until `stop`.
    pub(crate) async fn read_traffic(self, stop: CancellationToken) {
        let mut look = tokio::time::interval(POLL_INTERVAL);
        let mut forget = tokio::time::interval(FORGET_EVERY);
        let mut asking = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = asking.join_next() => {}
                _ = forget.tick() => told(self.forget_traffic().await),
                _ = look.tick() => {
                    let room = NODES_AT_ONCE.saturating_sub(asking.len());
                    match self.due_for_traffic(room).await {
                        Ok(due) => for node in due {
                            let controller = self.clone();
                            asking.spawn(async move { controller.ask_traffic(node).await });
                        },
                        Err(error) => told(Err(error)),
                    }
                }
            }
        }
    }

    async fn due_for_traffic(&self, room: usize) -> Result<Vec<NodeId>> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let mut tx = self.services.begin().await?;
        let room = i64::try_from(room).unwrap_or_default();
        let due = traffic::take_nodes(&mut tx, room, EVERY.as_secs_f64()).await?;
        tx.commit().await?;
        Ok(due)
    }

    /// A node that does not answer is asked again a minute later, and its environments' pages say since when.
    async fn ask_traffic(&self, node: NodeId) {
        if let Err(error) = self.traffic_of(node).await {
            tracing::debug!(node.id = %node, error = &error as &dyn std::error::Error, "what a proxy counted was not read");
        }
    }

    /// Reads what a node has counted since it was read last, and keeps it.
    pub(crate) async fn traffic_of(&self, id: NodeId) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let node = nodes::get(&mut conn, id).await?;
        let mut after = traffic::counted_to(&mut conn, id).await?;
        drop(conn);
        let Some(endpoint) = node.and_then(|node| node.endpoint().ok()) else { return Ok(()) };
        for _ in 0..READINGS_AT_ONCE {
            let reading = self.traffic_after(&endpoint, after).await?;
            let mut tx = self.services.begin().await?;
            let last = readings::keep(&mut tx, id, (after, Utc::now()), &reading).await?;
            tx.commit().await?;
            if last.is_none() || !reading.more {
                break;
            }
            after = last;
        }
        Ok(())
    }

    async fn traffic_after(&self, node: &NodeEndpoint, after: Option<DateTime<Utc>>) -> Result<TrafficReading> {
        let after_ms = after.and_then(|at| u64::try_from(at.timestamp_millis()).ok());
        let call = Call::new(Request::ReadTraffic { after_ms }, ANSWER_TIMEOUT).observing();
        let unread = |error: NodeError| Error::Unavailable {
            message: format!("what the proxy of {} counted was not read", node.address),
            source: Box::new(error),
        };
        match self.services.nodes.call(node, call, drop).await.map_err(unread)? {
            Answer::Traffic(reading) => Ok(*reading),
            _ => Ok(TrafficReading::default()),
        }
    }

    /// Removes what is older than it is kept; each transaction is short.
    pub(crate) async fn forget_traffic(&self) -> Result<()> {
        loop {
            let mut tx = self.services.begin().await?;
            let more = traffic::forget_old(&mut tx).await?;
            tx.commit().await?;
            if !more {
                return Ok(());
            }
        }
    }
}

fn told(done: Result<()>) {
    if let Err(error) = done {
        tracing::warn!(error = &error as &dyn std::error::Error, "what proxies counted could not be kept");
    }
}
