//! Sending webhooks, as long as the server runs.

use std::collections::HashMap;
use std::time::Duration;

use corpus_domain::ProjectId;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::store::webhooks;
use crate::webhooks::Sender;
use crate::{Controller, Result};

/// How often it is looked for deliveries.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Deliveries that are sent at once.
const AT_ONCE: usize = 16;
/// Of one project.
const OF_ONE_PROJECT: usize = 4;

impl Controller {
    /// Sends webhooks until `stop`. A webhook that does not answer keeps no other project's waiting.
    pub async fn send_webhooks(self, stop: CancellationToken) {
        let (mut sending, mut of_projects) = (JoinSet::new(), HashMap::<ProjectId, usize>::new());
        let mut look = tokio::time::interval(POLL_INTERVAL);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(done) = sending.join_next() => {
                    if let Ok(project) = done && let Some(count) = of_projects.get_mut(&project) {
                        *count -= 1;
                    }
                    of_projects.retain(|_, count| *count > 0);
                    // There may be more.
                    if sending.is_empty() { look.reset_immediately(); }
                }
                _ = look.tick() => {
                    let busy: Vec<ProjectId> =
                        of_projects.iter().filter(|(_, count)| **count >= OF_ONE_PROJECT).map(|(one, _)| *one).collect();
                    let taken = self.take_webhooks(&busy, AT_ONCE.saturating_sub(sending.len())).await;
                    let taken = taken.unwrap_or_else(|error| {
                        tracing::warn!(error = &error as &dyn std::error::Error, "webhooks could not be looked for");
                        Vec::new()
                    });
                    for due in taken {
                        *of_projects.entry(due.project).or_default() += 1;
                        let controller = self.clone();
                        sending.spawn(async move {
                            controller.send_webhook(&due).await;
                            due.project
                        });
                    }
                }
            }
        }
    }

    async fn take_webhooks(&self, busy: &[ProjectId], room: usize) -> Result<Vec<webhooks::Due>> {
        if room == 0 {
            return Ok(Vec::new());
        }
        let room = i64::try_from(room).unwrap_or_default();
        Ok(webhooks::claim(&mut *self.services.db.acquire().await?, busy, room).await?)
    }

    async fn send_webhook(&self, due: &webhooks::Due) {
        let settings = &self.services.settings;
        let sender = Sender {
            db: &self.services.db,
            seal: &self.services.seal,
            surroundings: &settings.surroundings,
            public_url: &settings.public_url,
        };
        if let Err(error) = sender.send(due).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "what came of a webhook could not be noted");
        }
    }

    /// Sends what is due now, once.
    #[cfg(test)]
    pub(crate) async fn send_webhooks_once(&self) -> usize {
        let taken = self.take_webhooks(&[], AT_ONCE).await.unwrap();
        for due in &taken {
            self.send_webhook(due).await;
        }
        taken.len()
    }
}
