//! Hooks on the controller around the steps of a job that does nothing itself: real scripts, a real database.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use corpus_api::hooks::{GetHook, ListHooks};
use corpus_domain::{HookHost, HookState, HookUndo, JobId, JobKind, JobState};
use serde::{Deserialize, Serialize};
use sqlx::PgPool;

use super::Hooks;
use crate::jobs::testing::{Fault, Outcome, Trial};
use crate::jobs::{Engine, EngineConfig, Job, JobParams, Jobs, NewJob, Registry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::hook_runs::{self, RunRow};
use crate::tests::world::World;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Nothing {
    fails: bool,
}

impl JobParams for Nothing {
    const KIND: JobKind = JobKind::GuestCreate;
}

type Ctx = StepContext<Services, Nothing>;

fn registry() -> Registry<Services> {
    let job = Job::new()
        .step(Step::new("ids", "Choose ids", async |_: Ctx| Ok(())).undo(async |_: Ctx| Ok(())))
        .step(Step::new("spawn", "Spawn", async |_: Ctx| Ok(())).undo(async |_: Ctx| Ok(())))
        .step(Step::new("ping", "Log in", async |ctx: Ctx| {
            if ctx.params().fails { Err(StepError::permanent("no answer")) } else { Ok(()) }
        }));
    Registry::new().with(job).around(Hooks)
}

struct Place {
    world: World,
    folder: tempfile::TempDir,
}

impl Place {
    async fn new(db: PgPool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World::new(db).await;
        let services = Arc::get_mut(&mut world.controller.services).unwrap();
        services.settings.hooks_folder = folder.path().to_owned();
        Self { world, folder }
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.folder.path().join("controller").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        for above in path.ancestors().skip(1).take_while(|above| above.starts_with(self.folder.path())) {
            fs::set_permissions(above, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mode = if path.extension().is_some_and(|extension| extension == "toml") { 0o644 } else { 0o755 };
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A hook that notes what it got, and then does that.
    fn hook(&self, file: &str, then: &str) {
        let story = self.folder.path().join(".story");
        let name = file.rsplit('/').next().unwrap();
        let story = story.display();
        let facts = self.folder.path().join(".facts");
        let facts = facts.display();
        self.put(file, &format!("#!/bin/sh\necho {name} >> {story}\ncat > {facts}\necho said by {name}\n{then}\n"));
    }

    fn story(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join(".story")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn facts(&self) -> serde_json::Value {
        serde_json::from_str(&fs::read_to_string(self.folder.path().join(".facts")).unwrap()).unwrap()
    }

    async fn run(&self, fails: bool, fault: Fault) -> Outcome {
        let services = Arc::clone(&self.world.controller.services);
        let trial = Trial { pool: self.world.db.clone(), registry: registry(), services };
        trial.run(NewJob::new("Create guest www", Nothing { fails }), fault).await.unwrap()
    }

    async fn jobs(&self) -> Jobs {
        Jobs::open(self.world.db.clone().into(), registry().outlines()).await.unwrap()
    }

    async fn runs(&self, hook: &str) -> Vec<RunRow> {
        let mut conn = self.world.controller.services.db.acquire().await.unwrap();
        hook_runs::of_hook(&mut conn, &format!("controller/{hook}"), 50).await.unwrap()
    }

    async fn log(&self, outcome: &Outcome) -> Vec<String> {
        let log = self.world.controller.jobs.log(outcome.job.job.id, 0, 1000).await.unwrap();
        log.into_iter().map(|line| line.text).collect()
    }
}

/// Waits until it is so, 30 s at most.
async fn until(so: impl Fn() -> bool) {
    for _ in 0..3000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came");
}

/// How a job ends, which it does within 30 s.
async fn ended(jobs: &Jobs, id: JobId) -> JobState {
    for _ in 0..3000 {
        let state = jobs.get(id).await.unwrap().job.state;
        if state.is_over() {
            return state;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it has no end: {:?}", jobs.get(id).await.unwrap());
}

const BEFORE: &str = "guest.spawn.before/10-a";
const AFTER: &str = "guest.spawn.after/20-b";

#[sqlx::test(migrations = "../../migrations")]
async fn hooks_run_around_their_stage_and_are_shown(db: PgPool) {
    let place = Place::new(db).await;
    place.hook(BEFORE, "");
    place.hook(AFTER, "");
    place.hook("guest.provisioning.before/05-first", "");
    place.put("guest.spawn.before/notes", "not a hook");
    let outcome = place.run(false, Fault::None).await;
    assert_eq!(outcome.job.job.state, JobState::Done, "{:?}", outcome.job);
    assert_eq!(place.story(), ["05-first", "10-a", "20-b"]);
    let facts = place.facts();
    assert_eq!(
        (&facts["stage"], &facts["side"], &facts["attempt"]),
        (&"guest.spawn".into(), &"after".into(), &1.into())
    );
    assert_eq!(
        (&facts["job"]["kind"], &facts["guest"], &facts["undo"]),
        (&"guest_create".into(), &().into(), &false.into())
    );
    let log = place.log(&outcome).await;
    assert!(log.contains(&"10-a: said by 10-a".to_owned()), "{log:?}");
    assert!(log.iter().any(|line| line.contains("notes is not run")), "{log:?}");
    let run = &place.runs(BEFORE).await[0];
    assert_eq!(
        (run.state, run.attempt, run.undo, &run.tail[..]),
        (HookState::Done, 1, None, &["said by 10-a".to_owned()][..])
    );

    let ops = place.world.ops().await;
    let hooks = place.world.controller.call(&ops, ListHooks {}, None).await.unwrap();
    let last: Vec<_> = hooks.hooks.iter().map(|hook| (hook.path(), hook.last.as_ref().unwrap().state)).collect();
    assert_eq!(last.len(), 3);
    assert!(last.contains(&(format!("controller/{BEFORE}"), HookState::Done)), "{last:?}");
    assert_eq!(hooks.problems.len(), 1);
    let (stage, name) = ("guest.spawn.before".parse().unwrap(), "10-a".parse().unwrap());
    let asked = GetHook { host: HookHost::Controller, stage, name };
    assert_eq!(place.world.controller.call(&ops, asked.clone(), None).await.unwrap().runs.len(), 1);
    let member = place.world.member("mia", &[]).await;
    let denied = place.world.controller.call(&member, asked.clone(), None).await.unwrap_err();
    assert_eq!(denied.status, 403);
    let nowhere = GetHook { name: "99-none".parse().unwrap(), ..asked };
    assert_eq!(place.world.controller.call(&ops, nowhere, None).await.unwrap_err().status, 404);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_hook_that_fails_fails_its_step_unless_it_only_warns(db: PgPool) {
    let place = Place::new(db).await;
    place.hook(BEFORE, "exit 3");
    place.hook(AFTER, "");
    let outcome = place.run(false, Fault::None).await;
    assert_eq!(outcome.job.job.state, JobState::Undone);
    let error = outcome.job.job.error.clone().unwrap();
    assert!(error.contains("controller/guest.spawn.before/10-a: exit status 3"), "{error}");
    assert_eq!(place.story(), ["10-a"], "it is not tried again, and the other one never runs");
    assert_eq!(place.runs(BEFORE).await[0].state, HookState::Failed);

    place.put("guest.spawn.before/10-a.toml", "on_failure = \"warn\"\n");
    let outcome = place.run(false, Fault::None).await;
    assert_eq!(outcome.job.job.state, JobState::Done);
    assert!(place.log(&outcome).await.iter().any(|line| line.starts_with("warning: hook")));
    let run = &place.runs(BEFORE).await[0];
    assert_eq!((run.state, run.reason.as_deref()), (HookState::Warned, Some("exit status 3")));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_hook_is_ended_at_its_limit(db: PgPool) {
    let place = Place::new(db).await;
    place.hook(BEFORE, "sleep 71.25");
    place.put("guest.spawn.before/10-a.toml", "timeout = 1\n");
    let outcome = place.run(false, Fault::None).await;
    assert_eq!(outcome.job.job.state, JobState::Undone);
    assert_eq!(place.runs(BEFORE).await[0].reason.as_deref(), Some("not done within 1 s"));
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_hook_is_undone_with_its_step(db: PgPool) {
    let place = Place::new(db).await;
    for hook in [BEFORE, AFTER] {
        place.hook(hook, "");
        place.hook(&format!("{hook}.undo"), "");
    }
    let outcome = place.run(true, Fault::None).await;
    assert_eq!(outcome.job.job.state, JobState::Undone);
    assert_eq!(place.story(), ["10-a", "20-b", "20-b.undo", "10-a.undo"]);
    let facts = place.facts();
    assert_eq!(
        (&facts["undo"], &facts["stage"], &facts["side"]),
        (&true.into(), &"guest.spawn".into(), &"before".into())
    );
    assert_eq!(place.runs(BEFORE).await[0].undo, Some(HookUndo::Undone));
}

#[sqlx::test(migrations = "../../migrations")]
async fn the_undo_runs_for_a_hook_that_failed_and_one_that_is_gone_leaves_the_job_stuck(db: PgPool) {
    let place = Place::new(db).await;
    place.hook(BEFORE, "exit 1");
    place.hook("guest.spawn.before/10-a.undo", "");
    assert_eq!(place.run(false, Fault::None).await.job.job.state, JobState::Undone);
    assert_eq!(place.story(), ["10-a", "10-a.undo"]);
    // The undo goes while the hook runs.
    let undo = place.folder.path().join("controller/guest.spawn.before/10-a.undo");
    place.hook(BEFORE, &format!("rm {}; exit 1", undo.display()));
    let outcome = place.run(false, Fault::None).await;
    assert_eq!(outcome.job.job.state, JobState::Stuck);
    let why = outcome.job.steps[1].undo_error.clone().unwrap();
    assert!(why.contains("not in the folder of hooks any more"), "{why}");
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_hook_whose_server_dies_runs_again_and_is_told(db: PgPool) {
    let place = Place::new(db).await;
    // The first run hangs until its server dies; whoever takes the job over finds the mark.
    let mark = place.folder.path().join(".mark");
    place.hook(BEFORE, &format!("if [ ! -e {0} ]; then touch {0}; sleep 72.25; fi", mark.display()));
    place.hook("guest.spawn.before/10-a.undo", "");
    let services = Arc::clone(&place.world.controller.services);
    let jobs = place.jobs().await;
    let registry = registry();
    let config = || Trial::<Services>::config(Arc::default());
    let dying = Engine::start(jobs.clone(), &registry, Arc::clone(&services), &config());
    let mut tx = services.begin().await.unwrap();
    let id = jobs.submit(&mut tx, NewJob::new("Create guest www", Nothing { fails: false })).await.unwrap().id();
    tx.commit().await.unwrap();
    until(|| mark.exists()).await;
    dying.shutdown(Duration::ZERO).await;
    let _heir = Engine::start(jobs.clone(), &registry, services, &config());
    assert_eq!(ended(&jobs, id).await, JobState::Done);
    let runs = place.runs(BEFORE).await;
    let shown: Vec<_> = runs.iter().map(|run| (run.attempt, run.state)).collect();
    assert_eq!(shown, [(2, HookState::Done), (1, HookState::Lost)]);
    assert_eq!(place.facts()["attempt"], 2);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_cancel_ends_the_hook_and_undoes_it(db: PgPool) {
    let place = Place::new(db).await;
    place.hook(BEFORE, "sleep 73.25");
    place.hook("guest.spawn.before/10-a.undo", "");
    let services = Arc::clone(&place.world.controller.services);
    let jobs = place.jobs().await;
    let config = EngineConfig { cancel_grace: Duration::from_secs(5), ..Trial::<Services>::config(Arc::default()) };
    let _engine = Engine::start(jobs.clone(), &registry(), Arc::clone(&services), &config);
    let mut tx = services.begin().await.unwrap();
    let id = jobs.submit(&mut tx, NewJob::new("Create guest www", Nothing { fails: false })).await.unwrap().id();
    tx.commit().await.unwrap();
    until(|| !place.story().is_empty()).await;
    let mut tx = services.begin().await.unwrap();
    jobs.cancel(&mut tx, id, None).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(ended(&jobs, id).await, JobState::Undone);
    assert_eq!(place.story(), ["10-a", "10-a.undo"]);
    assert_eq!(place.runs(BEFORE).await[0].state, HookState::Cancelled);
}

#[sqlx::test(migrations = "../../migrations")]
async fn of_a_hook_the_last_runs_are_kept(db: PgPool) {
    let place = Place::new(db).await;
    place.hook(BEFORE, "");
    place.run(false, Fault::None).await;
    let more = "insert into hook_runs (job_id, step, hook, side, host, attempt, facts, state, ended_at, undo)
        select job_id, 'old', hook, side, host, attempt, facts, 'done', now(), $1 from hook_runs, generate_series(1, 60)";
    sqlx::query(more).bind(None::<String>).execute(&place.world.db).await.unwrap();
    place.run(false, Fault::None).await;
    let left: i64 = sqlx::query_scalar("select count(*) from hook_runs").fetch_one(&place.world.db).await.unwrap();
    assert_eq!(left, hook_runs::KEPT);
}

#[test]
fn every_stage_is_a_step_of_its_job() {
    let names = crate::sagas::registry().names();
    for stage in crate::hooks::stages::STAGES {
        let steps = &names[&stage.kind];
        let at = |step: &str| steps.iter().position(|name| *name == step);
        assert!(at(stage.first).is_some() && at(stage.first) <= at(stage.last), "{}: {steps:?}", stage.name);
    }
}

#[test]
fn a_folder_that_is_nowhere_costs_nothing() {
    assert!(crate::hooks::folder::read(Path::new("/nonexistent")).hooks.is_empty());
}
