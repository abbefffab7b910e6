//! Members' API tokens, by the hash of their random bytes.

use chrono::{DateTime, Utc};
use corpus_api::tokens::Token;
use corpus_domain::{Grant, TokenId, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{users, word};

/// What a token is found by.
pub type Hash = [u8; 32];

/// A token that is good now.
#[derive(Debug)]
pub struct Good {
    /// Its id.
    pub id: TokenId,
    /// What its member calls it.
    pub name: String,
    /// Whose.
    pub user: UserId,
    /// What it is good for.
    pub grant: Grant,
    /// Whether its last use is noted for this minute.
    pub is_noted: bool,
}

/// A member's tokens that are not revoked, the newest first, those before one of them.
pub async fn of_user(
    conn: &mut PgConnection,
    user: UserId,
    before: Option<TokenId>,
    limit: i64,
) -> sqlx::Result<Vec<Token>> {
    let rows = sqlx::query!(
        "select id, name, grant_, created_at, expires_at, last_used_at from tokens
         where user_id = $1 and revoked_at is null and ($2::uuid is null or id < $2) order by id desc limit $3",
        user.0,
        before.map(|id| id.0),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        let (name, created_at, expires_at, last_used_at) = (row.name, row.created_at, row.expires_at, row.last_used_at);
        Ok(Token { id: TokenId(row.id), name, scope: word(&row.grant_)?, created_at, expires_at, last_used_at })
    })
    .collect()
}

/// How many tokens of a member are good now; those that have not been for a month are forgotten.
/// The member's row is held, so that they are counted by one at a time.
pub async fn count(conn: &mut PgConnection, user: UserId) -> sqlx::Result<i64> {
    users::lock(conn, user).await?;
    sqlx::query!(
        "delete from tokens where user_id = $1 and least(revoked_at, expires_at) < now() - interval '30 days'",
        user.0,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from tokens where user_id = $1 and revoked_at is null and expires_at > now()"#,
        user.0,
    )
    .fetch_one(conn)
    .await
}

/// Keeps a token; a name that another one has breaks the unique rule.
pub async fn insert(
    conn: &mut PgConnection,
    user: UserId,
    hash: &Hash,
    (name, grant, expires_at): (&str, Grant, DateTime<Utc>),
) -> sqlx::Result<TokenId> {
    let id = TokenId(Uuid::now_v7());
    sqlx::query!(
        "insert into tokens (id, user_id, name, grant_, hash, expires_at) values ($1, $2, $3, $4, $5, $6)",
        id.0,
        user.0,
        name,
        grant.as_str(),
        hash,
        expires_at,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// Revokes a member's own token; tells its name, or none when there is none to revoke.
pub async fn revoke(conn: &mut PgConnection, user: UserId, id: TokenId) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!(
        "update tokens set revoked_at = now() where id = $1 and user_id = $2 and revoked_at is null returning name",
        id.0,
        user.0,
    )
    .fetch_optional(conn)
    .await
}

/// Revokes a member's own token of that name, if there is one.
pub async fn revoke_named(conn: &mut PgConnection, user: UserId, name: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update tokens set revoked_at = now() where user_id = $1 and name = $2 and revoked_at is null",
        user.0,
        name,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Revokes all of a member's tokens.
pub async fn revoke_all(conn: &mut PgConnection, user: UserId) -> sqlx::Result<()> {
    sqlx::query!("update tokens set revoked_at = now() where user_id = $1 and revoked_at is null", user.0)
        .execute(conn)
        .await
        .map(drop)
}

/// The token of this hash, if it is good now and its member is not disabled, nor its robot expired.
pub async fn good(conn: &mut PgConnection, hash: &Hash) -> sqlx::Result<Option<Good>> {
    let row = sqlx::query!(
        r#"select t.id, t.name, t.user_id, t.grant_, coalesce(t.last_used_at > now() - interval '1 minute', false) as "is_noted!"
         from tokens t join users u on u.id = t.user_id left join robots r on r.user_id = u.id
         where t.hash = $1 and t.revoked_at is null and t.expires_at > now() and u.disabled_at is null
           and (r.expires_at > now()) is not false"#,
        hash,
    );
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    let (id, user) = (TokenId(row.id), UserId(row.user_id));
    Ok(Some(Good { id, name: row.name, user, grant: word(&row.grant_)?, is_noted: row.is_noted }))
}

/// Notes that a token was used now.
pub async fn note_use(conn: &mut PgConnection, id: TokenId) -> sqlx::Result<()> {
    sqlx::query!("update tokens set last_used_at = now() where id = $1", id.0).execute(conn).await.map(drop)
}
