//! Following a job from any server, and resuming.

use corpus_domain::{JobState, StepState};
use futures::TryStreamExt;
use sqlx::PgPool;

use super::*;
use crate::{Change, JobUpdate};

fn ends(update: &JobUpdate) -> bool {
    matches!(&update.change, Change::State(job) if job.state == JobState::Done)
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_reader_on_another_server_sees_it_all_and_resumes(pool: PgPool) {
    let server = server(&pool).await;
    let other = Jobs::open(pool.clone().into(), registry().outlines()).await.unwrap();
    let id = submit(&server.jobs, gated()).await;
    let reading = tokio::spawn(other.follow(id, 0).try_collect::<Vec<_>>());
    told(&server.world, "middle").await;
    tokio::time::sleep(Duration::from_millis(250)).await;
    let (seen, log) = (other.row(id).await.unwrap().feed_seq, other.log(id, 0, 10).await.unwrap());
    assert_eq!(log.len(), 1, "the line is there while the job runs");
    server.world.gate.add_permits(1);
    let all = tokio::time::timeout(Duration::from_secs(5), reading).await.unwrap().unwrap().unwrap();
    assert!(all.is_sorted_by(|a, b| a.seq < b.seq), "{all:#?}");
    assert!(all.last().is_some_and(ends));
    assert!(all.iter().any(|update| matches!(&update.change, Change::Log(line) if line.text == "chose 7")));
    let running = |update: &JobUpdate| matches!(&update.change, Change::Step(step) if step.state == StepState::Running && step.name == "middle");
    assert!(all.iter().any(running), "steps are seen while they run");
    let rest: Vec<_> = other.follow(id, seen).try_collect().await.unwrap();
    assert!(rest.iter().all(|update| update.seq > seen) && rest.last().is_some_and(ends));
    let steps = rest.iter().filter(|update| matches!(update.change, Change::Step(_))).count();
    assert_eq!(steps, 2, "the two that changed since");
    let nothing: Vec<_> = other.follow(id, rest.last().unwrap().seq).try_collect().await.unwrap();
    assert_eq!(nothing, []);
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_long_log_comes_whole_and_in_order(pool: PgPool) {
    let talk = async |ctx: Ctx| {
        for number in 0..1234 {
            ctx.log(format!("line {number}\0"));
        }
        ctx.progress(1, 2);
        Ok::<(), StepError>(())
    };
    let registry = Registry::<World>::new().with(Job::new().step(Step::new("talk", "Talk", talk)));
    let jobs = Jobs::open(pool.clone().into(), registry.outlines()).await.unwrap();
    let _engine = Engine::start(jobs.clone(), &registry, Arc::default(), &config());
    let id = submit(&jobs, make()).await;
    let all: Vec<_> = jobs.follow(id, 0).try_collect().await.unwrap();
    let lines: Vec<_> = all
        .iter()
        .filter_map(|update| match &update.change {
            Change::Log(line) => Some(line.text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(lines, (0..1234).map(|number| format!("line {number}\u{fffd}")).collect::<Vec<_>>());
    let detail = jobs.get(id).await.unwrap();
    assert_eq!((detail.steps[0].progress_done, detail.steps[0].progress_total), (Some(1), Some(2)));
}
