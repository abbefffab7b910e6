//! New versions of images, found in the controller's folder and brought to the nodes. Each server looks at its folder; one
//! of them sees to the nodes.

use std::time::Duration;

use corpus_domain::{Door, NodeId};
use corpus_gate::audit::Entry;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::job_errors::jobs_error;
use crate::sagas::node_images;
use crate::store::audit::{self, Author};
use crate::store::{images, leases, nodes};
use crate::{Controller, Result};

/// How often it is looked for them.
const INTERVAL: Duration = Duration::from_mins(1);
/// How often what no version has any more is cleared away.
const CLEARING_INTERVAL: Duration = Duration::from_hours(1);
/// Longer than the time between two looks: a server that works keeps its lease.
const LEASE_TIME: Duration = Duration::from_mins(3);
/// What the lease is called.
const LEASE_NAME: &str = "images";
/// An archive is large, and there may be many nodes: so many get one at a time.
const AT_ONCE: i64 = 4;

impl Controller {
    /// Looks for versions and brings them until `stop`.
    pub(super) async fn spread_images(self, stop: CancellationToken) {
        let (mut look, mut clear) = (tokio::time::interval(INTERVAL), tokio::time::interval(CLEARING_INTERVAL));
        loop {
            let (done, what) = tokio::select! {
                () = stop.cancelled() => return,
                _ = look.tick() => (self.bring_new_images().await, "images could not be brought to nodes"),
                _ = clear.tick() => (self.services.forget_archives().await, "archives of images could not be cleared away"),
            };
            if let Err(error) = done {
                tracing::warn!(error = &error as &dyn std::error::Error, "{what}");
            }
        }
    }

    /// Looks once, and queues a job for each node that is due, if it is this server's turn.
    pub(crate) async fn bring_new_images(&self) -> Result<()> {
        self.services.look_for_images().await?;
        let mut conn = self.services.db.acquire().await?;
        if !leases::take(&mut conn, LEASE_NAME, self.services.instance, LEASE_TIME).await? {
            return Ok(());
        }
        let due = images::due(&mut conn, &self.services.settings.images.usual(), AT_ONCE).await?;
        drop(conn);
        for node in due {
            self.bring_images_by_itself(node).await?;
        }
        Ok(())
    }

    async fn bring_images_by_itself(&self, node: NodeId) -> Result<()> {
        let mut tx = self.services.begin().await?;
        let Some(node) = nodes::get(&mut tx, node).await? else { return Ok(()) };
        let job = self.jobs.submit(&mut tx, node_images::job(&node)).await.map_err(jobs_error)?.id();
        let subject = node.address.to_string();
        let entry = Entry::new("node.images", &subject).id(node.id.0).detail(json!({ "job": job }));
        audit::write(&mut tx, Author::new(None, "corpus", Door::Corpus), entry).await?;
        Ok(tx.commit().await?)
    }
}
