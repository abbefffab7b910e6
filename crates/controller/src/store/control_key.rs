//! The controller's own key pair, made once and shared by all servers on this database.

use sqlx::PgConnection;
use uuid::Uuid;

/// The pair as stored.
#[derive(Debug)]
pub struct Stored {
    /// Its id, part of what the seal is bound to.
    pub id: Uuid,
    /// The `authorized_keys` line.
    pub public_key: String,
    /// The sealed private part.
    pub private_sealed: Vec<u8>,
}

/// The pair, if one was made.
pub async fn load(conn: &mut PgConnection) -> sqlx::Result<Option<Stored>> {
    sqlx::query_as!(Stored, "select id, public_key, private_sealed from control_keys").fetch_optional(conn).await
}

/// Keeps the pair unless another server was first; tells whether it was kept.
pub async fn insert(conn: &mut PgConnection, key: &Stored) -> sqlx::Result<bool> {
    sqlx::query!(
        "insert into control_keys (id, public_key, private_sealed) values ($1, $2, $3) on conflict (only_one) do nothing",
        key.id,
        key.public_key,
        key.private_sealed,
    )
    .execute(conn)
    .await
    .map(|done| done.rows_affected() == 1)
}
