//! Our accounts at directories of certificates, sealed: one of each directory, shared by all servers on this database.

use sqlx::PgConnection;

/// What is kept of the account at a directory.
pub async fn get(conn: &mut PgConnection, directory: &str) -> sqlx::Result<Option<Vec<u8>>> {
    sqlx::query_scalar!("select sealed from acme_accounts where directory = $1", directory).fetch_optional(conn).await
}

/// Keeps an account, in place of one that is lost.
pub async fn keep(conn: &mut PgConnection, directory: &str, sealed: &[u8]) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into acme_accounts (directory, sealed) values ($1, $2)
         on conflict (directory) do update set sealed = excluded.sealed, created_at = now()",
        directory,
        sealed,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Forgets an account that the directory does not know any more.
pub async fn forget(conn: &mut PgConnection, directory: &str) -> sqlx::Result<()> {
    sqlx::query!("delete from acme_accounts where directory = $1", directory).execute(conn).await.map(drop)
}
