//! Watching the nodes: what they report becomes rows, with the time at which it was so.
//!
//! Pages read these rows and never a node. A node that does not answer keeps its last reading,
//! and the page says how old it is.

use std::collections::HashMap;
use std::time::Duration;

use corpus_domain::{NodeId, NodeState, Reachability};
use sqlx::PgTransaction;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::nodes::{NodeEndpoint, Observation, Supervisor};
use crate::ops::jobs_error;
use crate::sagas::keys_sync;
use crate::store::{guests, nodes};
use crate::{Controller, Result};

/// How often each node is read.
pub const READ_EVERY: Duration = Duration::from_secs(5);
/// How often the list of nodes itself is read.
const LIST_EVERY: Duration = Duration::from_secs(2);

impl Controller {
    /// Reads all linked nodes until `stop`; one that does not answer delays no other.
    pub async fn watch_nodes(&self, stop: CancellationToken) {
        let (out, mut observations) = mpsc::channel(256);
        let supervisor = Supervisor::new(self.services.nodes.clone(), READ_EVERY, out);
        let mut watched = HashMap::new();
        let mut list = tokio::time::interval(LIST_EVERY);
        tokio::spawn(self.clone().check_nodes(stop.clone()));
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = list.tick() => self.update_watched(&supervisor, &mut watched).await,
                Some(observation) = observations.recv() => {
                    if let Err(error) = self.keep(&observation).await {
                        tracing::warn!(node.id = %observation.node, error = &error as &dyn std::error::Error, "reading not kept");
                    }
                }
            }
        }
    }

    /// Brings the supervisor to the nodes that the rows say now.
    async fn update_watched(&self, supervisor: &Supervisor, watched: &mut HashMap<NodeId, NodeEndpoint>) {
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
        }
        *watched = wanted;
    }

    async fn endpoints(&self) -> sqlx::Result<HashMap<NodeId, NodeEndpoint>> {
        let mut conn = self.services.db.acquire().await?;
        let all = nodes::list(&mut conn, None).await?;
        let linked = all.into_iter().filter(|node| !matches!(node.state, NodeState::Linking | NodeState::Unlinking));
        Ok(linked.filter_map(|node| Some((node.id, node.endpoint().ok()?))).collect())
    }

    pub(crate) async fn keep(&self, observation: &Observation) -> Result<()> {
        let mut tx = self.services.db.begin().await?;
        match &observation.outcome {
            Ok(reading) => {
                let asked = observation.at - observation.elapsed;
                if observation.changed {
                    self.catch_up(&mut tx, observation.node).await?;
                }
                nodes::set_reading(&mut tx, observation.node, reading).await?;
                nodes::set_reachability(&mut tx, observation.node, observation.reachability, None).await?;
                guests::observe(&mut tx, observation.node, reading, asked).await?;
            }
            Err(error) => {
                let reason = error.to_string();
                nodes::set_reachability(&mut tx, observation.node, observation.reachability, Some(&reason)).await?;
            }
        }
        Ok(tx.commit().await?)
    }

    /// A node that was away may have missed keys that were added or, worse, removed meanwhile.
    async fn catch_up(&self, tx: &mut PgTransaction<'_>, id: NodeId) -> Result<()> {
        let Some(node) = nodes::get(tx, id).await? else { return Ok(()) };
        let was_away = matches!(node.reachability, Reachability::Unreachable | Reachability::HostKeyChanged);
        if was_away && node.guests > 0 {
            let job = keys_sync::job(id, &node.address.to_string());
            self.jobs.submit(tx, job).await.map_err(jobs_error)?;
        }
        Ok(())
    }
}
