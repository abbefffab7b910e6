//! A job: its steps, its log, what it waits for, and how to stop it or settle it.
//!
//! The page shows the state at load and a link to look again; in the browser the island goes
//! on from there.

use corpus_controller::authz::Principal;
use corpus_controller::jobs::{self, JobDetail, JobRow, StepRow};
use corpus_controller::{Controller, Result, may_decide};
use corpus_domain::{JobId, JobState, StepState};
use leptos::prelude::*;

use super::jobs::{duration, waits_for};
use crate::components::{Fact, Field, Tone, action, age, card, error_summary, facts, head, job_status, notice};
use crate::form::{FormState, sentence};
use crate::islands::{LiveJob, LogLine};
use crate::layout::Page;
use crate::live::{Line, Step};

/// How much of the log is shown at once.
const LINES: i64 = 5_000;

/// Reads and shows it.
pub async fn load(controller: &Controller, principal: &Principal, id: JobId, form: &FormState) -> Result<Page> {
    // In this order: the stream goes on after the number of the job, so no line before it may be missing.
    let detail = controller.job(principal, id).await?;
    let log = controller.job_log(principal, id, 0, LINES).await?;
    let title = detail.job.title.clone();
    Ok(Page::new("job", title, job_view(principal, &detail, &log, form)).under("Jobs", "/jobs"))
}

/// The view of plain values.
pub fn job_view(principal: &Principal, detail: &JobDetail, log: &[jobs::LogLine], form: &FormState) -> AnyView {
    let job = &detail.job;
    let known: Vec<Line> =
        log.iter().filter(|line| line.seq <= job.feed_seq || job.state.is_over()).map(line).collect();
    let after = known.last().map_or(job.feed_seq, |line| line.seq.max(job.feed_seq));
    let steps: Vec<Step> = detail.steps.iter().map(step).collect();
    let below = view! {
        <span id="live-state" data-live="" data-busy=(!job.state.is_over()).then_some("")>
            {job_status(job.state)}" "<span class="quiet">"asked "{age(job.created_at)}{took(job)}</span>
        </span>
    };
    let reload = (!job.state.is_over())
        .then(|| view! { <a class="btn noscript" href=format!("/jobs/{}", job.id)>"Look again"</a> });
    let actions =
        view! { {reload}<span class="actions" id="live-actions" data-live="">{cancel(principal, job)}</span> };
    view! {
        {head(job.title.clone().into_any(), below.into_any(), actions.into_any())}
        {error_summary(form)}
        <div class="stack" id="live-notices" data-live="">{waiting(principal, job)}{cancelling(job)}{outcome(job)}</div>
        <div id="live-decide" data-live="">{decide(principal, job, &detail.steps, form)}</div>
        <div class="cols">
            <div class="stack">
                <LiveJob id=job.id.to_string() over=job.state.is_over() after=after steps=steps>
                    {known.into_iter().map(|line| view! { <LogLine line/> }).collect_view()}
                </LiveJob>
            </div>
            <div class="stack" id="live-about" data-live="">{card("about", "About", ().into_any(), about(job))}</div>
        </div>
    }
    .into_any()
}

fn time(at: corpus_controller::views::Time) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

fn line(line: &jobs::LogLine) -> Line {
    let stream = match line.stream {
        corpus_protocol::Stream::Out => "out",
        corpus_protocol::Stream::Err => "err",
        corpus_protocol::Stream::Note => "note",
    };
    Line { seq: line.seq, at: time(line.at), stream: stream.to_owned(), text: line.text.clone() }
}

fn step(step: &StepRow) -> Step {
    Step {
        index: step.index,
        name: step.name.clone(),
        title: step.title.clone(),
        state: step.state.as_str().to_owned(),
        started_at: step.started_at.map(time),
        ended_at: step.ended_at.map(time),
        attempts: step.attempts,
        error: step.error.clone(),
        undo_error: step.undo_error.clone(),
        progress_done: step.progress_done,
        progress_total: step.progress_total,
        alive_at: step.alive_at.map(time),
    }
}

fn took(job: &JobRow) -> Option<AnyView> {
    let word = if job.ended_at.is_some() { ", took " } else { ", runs for " };
    job.started_at
        .filter(|_| job.ended_at.is_some() || !job.state.is_over())
        .map(|_| view! { {word}{duration(job)} }.into_any())
}

fn waiting(principal: &Principal, job: &JobRow) -> Option<AnyView> {
    let stop = match job.state {
        _ if job.cancel_requested_at.is_some() => None,
        _ if !may_decide(principal, job) => Some("Who may decide about it can cancel it."),
        JobState::Waiting => Some("To stop it, cancel the job: it has done nothing yet."),
        JobState::Running => Some("To stop it, cancel the job: what it did so far is undone."),
        _ => Some("Its undo goes on until it succeeds or is stuck."),
    };
    waits_for(job).map(|what| {
        notice(Tone::Warn, "Waits", view! { <span>"for "{what}</span><span class="quiet">{stop}</span> }.into_any())
    })
}

/// A cancel takes as long as what runs on the node takes to end.
fn cancelling(job: &JobRow) -> Option<AnyView> {
    let asked = job.cancel_requested_at.filter(|_| job.state == JobState::Running)?;
    let more = view! {
        <span>"asked "{age(asked)}</span>
        <span class="quiet">"What runs on the node is ended and seen to be gone, then what was done is undone."</span>
    };
    Some(notice(Tone::Busy, "Being cancelled", more.into_any()))
}

fn outcome(job: &JobRow) -> Option<AnyView> {
    let error = || job.error.as_deref().map(sentence);
    match job.state {
        JobState::Undone => {
            let more = view! { <span>{error()}</span><span class="quiet">"Everything it had done was undone."</span> };
            Some(notice(Tone::Fail, "Undone", more.into_any()))
        }
        JobState::Stuck => {
            let more = view! { <span>{error()}</span><span class="quiet">"Something may be left behind; what it works on stays locked until this is settled."</span> };
            Some(notice(Tone::Fail, "Stuck", more.into_any()))
        }
        JobState::Abandoned => {
            let comment = job.comment.clone();
            Some(notice(Tone::Off, "Abandoned", view! { <span>{comment}</span> }.into_any()))
        }
        JobState::Undoing => Some(notice(Tone::Busy, "Being undone", view! { <span>{error()}</span> }.into_any())),
        JobState::Waiting | JobState::Running | JobState::Done => None,
    }
}

fn cancel(principal: &Principal, job: &JobRow) -> Option<AnyView> {
    let open = matches!(job.state, JobState::Waiting | JobState::Running);
    let asked = job.cancel_requested_at.map(|_| "Its cancel was asked for".to_owned());
    (open && may_decide(principal, job))
        .then(|| action(format!("/jobs/{}/cancel", job.id), "Cancel the job", "btn danger", asked))
}

fn decide(principal: &Principal, job: &JobRow, steps: &[StepRow], form: &FormState) -> Option<AnyView> {
    if job.state != JobState::Stuck || !may_decide(principal, job) {
        return None;
    }
    let left = steps
        .iter()
        .filter(|step| step.state == StepState::UndoFailed)
        .map(|step| view! { <li><b>{step.title.clone()}</b>": "{step.undo_error.clone()}</li> })
        .collect_view();
    let body = view! {
        <div class="body form">
            <ul class="plain">{left}</ul>
            <div class="grid two">
                <div>{action(format!("/jobs/{}/retry", job.id), "Try again", "btn primary", None)}<p class="hint">"Runs the undos that failed once more."</p></div>
                <form method="post" action=format!("/jobs/{}/abandon", job.id) class="form">
                    {Field::new(form, "comment", "Comment").required().hint("What is left behind, and why that is fine; it is kept with the job and in the audit.").lines(2)}
                    <div><button class="btn danger">"Abandon"</button></div>
                </form>
            </div>
        </div>
    };
    Some(card("decide", "What was left, and what to do", ().into_any(), body.into_any()))
}

fn about(job: &JobRow) -> AnyView {
    let node = job.node_id.map(|id| view! { <a class="link" href=format!("/nodes/{id}")>"Open the node"</a> });
    let guest = job.guest_id.map(|id| view! { <a class="link" href=format!("/guests/{id}")>"Open the guest"</a> });
    let rows: Vec<Option<Fact>> = vec![
        Some(("Kind", view! { <code>{job.kind.as_str()}</code> }.into_any())),
        Some(("Asked", age(job.created_at))),
        job.started_at.map(|at| ("Started", age(at))),
        job.ended_at.map(|at| ("Ended", age(at))),
        node.map(|node| ("Node", node.into_any())),
        guest.map(|guest| ("Guest", guest.into_any())),
        job.cancel_requested_at.map(|at| ("Cancel asked", age(at))),
        matches!(job.state, JobState::Waiting | JobState::Running)
            .then(|| ("If cancelled", "what runs on the node is ended, then what was done is undone".into_any())),
        (job.generation > 1).then(|| ("Servers", format!("taken {} times", job.generation).into_any())),
        Some(("Id", view! { <code class="wrap">{job.id.to_string()}</code> }.into_any())),
    ];
    facts(rows.into_iter().flatten().collect())
}
