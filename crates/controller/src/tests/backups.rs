//! Backups of guests: whose they are, who may do what with them, and that schedules are kept to.

use corpus_api::backups::{
    CheckBackups, GetBackupSchedule, ListBackups, ListProjectBackups, MOST_BACKUPS, RemoveBackup, RemoveProjectBackup,
    RestoreBackup, RevealBackupKey, SetBackupSchedule, TakeBackup,
};
use corpus_api::guests::{GetGuest, RequestGuest};
use corpus_api::jobs::CancelJob;
use corpus_api::quotas::GetQuota;
use corpus_domain::{BackupEvery, BackupState, Environment, GuestState, ProjectRole, SizeProfile};
use sqlx::PgPool;

use super::world::{World, conflict, forbidden, hidden};

const READY: &str = "update guest_backups set state = 'ready', taken_at = now(), snapshot = repeat('a', 64), bytes = 1,
    files = 1, added_bytes = 1, took_ms = 1 where state = 'taking'";

#[sqlx::test(migrations = "../../migrations")]
async fn a_backup_is_its_guests_and_is_there_before_it_is_used(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let vic = world.member("vic", &[("atlas", ProjectRole::Viewer)]).await;
    let mut eve = world.member("eve", &[]).await;
    let borealis = world.project(&mut eve, "borealis").await;
    let (guest, theirs) = (world.guest(atlas, Environment::Dev).await, world.guest(borealis, Environment::Dev).await);

    let take = TakeBackup { guest, comment: Some("before".parse().unwrap()) };
    forbidden(world.ask(&vic, take.clone()).await);
    hidden(world.ask(&eve, take.clone()).await);
    let backup = world.ask(&dan, take.clone()).await.unwrap().backup;
    let (restore, remove) = (RestoreBackup { guest, backup }, RemoveBackup { guest, backup });
    conflict(world.ask(&mia, restore.clone()).await, "it is taking");
    world.run("delete from jobs").await;
    world.run(READY).await;

    let seen = world.ask(&vic, ListBackups { guest }).await.unwrap();
    assert_eq!((seen.items.len(), seen.items[0].by.as_deref(), seen.may_take), (1, Some("dan"), false));
    hidden(world.ask(&eve, ListBackups { guest }).await);
    forbidden(world.ask(&dan, restore.clone()).await);
    forbidden(world.ask(&dan, remove.clone()).await);
    // By way of a guest of one's own.
    hidden(world.ask(&eve, RestoreBackup { guest: theirs, backup }).await);
    hidden(world.ask(&eve, RemoveBackup { guest: theirs, backup }).await);

    let job = world.ask(&mia, restore.clone()).await.unwrap().job;
    // It runs until its files are at hand.
    assert_eq!(world.ask(&mia, GetGuest { guest }).await.unwrap().line.state, GuestState::Running);
    world.ask(&mia, CancelJob { job }).await.unwrap();

    let job = world.ask(&mia, remove.clone()).await.unwrap().job;
    conflict(world.ask(&mia, restore.clone()).await, "it is removing");
    world.ask(&mia, CancelJob { job }).await.unwrap();
    let state = world.ask(&mia, ListBackups { guest }).await.unwrap().items[0].state;
    assert_eq!(state, BackupState::Ready);
    // One that was to be taken and was not is none.
    let job = world.ask(&dan, take.clone()).await.unwrap().job;
    world.ask(&dan, CancelJob { job }).await.unwrap();
    assert_eq!(world.ask(&mia, ListBackups { guest }).await.unwrap().items.len(), 1);

    // What its repository takes is held to what the project may, whoever asks.
    world
        .run("insert into backup_repositories (project_id, password_sealed, bytes) select id, 'x', 5 from projects")
        .await;
    world.run("update quota_policy set backups = 6").await;
    world.ask(&dan, take.clone()).await.unwrap();
    world.run("update quota_policy set backups = 5").await;
    conflict(world.ask(&dan, take.clone()).await, "has taken 0 GB of 0 GB of backups: delete some");
    let quota = world.ask(&mia, GetQuota { project: "atlas".parse().unwrap() }).await.unwrap().backups;
    assert_eq!((quota.used, quota.left), (5, Some(0)));
    world.run("update quota_policy set backups = null").await;
    world.run("delete from guest_backups where state = 'taking'").await;

    for _ in 1..MOST_BACKUPS {
        world.ask(&dan, take.clone()).await.unwrap();
    }
    conflict(world.ask(&dan, take).await, "has 100 backups already");
    // They outlive their guest, and not their project.
    world.run("delete from guests").await;
    assert_eq!(world.count("select count(*) from guest_backups").await, i64::from(MOST_BACKUPS));
    world.run("delete from jobs").await;
    world.run("delete from projects where name = 'atlas'").await;
    assert_eq!(world.count("select count(*) from guest_backups").await, 0);
}

/// One is taken at its time and one only, however long nobody looked; the oldest goes when there are too many; what
/// somebody took stays; a node gives one at a time, and none while it is away.
#[sqlx::test(migrations = "../../migrations")]
async fn a_schedule_is_kept_to(db: PgPool) {
    const ALL: &str = "select count(*) from guest_backups";
    let world = World::new(db).await;
    world.run("update nodes set reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let eve = world.member("eve", &[]).await;
    let (guest, other) = (world.guest(atlas, Environment::Dev).await, world.guest(atlas, Environment::Dev).await);
    let read = async |guest| world.ask(&dan, GetBackupSchedule { guest }).await.unwrap();
    let set = async |guest, every, keep: u64| {
        let version = read(guest).await.version;
        SetBackupSchedule { guest, every, keep: keep.try_into().unwrap(), prove: false, version }
    };
    let look = async || world.controller.take_due_backups().await.unwrap();

    assert_eq!((read(guest).await.every, read(guest).await.next_at), (BackupEvery::Never, None));
    forbidden(world.ask(&dan, set(guest, BackupEvery::Day, 2).await).await);
    hidden(world.ask(&eve, set(guest, BackupEvery::Day, 2).await).await);
    hidden(world.ask(&eve, GetBackupSchedule { guest }).await);
    let stale = set(guest, BackupEvery::Day, 2).await;
    world.ask(&mia, stale.clone()).await.unwrap();
    let late = world.ask(&mia, SetBackupSchedule { every: BackupEvery::Week, ..stale }).await.unwrap_err();
    assert!(late.to_string().contains("every was never and is day, keep was 14 and is 2"), "{late}");

    // Two servers that look at once.
    let looks: Vec<_> = (0..2)
        .map(|_| {
            let controller = world.controller.clone();
            tokio::spawn(async move { controller.take_scheduled_backup(guest).await })
        })
        .collect();
    for one in looks {
        one.await.unwrap().unwrap();
    }
    assert_eq!(world.count(ALL).await, 1);
    let items = world.ask(&dan, ListBackups { guest }).await.unwrap().items;
    assert_eq!((items[0].by.as_deref(), items[0].comment.as_ref()), (None, None));
    assert_eq!(world.count("select count(*) from audit where action = 'backup.take' and actor = 'corpus'").await, 1);

    // The node is at it still, and the other guest waits for it; then for the node to answer.
    world.ask(&mia, set(other, BackupEvery::Week, 1).await).await.unwrap();
    look().await;
    assert_eq!(world.count(ALL).await, 1);
    // A guest that dumps for as long as it likes keeps those of its own project waiting, and nobody else's.
    world.run("update guest_backups set dumping = true").await;
    look().await;
    assert_eq!(world.count(ALL).await, 1);
    let mut zoe = world.member("zoe", &[]).await;
    let zebra = world.project(&mut zoe, "zebra").await;
    let theirs = world.guest(zebra, Environment::Dev).await;
    let version = world.ask(&zoe, GetBackupSchedule { guest: theirs }).await.unwrap().version;
    let (every, keep) = (BackupEvery::Week, 1_u64.try_into().unwrap());
    world.ask(&zoe, SetBackupSchedule { guest: theirs, every, keep, prove: false, version }).await.unwrap();
    look().await;
    assert_eq!(world.count(ALL).await, 2);
    world.run("delete from guests where project_id = (select id from projects where name = 'zebra')").await;
    world.run("delete from jobs where guest_id not in (select id from guests)").await;
    world.run("delete from guest_backups where guest_id not in (select id from guests)").await;
    world.run(READY).await;
    world.run("update nodes set reachability = 'unreachable'").await;
    look().await;
    assert_eq!(world.count(ALL).await, 1);
    world.run("update nodes set reachability = 'reachable'").await;
    look().await;
    assert_eq!(world.count(ALL).await, 2);
    world.run(READY).await;

    // Nobody looked for a month: one is taken, and the next in a day.
    world.run("update backup_schedules set next_at = now() - interval '30 days' where every = 'day'").await;
    look().await;
    look().await;
    assert_eq!(world.count(ALL).await, 3);
    let next = read(guest).await.next_at.unwrap() - chrono::Utc::now();
    assert!((1_430..=1_440).contains(&next.num_minutes()), "{next}");

    // The oldest of three goes, and what somebody took stays.
    world.run(READY).await;
    world.ask(&dan, TakeBackup { guest, comment: None }).await.unwrap();
    world.run(READY).await;
    world.run("update backup_schedules set next_at = now() where every = 'day'").await;
    look().await;
    world.run(READY).await;
    look().await;
    let oldest = "select count(*) from guest_backups where state = 'removing' and created_by is null and created_at =
        (select min(created_at) from guest_backups)";
    assert_eq!(world.count(oldest).await, 1);
    assert_eq!(world.count("select count(*) from guest_backups where state = 'removing'").await, 1);
    assert_eq!(world.count("select count(*) from jobs where kind = 'backup_remove'").await, 1);

    // The guest is just being changed: it is told, and tried again.
    world.run("update guests set state = 'stopping'").await;
    world.run("update backup_schedules set next_at = now() where every = 'day'").await;
    look().await;
    let now = read(guest).await;
    assert!(now.problem.as_deref().is_some_and(|why| why.contains("stopping")), "{now:?}");
    assert!(now.next_at.is_some_and(|at| at > chrono::Utc::now()));
    world.run("update guests set state = 'running'").await;

    // Whoever wants none has none more, and what is there stays.
    world.ask(&mia, set(guest, BackupEvery::Never, 2).await).await.unwrap();
    let before = world.count(ALL).await;
    look().await;
    assert_eq!(world.count(ALL).await, before);
    world.run("delete from guests").await;
    assert_eq!(world.count("select count(*) from backup_schedules").await, 0);
}

/// A guest that is gone is had again from what is left of it, by who may request guests of its project, and by nobody else.
#[sqlx::test(migrations = "../../migrations")]
async fn a_guest_is_made_of_a_backup_of_its_project(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let vic = world.member("vic", &[("atlas", ProjectRole::Viewer)]).await;
    let mut eve = world.member("eve", &[]).await;
    world.project(&mut eve, "borealis").await;
    let guest = world.guest(atlas, Environment::Dev).await;
    world.run("update nodes set slots = 10, reachability = 'reachable'").await;
    let backup = world.ask(&mia, TakeBackup { guest, comment: None }).await.unwrap().backup;
    let list =
        |project: &str, gone| ListProjectBackups { project: project.parse().unwrap(), gone, cursor: None, limit: None };
    let wanted = |project: &str, name: &str| RequestGuest {
        backup: Some(backup),
        ..RequestGuest::new(project.parse().unwrap(), Environment::Dev, name.parse().unwrap(), SizeProfile::Small)
    };
    let refused = async |who, wanted| world.ask(who, wanted).await.unwrap_err().to_string();

    let why = refused(&mia, wanted("atlas", "again.example.org")).await;
    assert!(why.contains("it is taking") || why.contains("It is taking"), "{why}");
    world.run(READY).await;
    let why = refused(&eve, wanted("borealis", "again.example.org")).await;
    assert!(why.contains("no such backup in borealis"), "{why}");
    world.run("update guest_backups set bytes = 900000000000").await;
    let why = refused(&mia, wanted("atlas", "again.example.org")).await;
    assert!(why.contains("more than small has room for"), "{why}");
    world.run("update guest_backups set bytes = 1000").await;

    assert_eq!(world.ask(&vic, list("atlas", Some(true))).await.unwrap().items.len(), 0);
    world
        .run("insert into backup_repositories (project_id, password_sealed, bytes) select id, 'x', 1 from projects")
        .await;
    world.run("delete from jobs").await;
    world.run("delete from guests").await;
    hidden(world.ask(&eve, list("atlas", None)).await);
    let seen = world.ask(&vic, list("atlas", Some(true))).await.unwrap();
    let [one] = seen.items.as_slice() else { panic!("{seen:?}") };
    assert_eq!((one.gone, one.backup.id, seen.may_change, seen.taken.0), (true, backup, false, 1));
    assert_eq!(world.ask(&vic, list("atlas", Some(false))).await.unwrap().items.len(), 0);

    let made = world.ask(&mia, wanted("atlas", "again.example.org")).await.unwrap().guest;
    let of_job = "select count(*) from jobs where kind = 'guest_create' and params->'backup'->>0 is not null";
    assert_eq!(world.count(of_job).await, 1);
    world.ask(&mia, GetGuest { guest: made }).await.unwrap();

    let remove = |project: &str| RemoveProjectBackup { project: project.parse().unwrap(), backup };
    forbidden(world.ask(&vic, remove("atlas")).await);
    hidden(world.ask(&eve, remove("borealis")).await);
    world.ask(&mia, remove("atlas")).await.unwrap();
    conflict(world.ask(&mia, remove("atlas")).await, "it is removing");
}

#[sqlx::test(migrations = "../../migrations")]
async fn repositories_are_checked_by_themselves_and_opened_by_maintainers(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let guest = world.guest(atlas, Environment::Dev).await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let eve = world.member("eve", &[]).await;
    let (check, reveal) =
        (CheckBackups { project: "atlas".parse().unwrap() }, RevealBackupKey { project: "atlas".parse().unwrap() });
    conflict(world.ask(&mia, reveal.clone()).await, "No backup of the project was taken yet");
    conflict(world.ask(&mia, check.clone()).await, "No backup of the project was taken yet");
    world.ask(&mia, TakeBackup { guest, comment: None }).await.unwrap();
    world.controller.services.backup_repository(atlas).await.unwrap();
    for who in [&dan, &eve] {
        assert!(world.ask(who, check.clone()).await.is_err() && world.ask(who, reveal.clone()).await.is_err());
    }
    forbidden(world.ask(&dan, reveal.clone()).await);
    hidden(world.ask(&eve, reveal.clone()).await);
    assert_eq!(world.count("select count(*) from audit where action = 'backup.reveal_key'").await, 0);
    let key = world.ask(&mia, reveal.clone()).await.unwrap();
    assert_eq!((key.repository, key.password.len()), (atlas, 43));
    assert_eq!(world.ask(&mia, reveal).await.unwrap(), key, "it stays the same");
    assert_eq!(world.count("select count(*) from audit where action = 'backup.reveal_key'").await, 2);
    assert_eq!(world.count("select count(*) from audit where detail::text like '%' || 'password' || '%'").await, 0);

    // Each week, and one at a time in all.
    let jobs = "select count(*) from jobs where kind = 'backup_check'";
    world.controller.check_due_backups().await.unwrap();
    assert_eq!(world.count(jobs).await, 0);
    world.run("update backup_repositories set check_at = now()").await;
    world.controller.check_due_backups().await.unwrap();
    assert_eq!(world.count(jobs).await, 1);
    world.run("update backup_repositories set check_at = now()").await;
    world.controller.check_due_backups().await.unwrap();
    assert_eq!(world.count(jobs).await, 1, "one is looked at");
    world.run("update jobs set state = 'done', ended_at = now() where kind = 'backup_check'").await;
    world.controller.check_due_backups().await.unwrap();
    assert_eq!(world.count(jobs).await, 2);
    assert_eq!(
        world.count("select count(*) from backup_repositories where check_at > now() + interval '6 days'").await,
        1
    );
    assert_eq!(world.count("select count(*) from audit where action = 'backup.check' and door = 'corpus'").await, 2);
    // By hand whenever somebody likes.
    world.ask(&mia, check).await.unwrap();
    assert_eq!(world.count(jobs).await, 3);
}
