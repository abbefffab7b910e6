//! Applying all states of a guest, or trying what that would change.
//!
//! States do what they do, so there is no undo: what they came to is kept, state by state, and the job fails where one did.

use std::time::Duration;

use corpus_domain::{GuestId, JobKind, Mode, NodeId};
use corpus_protocol::{Answer, Request, STATES_LIMIT_S, SaltBundle, SaltState, StatesRun};
use serde::{Deserialize, Serialize};

use super::guest_calls::{LAYOUT, ask_inside, bring_salt_inside};
use super::guest_mode::plan;
use crate::jobs::{Job, JobParams, Lock, NewJob, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guest_states;
use crate::store::guests::GuestRow;

/// How long all of them may take.
pub(super) const STATES: Duration = Duration::from_secs(STATES_LIMIT_S as u64);
/// So many of what failed or changed are told in the job's log.
const TOLD: usize = 100;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    node: NodeId,
    mode: Mode,
    test: bool,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestStates;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest that runs.
pub fn job(guest: &GuestRow, test: bool) -> NewJob<Params> {
    let params = Params { guest: guest.id, node: guest.node_id, mode: guest.mode, test };
    let what = if test { "Try" } else { "Apply" };
    NewJob::new(format!("{what} the states of guest {}", guest.name), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("salt", "Bring Salt", salt).limit(LAYOUT * 2))
        .step(Step::new("states", "Have the guest see to its states", states).limit(STATES + LAYOUT))
}

async fn salt(ctx: Ctx) -> Result<SaltBundle, StepError> {
    bring_salt_inside(&ctx, ctx.params().guest).await
}

async fn states(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, mode, test, .. } = *ctx.params();
    let run = apply(&ctx, guest, (mode, test), ctx.output("salt")?).await?;
    match run.failed {
        0 => Ok(()),
        failed => Err(StepError::permanent(format!("{failed} of {} states failed", run.ran))),
    }
}

/// Has the guest apply its states, and keeps what became of them.
pub(super) async fn apply<P: JobParams>(
    ctx: &StepContext<Services, P>,
    guest: GuestId,
    (mode, test): (Mode, bool),
    salt: SaltBundle,
) -> Result<StatesRun, StepError> {
    let plan = Box::new(plan(ctx, guest, mode, salt).await?);
    let request = Request::ApplyStates { plan, test, limit_s: STATES_LIMIT_S };
    let Answer::States(run) = ask_inside(ctx, guest, request, STATES + LAYOUT / 2).await? else {
        return Err(StepError::permanent("the guest told something else than its states"));
    };
    let mut tx = ctx.begin().await?;
    guest_states::keep(&mut tx, guest, (mode, test), &run).await?;
    tx.commit().await?;
    told_of(ctx, &run, test);
    Ok(run)
}

/// What failed and what changed is in the job's log.
pub(super) fn told_of<P: JobParams>(ctx: &StepContext<Services, P>, run: &StatesRun, test: bool) {
    for state in run.states.iter().filter(|state| !state.ok || state.changed).take(TOLD) {
        ctx.log(told(state, test));
    }
    let StatesRun { ran, failed, changed, .. } = run;
    ctx.log(format!("{ran} states: {failed} failed, {changed} {}", if test { "would change" } else { "changed" }));
}

fn told(state: &SaltState, test: bool) -> String {
    let what = match (state.ok, test) {
        (false, _) => "failed",
        (true, true) => "would change",
        (true, false) => "changed",
    };
    let said = state.comment.lines().next().unwrap_or_default();
    format!("{what}: {} {} ({}) {said}", state.function, state.name, state.id)
}
