//! Sending what is enqueued.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::mailer::Mailer;
use crate::Controller;
use crate::store::Db;
use crate::store::mail::{self, Due};

/// How often it is looked for letters.
const EVERY: Duration = Duration::from_secs(5);
/// How many are taken at once.
const AT_ONCE: i64 = 10;

impl Controller {
    /// Sends letters until `stop`. Without a mailer those that are enqueued only grow old.
    pub async fn send_mail(&self, mailer: Option<Mailer>, stop: CancellationToken) {
        loop {
            let sent = send_due(&self.services.db, mailer.as_ref()).await;
            let all = sent.unwrap_or_else(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "mail could not be looked for");
                true
            });
            let pause = if all { EVERY } else { Duration::ZERO };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

/// Sends some of what is due; tells whether that was all.
pub(super) async fn send_due(db: &Db, mailer: Option<&Mailer>) -> sqlx::Result<bool> {
    let mut conn = db.acquire().await?;
    for (letter, error) in mail::give_up(&mut conn).await? {
        tracing::warn!(letter, error, "a letter could not be sent for a day and is given up");
    }
    let Some(mailer) = mailer else { return Ok(true) };
    let due = mail::claim(&mut conn, AT_ONCE).await?;
    drop(conn);
    let all = due.len() < usize::try_from(AT_ONCE).unwrap_or(usize::MAX);
    for letter in due {
        send_one(db, mailer, &letter).await?;
    }
    Ok(all)
}

async fn send_one(db: &Db, mailer: &Mailer, due: &Due) -> sqlx::Result<()> {
    let sent = mailer.send(due.id, &due.to, &due.letter).await;
    let mut conn = db.acquire().await?;
    let Err(error) = sent else {
        tracing::debug!(letter = due.key, attempts = due.attempts, "a letter was sent");
        return mail::sent(&mut conn, due.id).await;
    };
    // The first time it is worth a look; then it is said when it is given up.
    if due.attempts <= 1 {
        tracing::warn!(letter = due.key, %error, "a letter was not sent; it is tried again for a day");
    }
    mail::not_sent(&mut conn, due.id, &error.to_string()).await
}
