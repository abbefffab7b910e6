//! Who is told what at the bell, who sees it, and when it is read or forgotten.

use corpus_api::notices::{ListNotices, MarkNoticesRead, News, Notice, NoticeOf, ReadNotice};
use corpus_api::projects::members::{RemoveMember, SetMember};
use corpus_api::{Principal, Problem};
use corpus_domain::{DeploymentId, JobId, JobState, NoticeId, ProjectId, ProjectRole};
use sqlx::PgPool;
use uuid::Uuid;

use super::world::{World, hidden};
use crate::events;
use crate::store::notices::{self, SeenBy, Telling};

impl World {
    async fn notices(&self, who: &Principal) -> Vec<Notice> {
        self.ask(who, ListNotices::default()).await.unwrap().items
    }

    async fn read_notice(&self, who: &Principal, notice: NoticeId) -> Result<String, Problem> {
        self.ask(who, ReadNotice { notice }).await.map(|read| read.path)
    }

    async fn unread(&self, who: &Principal) -> u32 {
        self.counts(who).await.unread
    }

    /// A job of a member that has come so far, and the telling of it.
    async fn ends(&self, by: &Principal, project: Option<ProjectId>, kind: &str, state: JobState) -> JobId {
        let id = Uuid::now_v7();
        let job = sqlx::query(
            "insert into jobs (id, kind, title, params, dag, state, project_id, created_by, ended_at, error, comment)
             values ($1, $2, 'Create guest www.shop.test', '{}', '{}', $3, $4, $5, case when $3 <> 'stuck' then now() end,
                 'the disk is full', case when $3 = 'abandoned' then 'cleaned by hand' end)",
        );
        let job = job.bind(id).bind(kind).bind(state.as_str()).bind(project.map(|project| project.0)).bind(by.id.0);
        job.execute(&self.db).await.unwrap();
        self.tell_end(JobId(id)).await;
        JobId(id)
    }

    async fn tell_end(&self, job: JobId) {
        events::job_ended(&mut self.db.acquire().await.unwrap(), job).await.unwrap();
    }
}

fn titles(notices: &[Notice]) -> Vec<&str> {
    notices.iter().map(|notice| notice.title.as_str()).collect()
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_asked_for_a_job_is_told_how_it_ended(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let tom = world.member("tom", &[("shop", ProjectRole::Maintainer)]).await;
    assert_eq!(world.unread(&mia).await, 0);
    let job = world.ends(&mia, Some(shop), "guest_create", JobState::Undone).await;
    world.tell_end(job).await;
    world.ends(&mia, Some(shop), "guest_stop", JobState::Done).await;
    world.ends(&mia, Some(shop), "guest_stop", JobState::Stuck).await;
    let told = world.notices(&mia).await;
    let expected = ["Create guest www.shop.test", "Create guest www.shop.test", "www.shop.test was not created"];
    assert_eq!(titles(&told), expected, "each once, the newest first");
    let details: Vec<_> = told.iter().map(|one| one.detail.as_deref()).collect();
    assert_eq!(details, [Some("the disk is full"), None, Some("the disk is full")]);
    assert_eq!((world.unread(&mia).await, world.unread(&tom).await), (3, 2), "of what went well nobody else is told");

    let oldest = told[2].id;
    hidden(world.read_notice(&tom, oldest).await);
    assert_eq!(world.read_notice(&mia, oldest).await.unwrap(), format!("/jobs/{job}"));
    assert_eq!(world.read_notice(&mia, oldest).await.unwrap(), format!("/jobs/{job}"), "as often as one likes");
    assert_eq!(world.unread(&mia).await, 2);
    let unread = world.ask(&mia, ListNotices { unread: Some(true), ..ListNotices::default() }).await.unwrap().items;
    assert!(unread.len() == 2 && unread.iter().all(|one| one.unread && one.id != oldest));

    world.ends(&mia, Some(shop), "guest_start", JobState::Done).await;
    let marked = world.ask(&mia, MarkNoticesRead { upto: Some(told[0].id) }).await.unwrap().marked;
    assert_eq!((marked, world.unread(&mia).await), (2, 1), "what came after that was not seen yet");
    assert_eq!(world.ask(&tom, MarkNoticesRead::default()).await.unwrap().marked, 2, "one's own alone");
    assert_eq!(world.ask(&mia, MarkNoticesRead::default()).await.unwrap().marked, 1);
    assert_eq!(world.unread(&mia).await, 0);
    assert_eq!(world.count("select count(*) from audit where action like 'notice%'").await, 0, "it is kept for good");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_project_is_told_what_failed_in_it_and_operators_what_is_stuck(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let tom = world.member("tom", &[("shop", ProjectRole::Viewer)]).await;
    let (eve, ops) = (world.member("eve", &[]).await, world.ops().await);
    let unread = async || {
        let [mia, tom, eve, ops] = [&mia, &tom, &eve, &ops].map(|who| world.unread(who));
        [mia.await, tom.await, eve.await, ops.await]
    };
    world.ends(&ops, Some(shop), "guest_create", JobState::Undone).await;
    assert_eq!(unread().await, [1, 1, 0, 1], "whoever asked for it");
    world.ends(&mia, Some(shop), "environment_set_up", JobState::Undone).await;
    assert_eq!(unread().await, [2, 2, 0, 1]);
    for (kind, state) in [
        ("deploy", JobState::Undone),
        ("keys_sync", JobState::Undone),
        ("guest_stop", JobState::Done),
        ("guest_stop", JobState::Abandoned),
    ] {
        world.ends(&ops, Some(shop), kind, state).await;
    }
    assert_eq!(unread().await[..3], [2, 2, 0], "told elsewhere, a member's own, well, decided by somebody");

    // One that nobody asked for.
    world.run("update notices set read_at = now()").await;
    let stuck = world.ends(&mia, Some(shop), "environment_remove", JobState::Stuck).await;
    assert_eq!(unread().await, [1, 1, 0, 1]);
    world.run("update jobs set created_by = null").await;
    world.run("delete from notices").await;
    world.tell_end(stuck).await;
    world.tell_end(stuck).await;
    assert_eq!(unread().await, [1, 1, 0, 1], "once");
    world.run("update jobs set project_id = null").await;
    world.run("delete from notices").await;
    world.tell_end(stuck).await;
    assert_eq!(unread().await, [0, 0, 0, 1], "of a node");
    world.run("update jobs set state = 'undone', ended_at = now() where state = 'stuck'").await;
    world.run("delete from notices").await;
    world.tell_end(stuck).await;
    assert_eq!(unread().await, [0; 4]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_one_has_seen_is_read(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let tom = world.member("tom", &[("shop", ProjectRole::Developer)]).await;
    let seen = world.ends(&mia, Some(shop), "guest_start", JobState::Undone).await;
    world.ends(&mia, Some(shop), "guest_stop", JobState::Undone).await;
    assert_eq!((world.unread(&mia).await, world.unread(&tom).await), (2, 2));
    world.controller.saw(&mia, NoticeOf::Job(seen));
    world.controller.saw(&mia, NoticeOf::Deployment(DeploymentId(seen.0)));
    let taken = world.controller.services.looked_at.take_seen().await;
    world.controller.keep_seen(taken).await.unwrap();
    assert_eq!((world.unread(&mia).await, world.unread(&tom).await), (1, 2), "that one, by who saw it");
    assert!(!world.notices(&mia).await[1].unread);
}

#[sqlx::test(migrations = "../../migrations")]
async fn nobody_is_told_what_they_did_or_what_follows(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let shop = world.project(&mut mia, "shop").await;
    let ops = world.ops().await;
    for kind in ["keys_sync", "environment_configure", "deploy"] {
        world.ends(&mia, Some(shop), kind, JobState::Done).await;
    }
    world.ends(&mia, Some(shop), "deploy", JobState::Undone).await;
    assert_eq!(world.notices(&mia).await, []);
    world.ends(&mia, Some(shop), "environment_configure", JobState::Undone).await;
    assert_eq!(world.unread(&mia).await, 1, "it was not brought to the guest");

    // By the operation, in its transaction.
    let waiting = async || {
        let id = Uuid::now_v7();
        let job = sqlx::query(
            "insert into jobs (id, kind, title, params, dag, project_id, created_by)
             values ($1, 'guest_stop', 'Stop guest www', '{}', '{}', $2, $3)",
        );
        job.bind(id).bind(shop.0).bind(mia.id.0).execute(&world.db).await.unwrap();
        JobId(id)
    };
    world.cancel(&mia, waiting().await).await.unwrap();
    assert_eq!(world.unread(&mia).await, 1, "their own cancel");
    let cancelled = waiting().await;
    world.cancel(&ops, cancelled).await.unwrap();
    let told = world.notices(&mia).await;
    assert_eq!(
        (told.len(), told[0].title.as_str(), told[0].detail.as_deref()),
        (2, "Stop guest www", Some("cancelled"))
    );
    assert!(matches!(&told[0].news, News::Job { job, state: JobState::Undone, .. } if *job == cancelled));
    assert_eq!(world.notices(&ops).await, []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_one_may_not_see_any_more_is_not_told(db: PgPool) {
    let world = World::new(db).await;
    let (mut mia, ops) = (world.member("mia", &[]).await, world.ops().await);
    let shop = world.project(&mut mia, "shop").await;
    let tom = world.member("tom", &[]).await;
    let (project, login): (corpus_domain::ProjectName, corpus_domain::UserName) =
        ("shop".parse().unwrap(), "tom".parse().unwrap());
    let join = SetMember { project: project.clone(), login: login.clone(), role: ProjectRole::Developer };
    world.ask(&mia, join.clone()).await.unwrap();
    let tom = world.principal(tom.id).await;
    world.ends(&tom, Some(shop), "guest_stop", JobState::Done).await;
    let notice = world.notices(&tom).await[0].id;
    assert_eq!(world.unread(&tom).await, 1);

    world.ask(&mia, RemoveMember { project, login }).await.unwrap();
    let left = world.principal(tom.id).await;
    assert_eq!((world.notices(&left).await, world.unread(&left).await), (vec![], 0));
    hidden(world.read_notice(&left, notice).await);
    world.ask(&mia, join).await.unwrap();
    let back = world.principal(tom.id).await;
    assert_eq!((titles(&world.notices(&back).await).len(), world.unread(&back).await), (1, 1));

    // Of nodes only operators know.
    world.ends(&ops, None, "node_repair", JobState::Done).await;
    assert_eq!(world.unread(&ops).await, 1);
    world.run("update users set ops = false where login = 'ops'").await;
    let member = world.principal(ops.id).await;
    assert_eq!((world.notices(&member).await, world.unread(&member).await), (vec![], 0));
    // A project takes its notices with it.
    world.run("delete from jobs").await;
    world.run("delete from projects").await;
    assert_eq!(world.count("select count(*) from notices where project_id is not null").await, 0);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_claim_is_told_as_long_as_it_waits(db: PgPool) {
    let world = World::new(db).await;
    let (mia, eve) = (world.member("mia", &[]).await, world.member("eve", &[]).await);
    world.add_key(&eve, super::world::KEY).await.unwrap();
    world.add_key(&mia, super::world::KEY).await.unwrap();
    let told = world.notices(&mia).await;
    assert_eq!((titles(&told), world.unread(&mia).await), (vec!["A key waits for your signature"], 1));
    world.add_key(&mia, super::world::KEY).await.unwrap();
    let again = world.notices(&mia).await;
    assert!(again.len() == 1 && again[0].path != told[0].path, "the one that takes its place: {again:?}");
    world.run("update key_claims set expires_at = now()").await;
    assert_eq!((world.notices(&mia).await, world.unread(&mia).await), (vec![], 0));
    assert_eq!(world.notices(&eve).await, [], "who holds it does not learn of it");
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_newest_are_kept_for_a_month(db: PgPool) {
    let world = World::new(db).await;
    let (mia, tom) = (world.member("mia", &[]).await, world.member("tom", &[]).await);
    let mut conn = world.db.acquire().await.unwrap();
    for number in 0..203 {
        let news = News::KeyMoved { fingerprint: format!("SHA256:{number}") };
        let telling = Telling { event: format!("key:{number}"), news, seen_by: SeenBy::Each };
        notices::tell(&mut conn, &[mia.id, tom.id], &telling).await.unwrap();
    }
    assert_eq!((world.unread(&mia).await, world.unread(&tom).await), (200, 200));
    assert_eq!(world.count("select count(*) from notices where event in ('key:0', 'key:1', 'key:2')").await, 0);
    world.run("update notices set created_at = now() - interval '31 days' where event < 'key:2'").await;
    notices::forget_old(&mut conn).await.unwrap();
    assert!(world.unread(&mia).await < 200);
    assert_eq!(world.count("select count(*) from notices where event < 'key:2'").await, 0);
    let page = ListNotices { limit: "20".parse().ok(), ..ListNotices::default() };
    let first = world.ask(&mia, page.clone()).await.unwrap();
    assert_eq!(first.items[0].detail.as_deref(), Some("SHA256:202"));
    let next = world.ask(&mia, ListNotices { cursor: first.next, ..page }).await.unwrap();
    assert!(next.items[0].id < first.items[19].id);
}
