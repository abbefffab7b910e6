//! Cells of the matrix with an operator's hook that goes wrong: whatever becomes of the hook, its job ends, nothing
//! of the hook is left, and no run of it is shown as one that goes on.
//!
//! A hook before its stage runs on the node, one after it on the controller.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use corpus_domain::{JobId, JobKind, JobState};
use tokio::time::sleep;

use crate::cell::{Outcome, PACE, Place, WAIT_LIMIT};
use crate::fault::{Fault, Moment};
use crate::kind;
use crate::lane::Lane;
use crate::look;
use crate::process::{command, run as run_command};
use crate::report::StepOf;
use crate::server::Server;
use crate::worker::Order;

/// Where hooks are tried: the job, the step that they are a part of, their side, the name of the stage.
const PLACES: [(JobKind, &str, Moment, &str); 4] = [
    (JobKind::GuestCreate, "spawn", Moment::Before, "guest.spawn"),
    (JobKind::GuestCreate, "ping", Moment::After, "guest.ping"),
    (JobKind::NodeRepair, "look", Moment::Before, "node.repair"),
    (JobKind::NodeRepair, "verify", Moment::After, "node.repair"),
];
/// What a hook that hangs runs; nothing else sleeps for so long.
const SLEEP: &str = "8639.25";
/// How long a hook may take, in seconds.
const LIMIT: u32 = 3;

/// All cells of hooks.
pub fn cells(steps: &[StepOf]) -> Vec<Place> {
    let of = |(kind, step, moment, _): (JobKind, &str, Moment, &str)| {
        let found = steps.iter().find(|one| one.0 == kind && one.1 == step);
        found.map(|(kind, step, touches)| {
            Fault::OF_HOOKS.map(|fault| Place { kind: *kind, step, touches: *touches, fault, moment })
        })
    };
    PLACES.into_iter().filter_map(of).flatten().collect()
}

/// Tries one.
pub async fn run(lane: &mut Lane, place: Place) -> Result<Outcome> {
    let on_node = place.moment == Moment::Before;
    put(lane, &place, on_node)?;
    let order = Order { setting: lane.setting.clone(), point: None, pace: PACE };
    let mut first = Server::start(&order, &lane.folder.join("first.log")).await?;
    let job = kind::ask(lane, place.kind).await?;
    let mut heir = None;
    let began = Instant::now();
    match place.fault {
        Fault::HookKilled => {
            begun(lane, job).await?;
            end_sleep(lane, on_node).await?;
        }
        Fault::HookServerKilled => {
            begun(lane, job).await?;
            // From here on it succeeds.
            put_script(lane, &place, on_node, "exit 0")?;
            first.kill().await?;
            heir = Some(Server::start(&order, &lane.folder.join("heir.log")).await?);
        }
        _ => {}
    }
    let state = lane.over(job, WAIT_LIMIT).await;
    let elapsed = began.elapsed();
    fs::remove_dir_all(&lane.setting.hooks_folder)?;
    first.leave().await.ok();
    if let Some(heir) = &mut heir {
        heir.leave().await?;
    }
    let (state, mut wrong) = (state?, Vec::new());
    let expected = if place.fault == Fault::HookServerKilled { JobState::Done } else { JobState::Undone };
    if state != expected {
        wrong.push(format!("the job is {state}, not {expected}"));
    }
    wrong.extend(left(lane, on_node).await?);
    wrong.extend(look::differences(lane).await?);
    if !wrong.is_empty() {
        wrong.push(lane.story(job).await);
    }
    Ok(Outcome { state, elapsed, wrong })
}

fn stage(place: &Place) -> Result<&'static str> {
    let here = PLACES.iter().find(|one| (one.0, one.1, one.2) == (place.kind, place.step, place.moment));
    Ok(here.context("no place of hooks")?.3)
}

fn put(lane: &Lane, place: &Place, on_node: bool) -> Result<()> {
    let does =
        if place.fault == Fault::HookFails { "exit 3".to_owned() } else { format!("{} & wait $!", sleeper(lane)) };
    put_script(lane, place, on_node, &does)
}

fn put_script(lane: &Lane, place: &Place, on_node: bool, does: &str) -> Result<()> {
    let host = if on_node { "node" } else { "controller" };
    let folder = lane.setting.hooks_folder.join(host).join(format!("{}.{}", stage(place)?, place.moment.word()));
    fs::create_dir_all(&folder)?;
    for above in folder.ancestors().take_while(|above| above.starts_with(&lane.setting.hooks_folder)) {
        fs::set_permissions(above, fs::Permissions::from_mode(0o755))?;
    }
    let limit = if place.fault == Fault::HookHangs { LIMIT } else { 60 };
    write(&folder.join("10-chaos.toml"), &format!("timeout = {limit}\n"), 0o644)?;
    write(&folder.join("10-chaos"), &format!("#!/bin/sh\n{does}\n"), 0o755)
}

/// A script that runs is not written over: it is another file of the name.
fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let part = path.with_extension("part");
    fs::write(&part, text)?;
    fs::set_permissions(&part, fs::Permissions::from_mode(mode))?;
    Ok(fs::rename(&part, path)?)
}

/// Waits until the hook of a job runs.
async fn begun(lane: &Lane, job: JobId) -> Result<()> {
    for _ in 0..600 {
        let query = "select exists (select from hook_runs where job_id = $1 and state = 'running')";
        if sqlx::query_scalar(query).bind(job.0).fetch_one(&lane.db).await? {
            // Its row is there before it is.
            sleep(Duration::from_millis(700)).await;
            return Ok(());
        }
        sleep(Duration::from_millis(50)).await;
    }
    bail!("the hook did not begin:\n{}", lane.story(job).await)
}

/// What a hook does that goes on. The lanes are on one host, and each must find its own.
fn sleeper(lane: &Lane) -> String {
    format!("sleep {SLEEP}{}", lane.number)
}

async fn end_sleep(lane: &Lane, on_node: bool) -> Result<()> {
    if on_node {
        return lane.node.attach(&format!("pkill -KILL -f '^{}$'", sleeper(lane))).await.map(drop);
    }
    let mut kill = command("pkill");
    kill.args(["-KILL", "-f", &format!("^{}$", sleeper(lane))]);
    run_command(kill, Duration::from_secs(5)).await.map(drop)
}

/// What is left of a hook, with some seconds to go.
async fn left(lane: &Lane, on_node: bool) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for _ in 0..40 {
        wrong.clear();
        let processes = if on_node {
            lane.node
                .attach(&format!("pgrep -f '^{}$'; ls -A /var/lib/corpus/hooks 2>/dev/null; true", sleeper(lane)))
                .await?
        } else {
            let mut look = command("pgrep");
            look.args(["-f", &format!("^{}$", sleeper(lane))]);
            run_command(look, Duration::from_secs(5)).await.unwrap_or_default()
        };
        if !processes.is_empty() {
            wrong.push(format!("left of the hook: {processes}"));
        }
        let open: i64 =
            sqlx::query_scalar("select count(*) from hook_runs where state = 'running'").fetch_one(&lane.db).await?;
        if open > 0 {
            wrong.push(format!("{open} runs of hooks are shown as running"));
        }
        if wrong.is_empty() {
            break;
        }
        sleep(Duration::from_millis(250)).await;
    }
    Ok(wrong)
}
