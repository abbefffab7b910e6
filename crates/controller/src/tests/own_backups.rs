//! Backups of the controller: who asks for one, when one is due, and what is told of how it ended.

use corpus_api::Principal;
use corpus_api::controller_backups::{
    ControllerBackup, ControllerBackups, ListControllerBackups, TakeControllerBackup,
};
use corpus_api::notices::{ListNotices, News};
use corpus_database::Db;
use corpus_domain::ControllerBackupState;
use sqlx::PgPool;

use super::world::{World, conflict, forbidden};
use crate::own_backups::{self, Taken};

fn taken() -> Taken {
    Taken { snapshot: "4f".repeat(32), bytes: 48_000_000, added_bytes: 412_000 }
}

async fn list(world: &World, ops: &Principal) -> ControllerBackups {
    world.ask(ops, ListControllerBackups {}).await.unwrap()
}

fn states(all: &ControllerBackups) -> Vec<ControllerBackupState> {
    all.items.iter().map(|one: &ControllerBackup| one.state).collect()
}

#[sqlx::test(migrations = "../../migrations")]
async fn operators_ask_for_one_at_a_time(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let (ops, member) = (world.ops().await, world.member("mia", &[]).await);
    forbidden(world.ask(&member, ListControllerBackups {}).await);
    forbidden(world.ask(&member, TakeControllerBackup {}).await);
    let none = list(&world, &ops).await;
    assert_eq!((none.place.as_deref(), none.every_hours), (Some("/mnt/backup"), Some(24)));
    assert!(none.is_old && none.newest_at.is_none() && none.items.is_empty(), "{none:?}");

    let wanted = world.ask(&ops, TakeControllerBackup {}).await.unwrap();
    assert_eq!((wanted.state, wanted.wanted_by.as_deref()), (ControllerBackupState::Wanted, Some(ops.login.as_str())));
    conflict(world.ask(&ops, TakeControllerBackup {}).await, "waits already");
    let db: Db = pool.into();
    assert!(own_backups::is_due(&db, None).await.unwrap(), "whatever the schedule is");
    let id = own_backups::begin(&db).await.unwrap();
    assert_eq!(id, wanted.id, "the one that was asked for");
    conflict(world.ask(&ops, TakeControllerBackup {}).await, "is being taken");
    assert!(!own_backups::is_due(&db, None).await.unwrap());
    own_backups::done(&db, id, &taken()).await.unwrap();
    let one = list(&world, &ops).await;
    assert_eq!(states(&one), [ControllerBackupState::Done]);
    assert!(!one.is_old && one.newest_at == one.items[0].began_at, "{one:?}");
    assert_eq!(one.items[0].snapshot, Some(taken().snapshot));
    assert_eq!(world.count("select count(*) from audit where action = 'controller_backup.take'").await, 1);
    world.ask(&ops, TakeControllerBackup {}).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_is_due_when_the_last_is_long_ago(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let ops = world.ops().await;
    let db: Db = pool.into();
    assert!(own_backups::is_due(&db, Some(24)).await.unwrap() && !own_backups::is_due(&db, None).await.unwrap());
    let id = own_backups::begin(&db).await.unwrap();
    own_backups::done(&db, id, &taken()).await.unwrap();
    assert!(!own_backups::is_due(&db, Some(24)).await.unwrap());
    world.run("update controller_backups set wanted_at = wanted_at - interval '25 hours'").await;
    assert!(own_backups::is_due(&db, Some(24)).await.unwrap() && !own_backups::is_due(&db, Some(48)).await.unwrap());
    world.run("update controller_backups set began_at = began_at - interval '49 hours'").await;
    assert!(list(&world, &ops).await.is_old);

    // What failed is tried again after a while, and told once a day.
    for _ in 0..2 {
        let id = own_backups::begin(&db).await.unwrap();
        own_backups::failed(&db, id, &format!("pg_dump failed: {}", "no space ".repeat(500))).await.unwrap();
        assert!(!own_backups::is_due(&db, Some(24)).await.unwrap());
    }
    world
        .run("update controller_backups set ended_at = ended_at - interval '11 minutes' where error is not null")
        .await;
    assert!(own_backups::is_due(&db, Some(24)).await.unwrap());
    let notices = world.ask(&ops, ListNotices::default()).await.unwrap().items;
    assert_eq!(notices.len(), 1, "{notices:?}");
    let News::ControllerBackupFailed { reason } = &notices[0].news else { panic!("{notices:?}") };
    assert!(reason.starts_with("pg_dump failed") && notices[0].path == "/controller-backups", "{notices:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn one_whose_server_died_is_over_when_the_next_begins(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let ops = world.ops().await;
    let db: Db = pool.into();
    let dead = own_backups::begin(&db).await.unwrap();
    let next = own_backups::begin(&db).await.unwrap();
    assert_ne!(dead, next);
    // What the dead one says now comes too late.
    own_backups::done(&db, dead, &taken()).await.unwrap();
    let all = list(&world, &ops).await;
    assert_eq!(states(&all), [ControllerBackupState::Running, ControllerBackupState::Failed]);
    assert!(all.items[1].error.as_deref().is_some_and(|why| why.contains("ended before")), "{all:?}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_controller_that_was_brought_back_says_so(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let ops = world.ops().await;
    let db: Db = pool.into();
    // As the database was copied: in the middle of its own backup.
    own_backups::begin(&db).await.unwrap();
    let at = chrono::Utc::now() - chrono::TimeDelta::hours(3);
    own_backups::restored(&db, at, &taken()).await.unwrap();
    let all = list(&world, &ops).await;
    assert_eq!(states(&all), [ControllerBackupState::Done]);
    assert_eq!(all.restored.unwrap().taken_at.timestamp(), at.timestamp());
}
