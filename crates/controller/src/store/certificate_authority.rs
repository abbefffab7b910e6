//! The authority that signs certificates of names, made once and shared by all servers on this database.

use sqlx::PgConnection;

/// Its certificate and its sealed key, if it was made.
pub async fn load(conn: &mut PgConnection) -> sqlx::Result<Option<(String, Vec<u8>)>> {
    let row = sqlx::query!("select certificate, key_sealed from certificate_authority").fetch_optional(conn).await?;
    Ok(row.map(|row| (row.certificate, row.key_sealed)))
}

/// Keeps it unless another server was first.
pub async fn insert(conn: &mut PgConnection, certificate: &str, key_sealed: &[u8]) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into certificate_authority (certificate, key_sealed) values ($1, $2) on conflict (id) do nothing",
        certificate,
        key_sealed,
    )
    .execute(conn)
    .await
    .map(drop)
}
