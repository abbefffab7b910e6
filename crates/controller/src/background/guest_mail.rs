//! Reading what became of mail of guests: of every node now and then, since nodes keep it for a day, and sooner while
//! somebody looks at it. Where no relay is configured for guests, no node is asked.

use std::time::Duration;

use chrono::Utc;
use corpus_domain::NodeId;
use corpus_protocol::{Answer, Request};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::nodes::Call;
use crate::store::{guest_mail, nodes};
use crate::{Controller, Error, Result};

/// How often a node whose guests' mail somebody looks at is read.
const SOON: Duration = Duration::from_secs(5);
/// How often it is looked which of those are due.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is looked which of all are.
const INTERVAL: Duration = Duration::from_secs(30);
/// How long a node may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Nodes asked at once.
const NODES_AT_ONCE: usize = 16;

impl Controller {
    /// Reads it until `stop`.
    pub(crate) async fn read_mail_of_guests(self, stop: CancellationToken) {
        if self.services.settings.surroundings.mail.is_none() {
            return;
        }
        let (mut look, mut all) = (tokio::time::interval(POLL_INTERVAL), tokio::time::interval(INTERVAL));
        let mut asking = JoinSet::new();
        loop {
            let room = NODES_AT_ONCE.saturating_sub(asking.len());
            let due = tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = asking.join_next() => continue,
                _ = look.tick() => self.services.looked_at.take_mail(SOON, room),
                _ = all.tick() => self.mail_is_due(room).await,
            };
            for node in due {
                let controller = self.clone();
                asking.spawn(async move { controller.ask_mail(node).await });
            }
        }
    }

    /// Nodes that were not asked for a while.
    async fn mail_is_due(&self, most: usize) -> Vec<NodeId> {
        let due = async {
            let most = i64::try_from(most).unwrap_or_default();
            guest_mail::take_due(&mut *self.services.db.acquire().await?, most).await
        };
        due.await.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "whose mail is to be read could not be told");
            Vec::new()
        })
    }

    /// A node that does not answer is asked again; it keeps what it counted.
    async fn ask_mail(&self, node: NodeId) {
        if let Err(error) = self.mail_of(node).await {
            tracing::debug!(node.id = %node, error = &error as &dyn std::error::Error, "mail of guests was not read");
        }
    }

    /// Reads what became of mail of a node's guests, and keeps it.
    async fn mail_of(&self, id: NodeId) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let node = nodes::get(&mut conn, id).await?;
        drop(conn);
        let Some((node, endpoint)) = node.and_then(|node| node.endpoint().ok().map(|endpoint| (node, endpoint))) else {
            return Ok(());
        };
        let at = Utc::now();
        let call = Call::new(Request::ReadMail, ANSWER_TIMEOUT).observing();
        let answer = self.services.nodes.call(&endpoint, call, drop).await.map_err(|error| Error::Unavailable {
            message: format!("mail of the guests of {} was not read", node.address),
            source: Box::new(error),
        })?;
        let Answer::Mail { counts } = answer else { return Ok(()) };
        let mut tx = self.services.begin().await?;
        guest_mail::keep(&mut tx, id, at, &counts).await?;
        Ok(tx.commit().await?)
    }
}
