//! What could not be made: who reads why, who dismisses it, and that asking again does.

use corpus_api::Principal;
use corpus_api::environments::SetUpEnvironment;
use corpus_api::guests::{GetGuest, GuestRequested, RequestGuest};
use corpus_api::jobs::{GetJob, ListJobs};
use corpus_api::not_created::{Creation, DismissJob, ListNotCreated};
use corpus_domain::{Environment, JobId, JobKind, ProjectRole, SizeProfile};
use sqlx::PgPool;

use super::world::{World, conflict, forbidden, hidden};
use crate::store::environments;

const WHY: &str = "not enough room: 64.2 GB are free, 2000 GB are needed";

fn wanted(project: &str, name: &str) -> RequestGuest {
    let new = RequestGuest::new(project.parse().unwrap(), Environment::Dev, name.parse().unwrap(), SizeProfile::Small);
    RequestGuest { password: Some("correct horse battery".parse().unwrap()), ..new }
}

/// Asks for a guest whose job is undone, as it leaves the rows.
async fn undone(world: &World, who: &Principal, wanted: RequestGuest) -> GuestRequested {
    let asked = world.ask(who, wanted).await.unwrap();
    for statement in ["delete from guests where id = $1", "delete from job_locks where $1::uuid is not null"] {
        sqlx::query(statement).bind(asked.guest.0).execute(&world.db).await.unwrap();
    }
    sqlx::query("update jobs set state = 'undone', started_at = now(), ended_at = now(), error = $2 where id = $1")
        .bind(asked.job.0)
        .bind(WHY)
        .execute(&world.db)
        .await
        .unwrap();
    asked
}

async fn listed(world: &World, who: &Principal) -> Vec<(JobId, bool)> {
    let found =
        world.ask(who, ListNotCreated { of: Some(Creation::Guest), ..ListNotCreated::default() }).await.unwrap().items;
    found.into_iter().map(|one| (one.job.id, one.may_decide)).collect()
}

#[sqlx::test(migrations = "../../migrations")]
async fn who_may_see_reads_why_and_who_may_ask_asks_again(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 10, reachability = 'reachable'").await;
    let (mut mia, mut eve) = (world.member("mia", &[]).await, world.member("eve", &[]).await);
    world.project(&mut mia, "shop").await;
    world.project(&mut eve, "other").await;
    let vic = world.member("vic", &[("shop", ProjectRole::Viewer)]).await;

    let GuestRequested { guest, job } = undone(&world, &mia, wanted("shop", "a.test")).await;
    hidden(world.ask(&mia, GetGuest { guest }).await);
    assert_eq!(listed(&world, &mia).await, [(job, true)]);
    assert_eq!(listed(&world, &vic).await, [(job, false)]);
    assert!(listed(&world, &eve).await.is_empty());

    let seen = world.ask(&mia, GetJob { job, wait: None }).await.unwrap();
    assert_eq!(seen.line.error.as_deref(), Some(WHY));
    let asked = seen.asked.unwrap();
    assert_eq!((asked["name"].as_str(), asked["size"].as_str()), (Some("a.test"), Some("small")));
    assert!(!asked.to_string().contains("horse"), "a secret is not kept: {asked}");
    assert_eq!(world.ask(&vic, GetJob { job, wait: None }).await.unwrap().asked, None);

    forbidden(world.ask(&vic, DismissJob { job }).await);
    hidden(world.ask(&eve, DismissJob { job }).await);
    // One of another project is not dismissed by asking for something of one's own.
    let theirs = RequestGuest { instead_of: Some(job), ..wanted("other", "b.test") };
    world.ask(&eve, theirs).await.unwrap();
    assert_eq!(listed(&world, &mia).await.len(), 1);

    let again = RequestGuest { instead_of: Some(job), ..wanted("shop", "a.test") };
    let second = world.ask(&mia, again).await.unwrap().job;
    assert!(listed(&world, &mia).await.is_empty());
    conflict(world.ask(&mia, DismissJob { job: second }).await, "undone");
}

#[sqlx::test(migrations = "../../migrations")]
async fn what_was_read_is_dismissed_once_and_kept_with_who_did(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 10, reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let job = undone(&world, &mia, wanted("shop", "a.test")).await.job;
    world.ask(&mia, DismissJob { job }).await.unwrap();
    assert!(listed(&world, &mia).await.is_empty());
    world.ask(&world.ops().await, DismissJob { job }).await.unwrap();
    let kept = "select count(*) from jobs j join users u on u.id = j.dismissed_by
                where u.login = 'mia' and j.dismissed_at is not null";
    assert_eq!(world.count(kept).await, 1);
    assert!(world.ask(&mia, GetJob { job, wait: None }).await.unwrap().dismissed_at.is_some());
    assert_eq!(world.count("select count(*) from audit where action = 'job.dismiss'").await, 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn an_environment_that_could_not_be_set_up_is_told_of_until_it_is_asked_for_again(db: PgPool) {
    let world = World::new(db).await;
    let (mut mia, mut eve) = (world.member("mia", &[]).await, world.member("eve", &[]).await);
    let shop = world.project(&mut mia, "shop").await;
    world.project(&mut eve, "other").await;
    let guest = world.guest(shop, Environment::Dev).await;
    let project = || "shop".parse().unwrap();
    let set_up = || SetUpEnvironment { project: project(), environment: Some(Environment::Dev), guest };
    let job = world.ask(&mia, set_up()).await.unwrap().job;
    environments::delete(&mut world.db.acquire().await.unwrap(), guest).await.unwrap();
    world.run("delete from job_locks").await;
    world.run("update jobs set state = 'undone', started_at = now(), ended_at = now(), error = 'no Salt'").await;

    let of = |of, project| ListNotCreated { of: Some(of), project, ..ListNotCreated::default() };
    let found = world.ask(&mia, of(Creation::Environment, Some(project()))).await.unwrap().items;
    assert_eq!(found.iter().map(|one| (one.job.id, one.may_decide)).collect::<Vec<_>>(), [(job, true)]);
    assert!(world.ask(&mia, of(Creation::Environment, "other".parse().ok())).await.unwrap().items.is_empty());
    assert!(world.ask(&mia, of(Creation::Guest, None)).await.unwrap().items.is_empty());
    assert!(world.ask(&eve, of(Creation::Environment, Some(project()))).await.unwrap().items.is_empty());
    let asked = world.ask(&mia, GetJob { job, wait: None }).await.unwrap().asked.unwrap();
    assert_eq!((asked["environment"].as_str(), asked["guest"].as_str()), (Some("dev"), Some(&*guest.to_string())));
    // What the page of the environment asks for.
    let by = |environment| ListJobs {
        kind: Some(JobKind::EnvironmentSetUp),
        project: Some(project()),
        environment: Some(environment),
        ..ListJobs::default()
    };
    assert_eq!(world.ask(&mia, by(Environment::Dev)).await.unwrap().items[0].id, job);
    assert!(world.ask(&mia, by(Environment::Prod)).await.unwrap().items.is_empty());

    world.ask(&mia, set_up()).await.unwrap();
    assert!(world.ask(&mia, of(Creation::Environment, None)).await.unwrap().items.is_empty(), "asked again");
    world.run("update jobs set dismissed_at = null, dismissed_by = null where error is not null").await;
    assert_eq!(world.ask(&mia, of(Creation::Environment, None)).await.unwrap().items.len(), 1);
    environments::delete(&mut world.db.acquire().await.unwrap(), guest).await.unwrap();
    world.run("delete from guests").await;
    assert!(world.ask(&mia, of(Creation::Environment, None)).await.unwrap().items.is_empty(), "its guest is gone");
}

#[sqlx::test(migrations = "../../migrations")]
async fn all_are_listed_a_page_at_a_time_for_a_month(db: PgPool) {
    let world = World::new(db).await;
    world.run("update nodes set slots = 10, reachability = 'reachable'").await;
    let mut mia = world.member("mia", &[]).await;
    world.project(&mut mia, "shop").await;
    let mut jobs = Vec::new();
    for name in ["a.test", "b.test", "c.test", "d.test", "e.test"] {
        jobs.insert(0, undone(&world, &mia, wanted("shop", name)).await.job);
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let asked = ListNotCreated { limit: 2.try_into().ok(), cursor, ..ListNotCreated::default() };
        let page = world.ask(&mia, asked).await.unwrap();
        assert!(page.items.len() <= 2);
        seen.extend(page.items.into_iter().map(|one| one.job.id));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, jobs);
    world.run("update jobs set ended_at = now() - interval '30 days' where title like '%c.test%'").await;
    assert_eq!(listed(&world, &mia).await.len(), 4);
}
