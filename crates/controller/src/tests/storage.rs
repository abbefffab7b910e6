//! What is in the storage of a guest, when it will be full, and making it smaller.

use corpus_api::guests::{EnlargeGuest, GetGuest, ShrinkGuest};
use corpus_api::snapshots::TakeSnapshot;
use corpus_domain::{Bytes, Environment, ProjectRole, SizeProfile};
use sqlx::PgPool;

use super::world::{World, at_field, conflict, forbidden, hidden};

const READING: &str = r#"update nodes set reachability = 'reachable', reading_at = now(), reading = '{"load": 0, "uptime_s": 1,
    "memory_total": 1, "memory_used": 1, "storage": {"total": 1000000000000, "used": 1}, "guests": [
    {"name": "guest0.example.org", "state": "running",
     "storage": {"used": 2000000000, "of": 5000000000, "taken": 2500000000}},
    {"name": "other.example.org", "state": "stopped"}]}'"#;

/// It is told from what its nodes tell, a day at a time, and only where enough days say the same.
#[sqlx::test(migrations = "../../migrations")]
async fn when_it_will_be_full_is_told(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let read = async || world.ask(&mia, GetGuest { guest }).await.unwrap().storage;
    assert_eq!(read().await, None);
    world.run(READING).await;
    let now = read().await.unwrap();
    assert_eq!((now.used, now.of, now.taken), (Bytes(2_000_000_000), Bytes(5_000_000_000), Bytes(2_500_000_000)));
    assert_eq!(now.full_at, None);

    for _ in 0..2 {
        world.controller.note_storage_now().await.unwrap();
    }
    assert_eq!(world.count("select used from guest_storage_days where day = current_date").await, 2_000_000_000);
    // 100 MB a day, as far as three days can say.
    let days = "insert into guest_storage_days select g.id, current_date - n, 2000000000 - n * 100000000
                from guests g, generate_series(1, 2) n";
    world.run(days).await;
    assert_eq!(read().await.unwrap().full_at, None);
    world.run("insert into guest_storage_days select id, current_date - 3, 1700000000 from guests").await;
    let in_days = (read().await.unwrap().full_at.unwrap() - chrono::Utc::now()).num_hours();
    assert!((29 * 24..=31 * 24).contains(&in_days), "{in_days} hours");
    // What becomes less is never full; what a node tells is not believed beyond what a number holds.
    world.run("update guest_storage_days set used = used + (current_date - day) * 200000000").await;
    assert_eq!(read().await.unwrap().full_at, None);
    world.run("update nodes set reading = replace(reading::text, '2000000000', '9e99')::jsonb").await;
    assert_eq!(read().await.unwrap().used, Bytes(i64::MAX.unsigned_abs()));
    world.controller.note_storage_now().await.unwrap();

    world.run("update guest_storage_days set day = day - 40").await;
    world.controller.note_storage_now().await.unwrap();
    assert_eq!(world.count("select count(*) from guest_storage_days").await, 1);
    world.run("delete from guests").await;
    assert_eq!(world.count("select count(*) from guest_storage_days").await, 0);
}

/// A guest keeps what it was promised until it has less.
#[sqlx::test(migrations = "../../migrations")]
async fn what_does_not_fit_is_not_begun(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let eve = world.member("eve", &[]).await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let to = |size| ShrinkGuest { guest, size };
    conflict(world.ask(&mia, to(SizeProfile::Xsmall)).await, "which fills its node's disk");
    world.run("update guests set backing = 'loop', storage = 5000000000").await;
    world.run(READING).await;
    forbidden(world.ask(&dan, to(SizeProfile::Xsmall)).await);
    hidden(world.ask(&eve, to(SizeProfile::Xsmall)).await);
    for size in [SizeProfile::Small, SizeProfile::Large] {
        at_field(world.ask(&mia, to(size)).await, "size", "choose a smaller size");
    }
    at_field(world.ask(&mia, to(SizeProfile::Xxsmall)).await, "size", "There are 2 GB in it");
    world.ask(&mia, TakeSnapshot { guest, comment: None }).await.unwrap();
    conflict(world.ask(&mia, to(SizeProfile::Xsmall)).await, "has snapshots");
    world.run("delete from jobs").await;
    world.run("delete from snapshots").await;

    world.ask(&mia, to(SizeProfile::Xsmall)).await.unwrap();
    assert_eq!(world.count("select storage from guests").await, 5_000_000_000);
    conflict(world.ask(&mia, to(SizeProfile::Xsmall)).await, "is just being resized");
    let audit = "select count(*) from audit where action = 'guest.shrink' and detail->>'to' = 'xsmall'";
    assert_eq!(world.count(audit).await, 1);
    world.run("delete from jobs").await;
    world.ask(&mia, EnlargeGuest { guest, size: SizeProfile::Medium }).await.unwrap();
    conflict(world.ask(&mia, to(SizeProfile::Xsmall)).await, "is just being resized");
}

/// An overlay has no size of its own; that of a guest whose node holds it all the same, and tells so, changes as any.
#[sqlx::test(migrations = "../../migrations")]
async fn what_its_node_holds_has_a_size(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let larger = EnlargeGuest { guest, size: SizeProfile::Medium };
    conflict(world.ask(&mia, larger.clone()).await, "which fills its node's disk");
    assert_eq!(world.count("select storage from guests").await, 2_000_000_000);
    world.run(READING).await;
    world.ask(&mia, larger).await.unwrap();
    assert_eq!(world.count("select storage from guests").await, 10_000_000_000);
    world.run("delete from jobs").await;
    at_field(world.ask(&mia, ShrinkGuest { guest, size: SizeProfile::Xxsmall }).await, "size", "There are 2 GB in it");
    world.ask(&mia, ShrinkGuest { guest, size: SizeProfile::Xsmall }).await.unwrap();
}
