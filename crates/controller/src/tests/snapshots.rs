//! Snapshots: whose they are, who may do what with them, and that a job has one for itself.

use corpus_api::deployments::Drill;
use corpus_api::guests::{GetGuest, RequestGuest};
use corpus_api::jobs::CancelJob;
use corpus_api::snapshots::{
    GetSnapshotSchedule, ListSnapshots, MOST_SNAPSHOTS, RemoveSnapshot, RestoreSnapshot, SetSnapshotSchedule,
    TakeSnapshot,
};
use corpus_api::words::SnapshotsKept;
use corpus_domain::{
    BackupId, DeploymentId, Environment, GuestState, JobId, JobState, ProjectRole, SizeProfile, SnapshotEvery,
    SnapshotState,
};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, conflict, forbidden, head, hidden};
use crate::jobs::testing::Fault;

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
    assert_eq!((seen.items.len(), seen.items[0].by.as_deref(), seen.may_take), (1, Some("dan"), false));
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

/// It may take what its guest has until it is there, and what is in it from then on: of the project's quota, and of what
/// its node has.
#[sqlx::test(migrations = "../../migrations")]
async fn what_a_snapshot_takes_is_its_projects(db: PgPool) {
    const OF_QUOTA: &str = "select sum(storage)::bigint from project_tallies";
    const OF_NODE: &str = "select sum(storage)::bigint from node_tallies";
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let take = TakeSnapshot { guest, comment: None };
    let before = (world.count(OF_QUOTA).await, world.count(OF_NODE).await);
    let has = world.count("select storage from guests").await;

    world.ask(&mia, take.clone()).await.unwrap();
    assert_eq!((world.count(OF_QUOTA).await, world.count(OF_NODE).await), (before.0 + has, before.1 + has));
    world.run("delete from jobs").await;
    world.run("update snapshots set state = 'ready', taken_at = now(), bytes = 7, storage = 7").await;
    assert_eq!((world.count(OF_QUOTA).await, world.count(OF_NODE).await), (before.0 + 7, before.1 + 7));

    // What is left is less than it may come to take.
    let and_as_much =
        "update quota_policy set storage = (select sum(storage) from project_tallies) + (select storage from guests)";
    world.run(and_as_much).await;
    world.run("update quota_policy set storage = storage - 1").await;
    let refused = format!("{:?}", world.ask(&mia, take.clone()).await.unwrap_err());
    assert!(refused.contains("project atlas has taken") && refused.contains("delete snapshots"), "{refused}");
    world.run(and_as_much).await;
    world.ask(&mia, take).await.unwrap();

    world.run("delete from guests").await;
    let nothing = "select coalesce(sum(storage), 0)::bigint from project_tallies";
    assert_eq!((world.count(nothing).await, world.count(OF_NODE).await), (before.0 - has, before.1 - has));
}

/// One is taken at its time and one only, however long nobody looked; the oldest goes when there are too many; what
/// somebody took stays; why none was taken is told.
#[sqlx::test(migrations = "../../migrations")]
async fn a_schedule_is_kept_to(db: PgPool) {
    const ALL: &str = "select count(*) from snapshots";
    const READY: &str =
        "update snapshots set state = 'ready', taken_at = now(), bytes = 1, storage = 1 where state = 'taking'";
    let world = World::new(db).await;
    world.run("update nodes set reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let eve = world.member("eve", &[]).await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let read = async || world.ask(&dan, GetSnapshotSchedule { guest }).await.unwrap();
    let set = async |every, keep: u64| {
        let version = read().await.version;
        SetSnapshotSchedule { guest, every, keep: keep.try_into().unwrap(), deployments: None, version }
    };
    let look = async || world.controller.take_due_snapshots().await.unwrap();

    assert_eq!((read().await.every, read().await.next_at), (SnapshotEvery::Never, None));
    forbidden(world.ask(&dan, set(SnapshotEvery::Hour, 2).await).await);
    hidden(world.ask(&eve, set(SnapshotEvery::Hour, 2).await).await);
    hidden(world.ask(&eve, GetSnapshotSchedule { guest }).await);
    let stale = set(SnapshotEvery::Hour, 2).await;
    world.ask(&mia, stale.clone()).await.unwrap();
    let late = world.ask(&mia, SetSnapshotSchedule { every: SnapshotEvery::Day, ..stale }).await.unwrap_err();
    assert!(late.to_string().contains("every was never and is hour, keep was 7 and is 2"), "{late}");

    // Two servers that look at once.
    let looks: Vec<_> = (0..2)
        .map(|_| {
            let controller = world.controller.clone();
            tokio::spawn(async move { controller.take_scheduled(guest).await })
        })
        .collect();
    for one in looks {
        one.await.unwrap().unwrap();
    }
    look().await;
    assert_eq!(world.count(ALL).await, 1);
    let items = world.ask(&dan, ListSnapshots { guest }).await.unwrap().items;
    assert_eq!((items[0].by.as_deref(), items[0].comment.as_ref()), (None, None));
    assert_eq!(world.count("select count(*) from audit where action = 'snapshot.take' and actor = 'corpus'").await, 1);

    // Nobody looked for a month: one is taken, and the next in an hour.
    world.run(READY).await;
    world.run("update snapshot_schedules set next_at = now() - interval '30 days'").await;
    look().await;
    look().await;
    assert_eq!(world.count(ALL).await, 2);
    let next = read().await.next_at.unwrap() - chrono::Utc::now();
    assert!((50..=60).contains(&next.num_minutes()), "{next}");

    // The oldest of three goes, and what somebody took stays.
    world.run(READY).await;
    world.ask(&dan, TakeSnapshot { guest, comment: None }).await.unwrap();
    world.run("update snapshot_schedules set next_at = now()").await;
    look().await;
    world.run(READY).await;
    assert_eq!(world.count(ALL).await, 4);
    look().await;
    let oldest = "select count(*) from snapshots where state = 'removing' and created_by is null and created_at =
        (select min(created_at) from snapshots)";
    assert_eq!(world.count(oldest).await, 1);
    assert_eq!(world.count("select count(*) from snapshots where state = 'removing'").await, 1);

    // There is no room: it is told, and tried again.
    world.run("update quota_policy set storage = 1").await;
    world.run("update snapshot_schedules set next_at = now()").await;
    look().await;
    let now = read().await;
    assert!(now.problem.as_deref().is_some_and(|why| why.contains("project atlas has taken")), "{now:?}");
    assert!(now.next_at.is_some_and(|at| at > chrono::Utc::now()));
    world.run("update quota_policy set storage = null").await;
    world.run("update snapshot_schedules set next_at = now()").await;
    look().await;
    assert_eq!((world.count(ALL).await, read().await.problem), (5, None));

    // Whoever wants none has none more, and what is there stays.
    world.ask(&mia, set(SnapshotEvery::Never, 2).await).await.unwrap();
    world.run(READY).await;
    look().await;
    assert_eq!(world.count(ALL).await, 5);
    world.run("delete from guests").await;
    assert_eq!(world.count("select count(*) from snapshot_schedules").await, 0);
}

/// Where it is wanted one is taken before what is deployed by hand, or nothing is; not before what goes back, or is broken
/// on purpose. So many are kept, beside those of the schedule and of members.
#[sqlx::test(migrations = "../../migrations")]
async fn one_is_taken_before_a_deployment(db: PgPool) {
    const BEFORE: &str = "select count(*) from snapshots where deployment_id is not null";
    const READY: &str =
        "update snapshots set state = 'ready', taken_at = now(), bytes = 1, storage = 1 where state = 'taking'";
    let world = World::new(db).await;
    world.run("update nodes set reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let guest = world.environment(&mia, atlas, Environment::Dev).await;
    let read = async || world.ask(&dan, GetSnapshotSchedule { guest }).await.unwrap();
    let want = async |deployments: Option<u64>| {
        let deployments = deployments.map(|kept| kept.try_into().unwrap());
        let now = read().await;
        SetSnapshotSchedule { guest, every: now.every, keep: now.keep, deployments, version: now.version }
    };

    world.ask(&dan, head("atlas", Environment::Dev)).await.unwrap();
    assert_eq!(world.count(BEFORE).await, 0);
    forbidden(world.ask(&dan, want(Some(2)).await).await);
    world.ask(&mia, want(Some(2)).await).await.unwrap();
    let now = read().await;
    assert_eq!(
        (now.every, now.next_at, now.deployments.map(SnapshotsKept::get)),
        (SnapshotEvery::Never, None, Some(2))
    );
    world.controller.take_due_snapshots().await.unwrap();
    assert_eq!(world.count("select count(*) from snapshots").await, 0);

    // Its job waits for that of the snapshot, and does not begin without it.
    world.run("delete from jobs").await;
    let deployed = world.ask(&dan, head("atlas", Environment::Dev)).await.unwrap();
    let shown = world.ask(&dan, ListSnapshots { guest }).await.unwrap().items;
    let before = shown[0].before.unwrap();
    assert_eq!((before.deployment, before.number, shown[0].by.as_deref()), (deployed.deployment, Some(2), Some("dan")));
    assert_eq!(world.count("select count(*) from audit where action = 'snapshot.take' and actor = 'dan'").await, 1);
    let order =
        "select count(*) from jobs d join jobs s on s.id < d.id where d.kind = 'deploy' and s.kind = 'snapshot_take'";
    assert_eq!(world.count(order).await, 1);
    let kept = "select id from jobs where kind = 'snapshot_take'";
    let kept: Uuid = sqlx::query_scalar(kept).fetch_one(&world.db).await.unwrap();
    world.ask(&mia, CancelJob { job: JobId(kept) }).await.unwrap();
    let (state, why) = world.run_job(deployed.job, Fault::None).await;
    assert_eq!(state, JobState::Undone);
    assert!(why.as_deref().is_some_and(|why| why.contains("could not be taken")), "{why:?}");
    assert_eq!(world.state_of(deployed.deployment).await, "superseded");

    // The oldest of three goes.
    for _ in 0..3 {
        world.ask(&dan, head("atlas", Environment::Dev)).await.unwrap();
        world.run(READY).await;
    }
    world.ask(&dan, TakeSnapshot { guest, comment: None }).await.unwrap();
    world.run(READY).await;
    world.controller.take_due_snapshots().await.unwrap();
    let oldest =
        "select count(*) from snapshots where state = 'removing' and deployment_id is not null and created_at =
        (select min(created_at) from snapshots)";
    assert_eq!(world.count(oldest).await, 1);
    assert_eq!(world.count("select count(*) from snapshots where state = 'removing'").await, 1);

    // Who waited for long enough leaves none behind.
    let before = world.count(BEFORE).await;
    let mut tx = world.controller.services.begin().await.unwrap();
    let kept = world.controller.keep_before(&mut tx, &[guest], DeploymentId(Uuid::now_v7()), &dan).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(world.count(BEFORE).await, before + 1);
    let late = world.controller.are_kept(&kept, std::time::Duration::from_millis(20)).await.unwrap_err();
    assert!(late.to_string().contains("it is not there yet."), "{late}");
    world.controller.let_go(&kept, &dan).await.unwrap();
    assert_eq!(world.count(BEFORE).await, before);

    // Without room nothing is deployed; a drill is.
    world.run("update quota_policy set storage = 1").await;
    let deployments = world.count("select count(*) from deployments").await;
    conflict(world.ask(&dan, head("atlas", Environment::Dev)).await, "of guest0.example.org is wanted before each");
    assert_eq!(world.count("select count(*) from deployments").await, deployments);
    let drill = Drill { project: "atlas".parse().unwrap(), environment: Environment::Dev };
    world.ask(&dan, drill).await.unwrap();

    world.ask(&mia, want(None).await).await.unwrap();
    assert_eq!(world.count("select count(*) from snapshot_schedules").await, 0);
    world.ask(&dan, head("atlas", Environment::Dev)).await.unwrap();
}

/// A guest is made of a snapshot of its own project that is there, and has room for it.
#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_is_made_of_a_snapshot(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let mut eve = world.member("eve", &[]).await;
    world.project(&mut eve, "borealis").await;
    let guest = world.guest(atlas, Environment::Prod).await;
    world.run("update nodes set slots = 10, reachability = 'reachable'").await;
    let snapshot = world.ask(&mia, TakeSnapshot { guest, comment: None }).await.unwrap().snapshot;
    let wanted = |project: &str, size| RequestGuest {
        snapshot: Some(snapshot),
        ..RequestGuest::new(project.parse().unwrap(), Environment::Dev, "new.example.org".parse().unwrap(), size)
    };

    at_field(world.ask(&mia, wanted("atlas", SizeProfile::Small)).await, "snapshot", "It is taking");
    world.run("update snapshots set state = 'ready', taken_at = now(), bytes = 6000000000").await;
    at_field(
        world.ask(&eve, wanted("borealis", SizeProfile::Medium)).await,
        "snapshot",
        "no such snapshot in borealis",
    );
    at_field(world.ask(&mia, wanted("atlas", SizeProfile::Small)).await, "size", "more than small has room for");
    let both = RequestGuest { backup: Some(BackupId(Uuid::now_v7())), ..wanted("atlas", SizeProfile::Medium) };
    assert!(world.ask(&mia, both).await.is_err());
    let made = world.ask(&mia, wanted("atlas", SizeProfile::Medium)).await.unwrap();

    // The one that it is of is neither taken apart nor rid of the snapshot meanwhile.
    let remove = world.ask(&mia, RemoveSnapshot { guest, snapshot }).await.unwrap().job;
    let waits = world.controller.jobs.row(remove).await.unwrap();
    assert_eq!(waits.state, JobState::Waiting);
    let locks: i64 = sqlx::query_scalar(
        "select count(*) from job_locks a join job_locks b using (resource) where a.job_id = $1 and b.job_id = $2
            and 'exclusive' in (a.mode, b.mode)",
    )
    .bind(made.job.0)
    .bind(remove.0)
    .fetch_one(&world.db)
    .await
    .unwrap();
    assert_eq!(locks, 1);
}

/// What stands still meanwhile is a guest of somebody: a node takes two at a time, and is asked for none while it is away.
#[sqlx::test(migrations = "../../migrations")]
async fn a_node_is_not_asked_for_all_at_once(db: PgPool) {
    const TAKING: &str = "select count(*) from snapshots where state = 'taking'";
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    for _ in 0..3 {
        world.guest(atlas, Environment::Dev).await;
    }
    world.run("insert into snapshot_schedules (guest_id, every, keep) select id, 'day', 7 from guests").await;
    let look = async || world.controller.take_due_snapshots().await.unwrap();

    world.run("update nodes set reachability = 'unreachable'").await;
    look().await;
    assert_eq!(world.count(TAKING).await, 0);
    world.run("update nodes set reachability = 'reachable'").await;
    look().await;
    look().await;
    assert_eq!(world.count(TAKING).await, 2);
    world.run("update snapshots set state = 'ready', taken_at = now(), bytes = 1, storage = 1").await;
    look().await;
    assert_eq!(world.count("select count(distinct guest_id) from snapshots").await, 3);
}
