//! Backups of environments: who brings one back, to which backups, and that all its guests are or none.

use corpus_api::Problem;
use corpus_api::audit::ListAudit;
use corpus_api::environments::backups::{
    EnvironmentBackups, EnvironmentRestoring, ListEnvironmentBackups, MOST_RESTORED, RestoreEnvironment,
};
use corpus_api::robots::CreateRobot;
use corpus_api::robots::keys::CreateRobotToken;
use corpus_api::{Principal, Reply as _};
use corpus_domain::{BackupId, Environment, Grant, GuestId, ProjectId, ProjectName, ProjectRole};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, at_field, conflict, forbidden, hidden, refusal};
use crate::store::beside;

const JOBS: &str = "select count(*) from jobs where kind = 'backup_restore'";
const AUDITED: &str = "select count(*) from audit where action = 'environment.restore'";

/// Atlas of mia, whose dev has a database and a web server; the server is called so that it comes first by name, and was
/// made last.
struct Atlas {
    world: World,
    mia: Principal,
    id: ProjectId,
    db: GuestId,
    web: GuestId,
}

impl Atlas {
    async fn new(db: PgPool) -> Self {
        let world = World::new(db).await;
        let mut mia = world.member("mia", &[]).await;
        let id = world.project(&mut mia, "atlas").await;
        let (db, web) = (world.guest(id, Environment::Dev).await, world.guest(id, Environment::Dev).await);
        let atlas = Self { world, mia, id, db, web };
        for (guest, name) in [(db, "sql.example.org"), (web, "app.example.org")] {
            atlas.run_on("update guests set name = $2 where id = $1", guest, name).await;
        }
        atlas
    }

    async fn run_on(&self, statement: &'static str, guest: GuestId, text: &str) {
        sqlx::query(statement).bind(guest.0).bind(text).execute(&self.world.db).await.unwrap();
    }

    /// A backup of a guest, taken at that moment.
    async fn backup(&self, guest: GuestId, taken_at: &str, state: &str) -> BackupId {
        let id = Uuid::now_v7();
        sqlx::query(
            "insert into guest_backups (id, project_id, guest_id, guest_name, environment, state, taken_at, snapshot, bytes,
                 files, added_bytes, took_ms)
             select $1, project_id, id, name, environment, $3, $4::timestamptz, repeat('a', 64), 7, 1, 1, 1 from guests
             where id = $2",
        )
        .bind(id)
        .bind(guest.0)
        .bind(state)
        .bind(taken_at)
        .execute(&self.world.db)
        .await
        .unwrap();
        BackupId(id)
    }

    async fn list(&self, who: &Principal, at: Option<&str>) -> Result<EnvironmentBackups, Problem> {
        self.world.ask(who, list("atlas", at)).await
    }

    async fn restore(&self, at: Option<&str>, without: bool) -> Result<EnvironmentRestoring, Problem> {
        self.world.ask(&self.mia, restore("atlas", at, without)).await
    }

    /// What is there of having brought anything back.
    async fn done(&self) -> (i64, i64) {
        (self.world.count(JOBS).await, self.world.count(AUDITED).await)
    }
}

fn named(project: &str) -> ProjectName {
    project.parse().unwrap()
}

fn list(project: &str, at: Option<&str>) -> ListEnvironmentBackups {
    let at = at.map(|at| at.parse().unwrap());
    ListEnvironmentBackups { project: named(project), environment: Environment::Dev, at, cursor: None, limit: None }
}

fn restore(project: &str, at: Option<&str>, without: bool) -> RestoreEnvironment {
    let at = at.map(|at| at.parse().unwrap());
    RestoreEnvironment { project: named(project), environment: Environment::Dev, at, without }
}

fn chosen(seen: &EnvironmentBackups) -> Vec<(&str, Option<BackupId>)> {
    seen.items.iter().map(|one| (one.name.as_str(), one.backup.as_ref().map(|backup| backup.id))).collect()
}

#[sqlx::test(migrations = "../../migrations")]
async fn members_see_what_there_is_and_maintainers_bring_it_back(db: PgPool) {
    let atlas = Atlas::new(db).await;
    let world = &atlas.world;
    for guest in [atlas.db, atlas.web] {
        atlas.backup(guest, "2026-11-01T03:00:00Z", "ready").await;
    }
    let vic = world.member("vic", &[("atlas", ProjectRole::Viewer)]).await;
    let dan = world.member("dan", &[("atlas", ProjectRole::Developer)]).await;
    let mut eve = world.member("eve", &[]).await;
    world.project(&mut eve, "borealis").await;
    for (who, may) in [(&vic, false), (&dan, false), (&atlas.mia, true)] {
        let seen = atlas.list(who, None).await.unwrap();
        assert_eq!((seen.items.len(), seen.may_change, seen.problem), (2, may, None));
    }
    for who in [&vic, &dan] {
        forbidden(world.ask(who, restore("atlas", None, true)).await);
    }
    hidden(atlas.list(&eve, None).await);
    hidden(world.ask(&eve, restore("atlas", None, true)).await);
    hidden(world.ask(&atlas.mia, restore("nothing", None, true)).await);
    // A token that is good to read reads.
    let weak = Principal { token: Some(Grant::Read), ..atlas.mia.clone() };
    atlas.list(&weak, None).await.unwrap();
    assert_eq!(refusal(world.ask(&weak, restore("atlas", None, true)).await).word(), "token_too_weak");
    assert_eq!(atlas.done().await, (0, 0));
}

/// A robot sees what is in its environments, and brings nothing back whatever its role.
#[sqlx::test(migrations = "../../migrations")]
async fn no_robot_brings_an_environment_back(db: PgPool) {
    let atlas = Atlas::new(db).await;
    let world = &atlas.world;
    for guest in [atlas.db, atlas.web] {
        atlas.backup(guest, "2026-11-01T03:00:00Z", "ready").await;
    }
    let robot = |name: &str| name.parse().unwrap();
    for (name, environment) in [("near", Environment::Dev), ("far", Environment::Staging)] {
        let environments = vec![environment].try_into().unwrap();
        let (project, role) = (named("atlas"), ProjectRole::Maintainer);
        let made = CreateRobot { project, robot: robot(name), role, environments, until: None };
        world.ask(&atlas.mia, made).await.unwrap();
    }
    let bearer = async |name: &str| {
        let (token, days) = (name.parse().unwrap(), "90".parse().ok());
        let (project, scope) = (named("atlas"), Grant::Operate);
        let asked = CreateRobotToken { project, robot: robot(name), name: token, scope, days, until: None };
        let token = world.ask(&atlas.mia, asked).await.unwrap();
        world.controller.principal_of_token(token.token.expose()).await.unwrap().unwrap()
    };
    let (near, far) = (bearer("near").await, bearer("far").await);
    let seen = atlas.list(&near, None).await.unwrap();
    assert_eq!((seen.backed_up, seen.may_change), (2, false));
    let bounded = refusal(atlas.list(&far, None).await);
    assert!(bounded.text().contains("dev"), "{bounded:?}");
    for who in [&near, &far] {
        let refused = refusal(world.ask(who, restore("atlas", None, true)).await);
        assert!(refused.text().to_lowercase().contains("this is not for robots"), "{refused:?}");
    }
    assert_eq!(atlas.done().await, (0, 0));
}

#[sqlx::test(migrations = "../../migrations")]
async fn each_guest_has_its_latest_backup_of_then(db: PgPool) {
    let atlas = Atlas::new(db).await;
    let first = atlas.backup(atlas.db, "2026-11-01T03:00:00Z", "ready").await;
    // Noted later, of a moment before: the moment counts.
    let second = atlas.backup(atlas.db, "2026-11-03T03:00:00.25Z", "ready").await;
    let between = atlas.backup(atlas.db, "2026-11-02T03:00:00Z", "ready").await;
    let web = atlas.backup(atlas.web, "2026-11-02T01:00:00Z", "ready").await;
    atlas.backup(atlas.web, "2026-11-02T02:00:00Z", "removing").await;
    atlas
        .world
        .run(
            "insert into backup_proofs (backup_id, project_id, id, ended_at, passed, told, memory, cpu_millis, storage,
                backing)
              select id, project_id, gen_random_uuid(), now(), true, 'it boots', 1, 1, 1, 'loop' from guest_backups
              where taken_at = '2026-11-02T01:00:00Z'",
        )
        .await;
    atlas
        .world
        .run("update guest_backups set dumped_bytes = 0, dump_problem = 'no server' where taken_at > '2026-11-03'")
        .await;

    let seen = atlas.list(&atlas.mia, None).await.unwrap();
    assert_eq!(chosen(&seen), [("app.example.org", Some(web)), ("sql.example.org", Some(second))]);
    assert_eq!((seen.guests, seen.backed_up), (2, 2));
    let said = |at: Option<chrono::DateTime<chrono::Utc>>| at.unwrap().to_rfc3339();
    assert_eq!(said(seen.earliest), "2026-11-02T01:00:00+00:00");
    assert_eq!(said(seen.latest), "2026-11-03T03:00:00.250+00:00");
    let [of_web, of_db] = seen.items.iter().map(|one| one.backup.as_ref().unwrap()).collect::<Vec<_>>()[..] else {
        panic!()
    };
    assert_eq!((of_db.bytes.unwrap().0, of_db.dump.as_ref().unwrap().problem.as_deref()), (7, Some("no server")));
    assert_eq!((of_web.proof.as_ref().unwrap().passed, &of_web.dump, &of_db.proof), (Some(true), &None, &None));

    for (at, expected_web, expected_db) in [
        ("2026-11-01T02:59:59Z", None, None),
        // With the instant itself.
        ("2026-11-01T03:00:00Z", None, Some(first)),
        ("2026-11-01", None, Some(first)),
        // With the whole of the day.
        ("2026-11-02", Some(web), Some(between)),
        ("2026-11-03T00:00:00+01:00", Some(web), Some(between)),
        ("2026-11-03T03:00:00.249Z", Some(web), Some(between)),
        ("2026-11-03T03:00:00.25Z", Some(web), Some(second)),
        ("0000-01-01", None, None),
        ("9999-12-31", Some(web), Some(second)),
    ] {
        let seen = atlas.list(&atlas.mia, Some(at)).await.unwrap();
        assert_eq!(chosen(&seen), [("app.example.org", expected_web), ("sql.example.org", expected_db)], "{at}");
        let some = u64::from(expected_web.is_some()) + u64::from(expected_db.is_some());
        assert_eq!((seen.guests, seen.backed_up, seen.latest.is_some()), (2, some, some > 0), "{at}");
    }

    // A page at a time, and all of them counted on each.
    let one = |cursor| ListEnvironmentBackups { limit: Some(1.try_into().unwrap()), cursor, ..list("atlas", None) };
    let page = atlas.world.ask(&atlas.mia, one(None)).await.unwrap();
    assert_eq!((chosen(&page), page.guests), (vec![("app.example.org", Some(web))], 2));
    let page = atlas.world.ask(&atlas.mia, one(page.next)).await.unwrap();
    assert_eq!((chosen(&page), page.guests), (vec![("sql.example.org", Some(second))], 2));
    assert_eq!(page.next, None);

    // They are brought back to what was shown, and the audit says to what.
    let done = atlas.restore(Some("2026-11-02"), false).await.unwrap();
    let back: Vec<_> = done.items.iter().map(|one| (one.guest, one.backup)).collect();
    assert_eq!(back, [(atlas.web, web), (atlas.db, between)]);
    let jobs = "select count(*) from jobs j join guest_backups b on b.id = (j.params ->> 'backup')::uuid
        where j.kind = 'backup_restore' and j.guest_id = b.guest_id and b.taken_at::date = '2026-11-02'";
    assert_eq!(atlas.world.count(jobs).await, 2);
    let told = atlas.world.ask(&atlas.mia, ListAudit::default()).await.unwrap().items;
    let told: Vec<_> = told.iter().filter(|one| one.action == "environment.restore").collect();
    let [entry] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(
        (entry.actor.as_str(), entry.subject.as_str(), entry.project.as_deref()),
        ("mia", "atlas", Some("atlas"))
    );
    assert_eq!((&entry.detail["environment"], &entry.detail["at"]), (&"dev".into(), &"2026-11-02".into()));
    let of = |at: usize| (&entry.detail["guests"][at]["guest"], &entry.detail["guests"][at]["backup"]);
    assert_eq!(of(0), (&"app.example.org".into(), &web.to_string().into()));
    assert_eq!(of(1), (&"sql.example.org".into(), &between.to_string().into()));
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_has_none_keeps_all_from_it_or_stays_as_it_is(db: PgPool) {
    let atlas = Atlas::new(db).await;
    conflict(atlas.restore(None, false).await, "No guest of dev of atlas has a backup that");
    conflict(atlas.restore(None, true).await, "No guest of dev of atlas has a backup that");
    atlas.backup(atlas.web, "2026-11-02T01:00:00Z", "ready").await;
    atlas.backup(atlas.db, "2026-11-02T03:00:00Z", "removing").await;
    atlas
        .world
        .run(
            "insert into guest_backups (id, project_id, guest_id, guest_name, environment)
        select gen_random_uuid(), project_id, id, name, environment from guests where name = 'sql.example.org'",
        )
        .await;
    at_field(atlas.restore(None, false).await, "without", "sql.example.org has no backup to be");
    conflict(atlas.restore(Some("2026-11-01"), true).await, "has a backup taken by 2026-11-01 that");
    let many = refusal(atlas.restore(Some("2026-11-02T00:59:59Z"), false).await);
    assert!(many.text().contains("taken by 2026-11-02T00:59:59Z"), "{many:?}");
    assert_eq!(atlas.done().await, (0, 0));

    // What the one that stays is doing is of no concern.
    atlas.run_on("update guests set state = $2 where id = $1", atlas.db, "failed").await;
    let done = atlas.restore(None, true).await.unwrap();
    assert_eq!(done.items.iter().map(|one| one.guest).collect::<Vec<_>>(), [atlas.web]);
    assert_eq!(atlas.done().await, (1, 1));
    let stays = "select count(*) from audit where action = 'environment.restore' and detail -> 'stay' = '[\"sql.example.org\"]'";
    assert_eq!(atlas.world.count(stays).await, 1);
}

#[sqlx::test(migrations = "../../migrations")]
async fn all_of_them_are_or_none(db: PgPool) {
    let atlas = Atlas::new(db).await;
    for guest in [atlas.db, atlas.web] {
        atlas.backup(guest, "2026-11-01T03:00:00Z", "ready").await;
    }
    // The last one by name, when the other's job is queued already.
    for state in ["creating", "starting", "stopping", "destroying", "failed"] {
        atlas.run_on("update guests set state = $2 where id = $1", atlas.db, state).await;
        for without in [false, true] {
            conflict(atlas.restore(None, without).await, &format!("sql.example.org is {state} now"));
        }
    }
    assert_eq!(atlas.done().await, (0, 0));
    // One that is stopped stays so.
    atlas.run_on("update guests set state = $2 where id = $1", atlas.db, "stopped").await;
    assert_eq!(atlas.restore(None, false).await.unwrap().items.len(), 2);
    assert_eq!(atlas.done().await, (2, 1));
}

#[sqlx::test(migrations = "../../migrations")]
async fn there_is_an_end_to_what_one_question_brings_back(db: PgPool) {
    let atlas = Atlas::new(db).await;
    for _ in 2..=MOST_RESTORED {
        atlas.world.guest(atlas.id, Environment::Dev).await;
    }
    atlas.backup(atlas.web, "2026-11-01T03:00:00Z", "ready").await;
    let seen = atlas.list(&atlas.mia, None).await.unwrap();
    assert_eq!((seen.guests, seen.most, seen.next.is_some()), (51, 50, true));
    conflict(atlas.restore(None, true).await, "more than 50 guests in dev of atlas");
    assert_eq!(atlas.done().await, (0, 0));
    atlas.world.run("delete from guests where id = (select max(id::text)::uuid from guests)").await;
    let done = atlas.restore(None, true).await.unwrap();
    // Its jobs are looked at where the answer says.
    let job = done.items[0].job;
    assert_eq!(done.location(), Some(format!("/jobs?job={job}")));
}

/// Other environments of the project, other projects, and previews have guests and backups of their own.
#[sqlx::test(migrations = "../../migrations")]
async fn nothing_of_others_is_brought_back(db: PgPool) {
    let atlas = Atlas::new(db).await;
    let world = &atlas.world;
    let mut eve = world.member("eve", &[]).await;
    let borealis = world.project(&mut eve, "borealis").await;
    world
        .run("insert into projects (id, name, parent_id, preview, expires_at)
              select gen_random_uuid(), 'atlas--login', id, 'login', now() + interval '1 day' from projects where name = 'atlas'")
        .await;
    let preview =
        sqlx::query_scalar::<_, Uuid>("select id from projects where parent_id is not null").fetch_one(&world.db).await;
    let preview = ProjectId(preview.unwrap());
    let (mia, eve) = (world.principal(atlas.mia.id).await, world.principal(eve.id).await);
    let of_preview = world.guest(preview, Environment::Dev).await;
    let others =
        [world.guest(borealis, Environment::Dev).await, world.guest(atlas.id, Environment::Staging).await, of_preview];
    for guest in [atlas.db, atlas.web].into_iter().chain(others) {
        atlas.backup(guest, "2026-11-01T03:00:00Z", "ready").await;
    }
    // Of a guest that is gone.
    let gone = world.guest(atlas.id, Environment::Dev).await;
    atlas.backup(gone, "2026-11-01T03:00:00Z", "ready").await;
    sqlx::query("delete from guests where id = $1").bind(gone.0).execute(&world.db).await.unwrap();

    let seen = world.ask(&mia, list("atlas", None)).await.unwrap();
    assert_eq!(seen.items.iter().map(|one| one.guest).collect::<Vec<_>>(), [atlas.web, atlas.db]);
    assert_eq!((seen.guests, seen.backed_up), (2, 2));
    // A member of one project names an environment of another's.
    hidden(world.ask(&eve, list("atlas", None)).await);
    hidden(world.ask(&eve, restore("atlas", None, true)).await);
    hidden(world.ask(&eve, restore("atlas--login", None, true)).await);
    hidden(world.ask(&mia, restore("borealis", None, true)).await);
    // One that has no guest.
    let prod = RestoreEnvironment { environment: Environment::Prod, ..restore("atlas", None, true) };
    conflict(world.ask(&mia, prod).await, "no guest in prod of atlas");
    assert_eq!(atlas.done().await, (0, 0));

    // A preview is its project's, and has its own guest alone.
    let done = world.ask(&mia, restore("atlas--login", None, false)).await.unwrap();
    assert_eq!(done.items.iter().map(|one| one.guest).collect::<Vec<_>>(), [of_preview]);
    world.run("delete from jobs").await;
    let done = world.ask(&mia, restore("atlas", None, false)).await.unwrap();
    assert_eq!(done.items.iter().map(|one| one.guest).collect::<Vec<_>>(), [atlas.web, atlas.db]);
}

/// Whoever holds the first of its guests by id can have the others: nobody waits for somebody who waits for them.
#[sqlx::test(migrations = "../../migrations")]
async fn guests_are_held_in_one_order(db: PgPool) {
    let atlas = Atlas::new(db).await;
    for guest in [atlas.db, atlas.web] {
        atlas.backup(guest, "2026-11-01T03:00:00Z", "ready").await;
    }
    assert!(atlas.db.0 < atlas.web.0, "the last one by name is the first one by id");
    let mut tx = atlas.world.db.begin().await.unwrap();
    let held = "select id from guests where id = $1 for update";
    sqlx::query(held).bind(atlas.db.0).execute(&mut *tx).await.unwrap();
    let (controller, mia) = (atlas.world.controller.clone(), atlas.mia.clone());
    let waits = tokio::spawn(async move { controller.call(&mia, restore("atlas", None, false), None).await });
    let blocked = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%from guests%'
        and datname = current_database()";
    for _ in 0..500 {
        if atlas.world.count(blocked).await > 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(atlas.world.count(blocked).await, 1);
    let other = "select id from guests where id = $1 for update nowait";
    sqlx::query(other).bind(atlas.web.0).execute(&mut *tx).await.unwrap();
    assert_eq!(atlas.done().await, (0, 0));
    tx.commit().await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap().items.len(), 2);

    // Several who ask at once.
    let asked = futures::future::join_all((0..6).map(|_| beside(atlas.restore(None, false)))).await;
    assert!(asked.iter().all(Result::is_ok), "{asked:?}");
    assert_eq!(atlas.done().await, (14, 7));
}
