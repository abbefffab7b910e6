//! Following a deployment on its guest: every line of its journal is taken over once.
//!
//! What was read is kept together with the offset of what comes next, in one transaction of the
//! server that has the job. So a server that is killed, or stands still and is overtaken, leaves
//! neither a hole nor a line twice.

use std::time::Duration;

use corpus_domain::DeploymentState;
use corpus_protocol::{Answer, Event, Report, Request};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::journal::{Journal, verdict};
use super::{A_DAY, Ctx, course, give_up};
use crate::jobs::{StepError, Waiting};
use crate::nodes::{Call, GuestEndpoint, NodeError};
use crate::sagas::guest_calls::{endpoint, stands_if_there};
use crate::store::deployment_log::{self, NewLine};
use crate::store::deployments::{self, Progress};
use crate::store::environments::{self, Told};

/// How long what was read waits for more to be written with it.
const TOGETHER: Duration = Duration::from_millis(150);
/// Log lines that are written at once at most.
const BATCH: usize = 2000;
/// The pause before a guest that can't be reached is tried again.
const AGAIN: Duration = Duration::from_secs(2);

/// How long a guest may be away before it is given up.
#[derive(Debug, Clone, Copy)]
pub enum Patience {
    /// While the deployment runs: the guest goes on with it when it comes back.
    Long,
    /// When it was to be ended.
    Short,
}

impl Patience {
    const fn limit(self) -> Duration {
        match self {
            Self::Long => Duration::from_mins(30),
            Self::Short => Duration::from_mins(2),
        }
    }
}

/// How it ended.
#[derive(Debug)]
pub enum Ending {
    /// Live, and proven.
    Live,
    /// Not live, for the reason.
    Other(String),
}

impl From<&Report> for Ending {
    fn from(report: &Report) -> Self {
        if report.state == DeploymentState::Live { Self::Live } else { Self::Other(verdict(report)) }
    }
}

/// Follows the deployment from where it was left to its end, over as many lines as it takes. One
/// whose guest stays away, or knows nothing of it, is given up: that is told, and corrected when
/// the guest tells of it after all.
pub async fn to_its_end(ctx: &Ctx, patience: Patience) -> Result<Ending, StepError> {
    let mut heard = Instant::now();
    let mut waiting = None;
    loop {
        let known = course(ctx).await?;
        if known.is_final
            && let Some(report) = &known.report
        {
            return Ok(report.into());
        }
        let Some(stands) = stands_if_there(ctx, &ctx.params().on).await? else {
            return lost(ctx, "its environment was removed".to_owned()).await;
        };
        let mut watch = Watch::of(ctx, known);
        let error = match watch.run(&endpoint(&stands)?).await? {
            Ok(()) => return Ok((&watch.journal.report).into()),
            Err(error) => error,
        };
        if watch.heard {
            (heard, waiting) = (Instant::now(), None);
        }
        if !error.is_transient() && !error.is_in_doubt() {
            return lost(ctx, error.to_string()).await;
        }
        if heard.elapsed() > ctx.paced(patience.limit()) {
            return lost(ctx, format!("{} is away since {} s: {error}", stands.guest_name, heard.elapsed().as_secs()))
                .await;
        }
        if waiting.is_none() {
            ctx.log(error.to_string());
            waiting = Some(ctx.waiting_for(format!("guest {} to answer", stands.guest_name)));
        }
        ctx.or_cancelled(async {
            sleep(ctx.paced(AGAIN)).await;
            Ok::<(), StepError>(())
        })
        .await?;
    }
}

async fn lost(ctx: &Ctx, why: String) -> Result<Ending, StepError> {
    let why = format!("what became of it is not known: {why}");
    give_up(ctx, DeploymentState::Broken, &why).await?;
    Ok(Ending::Other(why))
}

/// One line to the guest, and what came over it that is not written yet.
struct Watch<'a> {
    ctx: &'a Ctx,
    journal: Journal,
    next: u64,
    lines: Vec<NewLine>,
    is_new: bool,
    heard: bool,
    waiting: Option<Waiting>,
}

impl<'a> Watch<'a> {
    fn of(ctx: &'a Ctx, known: deployments::Course) -> Self {
        let params = ctx.params();
        let journal = Journal::of(params.deployment, &params.on.name, &known);
        let (next, lines) = (known.journal_next, Vec::new());
        Self { ctx, journal, next, lines, is_new: false, heard: false, waiting: None }
    }

    /// Takes over all that comes until the deployment is over, or the line is cut.
    async fn run(&mut self, guest: &GuestEndpoint) -> Result<Result<(), NodeError>, StepError> {
        let ctx = self.ctx;
        let (tell, mut told) = mpsc::unbounded_channel();
        let params = ctx.params();
        let request =
            Request::FollowDeployment { project: params.on.name.clone(), id: params.deployment, from: self.next };
        let call = Call::new(request, A_DAY);
        let answer = ctx.services().guests.call(guest, call, move |event| drop(tell.send(event)));
        tokio::pin!(answer);
        let mut beat = interval(TOGETHER);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let answered = loop {
            tokio::select! {
                biased;
                () = ctx.cancelled() => return Err(StepError::cancelled()),
                Some(event) = told.recv() => self.take(event),
                answered = &mut answer => break answered,
                _ = beat.tick(), if self.is_new => self.write().await?,
            }
            if self.lines.len() >= BATCH {
                self.write().await?;
            }
        };
        while let Ok(event) = told.try_recv() {
            self.take(event);
        }
        let outcome = answered.map(|answer| {
            if let Answer::Report(report) = answer {
                self.journal.report = *report;
                (self.journal.is_over, self.is_new) = (true, true);
            }
        });
        if self.is_new {
            self.write().await?;
        }
        // An agent that answers something else would be asked for ever.
        match outcome {
            Ok(()) if !self.journal.is_over => Err(StepError::permanent("the guest told no end of the deployment")),
            outcome => Ok(outcome),
        }
    }

    fn take(&mut self, event: Event) {
        self.heard = true;
        let Event::Deployment { next, entry } = event else { return self.ctx.report(&event) };
        let news = self.journal.take(*entry);
        (self.next, self.is_new) = (next, true);
        self.lines.extend(news.line);
        if let Some(note) = news.note {
            self.ctx.log(note);
        }
        self.waiting = match (&self.journal.waits_for, self.waiting.take()) {
            (Some(what), None) => Some(self.ctx.waiting_for(what)),
            (Some(_), shown) => shown,
            (None, _) => None,
        };
    }

    /// Writes what came, and where the journal goes on.
    async fn write(&mut self) -> Result<(), StepError> {
        let (params, report) = (self.ctx.params(), &self.journal.report);
        let mut tx = self.ctx.begin().await?;
        deployment_log::add(&mut tx, params.deployment, &self.lines).await?;
        let progress = Progress {
            report,
            state: report.state,
            is_final: self.journal.is_over,
            journal_next: self.next,
            lines: self.journal.lines,
        };
        deployments::advance(&mut tx, params.deployment, &progress).await?;
        if self.journal.is_over {
            let told = Told { live: report.live.clone(), archives: report.archives.clone(), configuration: None };
            environments::observe(&mut tx, params.on.project, params.on.environment, params.on.guest, &told).await?;
        }
        tx.commit().await?;
        self.lines.clear();
        self.is_new = false;
        Ok(())
    }
}
