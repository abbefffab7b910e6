//! Finding deployments that Corpus did not hear of: pushed to a guest's own SSH port, or while
//! the server that let the push through went away.
//!
//! One server at a time reads the guests, several at once, each with a time limit: one that does
//! not answer delays no other and is read again at the next round. A project with many guests, or
//! with guests that are slow on purpose, delays no other project: few of its guests are read at once,
//! and no round waits for another. Of what a guest tells few deployments are taken at a time, the
//! oldest first, and no more of them in a day than are pushed to one: it may have invented them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use corpus_domain::{GuestId, ProjectId, Trigger};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::GitTarget;
use crate::store::leases;
use crate::{Controller, Error, Result};

/// How often each guest is read.
const INTERVAL: Duration = Duration::from_secs(15);
/// Longer than the time between rounds: a server that works keeps its lease.
const LEASE_TIME: Duration = Duration::from_secs(40);
/// How long one guest may take.
const READ_TIMEOUT: Duration = Duration::from_secs(12);
/// How many are read at once.
const MAX_READERS: usize = 16;
/// How many of one project are.
const MAX_READERS_OF_A_PROJECT: usize = 4;
/// How many deployments are taken over from a guest at a time.
const MAX_DEPLOYMENTS: usize = 4;
/// What the lease is called.
const LEASE_NAME: &str = "discover-deployments";

impl Controller {
    /// Reads all environments now and then until `stop`, and has unknown deployments followed.
    pub async fn discover_deployments(&self, stop: CancellationToken) {
        let mut round = interval(INTERVAL);
        round.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut discovery = Discovery::default();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(read) = discovery.readers.join_next() => {
                    if let Ok((target, error)) = read {
                        discovery.ended(&target, error);
                    }
                }
                _ = round.tick() => {
                    if let Err(error) = self.discover(&mut discovery).await {
                        tracing::warn!(error = &error as &dyn std::error::Error, "the guests could not be read");
                    }
                }
            }
        }
        if let Err(error) = self.leave_discovery().await {
            tracing::debug!(%error, "the lease of reading guests lapses by itself");
        }
    }

    /// Begins one round, if it is this server's turn: all guests that are not being read still.
    async fn discover(&self, discovery: &mut Discovery) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        if !leases::take(&mut conn, LEASE_NAME, self.services.instance, LEASE_TIME).await? {
            return Ok(());
        }
        drop(conn);
        for target in self.git_targets().await? {
            let Some((own, all)) = discovery.begin(&target) else { continue };
            let controller = self.clone();
            discovery.readers.spawn(async move {
                // First a place among those of its project: so each project has few that wait for one of all.
                let _places = (own.acquire_owned().await, all.acquire_owned().await);
                let error = match timeout(READ_TIMEOUT, controller.discover_on(&target)).await {
                    Ok(read) => read.err().map(|error| error.to_string()),
                    Err(_) => Some(format!("no answer within {READ_TIMEOUT:?}")),
                };
                (target, error)
            });
        }
        Ok(())
    }

    async fn discover_on(&self, target: &GitTarget) -> Result<()> {
        for id in self.read_environment(target).await?.into_iter().take(MAX_DEPLOYMENTS) {
            self.deployment_began(None, target.guest_id, id, Trigger::Push).await?;
            let (project, environment) = (&target.project, target.environment);
            tracing::debug!(deployment.id = %id, %project, %environment, "a deployment was found");
        }
        Ok(())
    }

    async fn leave_discovery(&self) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        leases::give_back(&mut conn, LEASE_NAME, self.services.instance).await.map_err(Error::from)
    }
}

/// Which guests are being read, and which did not answer last.
struct Discovery {
    readers: JoinSet<(GitTarget, Option<String>)>,
    reading: HashSet<GuestId>,
    failing: HashSet<GuestId>,
    room: Arc<Semaphore>,
    of_project: HashMap<ProjectId, Arc<Semaphore>>,
}

impl Default for Discovery {
    fn default() -> Self {
        let (reading, failing, of_project) = (HashSet::new(), HashSet::new(), HashMap::new());
        Self { readers: JoinSet::new(), reading, failing, room: Arc::new(Semaphore::new(MAX_READERS)), of_project }
    }
}

impl Discovery {
    /// The places that reading a guest needs; none while it is being read.
    fn begin(&mut self, target: &GitTarget) -> Option<(Arc<Semaphore>, Arc<Semaphore>)> {
        if !self.reading.insert(target.guest_id) {
            return None;
        }
        let own = self.of_project.entry(target.project_id);
        let own = own.or_insert_with(|| Arc::new(Semaphore::new(MAX_READERS_OF_A_PROJECT)));
        Some((Arc::clone(own), Arc::clone(&self.room)))
    }

    /// A guest was read, or was not for that reason.
    fn ended(&mut self, target: &GitTarget, error: Option<String>) {
        self.reading.remove(&target.guest_id);
        let Some(error) = error else {
            self.failing.remove(&target.guest_id);
            return;
        };
        // Once per silence: its node's page says the rest.
        if self.failing.insert(target.guest_id) {
            tracing::info!(guest = %target.guest, project = %target.project, error, "an environment is not read");
        }
    }
}
