//! Watching the nodes: what they report becomes rows, with the time at which it was so.
//!
//! Pages read these rows and never a node. A node that does not answer keeps its last reading,
//! and the page says how old it is. What many nodes report at about the same time is written
//! together, so that a thousand nodes cost the database not much more than one. Of several
//! servers each reads every node, and one writes.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use corpus_domain::{NodeId, NodeState};
use sqlx::PgTransaction;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::job_errors::jobs_error;
use crate::nodes::{NodeEndpoint, Observation, Supervisor};
use crate::sagas::keys_sync;
use crate::store::{guests, keys, nodes, observer};
use crate::{Controller, Result};

/// How often each node is read.
pub const READ_EVERY: Duration = Duration::from_secs(5);
/// How often the list of nodes itself is read.
const LIST_EVERY: Duration = Duration::from_secs(2);
/// How long an observation waits for others, to be written with them.
const GATHER: Duration = Duration::from_millis(100);
/// How many are written together.
const BATCH: usize = 256;

impl Controller {
    /// Reads all linked nodes until `stop`; one that does not answer delays no other.
    pub async fn watch_nodes(&self, stop: CancellationToken) {
        let (out, mut observations) = mpsc::channel(4 * BATCH);
        let supervisor = Supervisor::new(self.services.nodes.clone(), READ_EVERY, out);
        let (mut watched, mut leaving) = (HashMap::new(), HashSet::new());
        let mut list = tokio::time::interval(LIST_EVERY);
        let (mut gathered, mut tried) = (Vec::with_capacity(BATCH), HashSet::new());
        tokio::spawn(self.clone().check_nodes(stop.clone()));
        tokio::spawn(self.clone().look_at_sites(stop.clone()));
        tokio::spawn(self.clone().look_names_up(stop.clone()));
        tokio::spawn(self.clone().read_firewalls(stop.clone()));
        tokio::spawn(self.clone().read_traffic(stop.clone()));
        tokio::spawn(self.clone().watch_for_intrusion(stop.clone()));
        tokio::spawn(self.clone().read_mail_of_guests(stop.clone()));
        tokio::spawn(self.clone().look_for_updates(stop.clone()));
        tokio::spawn(self.clone().follow_surroundings(stop.clone()));
        tokio::spawn(self.clone().spread_names(stop.clone()));
        tokio::spawn(self.clone().look_after_certificates(stop.clone()));
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = list.tick() => {
                    self.update_watched(&supervisor, &mut watched, &mut leaving).await;
                    self.forget_gone(&mut leaving).await;
                }
                Some(first) = observations.recv() => {
                    gathered.push(first);
                    sleep(GATHER).await;
                    while gathered.len() < BATCH && let Ok(next) = observations.try_recv() {
                        gathered.push(next);
                    }
                    // What could not be kept is tried once more, before what comes next.
                    let left = self.keep_or_warn(&gathered).await;
                    let again = left.into_iter().filter(|one| !tried.contains(&(one.node, one.at))).collect();
                    gathered = again;
                    tried = gathered.iter().map(|one| (one.node, one.at)).collect();
                }
            }
        }
    }

    /// Brings the supervisor to the nodes that the rows say now; `leaving` gets those to be read no more.
    async fn update_watched(
        &self,
        supervisor: &Supervisor,
        watched: &mut HashMap<NodeId, NodeEndpoint>,
        leaving: &mut HashSet<NodeId>,
    ) {
        let wanted = match self.endpoints().await {
            Ok(wanted) => wanted,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the list of nodes could not be read");
                return;
            }
        };
        for (id, endpoint) in &wanted {
            if watched.get(id) != Some(endpoint) {
                supervisor.watch(endpoint);
            }
        }
        for id in watched.keys().filter(|id| !wanted.contains_key(id)) {
            supervisor.unwatch(*id);
            leaving.insert(*id);
        }
        *watched = wanted;
    }

    /// Closes the lines to nodes whose rows are gone: a server that did not unlink the node itself
    /// would keep its line, and an agent on the host, for ever. While it is unlinked the line stays.
    async fn forget_gone(&self, leaving: &mut HashSet<NodeId>) {
        for id in leaving.clone() {
            let row = async { nodes::get(&mut *self.services.db.acquire().await?, id).await };
            match row.await {
                Ok(None) => {
                    self.services.nodes.forget(id);
                    leaving.remove(&id);
                }
                Ok(Some(node)) if node.state != NodeState::Unlinking => {
                    leaving.remove(&id);
                }
                // Looked at again at the next turn.
                Ok(Some(_)) | Err(_) => {}
            }
        }
    }

    async fn endpoints(&self) -> sqlx::Result<HashMap<NodeId, NodeEndpoint>> {
        let mut conn = self.services.db.acquire().await?;
        let linked = nodes::endpoints(&mut conn).await?;
        Ok(linked.into_iter().map(|node| (node.id, node)).collect())
    }

    /// Keeps what was observed. What can't be kept together is kept one by one, so that one
    /// node's nonsense costs no other node its reading. Tells what was not kept, since
    /// someone else worked on the node's row, or speaks for it.
    async fn keep_or_warn(&self, observations: &[Observation]) -> Vec<Observation> {
        let error = match self.keep(observations).await {
            Ok(kept) => return observations.iter().filter(|one| !kept.contains(&one.node)).cloned().collect(),
            Err(error) => error,
        };
        if let [one] = observations {
            tracing::warn!(node.id = %one.node, error = &error as &dyn std::error::Error, "reading not kept");
            return Vec::new();
        }
        let mut left = Vec::new();
        for one in observations.chunks(1) {
            left.extend(Box::pin(self.keep_or_warn(one)).await);
        }
        left
    }

    /// Keeps what was observed, all of it or nothing, of the nodes of which this server may
    /// speak; tells which they were.
    pub(crate) async fn keep(&self, observations: &[Observation]) -> Result<HashSet<NodeId>> {
        let mut tx = self.services.begin().await?;
        let kept = observer::keep(&mut tx, observations, self.services.instance).await?;
        for node in kept.iter().filter(|kept| kept.came_back) {
            self.catch_up(&mut tx, node.id).await?;
        }
        let kept: HashSet<NodeId> = kept.into_iter().map(|kept| kept.id).collect();
        guests::observe(&mut tx, observations.iter().filter(|one| kept.contains(&one.node))).await?;
        tx.commit().await?;
        Ok(kept)
    }

    /// A node that was away may have missed keys that were added or, worse, removed meanwhile.
    /// One that comes and goes gets no second job while one waits for it.
    async fn catch_up(&self, tx: &mut PgTransaction<'_>, id: NodeId) -> Result<()> {
        let Some(node) = nodes::get(tx, id).await? else { return Ok(()) };
        if node.guests > 0 && !keys::sync_waits(tx, id).await? {
            let job = keys_sync::job(id, &node.address.to_string());
            self.jobs.submit(tx, job).await.map_err(jobs_error)?;
        }
        Ok(())
    }
}
