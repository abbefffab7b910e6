//! Watching for signs of intrusion: each node is read every minute, by one server; an address that failed too often at
//! the guests of all nodes together is blocked for a while, on all of them.
//!
//! Nodes are told as they are told of everything around them: a block is a row, which each plan holds until its time is
//! over. What a node tells is believed about its own guests only. That a taken-over one may name whom it pleases is
//! bounded: so many addresses at once, none of ours and none that is trusted, and operators see it and lift it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_api::notices::News;
use corpus_domain::{BlockId, Door, IntrusionKind, SourceAddress};
use corpus_gate::audit::{self, Entry};
use corpus_protocol::{Answer, Request};
use serde_json::json;
use sqlx::PgConnection;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::nodes::Call;
use crate::store::intrusion::{self, Due, Offender, blocks};
use crate::store::nodes;
use crate::{Controller, Error, Result, events};

/// How often a node is read.
const READ_EVERY: Duration = Duration::from_mins(1);
/// How often it is looked which nodes are due, and who failed too often.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// How long a node may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Nodes asked at once.
const NODES_AT_ONCE: usize = 16;
/// So many addresses at once are blocked since one and the same node told of them.
const MOST_OF_ONE_NODE: u32 = 100;
/// As many addresses are named in a notice.
const MOST_NAMED: usize = 20;

impl Controller {
    /// Reads and judges until `stop`.
    pub(crate) async fn watch_for_intrusion(self, stop: CancellationToken) {
        let mut look = tokio::time::interval(POLL_INTERVAL);
        let mut asking = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = asking.join_next() => {}
                _ = look.tick() => {
                    let room = NODES_AT_ONCE.saturating_sub(asking.len());
                    for due in self.due_for_signs(room).await {
                        let controller = self.clone();
                        asking.spawn(async move { controller.ask_for_signs(due).await });
                    }
                    if let Err(error) = self.judge().await {
                        tracing::warn!(error = &error as &dyn std::error::Error, "signs of intrusion were not judged");
                    }
                }
            }
        }
    }

    async fn due_for_signs(&self, room: usize) -> Vec<Due> {
        let due = async {
            let mut tx = self.services.begin().await?;
            let due = intrusion::take_due(&mut tx, i64::try_from(room).unwrap_or_default(), READ_EVERY).await?;
            tx.commit().await.map(|()| due)
        };
        due.await.unwrap_or_else(|error: sqlx::Error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "which nodes are due could not be read");
            Vec::new()
        })
    }

    /// A node that does not answer is asked again in a minute, and goes on from where it was read.
    async fn ask_for_signs(&self, due: Due) {
        if let Err(error) = self.signs_of(due).await {
            tracing::debug!(node.id = %due.node, error = &error as &dyn std::error::Error, "signs of intrusion were not read");
        }
    }

    async fn signs_of(&self, due: Due) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let node = nodes::get(&mut conn, due.node).await?;
        drop(conn);
        let Some((node, endpoint)) = node.and_then(|node| node.endpoint().ok().map(|endpoint| (node, endpoint))) else {
            return Ok(());
        };
        let at = Utc::now();
        let call = Call::new(Request::ReadSigns { after: due.after }, ANSWER_TIMEOUT).observing();
        let answer = self.services.nodes.call(&endpoint, call, drop).await.map_err(|error| Error::Unavailable {
            message: format!("the signs of intrusion at {} were not read", node.address),
            source: Box::new(error),
        })?;
        let Answer::Signs(reading) = answer else { return Ok(()) };
        let mut tx = self.services.begin().await?;
        intrusion::keep(&mut tx, due, at, &reading).await?;
        Ok(tx.commit().await?)
    }

    /// Ends blocks whose time is over, blocks who failed too often, and tells operators. Of several servers one does it
    /// after the other.
    pub(crate) async fn judge(&self) -> Result<()> {
        let settings = &self.services.settings.intrusion;
        let mut tx = self.services.begin().await?;
        let (room, mut changed) = blocks::hold_adding(&mut tx).await?;
        let offenders = self.offenders(&mut tx).await?;
        let mut failing = Vec::new();
        if settings.block_minutes == 0 {
            failing.extend(offenders.iter().map(|offender| offender.address));
        } else {
            for offender in offenders.iter().take(room) {
                changed |= self.block_offender(&mut tx, offender).await?;
            }
        }
        self.tell_of_intrusion(&mut tx, Utc::now(), failing).await?;
        tx.commit().await?;
        if changed {
            self.services.surroundings_changed.notify_one();
        }
        Ok(())
    }

    /// Who failed too often, but for those that are never blocked.
    async fn offenders(&self, conn: &mut PgConnection) -> Result<Vec<Offender>> {
        let settings = &self.services.settings.intrusion;
        if settings.failures == 0 {
            return Ok(Vec::new());
        }
        let mut offenders = intrusion::offenders(conn, settings.failures, settings.window(), MOST_OF_ONE_NODE).await?;
        if !offenders.is_empty() {
            let spared = blocks::spared(conn, &settings.never_block).await?;
            offenders.retain(|offender| spared.holds(offender.address).is_none());
        }
        Ok(offenders)
    }

    /// Tells whether it was blocked.
    async fn block_offender(&self, conn: &mut PgConnection, offender: &Offender) -> Result<bool> {
        let settings = &self.services.settings.intrusion;
        let Offender { address, refused, guests, node } = *offender;
        if let Some(node) = node
            && blocks::told_by(conn, node).await? >= MOST_OF_ONE_NODE
        {
            tracing::debug!(node.id = %node, %address, "is not blocked: one node told of too many addresses");
            return Ok(false);
        }
        let id = BlockId(Uuid::now_v7());
        let at = if guests == 1 { "1 guest".to_owned() } else { format!("{guests} guests") };
        let why = format!("{refused} refused SSH logins at {at} within {} minutes", settings.window_minutes);
        let block = blocks::NewBlock { id, address, why: &why, minutes: settings.block_minutes, by: None, node };
        let until = blocks::insert(conn, &block).await?;
        // What it did is punished once.
        intrusion::forgive(conn, address).await?;
        let subject = address.to_string();
        let detail = json!({ "minutes": settings.block_minutes, "until": until, "reason": why });
        let entry = Entry::new("address.block", &subject).id(id.0).detail(detail);
        audit::write(conn, audit::Author::new(None, "corpus", Door::Corpus), entry).await?;
        tracing::info!(%address, refused, guests, "was blocked on all nodes");
        Ok(true)
    }

    /// Once an hour at most, with all that was not told yet.
    async fn tell_of_intrusion(
        &self,
        conn: &mut PgConnection,
        at: DateTime<Utc>,
        failing: Vec<SourceAddress>,
    ) -> Result<()> {
        let settings = &self.services.settings.intrusion;
        let mut noisy = [0, 0];
        let kinds =
            [(IntrusionKind::DroppedPacket, settings.dropped_packets), (IntrusionKind::TlsError, settings.tls_errors)];
        for (count, (kind, more_than)) in noisy.iter_mut().zip(kinds).filter(|(_, (_, more_than))| *more_than > 0) {
            *count = intrusion::noisy_nodes(conn, kind, at, more_than).await?;
        }
        let [dropping, failing_tls] = noisy;
        let is_news = !failing.is_empty() || dropping + failing_tls > 0 || blocks::any_untold(conn).await?;
        if !is_news || !intrusion::take_hour(conn, at).await? {
            return Ok(());
        }
        let mut addresses = blocks::take_untold(conn).await?;
        addresses.extend(failing);
        addresses.truncate(MOST_NAMED);
        let news = News::Intrusion { addresses, block_minutes: settings.block_minutes, dropping, failing_tls };
        Ok(events::intrusion(conn, at, news).await?)
    }
}
