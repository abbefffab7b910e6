//! What a guest is known by, and what opens it: its host key, and its sealed password.

use corpus_domain::GuestId;
use sqlx::PgConnection;

use crate::store::fingerprint;

/// Keeps which key the guest shows in the place of its own; none when it shows its own.
pub async fn note_host_key(conn: &mut PgConnection, id: GuestId, shown: Option<&str>) -> sqlx::Result<()> {
    sqlx::query!(
        "update guests set other_host_key = $2 where id = $1 and other_host_key is distinct from $2",
        id.0,
        shown,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Pins the other key that the guest shows, if it is the one with this fingerprint still.
pub async fn confirm_host_key(conn: &mut PgConnection, id: GuestId, compared: &str) -> sqlx::Result<bool> {
    let shown = sqlx::query_scalar!("select other_host_key from guests where id = $1 for update", id.0);
    let Some(shown) = shown.fetch_optional(&mut *conn).await?.flatten() else { return Ok(false) };
    if fingerprint(&shown)? != compared {
        return Ok(false);
    }
    set_host_key(conn, id, &shown).await?;
    note_host_key(conn, id, None).await?;
    Ok(true)
}

/// Keeps the guest's public host key.
pub async fn set_host_key(conn: &mut PgConnection, id: GuestId, host_key: &str) -> sqlx::Result<()> {
    sqlx::query!("update guests set host_key = $2 where id = $1", id.0, host_key).execute(conn).await.map(drop)
}

/// The guest's public host key.
pub async fn host_key(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<Option<String>> {
    Ok(sqlx::query_scalar!("select host_key from guests where id = $1", id.0).fetch_optional(conn).await?.flatten())
}

/// Keeps the sealed password.
pub async fn set_password(conn: &mut PgConnection, id: GuestId, sealed: &[u8]) -> sqlx::Result<()> {
    sqlx::query!("update guests set password_sealed = $2 where id = $1", id.0, sealed).execute(conn).await.map(drop)
}

/// The sealed password.
pub async fn password(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<Option<Vec<u8>>> {
    Ok(sqlx::query_scalar!("select password_sealed from guests where id = $1", id.0)
        .fetch_optional(conn)
        .await?
        .flatten())
}
