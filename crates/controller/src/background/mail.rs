//! Sending mail, as long as the server runs.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::Controller;
use crate::mail::{Mailer, send_due};

/// How often it is looked for letters.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

impl Controller {
    /// Sends letters until `stop`. Without a mailer those that are enqueued only grow old.
    pub async fn send_mail(&self, mailer: Option<Mailer>, stop: CancellationToken) {
        loop {
            let sent = send_due(&self.services.db, mailer.as_ref()).await;
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
}
