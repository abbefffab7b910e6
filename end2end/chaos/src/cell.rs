//! One cell of the matrix: one job, one fault at one moment of one step, and the world after it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use corpus_api::jobs::RetryJob;
use corpus_domain::{JobId, JobKind, JobState};
use rustix::process::Signal;
use tokio::time::sleep;

use crate::fault::{Fault, Moment, Touches};
use crate::hook;
use crate::kind;
use crate::lane::Lane;
use crate::look;
use crate::server::Server;
use crate::worker::{Order, OrderedMoment, OrderedPoint};

/// What time limits are multiplied by, so that 30 s become 5.
pub const PACE: f64 = 0.16;
/// For steps that may take 20 minutes.
const SHORT_PACE: f64 = 0.006;
/// How long a line is cut or reset, and a disk full: longer than a request may take.
const OUTAGE: Duration = Duration::from_secs(6);
/// How long the database refuses: longer than a lease.
const REFUSAL: Duration = Duration::from_millis(2500);
/// How long a job may take with any fault.
pub const WAIT_LIMIT: Duration = Duration::from_secs(90);

/// Where in the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub kind: JobKind,
    pub step: &'static str,
    pub touches: Touches,
    pub fault: Fault,
    pub moment: Moment,
}

impl std::hash::Hash for Touches {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}: {} {}", self.kind, self.step, self.fault.title(), self.moment.word())
    }
}

/// The job ended, or hangs, before it came to where the fault was to happen: nothing was tried. So it is on a machine that
/// is too slow for the shortened limits; what the job did instead.
#[derive(Debug)]
pub struct NotReached(String);

impl std::fmt::Display for NotReached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the fault never happened\n{}", self.0)
    }
}

/// How a cell ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub state: JobState,
    /// From the fault to the end of the job.
    pub elapsed: Duration,
    /// What is wrong; empty for a good cell.
    pub wrong: Vec<String>,
}

/// How long each step takes when nothing goes wrong.
pub type Durations = HashMap<(JobKind, String), Duration>;

/// The servers and what was done to the world, to be undone whatever happens.
struct Scene<'a> {
    lane: &'a mut Lane,
    place: Place,
    first: Server,
    heir: Option<Server>,
}

/// Tries a cell.
pub async fn run(lane: &mut Lane, place: Place, durations: &Durations) -> Result<Outcome> {
    lane.bring_to(kind::level(place.kind)).await.context("bringing the lane to where the cell begins")?;
    if Fault::OF_HOOKS.contains(&place.fault) {
        return hook::run(lane, place).await.with_context(|| format!("{place}"));
    }
    let during = durations.get(&(place.kind, place.step.to_owned())).copied().unwrap_or_default() / 2;
    let log = lane.folder.join("first.log");
    let first = Server::start(&order(lane, &place, Some(during)), &log).await?;
    let mut scene = Scene { lane, place, first, heir: None };
    let job = kind::ask(scene.lane, place.kind).await?;
    let outcome = scene.play(job, during).await;
    let cleared = scene.clear().await;
    let outcome = outcome.with_context(|| format!("{place}"))?;
    cleared.with_context(|| format!("clearing up after {place}"))?;
    Ok(outcome)
}

fn order(lane: &Lane, place: &Place, point: Option<Duration>) -> Order {
    // What runs on the node breaks itself when it is told to beforehand.
    let moment = |during: Duration| match place.moment {
        _ if place.fault.is_remote() => OrderedMoment::Before,
        Moment::Before => OrderedMoment::Before,
        Moment::During => OrderedMoment::During { ms: u64::try_from(during.as_millis()).unwrap_or(0) },
        Moment::After => OrderedMoment::After,
    };
    let waits_long = matches!(place.fault, Fault::CommandHangs | Fault::AnswerLate)
        && matches!((place.kind, place.step), (JobKind::NodeInitialize, "driver" | "image"));
    Order {
        setting: lane.setting_of(place.kind).clone(),
        point: point.map(|during| OrderedPoint {
            kind: place.kind,
            step: place.step.to_owned(),
            moment: moment(during),
        }),
        pace: if waits_long { SHORT_PACE } else { PACE },
    }
}

/// How long a job may take to the step at which it is disturbed. A node that goes down writes all that it has to its disk,
/// which takes long where much else is written to that.
const fn reached_within(kind: JobKind) -> Duration {
    Duration::from_secs(if matches!(kind, JobKind::NodeReboot) { 150 } else { 90 })
}

impl Scene<'_> {
    async fn play(&mut self, job: JobId, during: Duration) -> Result<Outcome> {
        let reached = self.first.hear("at", reached_within(self.place.kind)).await;
        if let Err(error) = reached {
            let story = self.lane.story(job).await;
            return Err(error.context(NotReached(story)));
        }
        let began = Instant::now();
        self.strike(during).await?;
        let state = self.lane.over(job, WAIT_LIMIT).await?;
        let elapsed = began.elapsed();
        let mut wrong = self.repair(job).await?;
        if state == JobState::Stuck {
            wrong.extend(self.unstick(job).await?);
        }
        if state == JobState::Undone && kind::is_one_way(self.place.kind) {
            wrong.extend(self.once_more().await?);
        }
        wrong.extend(look::differences(self.lane).await?);
        wrong.extend(look::secrets_told(self.lane, job, &self.logs()).await?);
        if !wrong.is_empty() {
            wrong.push(self.lane.story(job).await);
        }
        Ok(Outcome { state, elapsed, wrong })
    }

    fn logs(&self) -> Vec<PathBuf> {
        self.heir.iter().map(|heir| heir.log.clone()).chain([self.first.log.clone()]).collect()
    }

    /// Lets the fault happen, and the server go on where it waits.
    async fn strike(&mut self, during: Duration) -> Result<()> {
        let Place { fault, moment, touches, .. } = self.place;
        match fault {
            Fault::ServerKilled => {
                self.first.kill().await?;
                return self.call_heir().await;
            }
            Fault::LeaseLost => {
                self.first.signal(Signal::STOP)?;
                return self.call_heir().await;
            }
            Fault::LineCut => self.lane.node.cut().await?,
            Fault::LineReset => self.lane.node.reset().await?,
            Fault::NodeRebooted if moment == Moment::During => return self.lane.node.reboot().await,
            Fault::NodeRebooted => self.lane.node.reboot().await?,
            Fault::DiskFull => self.lane.node.fill_disk()?,
            Fault::DatabaseRestarted => {
                self.lane.postgres.crash().await?;
                self.lane.postgres.start().await?;
            }
            Fault::DatabaseRefuses => self.lane.postgres.crash().await?,
            _ => self.lane.node.order(fault, moment, touches, during).await?,
        }
        if moment != Moment::During || fault.is_remote() {
            self.first.go().await?;
        }
        match fault {
            Fault::DatabaseRefuses => {
                sleep(REFUSAL).await;
                self.lane.postgres.start().await?;
            }
            Fault::LineCut | Fault::LineReset => {
                sleep(OUTAGE).await;
                self.lane.node.heal().await?;
            }
            Fault::DiskFull => {
                sleep(OUTAGE).await;
                self.lane.node.free_disk()?;
            }
            _ if touches.is_read() => {
                sleep(OUTAGE).await;
                self.lane.node.take_order_back().await?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn call_heir(&mut self) -> Result<()> {
        let log = self.lane.folder.join("heir.log");
        self.heir = Some(Server::start(&order(self.lane, &self.place, None), &log).await?);
        Ok(())
    }

    /// What has to be true of the fault itself once the job is over.
    async fn repair(&mut self, job: JobId) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let is_remote = self.place.fault.is_remote();
        // What says so is in the node's memory: one that booted has forgotten it.
        if is_remote && !self.lane.node.ordered_happened().await? && self.place.kind != JobKind::NodeReboot {
            wrong.push("nothing was broken: the step ran nothing of what was ordered".to_owned());
        }
        if self.place.fault == Fault::LeaseLost {
            wrong.extend(self.wake(job).await?);
        }
        Ok(wrong)
    }

    /// The server that stood still goes on: it must find out, and change nothing.
    async fn wake(&mut self, job: JobId) -> Result<Vec<String>> {
        let before = self.recorded(job).await?;
        self.first.signal(Signal::CONT)?;
        self.first.go().await.ok();
        sleep(Duration::from_secs(1)).await;
        let after = self.recorded(job).await?;
        self.first.kill().await?;
        let changed = before != after;
        Ok(changed.then(|| "the server that lost its lease has recorded something".to_owned()).into_iter().collect())
    }

    async fn recorded(&self, job: JobId) -> Result<(i64, i64)> {
        let counts = sqlx::query_as(
            "select feed_seq, (select count(*) from job_events where job_id = $1) from jobs where id = $1",
        );
        Ok(counts.bind(job.0).fetch_one(&self.lane.db).await?)
    }

    /// A stuck job must name what is left, and end when it is tried again in a healed world.
    async fn unstick(&mut self, job: JobId) -> Result<Vec<String>> {
        let detail = self.lane.read(job).await?;
        let named = detail.steps.iter().any(|step| step.undo_error.is_some());
        self.lane.controller.call(&self.lane.ops, RetryJob { job }, None).await?;
        let state = self.lane.finish(job).await?;
        let mut wrong = Vec::new();
        if !named {
            wrong.push("it is stuck, and does not say at what".to_owned());
        }
        if state != JobState::Undone {
            wrong.push(format!("tried again it is {state}"));
        }
        Ok(wrong)
    }

    /// What was not taken away completely is asked for again, and must go.
    async fn once_more(&mut self) -> Result<Vec<String>> {
        let again = kind::ask(self.lane, self.place.kind).await?;
        match self.lane.finish(again).await? {
            JobState::Done => Ok(Vec::new()),
            state => Ok(vec![format!("asked for again it is {state}\n{}", self.lane.story(again).await)]),
        }
    }

    /// Ends the servers and heals the world.
    async fn clear(&mut self) -> Result<()> {
        self.lane.node.free_disk()?;
        self.lane.postgres.ensure().await?;
        self.lane.node.heal().await?;
        self.first.signal(Signal::CONT).ok();
        self.first.leave().await?;
        if let Some(heir) = &mut self.heir {
            heir.leave().await?;
        }
        Ok(())
    }
}
