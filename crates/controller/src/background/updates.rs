//! Asking nodes which updates their guests lack: each once in an hour, since images are built anew once in a week and guests
//! install what they like. What was told grows old on the page of a guest whose node is away.

use std::time::Duration;

use chrono::Utc;
use corpus_domain::NodeId;
use corpus_protocol::{Answer, Request};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::nodes::Call;
use crate::store::{nodes, updates};
use crate::{Controller, Error, Result};

/// How often it is looked which nodes are due.
const INTERVAL: Duration = Duration::from_secs(30);
/// How long a node may take: it reads some millions of bytes for each guest.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);
/// Nodes asked at once.
const NODES_AT_ONCE: usize = 16;

impl Controller {
    /// Asks until `stop`.
    pub(crate) async fn look_for_updates(self, stop: CancellationToken) {
        let mut look = tokio::time::interval(INTERVAL);
        let mut asking = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = asking.join_next() => {}
                _ = look.tick() => {
                    for node in self.updates_are_due(NODES_AT_ONCE.saturating_sub(asking.len())).await {
                        let controller = self.clone();
                        asking.spawn(async move { controller.ask_for_updates(node).await });
                    }
                }
            }
        }
    }

    async fn updates_are_due(&self, most: usize) -> Vec<NodeId> {
        let due = async {
            let most = i64::try_from(most).unwrap_or_default();
            updates::take_due(&mut *self.services.db.acquire().await?, most).await
        };
        due.await.unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "whose updates are to be looked for could not be told"
            );
            Vec::new()
        })
    }

    async fn ask_for_updates(&self, node: NodeId) {
        if let Err(error) = self.updates_of(node).await {
            tracing::debug!(node.id = %node, error = &error as &dyn std::error::Error, "updates of guests were not asked for");
        }
    }

    /// Asks a node, and keeps what it tells.
    pub(crate) async fn updates_of(&self, id: NodeId) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let node = nodes::get(&mut conn, id).await?;
        let guests = updates::asked(&mut conn, id).await?;
        drop(conn);
        let Some((node, endpoint)) = node.and_then(|node| node.endpoint().ok().map(|endpoint| (node, endpoint))) else {
            return Ok(());
        };
        if guests.is_empty() {
            return Ok(());
        }
        let at = Utc::now();
        let call = Call::new(Request::ReadUpdates { guests }, ANSWER_TIMEOUT).observing();
        let answer = self.services.nodes.call(&endpoint, call, drop).await.map_err(|error| Error::Unavailable {
            message: format!("the updates of the guests of {} were not told", node.address),
            source: Box::new(error),
        })?;
        let Answer::Updates { guests } = answer else { return Ok(()) };
        let mut tx = self.services.begin().await?;
        updates::keep(&mut tx, id, at, &guests).await?;
        Ok(tx.commit().await?)
    }
}
