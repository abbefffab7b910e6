//! How many answers a second browsers get: `scripts/crowd` runs it. The server is the real one, with
//! its own settings, on the database `DATABASE_URL`, which must be empty; the browsers are tasks of the
//! same process, so both share the processors as they do in `make scale`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what is measured may fail loudly"
)]

#[path = "../tests/server/crowd.rs"]
#[allow(dead_code, reason = "tests need more of it")]
mod crowd;
#[path = "../tests/server/support.rs"]
#[allow(dead_code, reason = "tests need more of it")]
mod support;

use std::time::Duration;

use sqlx::PgPool;

#[tokio::main]
async fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|word| word.parse().unwrap()).collect();
    let (seconds, crowds) = numbers.split_first().expect("crowd SECONDS BROWSERS…");
    let pool = PgPool::connect(&std::env::var("DATABASE_URL").unwrap()).await.unwrap();
    sqlx::migrate!("../migrations").run(&pool).await.unwrap();
    let server = support::Running::start(&pool, "").await;
    let place = crowd::seed(&pool).await;
    sqlx::query("analyze").execute(&pool).await.unwrap();
    let cookies = crowd::sessions(&pool, &place.members).await;
    let mut failed = 0;
    for browsers in crowds {
        let browsers = usize::try_from(*browsers).unwrap();
        let crowd = crowd::Crowd { url: server.url.clone(), cookies: cookies.clone(), paths: place.paths.clone() };
        let told = crowd.visit(browsers, Duration::from_secs(*seconds)).await;
        println!("{}", told.table(browsers));
        told.errors.iter().take(5).for_each(|error| println!("- {error}"));
        failed += told.errors.len();
    }
    server.stop().await;
    assert_eq!(failed, 0, "answers were no pages");
}
