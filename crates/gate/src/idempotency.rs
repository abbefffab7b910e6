//! The same request sent twice is done once.
//!
//! A client that lost the line does not know whether its request arrived. With a key of its own it sends
//! it again, and is answered as the first time. A key is kept with its member and the digest of what was
//! asked: another question with the same key is refused, and so is the same one while it is worked on.
//! A server that died in the middle left a claim that nobody works on: it is taken over after
//! [`TAKEOVER`]. Keys are forgotten after a day.

use std::time::Duration;

use corpus_api::{Operation, Principal, Problem, Reply};
use corpus_database::Db;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::PgConnection;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{Error, Result};

/// How long a claim counts without an answer, in seconds: longer than any request is worked on.
const TAKEOVER: f64 = 120.0;
/// Until it is tried again to let one go.
const AGAIN: Duration = Duration::from_millis(500);

/// An `Idempotency-Key`, or the id of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl std::str::FromStr for Key {
    type Err = Problem;
    fn from_str(given: &str) -> std::result::Result<Self, Problem> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        if (1..=64).contains(&given.len()) && given.bytes().all(plain) {
            return Ok(Self(given.to_owned()));
        }
        Err(Problem::malformed("An Idempotency-Key has 1 to 64 letters, digits, hyphens and underscores."))
    }
}

/// What is worked on under a key.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    member: Uuid,
    key: String,
    id: Uuid,
}

/// What a key leads to.
pub(crate) enum Claimed {
    /// It is ours to work on.
    Ours(Claim),
    /// It was done: the answer.
    Done(Value),
}

impl Claim {
    /// Claims the key for the question.
    pub async fn take<O: Operation>(db: &Db, who: &Principal, key: &Key, operation: &O) -> Result<Claimed> {
        if O::Output::SECRET {
            let why =
                "This answers a secret, which is shown once and kept nowhere: send it without an Idempotency-Key.";
            return Err(Error::Refused(Box::new(Problem::malformed(why))));
        }
        let claim = Self { member: who.id.0, key: key.0.clone(), id: Uuid::now_v7() };
        let asked = digest(operation);
        let mut conn = db.acquire().await?;
        if claim.insert(&mut conn, O::META.plain().id, &asked).await? {
            return Ok(Claimed::Ours(claim));
        }
        let row = sqlx::query!(
            "select asked, answer from idempotency_keys where member_id = $1 and key = $2",
            claim.member,
            claim.key,
        );
        let Some(row) = row.fetch_optional(&mut *conn).await? else {
            return Err(Error::Refused(Box::new(in_progress())));
        };
        if row.asked != asked {
            let why = "This Idempotency-Key was sent with another request. Make a new one for each.";
            return Err(Error::Refused(Box::new(Problem::key_reused(why))));
        }
        row.answer.map(Claimed::Done).ok_or_else(|| Error::Refused(Box::new(in_progress())))
    }

    /// Whether the key is ours now: it was new, or left by a server that is lost.
    async fn insert(&self, conn: &mut PgConnection, operation: &str, asked: &[u8]) -> sqlx::Result<bool> {
        let inserted = sqlx::query!(
            "insert into idempotency_keys as k (member_id, key, claim, operation, asked) values ($1, $2, $3, $4, $5)
             on conflict (member_id, key) do update set claim = $3, began_at = now()
             where k.answer is null and k.asked = $5 and k.began_at < now() - make_interval(secs => $6)",
            self.member,
            self.key,
            self.id,
            operation,
            asked,
            TAKEOVER,
        );
        Ok(inserted.execute(conn).await?.rows_affected() == 1)
    }

    /// Keeps the answer, in the transaction of the change.
    pub async fn keep(&self, conn: &mut PgConnection, answer: &impl serde::Serialize) -> Result<()> {
        let answer = serde_json::to_value(answer)
            .map_err(|error| Error::Internal { message: "the answer could not be kept", source: Box::new(error) })?;
        let kept = sqlx::query!(
            "update idempotency_keys set answer = $4 where member_id = $1 and key = $2 and claim = $3",
            self.member,
            self.key,
            self.id,
            answer,
        );
        // Another one took it over meanwhile: only one of the two is done.
        if kept.execute(conn).await?.rows_affected() == 1 {
            Ok(())
        } else {
            Err(Error::Refused(Box::new(in_progress())))
        }
    }

    /// Lets the key go: nothing was done. When the database is away, then as soon as it is back: whoever sends the same
    /// again is not told that it is being worked on.
    pub async fn let_go(self, db: &Db) {
        let Err(error) = self.release(db).await else { return };
        let error = &error as &dyn std::error::Error;
        tracing::warn!(error, "an idempotency key is let go later");
        let db = db.clone();
        tokio::spawn(async move {
            let until = Instant::now() + Duration::from_secs_f64(TAKEOVER);
            while Instant::now() < until && self.release(&db).await.is_err() {
                tokio::time::sleep(AGAIN).await;
            }
        });
    }

    async fn release(&self, db: &Db) -> sqlx::Result<()> {
        let released = sqlx::query!(
            "delete from idempotency_keys where member_id = $1 and key = $2 and claim = $3 and answer is null",
            self.member,
            self.key,
            self.id,
        );
        released.execute(&mut *db.acquire().await?).await.map(drop)
    }
}

/// Forgets the keys of yesterday.
pub async fn forget_old(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("delete from idempotency_keys where began_at < now() - interval '1 day'").execute(conn).await.map(drop)
}

fn in_progress() -> Problem {
    Problem::in_progress("The same request is being worked on. Ask again in a moment, with the same key.")
}

fn digest<O: Operation>(operation: &O) -> Vec<u8> {
    let text = serde_json::to_string(operation).unwrap_or_default();
    Sha256::digest(format!("{} {text}", O::META.plain().id)).to_vec()
}
