//! Snapshots: whose they are, who may do what with them, and that a job has one for itself.

use corpus_api::guests::GetGuest;
use corpus_api::jobs::CancelJob;
use corpus_api::snapshots::{ListSnapshots, MOST_SNAPSHOTS, RemoveSnapshot, RestoreSnapshot, TakeSnapshot};
use corpus_domain::{Environment, GuestState, ProjectRole, SnapshotState};
use sqlx::PgPool;

use super::world::{World, conflict, forbidden, hidden};

#[sqlx::test(migrations = "../../migrations")]
async fn a_snapshot_is_its_guests_and_a_job_has_it_for_itself(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let vic = world.member("vic", &[("atlas", ProjectRole::Viewer)]).await;
    let mut eve = world.member("eve", &[]).await;
    let borealis = world.project(&mut eve, "borealis").await;
    let (guest, theirs) = (world.guest(atlas, Environment::Dev).await, world.guest(borealis, Environment::Dev).await);

    let take = TakeSnapshot { guest, comment: Some("before".parse().unwrap()) };
    forbidden(world.ask(&vic, take.clone()).await);
    hidden(world.ask(&eve, take.clone()).await);
    let snapshot = world.ask(&dan, take.clone()).await.unwrap().snapshot;
    let (restore, remove) = (RestoreSnapshot { guest, snapshot }, RemoveSnapshot { guest, snapshot });
    conflict(world.ask(&mia, restore.clone()).await, "it is taking");
    world.run("delete from jobs").await;
    world.run("update snapshots set state = 'ready', taken_at = now(), bytes = 7").await;

    let seen = world.ask(&vic, ListSnapshots { guest }).await.unwrap();
    assert_eq!((seen.items.len(), seen.items[0].by.as_str(), seen.may_take), (1, "dan", false));
    hidden(world.ask(&eve, ListSnapshots { guest }).await);
    forbidden(world.ask(&dan, restore.clone()).await);
    forbidden(world.ask(&dan, remove.clone()).await);
    // By way of a guest of one's own.
    hidden(world.ask(&eve, RestoreSnapshot { guest: theirs, snapshot }).await);
    hidden(world.ask(&eve, RemoveSnapshot { guest: theirs, snapshot }).await);

    let job = world.ask(&mia, restore.clone()).await.unwrap().job;
    assert_eq!(world.ask(&mia, GetGuest { guest }).await.unwrap().line.state, GuestState::Starting);
    conflict(world.ask(&mia, remove.clone()).await, "it is restoring");
    conflict(world.ask(&mia, take.clone()).await, "is starting now");
    world.ask(&mia, CancelJob { job }).await.unwrap();
    assert_eq!(world.ask(&mia, GetGuest { guest }).await.unwrap().line.state, GuestState::Running);
    let state = world.ask(&mia, ListSnapshots { guest }).await.unwrap().items[0].state;
    assert_eq!(state, SnapshotState::Ready);

    for _ in 1..MOST_SNAPSHOTS {
        world.ask(&dan, take.clone()).await.unwrap();
    }
    conflict(world.ask(&dan, take).await, "has 16 snapshots already");
    world.run("delete from guests").await;
    assert_eq!(world.count("select count(*) from snapshots").await, 0);
}
