//! Sending what is enqueued.

use super::mailer::Mailer;
use crate::store::Db;
use crate::store::mail::{self, Due};

/// How many are taken at once.
const BATCH: i64 = 10;

/// Sends some of what is due; tells whether that was all.
pub(crate) async fn send_due(db: &Db, mailer: Option<&Mailer>) -> sqlx::Result<bool> {
    let mut conn = db.acquire().await?;
    for (letter, error) in mail::give_up(&mut conn).await? {
        tracing::warn!(letter, error, "a letter could not be sent for a day and is given up");
    }
    let Some(mailer) = mailer else { return Ok(true) };
    let due = mail::claim(&mut conn, BATCH).await?;
    drop(conn);
    let all = due.len() < usize::try_from(BATCH).unwrap_or(usize::MAX);
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
