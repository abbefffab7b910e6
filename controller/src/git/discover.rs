//! Finding deployments that Corpus did not hear of: pushed to a guest's own SSH port, or while
//! the server that let the push through went away.
//!
//! One server at a time reads the guests, several at once, each with a time limit: one that does
//! not answer delays no other and is read again at the next round.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use corpus_domain::{GuestId, Trigger};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::ops::GitTarget;
use crate::store::leases;
use crate::{Controller, Error, Result};

/// How often each guest is read.
const EVERY: Duration = Duration::from_secs(15);
/// Longer than the time between rounds: a server that works keeps its lease.
const LEASE: Duration = Duration::from_secs(40);
/// How long one guest may take.
const LIMIT: Duration = Duration::from_secs(12);
/// How many are read at once.
const AT_ONCE: usize = 16;
/// What the lease is called.
const NAME: &str = "discover-deployments";

impl Controller {
    /// Reads all environments now and then until `stop`, and has unknown deployments followed.
    pub async fn discover_deployments(&self, stop: CancellationToken) {
        let mut round = interval(EVERY);
        round.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut failing, readers) = (HashSet::new(), TaskTracker::new());
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = round.tick() => {}
            }
            let going = async {
                if let Err(error) = self.discover(&mut failing, &readers).await {
                    tracing::warn!(error = &error as &dyn std::error::Error, "the guests could not be read");
                }
            };
            tokio::select! {
                () = stop.cancelled() => break,
                () = going => {}
            }
        }
        if let Err(error) = self.leave_discovery().await {
            tracing::debug!(%error, "the lease of reading guests lapses by itself");
        }
    }

    /// One round, if it is this server's turn. `failing` are the guests that did not answer last.
    async fn discover(&self, failing: &mut HashSet<GuestId>, readers: &TaskTracker) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        if !leases::take(&mut conn, NAME, self.services.instance, LEASE).await? {
            return Ok(());
        }
        drop(conn);
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut reading = Vec::new();
        for target in self.git_targets().await? {
            let (controller, room) = (self.clone(), Arc::clone(&room));
            reading.push(readers.spawn(async move {
                let _place = room.acquire_owned().await;
                let read = timeout(LIMIT, controller.discover_on(&target)).await;
                (target, read)
            }));
        }
        let mut failed = HashSet::new();
        for task in reading {
            let Ok((target, read)) = task.await else { continue };
            let error = match read {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {LIMIT:?}"),
            };
            // Once per silence: its node's page says the rest.
            if !failing.contains(&target.guest_id) {
                tracing::info!(guest = %target.guest, project = %target.project, error, "an environment is not read");
            }
            failed.insert(target.guest_id);
        }
        *failing = failed;
        Ok(())
    }

    async fn discover_on(&self, target: &GitTarget) -> Result<()> {
        for id in self.read_environment(target).await? {
            self.deployment_began(None, target.guest_id, id, Trigger::Push).await?;
            let (project, environment) = (&target.project, target.environment);
            tracing::debug!(deployment.id = %id, %project, %environment, "a deployment was found");
        }
        Ok(())
    }

    async fn leave_discovery(&self) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        leases::give_back(&mut conn, NAME, self.services.instance).await.map_err(Error::from)
    }
}
