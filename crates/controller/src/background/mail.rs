//! Sending mail, and finding what nobody does and yet must be told, as long as the server runs.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::events::lasting;
use crate::mail::{Mailer, send_due};
use crate::{Controller, Result};

/// How often it is looked for letters.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How often it is looked for what lasts too long: it is told after minutes.
const LASTING_INTERVAL: Duration = Duration::from_secs(30);

impl Controller {
    /// Sends letters until `stop`. Without a mailer what is queued only grows old.
    pub async fn send_mail(&self, mailer: Option<Mailer>, stop: CancellationToken) {
        tokio::spawn(self.clone().tell_what_lasts(stop.clone()));
        let git_url = self.services.settings.git_url.as_deref();
        loop {
            let sent = send_due(&self.services.db, mailer.as_ref(), git_url).await;
            let all = sent.unwrap_or_else(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "mail could not be looked for");
                true
            });
            let pause = if all { POLL_INTERVAL } else { Duration::ZERO };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn tell_what_lasts(self, stop: CancellationToken) {
        loop {
            if let Err(error) = self.tell_once().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "what lasts too long could not be told");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(LASTING_INTERVAL) => {}
            }
        }
    }

    /// Tells it once.
    pub(crate) async fn tell_once(&self) -> Result<()> {
        let mut tx = self.services.begin().await?;
        lasting::tell(&mut tx).await?;
        Ok(tx.commit().await?)
    }
}
