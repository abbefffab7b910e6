//! Making letters of what is queued, and sending them.

use super::bundle;
use super::errors::MailError;
use super::mailer::Mailer;
use crate::events;
use crate::store::Db;
use crate::store::mail_letters::{self as letters, Due};

/// How many letters are sent in one go.
const BATCH: usize = 20;
/// Of how many members what is queued becomes a letter at once.
const MEMBERS: i64 = 100;

/// Sends some of what is due; tells whether that was all. `git_url` is what URLs of repositories begin with.
pub(crate) async fn send_due(db: &Db, mailer: Option<&Mailer>, git_url: Option<&str>) -> sqlx::Result<bool> {
    give_up(db).await?;
    let Some(mailer) = mailer else { return Ok(true) };
    let mut tx = db.begin().await?;
    letters::bundle(&mut tx, MEMBERS).await?;
    tx.commit().await?;
    for _ in 0..BATCH {
        // One at a time: what is taken on is sent before it is due again, and by no other server.
        let mut conn = db.acquire().await?;
        let Some(due) = letters::claim(&mut conn).await? else { return Ok(true) };
        drop(conn);
        let sent = send_one(db, mailer, &due, git_url).await?;
        if sent.is_err_and(|error| error.is_of_relay()) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn send_one(db: &Db, mailer: &Mailer, due: &Due, git_url: Option<&str>) -> sqlx::Result<Result<(), MailError>> {
    let mut tx = db.begin().await?;
    letters::sift(&mut tx, due.id).await?;
    let groups = letters::contents(&mut tx, due.id, git_url).await?;
    let Some(mail) = bundle::mail(&groups, mailer.pages()) else {
        letters::is_empty(&mut tx, due.id).await?;
        tx.commit().await?;
        return Ok(Ok(()));
    };
    tx.commit().await?;
    let sent = mailer.send(due.id, &due.to, &mail).await;
    let mut conn = db.acquire().await?;
    let Err(error) = &sent else {
        tracing::debug!(letter.id = %due.id, attempts = due.attempts, "a letter was sent");
        letters::sent(&mut conn, due.id).await?;
        return Ok(sent);
    };
    // The first time it is worth a look; then it is said when it is given up.
    if due.attempts <= 1 {
        tracing::warn!(letter.id = %due.id, %error, "a letter was not sent; it is tried again for a day");
    }
    letters::not_sent(&mut conn, due.id, &error.to_string()).await?;
    Ok(sent)
}

/// What could not be sent for a day is given up, and operators are told.
async fn give_up(db: &Db) -> sqlx::Result<()> {
    let mut tx = db.begin().await?;
    let given_up = letters::give_up(&mut tx).await?;
    if let Some(reason) = given_up.last() {
        let count = given_up.len();
        tracing::warn!(letters = count, error = reason, "letters could not be sent for a day and are given up");
        events::mail_given_up(&mut tx, i64::try_from(count).unwrap_or(i64::MAX), reason).await?;
    }
    tx.commit().await
}
