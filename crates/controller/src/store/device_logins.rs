//! Programs that wait to be let in, by the hash of the code that each holds.

use chrono::{DateTime, Utc};
use corpus_api::device_logins::{DeviceLogin, UserCode};
use corpus_api::words::{Days, Label};
use corpus_domain::{Grant, UserId};
use sqlx::PgConnection;

use super::tokens::Hash;
use super::word;

/// How many wait from one network at a time, and how many in all.
const MAX_PER_NETWORK: i64 = 20;
const MAX_WAITING: i64 = 5_000;
/// The advisory lock of who begins to wait.
const BEGIN_KEY: i64 = 0x636f_7270_6465_7669;

/// A program that asks to be let in.
#[derive(Debug)]
pub struct New<'a> {
    /// What it is found by.
    pub hash: &'a Hash,
    /// What a person types.
    pub code: &'a UserCode,
    /// What it says it is.
    pub client: &'a Label,
    /// From where it asks.
    pub network: &'a str,
    /// What its token is to be good for.
    pub grant: Grant,
    /// Until when it waits.
    pub expires_at: DateTime<Utc>,
}

/// What was decided about a program.
#[derive(Debug)]
pub struct Decided {
    /// What it said it is.
    pub client: Label,
    /// Who lets it in, for how many days; none when it was refused.
    pub approved: Option<(UserId, Days)>,
    /// What its token is good for.
    pub grant: Grant,
}

/// Lets it wait, unless too many do; those whose time is over are forgotten.
pub async fn begin(conn: &mut PgConnection, new: New<'_>) -> sqlx::Result<bool> {
    // One at a time, or those that begin at once would each find room for itself.
    sqlx::query!("select pg_advisory_xact_lock($1)::text as held", BEGIN_KEY).fetch_one(&mut *conn).await?;
    forget_expired(conn).await?;
    let inserted = sqlx::query!(
        "insert into device_logins (hash, user_code, client, network, grant_, expires_at)
         select $1, $2, $3, $4, $5, $6
         where (select count(*) from device_logins where network = $4) < $7
           and (select count(*) from device_logins) < $8",
        new.hash,
        new.code.letters(),
        new.client.as_str(),
        new.network,
        new.grant.as_str(),
        new.expires_at,
        MAX_PER_NETWORK,
        MAX_WAITING,
    );
    Ok(inserted.execute(conn).await?.rows_affected() == 1)
}

/// The program that waits under a code.
pub async fn waiting(conn: &mut PgConnection, code: &UserCode) -> sqlx::Result<Option<DeviceLogin>> {
    let row = sqlx::query!(
        "select client, network, grant_, expires_at from device_logins
         where user_code = $1 and is_approved is null and expires_at > now()",
        code.letters(),
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let (client, network, scope, expires_at) = (row.client, row.network, word(&row.grant_)?, row.expires_at);
    Ok(Some(DeviceLogin { code: code.clone(), client, network, scope, expires_at }))
}

/// Notes what a member decided; tells what the program said it is, or none when none waits.
pub async fn decide(
    conn: &mut PgConnection,
    code: &UserCode,
    user: UserId,
    granted: Option<(Grant, Days)>,
) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!(
        "update device_logins set user_id = $2, is_approved = $3, grant_ = coalesce($4, grant_), days = $5
         where user_code = $1 and is_approved is null and expires_at > now() returning client",
        code.letters(),
        user.0,
        granted.is_some(),
        granted.map(|(grant, _)| grant.as_str()),
        granted.and_then(|(_, days)| i32::try_from(days.get()).ok()),
    )
    .fetch_optional(conn)
    .await
}

/// What was decided, told once.
pub async fn take_decided(conn: &mut PgConnection, hash: &Hash) -> sqlx::Result<Option<Decided>> {
    let row = sqlx::query!(
        "delete from device_logins where hash = $1 and is_approved is not null and expires_at > now()
         returning client, grant_, user_id, days, is_approved",
        hash,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let days = row.days.filter(|_| row.is_approved == Some(true)).map(|days| word(&days.to_string())).transpose()?;
    let approved = row.user_id.map(UserId).zip(days);
    Ok(Some(Decided { client: word(&row.client)?, approved, grant: word(&row.grant_)? }))
}

/// Notes that a program asks again; tells whether that is sooner than it should, or none when it waits no more.
pub async fn note_asked(conn: &mut PgConnection, hash: &Hash) -> sqlx::Result<Option<bool>> {
    sqlx::query_scalar!(
        r#"update device_logins d set asked_at = now() from device_logins before
         where d.hash = $1 and before.hash = d.hash and d.expires_at > now()
         returning coalesce(before.asked_at > now() - interval '1 second', false) as "is_too_soon!""#,
        hash,
    )
    .fetch_optional(conn)
    .await
}

/// Forgets those whose time is over.
pub async fn forget_expired(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("delete from device_logins where expires_at < now()").execute(conn).await.map(drop)
}

/// Forgets what a member decided: nobody is let in by who is shut out.
pub async fn forget_of(conn: &mut PgConnection, user: UserId) -> sqlx::Result<()> {
    sqlx::query!("delete from device_logins where user_id = $1", user.0).execute(conn).await.map(drop)
}
