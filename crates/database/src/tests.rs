use std::pin::pin;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use super::{Db, beside};

/// Whether it came to its end within so many looks.
async fn look(at: impl Future, times: usize) -> bool {
    let mut at = pin!(at);
    for _ in 0..times {
        if futures::poll!(&mut at).is_ready() {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// Of one connection only, so that the next to ask gets that of whoever gave up.
#[sqlx::test(migrations = false)]
async fn whoever_gives_up_while_a_transaction_begins_leaves_none_open(
    _: PgPoolOptions,
    options: PgConnectOptions,
) -> sqlx::Result<()> {
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await?;
    let db = Db::from(pool.clone());
    sqlx::query("create table kept (number int)").execute(&pool).await?;
    let mut given_up = 0;
    for number in 0..100 {
        given_up += i64::from(!look(db.begin(), number % 10).await);
        sqlx::query("insert into kept values (1)").execute(&pool).await?;
    }
    assert!(given_up >= 20, "{given_up}");
    pool.close().await;
    let other = PgPool::connect_with((*pool.connect_options()).clone()).await?;
    let kept: i64 = sqlx::query_scalar("select count(*) from kept").fetch_one(&other).await?;
    assert_eq!(kept, 100, "some was written in a transaction that nobody knew of");
    Ok(())
}

#[sqlx::test(migrations = false)]
#[should_panic(expected = "a second connection is asked for")]
async fn a_second_connection_of_a_task_ends_it(pool: PgPool) {
    let db = Db::from(pool);
    let _first = db.begin().await.unwrap();
    drop(db.acquire().await);
}

#[sqlx::test(migrations = false)]
#[should_panic(expected = "a second connection is asked for")]
async fn so_does_one_that_is_asked_for_beside(pool: PgPool) {
    let db = Db::from(pool);
    let _both = tokio::join!(db.acquire(), db.acquire());
}

#[sqlx::test(migrations = false)]
async fn one_after_the_other_and_in_tasks_and_branches_of_their_own_is_well(pool: PgPool) {
    let db = Db::from(pool);
    for _ in 0..3 {
        drop(db.acquire().await.unwrap());
        db.begin().await.unwrap().commit().await.unwrap();
    }
    let given_up = db.acquire();
    assert!(!look(given_up, 0).await);
    let mine = db.acquire().await.unwrap();
    let other = db.clone();
    tokio::spawn(async move { drop(other.acquire().await.unwrap()) }).await.unwrap();
    let (one, two) = tokio::join!(beside(db.acquire()), beside(db.acquire()));
    drop((mine, one.unwrap(), two.unwrap()));
    assert!(db.acquire().await.is_ok(), "what was given back is held no more");
}
