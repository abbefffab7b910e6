//! Fail at each step, repeat each step, kill at each event; then the world is as it should be.

use std::sync::atomic::{AtomicUsize, Ordering};

use corpus_domain::{JobKind, JobState};
use sqlx::PgPool;

use super::*;
use crate::testing::{Fault, Faults, Moment, Point, Trial};

fn trial(pool: &PgPool) -> Trial<World> {
    Trial { pool: pool.clone(), registry: registry(), services: Arc::default() }
}

const ALL: [&str; 3] = ["first", "last", "middle"];

#[sqlx::test(migrations = "../../migrations")]
async fn fail_at_each_step(pool: PgPool) {
    for step in trial(&pool).steps::<Make>() {
        for fault in [Fault::FailBefore(step.clone()), Fault::FailAfter(step.clone())] {
            let trial = trial(&pool);
            let outcome = trial.run(make(), fault.clone()).await.unwrap();
            assert_eq!(outcome.job.job.state, JobState::Undone, "{fault:?}");
            assert_eq!(trial.services.made(), Vec::<String>::new(), "{fault:?}: {:?}", trial.services.story());
        }
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn repeat_each_step(pool: PgPool) {
    for step in trial(&pool).steps::<Make>() {
        let trial = trial(&pool);
        let outcome = trial.run(make(), Fault::Repeat(step.clone())).await.unwrap();
        assert_eq!(outcome.job.job.state, JobState::Done);
        assert_eq!(trial.services.made(), ALL);
        assert_eq!(trial.services.count(&step), 2);
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn kill_at_each_event(pool: PgPool) {
    let events = trial(&pool).run(make(), Fault::None).await.unwrap().events;
    assert_eq!(events, 2 * (2 + 1 + 3 * 2));
    for event in 0..events {
        let trial = trial(&pool);
        let outcome = trial.run(make(), Fault::KillAt(event)).await.unwrap();
        assert_eq!(outcome.job.job.state, JobState::Done, "killed at {event}");
        assert_eq!(trial.services.made(), ALL, "killed at {event}: {:?}, {outcome:#?}", trial.services.story());
        assert_eq!(outcome.job.job.generation, 2);
        let repeated =
            ["choose", "first", "middle", "last"].iter().map(|step| trial.services.count(step)).sum::<usize>();
        assert!(repeated <= 5, "at most one step is repeated: {:?}", trial.services.story());
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn kill_at_each_event_of_the_way_back(pool: PgPool) {
    let failing = || Fault::FailAfter("last".into());
    let events = trial(&pool).run(make(), failing()).await.unwrap().events;
    for event in 0..events {
        let trial = trial(&pool);
        let outcome = trial.run(make(), Fault::FailAfterAndKillAt("last".into(), event)).await.unwrap();
        assert_eq!(outcome.job.job.state, JobState::Undone, "killed at {event}");
        assert_eq!(trial.services.made(), Vec::<String>::new(), "killed at {event}: {:?}", trial.services.story());
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn kill_in_the_middle_of_an_effect(pool: PgPool) {
    let trial = trial(&pool);
    let opens = async {
        while trial.services.count("middle") < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        trial.services.gate.add_permits(1);
    };
    let fault = Fault::KillDuring("middle".into(), Duration::from_millis(20));
    let (outcome, ()) = tokio::join!(trial.run(gated(), fault), opens);
    assert_eq!(outcome.unwrap().job.job.state, JobState::Done);
    assert_eq!(trial.services.story(), ["choose", "first", "middle", "middle", "last"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_panic_in_a_step_undoes_the_job(pool: PgPool) {
    let world = Arc::<World>::default();
    let job = Job::<World, Make>::new()
        .step(Step::new("first", "Make the first", first_without_output).undo(async |ctx: Ctx| unmake(&ctx, "first")))
        .step(Step::new("panic", "Panic", async |_: Ctx| -> Result<(), StepError> { panic!("on purpose") }));
    let trial = Trial { pool, registry: Registry::new().with(job), services: Arc::clone(&world) };
    let outcome = trial.run(make(), Fault::None).await.unwrap();
    assert_eq!(outcome.job.job.state, JobState::Undone);
    assert_eq!(world.made(), Vec::<String>::new());
}

async fn first_without_output(ctx: Ctx) -> Result<(), StepError> {
    ctx.services().made.lock().unwrap().insert("first".into());
    Ok(())
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_step_over_its_time_limit_is_tried_again_then_undone(pool: PgPool) {
    let world = Arc::<World>::default();
    let slow = async |ctx: Ctx| {
        ctx.services().tell("slow");
        std::future::pending::<Result<(), StepError>>().await
    };
    let step = Step::new("slow", "Take long", slow).limit(Duration::from_millis(30)).retry(quick(2));
    let trial = Trial { pool, registry: Registry::new().with(Job::new().step(step)), services: Arc::clone(&world) };
    let outcome = trial.run(make(), Fault::None).await.unwrap();
    assert_eq!((outcome.job.job.state, world.count("slow")), (JobState::Undone, 2));
    assert!(outcome.job.job.error.unwrap().contains("no end after"));
}

#[tokio::test]
async fn a_call_after_an_effect_waits_for_one_that_succeeds() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let reached = Arc::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(())) as _
    });
    let faults = Faults::at_point(Point::new(JobKind::GuestCreate, "spawn".to_owned(), Moment::After, reached));
    let here = || faults.point(JobKind::GuestCreate, "spawn", false);
    assert_eq!(here().unwrap().pass(async { Err::<u8, _>("not yet") }).await, Err("not yet"));
    assert_eq!(calls.load(Ordering::SeqCst), 0);
    assert_eq!(here().unwrap().pass(async { Ok::<_, &str>(2) }).await, Ok(2));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert!(here().is_none());
}
