//! Which cells there are, and trying them on several lanes at once.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use corpus_domain::{JobKind, JobState};

use crate::bring::Level;
use crate::cell::{self, Durations, NotReached, Outcome, Place};
use crate::fault::{Fault, Moment, touches};
use crate::kind::{self, KINDS};
use crate::lane::Lane;
use crate::report::{Report, StepOf};

/// Runs every job once, without a fault: the steps there are, and how long each takes.
pub async fn calibrate(lane: &Lane) -> Result<(Vec<StepOf>, Durations)> {
    let (mut steps, mut durations) = (Vec::new(), HashMap::new());
    // From the bare host upwards.
    for kind in KINDS.into_iter().rev() {
        lane.bring_to(kind::level(kind)).await?;
        let job = kind::ask(lane, kind).await?;
        let state = lane.finish(job).await?;
        anyhow::ensure!(state == JobState::Done, "without any fault {kind} is {state}\n{}", lane.story(job).await);
        if kind == JobKind::NodeInitialize {
            lane.keep_image().await?;
        }
        for step in lane.read(job).await?.steps {
            let what = touches(kind.as_str(), &step.name);
            let what = what.with_context(|| format!("the matrix does not know what {kind}.{} works on", step.name))?;
            if let (Some(began), Some(ended)) = (step.started_at, step.ended_at) {
                durations.insert((kind, step.name.clone()), (ended - began).to_std().unwrap_or_default());
            }
            // Names of steps are few, and live as long as the run.
            steps.push((kind, &*step.name.leak(), what));
        }
    }
    let wrong = crate::look::differences(lane).await?;
    anyhow::ensure!(wrong.is_empty(), "without any fault: {}", wrong.join("\n"));
    Ok((steps, durations))
}

/// All cells that can be tried, in the order in which they are.
pub fn cells(steps: &[StepOf]) -> Vec<Place> {
    let mut cells = Vec::new();
    for kind in KINDS {
        for (kind, step, touches) in steps.iter().filter(|step| step.0 == kind) {
            for fault in Fault::ALL.into_iter().filter(|fault| touches.obstacle(*fault).is_none()) {
                let place = |moment| Place { kind: *kind, step, touches: *touches, fault, moment };
                cells.extend(Moment::ALL.map(place));
            }
        }
    }
    cells.extend(crate::hook::cells(steps));
    cells
}

/// A few of them, for every day, and others for other days: a walk through all steps, faults and moments, with only one
/// initialization, which takes longest.
pub fn sample(cells: Vec<Place>, which: usize) -> Vec<Place> {
    // A stride that shares no factor with the number of faults and moments; a third of it is between two samples.
    let mut picked: Vec<Place> = cells.into_iter().skip(46 + 50 * which).step_by(149).collect();
    let mut initialized = false;
    picked.retain(|place| place.kind != JobKind::NodeInitialize || !std::mem::replace(&mut initialized, true));
    picked
}

/// As many cells are tried between two words of how far it is; a run that is ended loses no more than these.
const KEPT_EACH: usize = 50;

struct Queue {
    cells: Mutex<VecDeque<Place>>,
    report: Mutex<Report>,
    keep_in: Option<PathBuf>,
    total: usize,
    began: Instant,
}

/// Tries all of them, into a report of what was tried before; that is kept in a file meanwhile, if one is named.
pub async fn try_all(
    lanes: Vec<(Lane, Durations)>,
    cells: Vec<Place>,
    report: Report,
    keep_in: Option<&Path>,
) -> Result<Report> {
    let queue = std::sync::Arc::new(Queue {
        total: cells.len(),
        cells: Mutex::new(cells.into()),
        report: Mutex::new(report),
        keep_in: keep_in.map(Path::to_owned),
        began: Instant::now(),
    });
    let mut running = tokio::task::JoinSet::new();
    for (mut lane, durations) in lanes {
        let queue = std::sync::Arc::clone(&queue);
        running.spawn(async move {
            while let Some(place) = queue.next() {
                let mut outcome = cell::run(&mut lane, place, &durations).await;
                if outcome.as_ref().is_err_and(anyhow::Error::is::<NotReached>) && heal(&mut lane).await.is_ok() {
                    outcome = cell::run(&mut lane, place, &durations).await;
                }
                let outcome = outcome.map_err(|error| format!("{error:#}"));
                let good = outcome.as_ref().is_ok_and(|outcome| outcome.wrong.is_empty());
                queue.note(place, outcome);
                // The next cell must not suffer from what this one has left: a guest's own disk stops at a full one of its node.
                let stopped = place.fault == Fault::DiskFull && kind::level(place.kind) == Level::Sized;
                if (!good || stopped)
                    && let Err(error) = heal(&mut lane).await
                {
                    queue.give_up(lane.number, &error);
                    return;
                }
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        ended?;
    }
    let queue = std::sync::Arc::into_inner(queue).context("a lane still runs")?;
    let left = queue.cells.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut report = queue.report.into_inner().unwrap_or_else(PoisonError::into_inner);
    for place in left {
        report.note(place, Err("no lane was left to try it on".to_owned()));
    }
    Ok(report)
}

async fn heal(lane: &mut Lane) -> Result<()> {
    lane.postgres.ensure().await?;
    lane.node.free_disk()?;
    lane.node.heal().await?;
    // It may be in the middle of a boot.
    for _ in 0..60 {
        if lane.reset().await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    lane.reset().await
}

impl Queue {
    fn next(&self) -> Option<Place> {
        self.cells.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn note(&self, place: Place, outcome: Result<Outcome, String>) {
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let mut said = String::new();
        match &outcome {
            Err(error) => said = format!("✗ {place}\n  {}\n", error.replace('\n', "\n  ")),
            Ok(outcome) if !outcome.wrong.is_empty() => {
                said = format!("✗ {place}: {}\n  {}\n", outcome.state, outcome.wrong.join("\n").replace('\n', "\n  "));
            }
            Ok(_) => {}
        }
        report.note(place, outcome);
        let (tried, wrong) = (report.tried, report.wrong);
        if tried.is_multiple_of(KEPT_EACH) || tried == self.total {
            let minutes = self.began.elapsed().as_secs_f64() / 60.0;
            said = format!("{said}· {tried} of {} cells, {wrong} wrong, {minutes:.1} minutes\n", self.total);
            if let Some(Err(error)) = self.keep_in.as_deref().map(|file| report.keep(file)) {
                said = format!("{said}✗ what was tried can't be kept: {error:#}\n");
            }
        }
        let _ = std::io::stderr().write_all(said.as_bytes());
    }

    fn give_up(&self, lane: usize, error: &anyhow::Error) {
        let _ =
            writeln!(std::io::stderr(), "✗ lane {lane} can't be healed: {error:#}; {} cells tried so far", self.total);
    }
}
