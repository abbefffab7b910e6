//! Records the job logs of this release for `tests/upgrade.rs`, on the empty database `DATABASE_URL`;
//! `scripts/record-jobs` runs it. Done once, before a release is published.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "part of a test, which may fail loudly"
)]

#[path = "../../tests/upgrade/fixture.rs"]
#[allow(dead_code, reason = "this writes what the test reads")]
mod fixture;
#[path = "../../tests/upgrade/names.rs"]
mod names;
mod recorder;

#[tokio::main]
async fn main() {
    let url = std::env::var("DATABASE_URL").unwrap();
    let db = sqlx::PgPool::connect(&url).await.unwrap();
    sqlx::migrate!("../../migrations").run(&db).await.unwrap();
    recorder::all(db).await;
}
