//! The git server's host key, made once and shared by all servers on this database.

use sqlx::PgConnection;
use uuid::Uuid;

/// Its id, which the seal is bound to, and the sealed private part, if it was made.
pub async fn load(conn: &mut PgConnection) -> sqlx::Result<Option<(Uuid, Vec<u8>)>> {
    let row = sqlx::query!("select id, private_sealed from git_host_keys").fetch_optional(conn).await?;
    Ok(row.map(|row| (row.id, row.private_sealed)))
}

/// Keeps the key unless another server was first.
pub async fn insert(conn: &mut PgConnection, id: Uuid, private_sealed: &[u8]) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into git_host_keys (id, private_sealed) values ($1, $2) on conflict (only_one) do nothing",
        id,
        private_sealed,
    )
    .execute(conn)
    .await
    .map(drop)
}
