//! Following a deployment on its guest: every line of its journal is taken over once.
//!
//! What was read is kept together with the offset of what comes next, in one transaction of the
//! server that has the job. So a server that is killed, or stands still and is overtaken, leaves
//! neither a hole nor a line twice.

use std::time::Duration;

use chrono::Utc;
use corpus_domain::{Bytes, DeploymentState, HookSide, Phase};
use corpus_protocol::{Answer, Event, Report, Request, Turn};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::journal::{Journal, verdict};
use super::{Ctx, FOLLOW_LIMIT, Part, give_up, progress, room};
use crate::events;
use crate::jobs::{StepError, Waiting};
use crate::nodes::{Call, GuestEndpoint, NodeError};
use crate::sagas::guest_calls::{endpoint, find_placement};
use crate::sagas::{balance, hooks};
use crate::store::deployment_log::{self, LogSize, NewLine};
use crate::store::deployments::{self, Advance};
use crate::store::environments::{self, ProjectReading};

/// How long what was read waits for more to be written with it.
const WRITE_INTERVAL: Duration = Duration::from_millis(150);
/// Log lines that are written at once at most.
const LINES_AT_ONCE: usize = 2000;
/// Events that wait to be written; more stay with the guest.
const QUEUED_EVENTS: usize = 16;
/// The pause before a guest that can't be reached is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// A deployment that has no end by then never has: what waits before it has its limits too.
const LONGEST_DEPLOYMENT: chrono::Duration = chrono::Duration::hours(25);

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

/// How far a deployment is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Until it is prepared and waits for the decision, or is over.
    Prepared,
    /// Until it is over.
    Over,
}

/// How it ended.
#[derive(Debug)]
pub enum Ending {
    /// It is prepared: it could go live.
    Prepared,
    /// Live, and proven.
    Live,
    /// Not live, for the reason.
    NotLive(String),
}

impl From<&Report> for Ending {
    fn from(report: &Report) -> Self {
        if report.state == DeploymentState::Live { Self::Live } else { Self::NotLive(verdict(report)) }
    }
}

/// Follows the deployment from where it was left, over as many lines as it takes. One whose guest
/// stays away, or knows nothing of it, is given up: that is told, and corrected when the guest
/// tells of it after all.
pub async fn follow(ctx: &Ctx, part: &Part, until: Until, patience: Patience) -> Result<Ending, StepError> {
    follow_telling(ctx, part, until, patience, &mut |note| ctx.log(note)).await
}

/// The same; `tell` hears how it goes.
pub async fn follow_telling(
    ctx: &Ctx,
    part: &Part,
    until: Until,
    patience: Patience,
    tell: &mut (dyn FnMut(String) + Send),
) -> Result<Ending, StepError> {
    let mut heard = Instant::now();
    let mut waiting = None;
    loop {
        let known = progress(ctx, part.deployment).await?;
        if known.is_final
            && let Some(report) = &known.report
        {
            return Ok(report.into());
        }
        // Each of its phases has a limit, which a guest that lies does not keep.
        let until_given_up = known.followed_since.unwrap_or(known.ordered_at) + LONGEST_DEPLOYMENT - Utc::now();
        let Ok(until_given_up) = until_given_up.to_std() else {
            return lost(ctx, part, format!("it has no end after {} hours", LONGEST_DEPLOYMENT.num_hours())).await;
        };
        let Some(placement) = find_placement(ctx, &part.on).await? else {
            return lost(ctx, part, "its environment was removed".to_owned()).await;
        };
        let log = log_size(ctx, part).await?;
        let journal = Journal::of(part.deployment, &part.on.name, &placement.guest_name, &known, log);
        let mut watch = Watch::of(ctx, part, until, &mut *tell, (journal, known.journal_next));
        let Ok(watched) = timeout(until_given_up, watch.run(&endpoint(&placement)?)).await else { continue };
        let error = match watched? {
            Ok(()) if watch.journal.is_over => return Ok((&watch.journal.report).into()),
            Ok(()) => return Ok(Ending::Prepared),
            Err(error) => error,
        };
        if watch.heard {
            (heard, waiting) = (Instant::now(), None);
        }
        if !error.is_transient() && !error.is_in_doubt() {
            return lost(ctx, part, error.to_string()).await;
        }
        if heard.elapsed() > ctx.paced(patience.limit()) {
            return lost(
                ctx,
                part,
                format!("{} is away since {} s: {error}", placement.guest_name, heard.elapsed().as_secs()),
            )
            .await;
        }
        if waiting.is_none() {
            ctx.log(error.to_string());
            waiting = Some(ctx.waiting_for(format!("guest {} to answer", placement.guest_name)));
        }
        ctx.or_cancelled(async {
            sleep(ctx.paced(RETRY_PAUSE)).await;
            Ok::<(), StepError>(())
        })
        .await?;
    }
}

async fn log_size(ctx: &Ctx, part: &Part) -> Result<LogSize, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    Ok(deployment_log::size(&mut conn, part.deployment).await?)
}

async fn lost(ctx: &Ctx, part: &Part, why: String) -> Result<Ending, StepError> {
    let why = format!("what became of it is not known: {why}");
    give_up(ctx, part.deployment, DeploymentState::Broken, &why).await?;
    Ok(Ending::NotLive(why))
}

/// One line to the guest, and what came over it that is not written yet.
struct Watch<'a> {
    ctx: &'a Ctx,
    part: &'a Part,
    until: Until,
    tell: &'a mut (dyn FnMut(String) + Send),
    journal: Journal,
    next: u64,
    lines: Vec<NewLine>,
    is_new: bool,
    heard: bool,
    needs_room: Option<Bytes>,
    leaves: Option<Turn>,
    phase: Option<(Phase, HookSide)>,
    waiting: Option<Waiting>,
}

impl<'a> Watch<'a> {
    fn of(
        ctx: &'a Ctx,
        part: &'a Part,
        until: Until,
        tell: &'a mut (dyn FnMut(String) + Send),
        (journal, next): (Journal, u64),
    ) -> Self {
        Self {
            ctx,
            part,
            until,
            tell,
            journal,
            next,
            lines: Vec::new(),
            is_new: false,
            heard: false,
            needs_room: None,
            leaves: None,
            phase: None,
            waiting: None,
        }
    }

    /// Whether it has come as far as it is followed. Nothing is waited for after its end: a guest that
    /// says no more would hold the job.
    fn has_come(&self) -> bool {
        self.journal.is_over || (self.until == Until::Prepared && self.journal.is_prepared())
    }

    /// Takes over all that comes until the deployment is that far, or the line is cut.
    async fn run(&mut self, guest: &GuestEndpoint) -> Result<Result<(), NodeError>, StepError> {
        let (ctx, part) = (self.ctx, self.part);
        if self.has_come() {
            return Ok(Ok(()));
        }
        let (tell, mut told) = mpsc::channel(QUEUED_EVENTS);
        let request = Request::FollowDeployment { project: part.on.name.clone(), id: part.deployment, from: self.next };
        let call = Call::new(request, FOLLOW_LIMIT);
        let answer = ctx.services().guests.call_to(guest, call, tell);
        tokio::pin!(answer);
        let mut beat = interval(WRITE_INTERVAL);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let answered = loop {
            tokio::select! {
                biased;
                () = ctx.cancelled() => return Err(StepError::cancelled()),
                Some(event) = told.recv() => {
                    self.take(event);
                    if let Some(missing) = self.needs_room.take() {
                        room::make(ctx, &part.on, missing).await?;
                        // Read again after the line was cut, it would make the storage grow twice.
                        self.write().await?;
                    }
                    self.leave().await?;
                    self.hooks().await?;
                    if self.has_come() {
                        self.write().await?;
                        return Ok(Ok(()));
                    }
                }
                answered = &mut answer => break answered,
                _ = beat.tick(), if self.is_new => self.write().await?,
            }
            if self.lines.len() >= LINES_AT_ONCE {
                self.write().await?;
            }
        };
        while let Ok(event) = told.try_recv() {
            self.take(event);
            self.hooks().await?;
        }
        let outcome = answered.map(|answer| {
            // The journal told it already, most times.
            if let Answer::Report(report) = answer
                && !self.journal.is_over
            {
                let refused = self.journal.end(*report);
                for line in &refused {
                    self.ctx.log(line);
                }
                self.is_new = true;
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

    /// The guest waits until it is out of the balance.
    async fn leave(&mut self) -> Result<(), StepError> {
        let Some(turn) = self.leaves.take() else { return Ok(()) };
        let Part { deployment, on, .. } = self.part;
        let known = progress(self.ctx, *deployment).await?;
        Box::pin(balance::leave_for_deployment(self.ctx, on, *deployment, turn, known.number)).await?;
        // Read again after the line was cut, it would leave once more.
        self.write().await
    }

    /// Runs the hooks of the phase that was just told of.
    async fn hooks(&mut self) -> Result<(), StepError> {
        let Some(told) = self.phase.take() else { return Ok(()) };
        if Box::pin(hooks::of_phase(self.ctx, &self.part.on, self.part.deployment, told)).await? {
            // Read again after the line was cut, it would run them twice.
            self.write().await?;
        }
        Ok(())
    }

    fn take(&mut self, event: Event) {
        self.heard = true;
        let Event::Deployment { next, entry } = event else { return self.ctx.report(&event) };
        if self.journal.is_over {
            return;
        }
        let news = self.journal.take(*entry);
        // It goes on only: a guest that told less would tell it all again, for ever.
        self.next = next.max(self.next);
        // What is not kept is no reason to write.
        self.is_new |= news.is_kept;
        self.lines.extend(news.line);
        self.needs_room = news.needs_room;
        self.leaves = news.leaves;
        self.phase = news.phase;
        for line in &news.refused {
            self.ctx.log(line);
        }
        if let Some(note) = news.note {
            (self.tell)(note);
        }
        self.waiting = match (&self.journal.waits_for, self.waiting.take()) {
            (Some(what), None) => Some(self.ctx.waiting_for(what)),
            (Some(_), shown) => shown,
            (None, _) => None,
        };
    }

    /// Writes what came, and where the journal goes on.
    async fn write(&mut self) -> Result<(), StepError> {
        let part = self.part;
        let mut tx = self.ctx.begin().await?;
        if self.journal.is_over {
            let report = &mut self.journal.report;
            let refused =
                environments::own_only(&mut tx, part.on.guest, &mut report.live, &mut report.archives).await?;
            for line in &refused {
                self.ctx.log(line);
            }
        }
        let report = &self.journal.report;
        deployment_log::add(&mut tx, part.deployment, &self.lines).await?;
        let progress = Advance {
            report,
            state: report.state,
            is_final: self.journal.is_over,
            journal_next: self.next,
            lines: self.journal.lines,
        };
        deployments::advance(&mut tx, part.deployment, &progress).await?;
        if self.journal.is_over {
            let reading =
                ProjectReading { live: report.live.clone(), archives: report.archives.clone(), configuration: None };
            environments::observe(&mut tx, part.on.guest, &reading).await?;
            events::deployment_ended(&mut tx, part.deployment).await?;
        }
        tx.commit().await?;
        self.lines.clear();
        self.is_new = false;
        Ok(())
    }
}
