//! What members have seen for themselves they are told no more.
//!
//! Pages only say what they showed; here it is written, a moment later.

use std::collections::HashSet;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::looked_at::Seen;
use crate::store::{first_steps, notices};
use crate::{Controller, Result};

/// After what was written, so that many pages that are open cost few writes.
const PAUSE: Duration = Duration::from_millis(500);

impl Controller {
    /// Writes it until `stop`.
    pub(super) async fn keep_what_was_seen(self, stop: CancellationToken) {
        loop {
            let seen = tokio::select! {
                () = stop.cancelled() => return,
                seen = self.services.looked_at.take_seen() => seen,
            };
            if let Err(error) = self.keep_seen(seen).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "what was seen could not be kept");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Writes it once.
    pub(crate) async fn keep_seen(&self, seen: HashSet<Seen>) -> Result<()> {
        let (mut news, mut done) = (Vec::new(), Vec::new());
        for one in seen {
            match one {
                Seen::News(user, of) => news.push((user, of)),
                Seen::FirstSteps(user) => done.push(user),
            }
        }
        let mut tx = self.services.begin().await?;
        notices::mark_seen(&mut tx, &news).await?;
        first_steps::finish(&mut tx, &done).await?;
        Ok(tx.commit().await?)
    }
}
