//! Previews whose time is over are destroyed, as by whoever deletes their branch. One server at a time looks for them.

use std::time::Duration;

use corpus_domain::Door;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::job_errors::jobs_error;
use crate::sagas::project_destroy;
use crate::store::audit::{self, Author};
use crate::store::previews::{self, Ending};
use crate::store::{leases, project_end};
use crate::{Controller, Result};

/// How often it is looked for them.
const INTERVAL: Duration = Duration::from_mins(1);
/// Longer than the time between two looks: a server that works keeps its lease.
const LEASE_TIME: Duration = Duration::from_mins(3);
/// How many are ended at a look.
const MAX_ENDED: i64 = 20;
/// What the lease is called.
const LEASE_NAME: &str = "end-previews";

impl Controller {
    /// Ends what has expired until `stop`.
    pub(super) async fn end_previews(self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.end_expired().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "previews that expired could not be ended");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Ends those that have expired now, if it is this server's turn.
    pub(crate) async fn end_expired(&self) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        if !leases::take(&mut conn, LEASE_NAME, self.services.instance, LEASE_TIME).await? {
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
