//! A project that is being destroyed: what it still lets through, how it stays after all, and what is left of it.
//! Over nodes it is destroyed in `end2end/simulation`.

use std::sync::Arc;
use std::time::Duration;

use corpus_api::guests::{GetGuest, ListGuests, StopGuest};
use corpus_api::jobs::{AbandonJob, CancelJob, GetJob};
use corpus_api::projects::ending::PreviewProjectDestroy;
use corpus_api::projects::members::SetMember;
use corpus_api::projects::{DestroyProject, GetProject};
use corpus_api::{Principal, Problem};
use corpus_domain::GitService::{ReceivePack, UploadPack};
use corpus_domain::{Environment, JobId, JobState, ProjectName, ProjectRole, Repository};
use sqlx::PgPool;

use super::world::{World, conflict, forbidden, hidden};
use crate::jobs::testing::{Fault, Faults, Trial};
use crate::services::Services;
use crate::store::project_end;

fn shop() -> ProjectName {
    "shop".parse().unwrap()
}

async fn destroy(world: &World, who: &Principal) -> Result<JobId, Problem> {
    world.ask(who, DestroyProject { project: shop() }).await.map(|accepted| accepted.job)
}

/// Destroys the project and sees it to its end.
pub(super) async fn destroyed(world: &World, who: &Principal) {
    let job = destroy(world, who).await.unwrap();
    assert_eq!(run(world, job, Fault::KillAt(usize::MAX)).await.0, JobState::Done);
}

/// Runs jobs with one fault until this one is over.
async fn run(world: &World, job: JobId, fault: Fault) -> (JobState, usize) {
    let faults = Arc::new(Faults::new(fault));
    let engine = world.controller.engine(&Trial::<Services>::config(Arc::clone(&faults)));
    let state = loop {
        let state = world.controller.jobs.get(job).await.unwrap().job.state;
        if state.is_over() {
            break state;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    engine.shutdown(Duration::from_secs(5)).await;
    (state, faults.events())
}

#[sqlx::test(migrations = "../../migrations")]
async fn nothing_of_a_project_that_is_to_go_is_changed(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.environment(&mia, project, Environment::Dev).await;
    let dev = world.member("dev", &[("shop", ProjectRole::Developer)]).await;
    let (bob, ops) = (world.member("bob", &[]).await, world.ops().await);
    let preview = || PreviewProjectDestroy { project: shop() };
    forbidden(destroy(&world, &dev).await);
    hidden(destroy(&world, &bob).await);
    forbidden(world.ask(&dev, preview()).await);
    hidden(world.ask(&bob, preview()).await);
    let goes = world.ask(&mia, preview()).await.unwrap();
    assert_eq!((goes.guest_count, goes.environments.len(), goes.member_count, goes.open_jobs), (1, 1, 2, 0));
    assert!(goes.guests[0].guest == guest && goes.leaving.is_none());

    let job = destroy(&world, &mia).await.unwrap();
    let says = format!("Project shop is being destroyed by job {job}");
    conflict(destroy(&world, &mia).await, &says);
    conflict(world.ask(&mia, StopGuest { guest }).await, &says);
    conflict(world.ask(&ops, StopGuest { guest }).await, &says);
    conflict(world.deploy(&dev, "shop", Environment::Dev).await, &says);
    conflict(world.set_prod_entry(&mia, "shop", true).await, &says);
    let role = SetMember { project: shop(), login: "bob".parse().unwrap(), role: ProjectRole::Viewer };
    conflict(world.ask(&mia, role.clone()).await, &says);
    hidden(world.ask(&bob, StopGuest { guest }).await);
    let git = async |service| {
        world.controller.git_target(&dev, &shop(), Environment::Dev, (service, Repository::Project)).await
    };
    conflict(git(ReceivePack).await, &says);
    git(UploadPack).await.unwrap();
    world.ask(&dev, GetGuest { guest }).await.unwrap();
    let seen = world.seen(&mia, "shop").await.unwrap();
    let leaving = seen.leaving.unwrap();
    assert!(leaving.job == job && leaving.for_good_since.is_none() && !seen.may_change && !leaving.is_left());
    assert_eq!(world.count("select count(*) from jobs").await, 1, "nothing else was begun");

    forbidden(world.ask(&dev, CancelJob { job }).await);
    hidden(world.ask(&bob, CancelJob { job }).await);
    world.ask(&mia, CancelJob { job }).await.unwrap();
    let seen = world.seen(&mia, "shop").await.unwrap();
    assert!(seen.leaving.is_none() && seen.may_change);
    assert_eq!(world.count("select count(*) from guests where state = 'running'").await, 1);
    world.ask(&mia, role).await.unwrap();
    world.ask(&mia, StopGuest { guest }).await.unwrap();
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_jobs_that_are_there_already_are_waited_for(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.guest(project, Environment::Dev).await;
    let stop = world.ask(&mia, StopGuest { guest }).await.unwrap().job;
    // It runs on a server that is none of ours, and is stuck there.
    world.run("update jobs set state = 'running', started_at = now()").await;
    let job = destroy(&world, &mia).await.unwrap();
    let engine = world.controller.engine(&Trial::<Services>::config(Arc::default()));
    world.run("update jobs set state = 'stuck' where kind = 'guest_stop'").await;
    let waits = loop {
        let seen = world.ask(&mia, GetJob { job, wait: None }).await.unwrap();
        if seen.line.waiting_for.is_some() {
            break seen;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert_eq!((waits.line.state, waits.line.blocked_by), (JobState::Waiting, Some(stop)));
    engine.shutdown(Duration::from_secs(5)).await;

    // Who decides about that one may do so, though nothing else of the project is changed.
    let comment = "looked after".parse().unwrap();
    world.ask(&mia, AbandonJob { job: stop, comment }).await.unwrap();
    world.run("delete from guests").await;
    assert_eq!(run(&world, job, Fault::None).await.0, JobState::Done);
}

/// A job that a server of an earlier release submitted does not share the project: it is waited for all the same, and
/// the cancel comes through.
#[sqlx::test(migrations = "../../migrations")]
async fn a_job_that_waits_already_begun_is_cancelled(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.guest(project, Environment::Dev).await;
    world.ask(&mia, StopGuest { guest }).await.unwrap();
    world.run("delete from job_locks").await;
    world.run("update jobs set state = 'stuck'").await;
    let job = destroy(&world, &mia).await.unwrap();
    let engine = world.controller.engine(&Trial::<Services>::config(Arc::default()));
    loop {
        let seen = world.ask(&mia, GetJob { job, wait: None }).await.unwrap();
        if seen.line.state == JobState::Running
            && seen.line.waiting_for.as_deref().is_some_and(|what| what.contains("Stop"))
        {
            assert!(!seen.past_cancel);
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.ask(&mia, CancelJob { job }).await.unwrap();
    let ended = world.ask(&mia, GetJob { job, wait: Some(10.try_into().unwrap()) }).await.unwrap();
    assert!(ended.line.was_cancelled(), "{ended:?}");
    engine.shutdown(Duration::from_secs(5)).await;
    assert!(world.seen(&mia, "shop").await.unwrap().leaving.is_none());
    assert_eq!(world.count("select count(*) from guests where state = 'destroying'").await, 0);
}

/// A cancel that is asked for in the moment before there is no way back counts; one a moment later is refused.
#[sqlx::test(migrations = "../../migrations")]
async fn a_cancel_and_the_point_of_no_return(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let job = destroy(&world, &mia).await.unwrap();
    world.run("update jobs set state = 'running', started_at = now(), cancel_requested_at = now()").await;
    let mut tx = world.controller.services.begin().await.unwrap();
    assert!(!project_end::begin(&mut tx, project, job).await.unwrap());
    tx.rollback().await.unwrap();
    world.run("update jobs set cancel_requested_at = null").await;
    let mut tx = world.controller.services.begin().await.unwrap();
    assert!(project_end::begin(&mut tx, project, job).await.unwrap());
    let cancel = {
        let (controller, mia) = (world.controller.clone(), mia.clone());
        tokio::spawn(async move { controller.call(&mia, CancelJob { job }, None).await })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!cancel.is_finished(), "it waits for what is decided");
    tx.commit().await.unwrap();
    conflict(cancel.await.unwrap(), "no way back");
    assert_eq!(world.count("select count(*) from jobs where cancel_requested_at is not null").await, 0);
}

/// A change and the destroy in the same moment: whichever comes first has happened when the other one looks.
#[sqlx::test(migrations = "../../migrations")]
async fn a_change_and_the_destroy_do_not_overlap(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let mut stopped = 0;
    for _ in 0..12 {
        let guest = world.guest(project, Environment::Dev).await;
        let (first, second) = (world.controller.clone(), world.controller.clone());
        let (one, other) = (mia.clone(), mia.clone());
        let stop = tokio::spawn(async move { first.call(&one, StopGuest { guest }, None).await });
        let gone = tokio::spawn(async move { second.call(&other, DestroyProject { project: shop() }, None).await });
        let (stop, job) = (stop.await.unwrap(), gone.await.unwrap().unwrap().job);
        let before = "select count(*) from jobs s, jobs d where s.kind = 'guest_stop' and d.kind = 'project_destroy'
                          and s.queue_order > d.queue_order";
        match stop {
            Ok(_) => stopped += 1,
            refused => conflict(refused, "is being destroyed"),
        }
        assert_eq!(world.count(before).await, 0, "nothing was begun behind it");
        assert_eq!(world.count("select count(*) from guests where state = 'stopping'").await, stopped);
        world.ask(&mia, CancelJob { job }).await.unwrap();
        world.run("delete from jobs where kind = 'project_destroy'").await;
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_change_that_is_begun_is_waited_for(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.guest(project, Environment::Dev).await;
    let mut change = world.controller.services.begin().await.unwrap();
    assert_eq!(corpus_gate::leaving(&mut change, project).await.unwrap(), None);
    let gone = {
        let (controller, mia) = (world.controller.clone(), mia.clone());
        tokio::spawn(async move { controller.call(&mia, DestroyProject { project: shop() }, None).await })
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!gone.is_finished(), "what was begun before is over first");
    change.commit().await.unwrap();
    gone.await.unwrap().unwrap();
    conflict(world.ask(&mia, StopGuest { guest }).await, "is being destroyed");
}

#[sqlx::test(migrations = "../../migrations")]
async fn it_goes_on_where_the_server_died(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let ops = world.ops().await;
    let mut at = 0;
    loop {
        world.run("delete from former_projects").await;
        world.project(&mut mia, "shop").await;
        let job = destroy(&world, &mia).await.unwrap();
        let (state, events) = run(&world, job, Fault::KillAt(at)).await;
        assert_eq!(state, JobState::Done, "killed at event {at}");
        hidden(world.seen(&ops, "shop").await);
        assert_eq!(world.count("select count(*) from memberships").await, 0);
        assert_eq!(world.count("select count(*) from former_projects where name = 'shop'").await, 1);
        assert_eq!(world.count("select count(*) from job_locks").await, 0);
        // Who asked for it sees how it ended, and nobody else who is no operator.
        mia = world.principal(mia.id).await;
        assert_eq!(world.ask(&mia, GetJob { job, wait: None }).await.unwrap().line.state, JobState::Done);
        let bob = world.member("bob", &[]).await;
        hidden(world.ask(&bob, GetJob { job, wait: None }).await);
        hidden(world.ask(&mia, CancelJob { job }).await);
        at += 3;
        if at >= events {
            break;
        }
    }
}

/// It fails after there is no way back: nothing else can be done with the project than to destroy it again.
#[sqlx::test(migrations = "../../migrations")]
async fn what_went_in_part_is_destroyed_again(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    for step in ["begin", "routes", "names", "guests", "deployments", "forget"] {
        world.run("delete from former_projects").await;
        world.project(&mut mia, "shop").await;
        let job = destroy(&world, &mia).await.unwrap();
        assert_eq!(run(&world, job, Fault::FailAfter(step.to_owned())).await.0, JobState::Undone, "{step}");
        if step == "forget" {
            hidden(world.seen(&mia, "shop").await);
            break;
        }
        let leaving = world.seen(&mia, "shop").await.unwrap().leaving.unwrap();
        assert!(leaving.is_left() && leaving.for_good_since.is_some(), "{step}");
        let role = SetMember { project: shop(), login: "mia".parse().unwrap(), role: ProjectRole::Maintainer };
        conflict(world.ask(&mia, role).await, "was not destroyed completely");
        let again = destroy(&world, &mia).await.unwrap();
        // A cancel of the second one before it begins does not bring back what went with the first.
        world.ask(&mia, CancelJob { job: again }).await.unwrap();
        assert!(world.seen(&mia, "shop").await.unwrap().leaving.unwrap().is_left());
        let again = destroy(&world, &mia).await.unwrap();
        assert_eq!(run(&world, again, Fault::None).await.0, JobState::Done, "{step}");
        hidden(world.seen(&world.ops().await, "shop").await);
    }
}

/// Before that it fails as if nothing had been asked for.
#[sqlx::test(migrations = "../../migrations")]
async fn what_did_not_begin_leaves_everything(db: PgPool) {
    let world = World::new(db).await;
    let mut mia = world.member("mia", &[]).await;
    let project = world.project(&mut mia, "shop").await;
    let guest = world.guest(project, Environment::Dev).await;
    for fault in [
        Fault::FailBefore("mark".to_owned()),
        Fault::FailAfter("mark".to_owned()),
        Fault::FailBefore("begin".to_owned()),
    ] {
        let job = destroy(&world, &mia).await.unwrap();
        assert_eq!(run(&world, job, fault.clone()).await.0, JobState::Undone, "{fault:?}");
        assert!(world.ask(&mia, GetProject { project: shop() }).await.unwrap().leaving.is_none(), "{fault:?}");
    }
    let guests = world.ask(&mia, ListGuests::default()).await.unwrap().items;
    assert_eq!((guests.len(), guests[0].id, guests[0].state.as_str()), (1, guest, "running"));
}
