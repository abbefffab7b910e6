//! The database of an earlier release, and its upgrade.

use sqlx::{Executor, PgPool};

/// It is as those before this migration left it, and empty.
pub async fn until(db: &PgPool, number: i64) {
    // The database of a test may have been copied from one with all of them.
    sqlx::raw_sql("drop schema public cascade; create schema public").execute(db).await.unwrap();
    migrate(db, |one| one < number).await;
}

/// This migration, and all after it.
pub async fn since(db: &PgPool, number: i64) {
    migrate(db, |one| one >= number).await;
}

async fn migrate(db: &PgPool, wanted: impl Fn(i64) -> bool) {
    for one in sqlx::migrate!("../../migrations").iter().filter(|one| wanted(one.version)) {
        db.execute(one.sql.clone()).await.unwrap();
    }
}
