//! What is done around steps is a part of them: it fails them, and is taken back with them.

use corpus_domain::{JobState, StepState};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use sqlx::PgPool;

use super::*;
use crate::testing::{Fault, Outcome};
use crate::{Around, Side};

/// Tells of each step that it covers; fails where it is told to.
struct Telling(&'static [&'static str], &'static str);

impl Telling {
    fn tell(
        &self,
        what: &str,
        side: Side,
        ctx: StepContext<World, Value>,
    ) -> BoxFuture<'static, Result<(), StepError>> {
        let story = format!("{what} {side:?} {}", ctx.step());
        let fails = self.1 == story;
        async move {
            assert!(ctx.params().get("gated").is_some(), "the parameters as they are stored");
            ctx.services().tell(&story);
            if fails { Err(StepError::permanent(format!("{story} failed"))) } else { Ok(()) }
        }
        .boxed()
    }
}

impl Around<World> for Telling {
    fn covers(&self, _: JobKind, step: &str) -> bool {
        self.0.contains(&step)
    }

    fn run(&self, side: Side, ctx: StepContext<World, Value>) -> BoxFuture<'static, Result<(), StepError>> {
        self.tell("run", side, ctx)
    }

    fn undo(&self, side: Side, ctx: StepContext<World, Value>) -> BoxFuture<'static, Result<(), StepError>> {
        self.tell("undo", side, ctx)
    }
}

fn trial(pool: &PgPool, around: Telling) -> Trial<World> {
    Trial { pool: pool.clone(), registry: registry().around(around), services: Arc::default() }
}

async fn run(pool: &PgPool, around: Telling, fault: Fault) -> (Outcome, Vec<String>) {
    let trial = trial(pool, around);
    let outcome = trial.run(make(), fault).await.unwrap();
    assert_eq!(trial.services.made().is_empty(), outcome.job.job.state != JobState::Done);
    (outcome, trial.services.story())
}

#[sqlx::test(migrations = "../../migrations")]
async fn it_is_run_around_the_steps_that_it_covers(pool: PgPool) {
    let (outcome, story) = run(&pool, Telling(&["choose", "middle"], ""), Fault::None).await;
    assert_eq!(outcome.job.job.state, JobState::Done);
    let expected = ["run Before choose", "choose", "run After choose", "first", "run Before middle", "middle"];
    assert_eq!(story[..6], expected);
    assert_eq!(story[6..], ["run After middle", "last"]);
}

#[sqlx::test(migrations = "../../migrations")]
async fn when_it_fails_before_the_effect_there_is_none_and_all_is_undone(pool: PgPool) {
    let (outcome, story) = run(&pool, Telling(&["choose", "middle"], "run Before middle"), Fault::None).await;
    assert_eq!(outcome.job.job.state, JobState::Undone);
    assert!(!story.contains(&"middle".to_owned()), "{story:?}");
    let back = [
        "undo After middle",
        "undo middle",
        "undo Before middle",
        "undo first",
        "undo After choose",
        "undo Before choose",
    ];
    assert_eq!(story[story.len() - 6..], back);
    let middle = &outcome.job.steps[2];
    assert_eq!((middle.state, middle.error.as_deref()), (StepState::Failed, Some("run Before middle failed")));
}

#[sqlx::test(migrations = "../../migrations")]
async fn when_it_fails_after_the_effect_that_is_undone_too(pool: PgPool) {
    let (outcome, story) = run(&pool, Telling(&["middle"], "run After middle"), Fault::None).await;
    assert_eq!(outcome.job.job.state, JobState::Undone);
    let back = ["middle", "run After middle", "undo After middle", "undo middle", "undo Before middle", "undo first"];
    assert_eq!(story[story.len() - 6..], back);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_step_without_an_undo_has_its_own_taken_back(pool: PgPool) {
    let (outcome, story) = run(&pool, Telling(&["choose"], "run After choose"), Fault::None).await;
    assert_eq!(outcome.job.job.state, JobState::Undone);
    assert_eq!(story[2..], ["run After choose", "undo After choose", "undo Before choose"]);
    assert_eq!(outcome.job.steps[0].state, StepState::Failed);
}

#[sqlx::test(migrations = "../../migrations")]
async fn when_it_can_not_be_taken_back_the_job_is_stuck(pool: PgPool) {
    let trial = trial(&pool, Telling(&["middle"], "undo Before middle"));
    let outcome = trial.run(make(), Fault::FailBefore("last".into())).await.unwrap();
    assert_eq!(outcome.job.job.state, JobState::Stuck);
    assert_eq!(outcome.job.steps[2].state, StepState::UndoFailed);
}

#[sqlx::test(migrations = "../../migrations")]
async fn wherever_the_server_dies_the_job_goes_on(pool: PgPool) {
    const COVERED: &[&str] = &["choose", "first", "middle", "last"];
    let events = run(&pool, Telling(COVERED, ""), Fault::None).await.0.events;
    for event in 0..events {
        let (outcome, story) = run(&pool, Telling(COVERED, ""), Fault::KillAt(event)).await;
        assert_eq!(outcome.job.job.state, JobState::Done, "killed at {event}: {story:?}");
        assert!(!story.iter().any(|told| told.starts_with("undo")), "{story:?}");
    }
}
