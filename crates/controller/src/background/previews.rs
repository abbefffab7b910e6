//! Previews whose time is over are destroyed, as by whoever deletes their branch. One server at a time looks for them.

use std::time::Duration;

use corpus_domain::Door;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::turns::Turn;
use crate::job_errors::jobs_error;
use crate::sagas::project_destroy;
use crate::store::audit::{self, Author};
use crate::store::previews::{self, Ending};
use crate::store::project_end;
use crate::{Controller, Result};

/// When it is looked for them.
const TURN: Turn = Turn {
    lease: "end-previews",
    every: Duration::from_mins(1),
    lasts: Duration::from_mins(3),
    failed: "previews that expired could not be ended",
};
/// How many are ended at a look.
const MAX_ENDED: i64 = 20;

impl Controller {
    /// Ends what has expired until `stop`.
    pub(super) async fn end_previews(self, stop: CancellationToken) {
        self.take_turns(&TURN, stop, |it| async move { it.end_expired().await }).await;
    }

    /// Ends those that have expired now, if it is this server's turn.
    pub(crate) async fn end_expired(&self) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        if !self.has_turn(&mut conn, &TURN).await? {
            return Ok(());
        }
        let expired = previews::expired(&mut conn, MAX_ENDED).await?;
        drop(conn);
        for preview in &expired {
            self.end(preview).await?;
        }
        Ok(())
    }

    async fn end(&self, preview: &Ending) -> Result<()> {
        let mut tx = self.services.begin().await?;
        // Somebody may have kept it longer just now.
        if !previews::hold_expired(&mut tx, preview.id).await? {
            return Ok(());
        }
        let nodes = project_end::nodes(&mut tx, preview.id).await?;
        let job = project_destroy::job(preview.id, &preview.name, &nodes);
        let job = self.jobs.submit(&mut tx, job).await.map_err(jobs_error)?.id();
        project_end::leave(&mut tx, preview.id, job).await?;
        let entry = audit::Entry::new("preview.expire", preview.name.as_str()).id(preview.id.0);
        let entry = entry.of_project(preview.parent).detail(json!({ "job": job }));
        audit::write(&mut tx, Author::new(None, "corpus", Door::Corpus), entry).await?;
        Ok(tx.commit().await?)
    }
}
