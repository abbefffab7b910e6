//! Work that one server at a time does, by name.

use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;

/// Takes or renews the lease for so long; tells whether this server has it now.
pub async fn take(conn: &mut PgConnection, name: &str, owner: Uuid, lasts: Duration) -> sqlx::Result<bool> {
    sqlx::query!(
        "insert into leases (name, owner, until) values ($1, $2, now() + make_interval(secs => $3))
         on conflict (name) do update set owner = excluded.owner, until = excluded.until
         where leases.owner = excluded.owner or leases.until < now()",
        name,
        owner,
        lasts.as_secs_f64(),
    )
    .execute(conn)
    .await
    .map(|done| done.rows_affected() == 1)
}

/// Gives the lease back, so that another server need not wait for its end.
pub async fn give_back(conn: &mut PgConnection, name: &str, owner: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from leases where name = $1 and owner = $2", name, owner).execute(conn).await.map(drop)
}

#[cfg(test)]
mod tests {
    use sqlx::PgPool;

    use super::*;

    #[sqlx::test(migrations = "../../migrations")]
    async fn one_at_a_time(pool: PgPool) {
        let mut conn = pool.acquire().await.unwrap();
        let (one, two, lasts) = (Uuid::from_u128(1), Uuid::from_u128(2), Duration::from_mins(1));
        assert!(take(&mut conn, "x", one, lasts).await.unwrap());
        assert!(take(&mut conn, "x", one, lasts).await.unwrap(), "renewed");
        assert!(!take(&mut conn, "x", two, lasts).await.unwrap());
        assert!(take(&mut conn, "y", two, lasts).await.unwrap(), "another work");
        give_back(&mut conn, "x", two).await.unwrap();
        assert!(!take(&mut conn, "x", two, lasts).await.unwrap(), "it was not theirs to give");
        sqlx::query("update leases set until = now() - interval '1 s'").execute(&mut *conn).await.unwrap();
        assert!(take(&mut conn, "x", two, lasts).await.unwrap(), "lapsed");
        give_back(&mut conn, "x", two).await.unwrap();
        assert!(take(&mut conn, "x", one, lasts).await.unwrap());
    }
}
