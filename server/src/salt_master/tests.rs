use std::net::Ipv4Addr;

use sqlx::PgPool;

use super::*;

fn master(folder: &Path) -> SaltMaster {
    // There is no such repository, which is told as often as the latest commit would be.
    let source = Source { url: folder.join("nowhere").display().to_string(), branch: "main".to_owned() };
    SaltMaster {
        name: "main".to_owned(),
        listen: Ipv4Addr::LOCALHOST.into(),
        address: "127.0.0.1".to_owned(),
        publish_port: 4505,
        request_port: 4506,
        states: folder.join("states"),
        pillar: folder.join("pillar"),
        git: Some((source, Duration::from_millis(10))),
        folder: folder.to_owned(),
    }
}

/// The minions are kept, and the tree is followed, by one task: that one of them waits for the database ends neither.
#[sqlx::test(migrations = "../migrations")]
async fn a_database_that_keeps_it_waiting_does_not_end_it(pool: PgPool) {
    let folder = tempfile::tempdir().unwrap();
    let (master, db) = (master(folder.path()), Db::from(pool.clone()));
    for path in [master.minion_keys(), master.told(), Tree::below(&master.folder).repository()] {
        std::fs::create_dir_all(path).unwrap();
    }
    let public_key = &"k".repeat(100);
    let new = NewMaster { name: "main", address: "127.0.0.1", ports: (4505, 4506), public_key, follows_git: true };
    salt_masters::register(&mut pool.acquire().await.unwrap(), &new).await.unwrap();
    let mut child = Command::new("sleep").arg("60").kill_on_drop(true).spawn().unwrap();
    let until = CancellationToken::new();
    let told = async || {
        let (known,) = sqlx::query_as::<_, (Option<String>,)>("select tree_problem from salt_masters")
            .fetch_one(&pool)
            .await
            .unwrap();
        known
    };
    let mut waits = pool.begin().await.unwrap();
    sqlx::query("select 1 from salt_masters for update").execute(&mut *waits).await.unwrap();
    let work = async {
        sleep(2 * EVERY).await;
        assert_eq!(told().await, None);
        waits.rollback().await.unwrap();
        let end = Instant::now() + Duration::from_secs(10);
        while told().await.is_none() && Instant::now() < end {
            sleep(Duration::from_millis(20)).await;
        }
        until.cancel();
    };
    let (served, ()) = tokio::join!(serve(&master, folder.path(), &mut child, &db, &until), work);
    served.unwrap();
    assert!(told().await.is_some(), "it went on when the database did");
}
