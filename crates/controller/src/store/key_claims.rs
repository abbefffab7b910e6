//! Claims to keys that other accounts hold: each is for one member and one key, and ends soon.

use chrono::{DateTime, Utc};
use corpus_domain::{KeyClaimId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::ssh_keys::MemberKey;

/// A claim.
#[derive(Debug)]
pub struct Claim {
    /// The key's line.
    pub line: String,
    /// The key's fingerprint.
    pub fingerprint: String,
    /// What makes its text the only one of its kind.
    pub nonce: String,
    /// Until when it can be proved.
    pub expires_at: DateTime<Utc>,
}

/// Keeps a claim for ten minutes, in place of an earlier one of this member to this key.
pub async fn put(conn: &mut PgConnection, user: UserId, key: &MemberKey, nonce: &str) -> sqlx::Result<KeyClaimId> {
    sqlx::query!("delete from key_claims where expires_at <= now()").execute(&mut *conn).await?;
    sqlx::query_scalar!(
        "insert into key_claims (id, user_id, line, fingerprint, nonce, expires_at)
         values ($1, $2, $3, $4, $5, now() + interval '10 minutes')
         on conflict (user_id, fingerprint) do update set id = excluded.id, line = excluded.line,
             nonce = excluded.nonce, expires_at = excluded.expires_at
         returning id",
        Uuid::now_v7(),
        user.0,
        key.line(),
        key.fingerprint(),
        nonce,
    )
    .fetch_one(conn)
    .await
    .map(KeyClaimId)
}

/// How many claims of a member have not expired. The member's row is held, so that they are counted by one at a time.
pub async fn count(conn: &mut PgConnection, user: UserId) -> sqlx::Result<i64> {
    super::users::lock(conn, user).await?;
    sqlx::query_scalar!(
        "select count(*) as \"count!\" from key_claims where user_id = $1 and expires_at > now()",
        user.0
    )
    .fetch_one(conn)
    .await
}

/// A member's own claim that has not expired, held until the transaction ends.
pub async fn hold(conn: &mut PgConnection, user: UserId, id: KeyClaimId) -> sqlx::Result<Option<Claim>> {
    sqlx::query_as!(
        Claim,
        "select line, fingerprint, nonce, expires_at from key_claims
         where id = $1 and user_id = $2 and expires_at > now() for update",
        id.0,
        user.0,
    )
    .fetch_optional(conn)
    .await
}

/// Forgets a claim: it is used up.
pub async fn delete(conn: &mut PgConnection, id: KeyClaimId) -> sqlx::Result<()> {
    sqlx::query!("delete from key_claims where id = $1", id.0).execute(conn).await.map(drop)
}
