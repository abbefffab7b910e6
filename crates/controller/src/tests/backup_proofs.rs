//! Trying whether a guest could be had back: who has that done, what it takes meanwhile, and when it is due.

use corpus_api::backups::{GetBackupSchedule, ListBackups, ProveBackup, SetBackupSchedule, TakeBackup};
use corpus_domain::{BackupEvery, BackupId, Environment, GuestId, ProjectRole};
use sqlx::PgPool;

use super::world::{World, conflict, forbidden, hidden};
use crate::drift::Expected;
use crate::store::{backup_proofs, plan};

const READY: &str = "update guest_backups set state = 'ready', taken_at = now(), snapshot = repeat('a', 64), bytes = 1,
    files = 1, added_bytes = 1, took_ms = 1 where state = 'taking'";
const PROMISED: &str = "select coalesce(sum(guests), 0)::bigint from node_tallies";
const TRIED: &str = "select count(*) from backup_proofs where node_id is not null";
const ASKED: &str = "select count(*) from audit where action = 'backup.prove'";

/// The guest of the one that is tried.
async fn tried(world: &World) -> GuestId {
    GuestId(sqlx::query_scalar("select id from backup_proofs").fetch_one(&world.db).await.unwrap())
}

async fn end(world: &World, passed: bool) {
    let id = tried(world).await;
    let mut tx = world.controller.services.db.begin().await.unwrap();
    backup_proofs::end(&mut tx, id, passed).await.unwrap();
    tx.commit().await.unwrap();
    world.run("delete from jobs").await;
}

#[sqlx::test(migrations = "../../migrations")]
async fn it_takes_a_place_of_its_own_until_it_is_over(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set reachability = 'reachable', slots = 9").await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let mut eve = world.member("eve", &[]).await;
    let borealis = world.project(&mut eve, "borealis").await;
    let (guest, theirs) = (world.guest(atlas, Environment::Dev).await, world.guest(borealis, Environment::Dev).await);
    let backup = world.ask(&dan, TakeBackup { guest, comment: None }).await.unwrap().backup;
    let prove = ProveBackup { guest, backup };
    conflict(world.ask(&mia, prove.clone()).await, "it is taking");
    world.run("delete from jobs").await;
    world.run(READY).await;
    forbidden(world.ask(&dan, prove.clone()).await);
    hidden(world.ask(&eve, prove.clone()).await);
    hidden(world.ask(&eve, ProveBackup { guest: theirs, backup }).await);
    hidden(world.ask(&mia, ProveBackup { backup: BackupId(uuid::Uuid::nil()), ..prove.clone() }).await);

    let before = world.count(PROMISED).await;
    world.ask(&mia, prove.clone()).await.unwrap();
    assert_eq!((world.count(PROMISED).await, world.count(TRIED).await, world.count(ASKED).await), (before + 1, 1, 1));
    conflict(world.ask(&mia, prove.clone()).await, "tried already");
    // Nor another one of the project: it is beyond its quota.
    let other = world.guest(atlas, Environment::Dev).await;
    world
        .run(
            "insert into guest_backups (id, project_id, guest_id, guest_name, environment)
               select gen_random_uuid(), project_id, id, name, environment from guests order by id desc limit 1",
        )
        .await;
    world.run(READY).await;
    let another = world.ask(&mia, ListBackups { guest: other }).await.unwrap().items[0].id;
    conflict(world.ask(&mia, ProveBackup { guest: other, backup: another }).await, "tried already");
    world.run("delete from guest_backups where id not in (select backup_id from backup_proofs)").await;
    world.run("delete from guests where name = 'guest2.example.org'").await;
    let shown = world.ask(&dan, ListBackups { guest }).await.unwrap();
    assert_eq!(shown.items[0].proof.as_ref().unwrap().passed, None);

    // Its place is nobody else's.
    let id = tried(&world).await;
    let choose = async || {
        let mut tx = world.controller.services.db.begin().await.unwrap();
        let network = "10.5.0.1/16".parse().unwrap();
        let place = backup_proofs::choose(&mut tx, id, (world.node_id(), network)).await.unwrap().unwrap();
        tx.commit().await.unwrap();
        place
    };
    let place = choose().await;
    assert_eq!(choose().await, place, "once");
    assert_eq!(
        world.count("select count(*) from guests g join backup_proofs p using (node_id) where g.ip = p.ip").await,
        0
    );
    let taken = sqlx::query("update guests set ip = (select ip from backup_proofs)").execute(&world.db).await;
    assert!(taken.unwrap_err().to_string().contains("another guest has that ip"));

    // The node is told of it as it begins to be entered, and as one that reaches nothing.
    let told = async || {
        let mut conn = world.controller.services.db.acquire().await.unwrap();
        plan::current(&mut conn, world.node_id(), world.controller.services.around()).await.unwrap().unwrap()
    };
    assert!(told().await.isolated.is_empty());
    world.run("update backup_proofs set routed = true").await;
    let plan = told().await;
    assert_eq!(plan.isolated, [place.ip]);
    let name = backup_proofs::name(id).unwrap();
    assert!(plan.ssh_routes.iter().any(|route| route.guest == name && route.ip == place.ip));
    assert!(plan.ports.iter().any(|port| port.guest == name && port.mac == place.mac));
    let expected = Expected::read(&world.controller.services, world.node_id()).await.unwrap().unwrap();
    assert!(format!("{:?}", expected.requests()[1]).contains(name.as_str()), "no guest that nobody knows");
    // No member has a guest of that name, nor of that id.
    hidden(world.ask(&mia, corpus_api::guests::GetGuest { guest: id }).await);

    end(&world, true).await;
    assert_eq!((world.count(PROMISED).await, world.count(TRIED).await), (before, 0));
    assert!(told().await.isolated.is_empty());
    let shown = world.ask(&dan, ListBackups { guest }).await.unwrap();
    assert_eq!(shown.items[0].proof.as_ref().unwrap().passed, Some(true));
    let proven = shown.proven.unwrap();
    assert_eq!((Some(proven.taken_at), shown.unproven), (shown.items[0].taken_at, None));
    // That it could be had back once is known when the backup is gone.
    world.ask(&mia, prove.clone()).await.unwrap();
    end(&world, false).await;
    let shown = world.ask(&dan, ListBackups { guest }).await.unwrap();
    assert!(shown.proven == Some(proven) && shown.unproven.unwrap().contains("its job says why"));
    world.run("delete from guest_backups").await;
    let shown = world.ask(&dan, ListBackups { guest }).await.unwrap();
    assert_eq!((shown.proven, shown.unproven), (Some(proven), None));
}

#[sqlx::test(migrations = "../../migrations")]
async fn it_is_tried_each_week_where_there_is_room(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set reachability = 'reachable', slots = 2").await;
    let mut mia = world.member("mia", &[]).await;
    let atlas = world.project(&mut mia, "atlas").await;
    let (guest, other) = (world.guest(atlas, Environment::Dev).await, world.guest(atlas, Environment::Dev).await);
    let read = async |guest| world.ask(&mia, GetBackupSchedule { guest }).await.unwrap();
    let set = async |guest, prove| {
        let (version, every) = (read(guest).await.version, BackupEvery::Week);
        let set = SetBackupSchedule { guest, every, keep: 3.try_into().unwrap(), prove, version };
        world.ask(&mia, set).await.unwrap()
    };
    let look = async || world.controller.prove_due_backup().await.unwrap();
    assert!(!set(guest, false).await.prove);
    assert!(set(guest, true).await.prove_at.is_some());
    set(other, true).await;

    // None was taken yet.
    look().await;
    assert_eq!(world.count(TRIED).await, 0);
    world.ask(&mia, TakeBackup { guest, comment: None }).await.unwrap();
    world.ask(&mia, TakeBackup { guest: other, comment: None }).await.unwrap();
    world.run(READY).await;
    world.run("delete from jobs").await;
    // No node has room: it is said, and tried again in a while.
    look().await;
    look().await;
    let [one, two] = [read(guest).await, read(other).await];
    for schedule in [&one, &two] {
        assert!(schedule.prove_problem.is_some() && schedule.prove_at.unwrap() > chrono::Utc::now(), "{schedule:?}");
    }
    assert_eq!(world.count(ASKED).await, 0);

    world.run("update nodes set slots = 10").await;
    world.run("update backup_schedules set prove_at = now()").await;
    look().await;
    look().await;
    // One at a time, in the name of nobody.
    assert_eq!((world.count(TRIED).await, world.count(ASKED).await), (1, 1));
    assert_eq!(
        world.count("select count(*) from backup_schedules where prove_at > now() + interval '6 days'").await,
        1
    );
    end(&world, true).await;
    look().await;
    assert_eq!(world.count(ASKED).await, 2);

    // Long ago is not now.
    world.run("update proven_guests set at = now() - interval '16 days'").await;
    let late = "select guest_id from proven_guests";
    let late = GuestId(sqlx::query_scalar(late).fetch_one(&world.db).await.unwrap());
    let shown = world.ask(&mia, ListBackups { guest: late }).await.unwrap();
    assert_eq!(shown.unproven.as_deref(), Some("It was not tried for more than two weeks."));
    set(late, false).await;
    assert_eq!(world.ask(&mia, ListBackups { guest: late }).await.unwrap().unproven, None);
}
