//! A job: its steps, its log, what it waits for, and how to stop it or settle it.
//!
//! The page shows the state at load and a link to look again; in the browser the island goes
//! on from there. Of a long log it shows the end; what came before is a page of its own, which stands still.

use corpus_api::jobs::{AbandonJob, CancelJob, GetJob, Job, JobLine, JobLogLine, JobStep, ReadJobLog, RetryJob};
use corpus_api::notices::NoticeOf;
use corpus_api::words::{After, LineLimit};
use corpus_domain::{JobId, JobKind, JobState, StepState};
use leptos::prelude::*;

use super::Asked;
use super::jobs::{duration, waits_for};
use crate::caller::Caller;
use crate::components::{
    Fact, Field, Tone, action, age, card, error_summary, facts, head, job_look, job_status, notice, shown_at,
};
use crate::form::{FormState, Result, sentence};
use crate::islands::{LiveJob, LogLine};
use crate::layout::Page;
use crate::to::to;

/// Lines of the log on one page.
const LINES: usize = 500;
/// What is said of a job that can't be cancelled any more.
const NO_WAY_BACK: &str = "It can't be cancelled any more: from here there is no way back.";
/// After each line there is: the largest number that the API takes.
const END: u64 = 9_007_199_254_740_991;

/// What is shown of the log.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// Its lines, the oldest first.
    pub lines: Vec<JobLogLine>,
    /// There are lines before these.
    pub has_earlier: bool,
    /// These are not its last ones.
    pub is_earlier: bool,
}

/// Reads and shows it.
pub async fn load(caller: &Caller, id: JobId, asked: &Asked) -> Result<Page> {
    // In this order: the stream goes on after the number of the job, so no line before it may be missing.
    let job = caller.ask(GetJob { job: id, wait: None }).await?;
    caller.saw(NoticeOf::Job(id));
    let log = read(caller, &job, asked).await?;
    let title = job.line.title.clone();
    let state = job_look(&job.line).1;
    Ok(Page::new("job", title, job_view(&job, &log, &asked.form)).under("Jobs", "/jobs").in_state(Some(state)))
}

/// Reads no more of the log than is shown, and one line to know whether there are more.
async fn read(caller: &Caller, job: &Job, asked: &Asked) -> Result<Log> {
    let earlier: Option<After> = asked.query.get("before").and_then(|text| text.parse().ok());
    let end = u64::try_from(job.last_event).unwrap_or_default().saturating_add(1);
    // The number of a job that is over says nothing of what its log still took.
    let before = earlier.or_else(|| After::try_from(if job.line.state.is_over() { END } else { end }).ok());
    let limit = LineLimit::try_from(LINES as u64 + 1).ok();
    let mut lines = caller.ask(ReadJobLog { job: job.line.id, after: None, before, limit }).await?.lines;
    let has_earlier = lines.len() > LINES;
    if has_earlier {
        lines.remove(0);
    }
    Ok(Log { lines, has_earlier, is_earlier: earlier.is_some() })
}

/// The view of plain values.
pub fn job_view(whole: &Job, log: &Log, form: &FormState) -> AnyView {
    let job = &whole.line;
    let after = log.lines.last().map_or(whole.last_event, |line| line.number.max(whole.last_event));
    let (steps, lines) = (whole.steps.clone(), lines(job, log));
    let below = view! {
        <span id="live-state" data-live="" data-busy=(!job.state.is_over()).then_some("")>
            {job_status(job)}" "<span class="quiet">"asked "{age(job.created_at)}{took(job)}</span>
        </span>
    };
    let reload = (!job.state.is_over())
        .then(|| view! { <a class="btn noscript" href=format!("/jobs/{}", job.id)>"Look again"</a> });
    let actions = view! { {reload}<span class="actions" id="live-actions" data-live="">{cancel(whole)}</span> };
    view! {
        {head(job.title.clone().into_any(), below.into_any(), actions.into_any())}
        {error_summary(form)}
        <div class="stack" id="live-notices" data-live="">{waiting(whole)}{cancelling(job)}{outcome(whole)}</div>
        <div id="live-decide" data-live="">{decide(whole, form)}</div>
        <div class="cols">
            <div class="stack">
                <LiveJob id=job.id.to_string() over=job.state.is_over() || log.is_earlier after=after steps=steps>
                    {lines}
                </LiveJob>
            </div>
            <div class="stack" id="live-about" data-live="">{card("about", "About", ().into_any(), about(whole))}</div>
        </div>
    }
    .into_any()
}

/// The lines, and the ways to those that are not shown.
fn lines(job: &JobLine, log: &Log) -> AnyView {
    let page = format!("/jobs/{}", job.id);
    let first = log.lines.first().filter(|_| log.has_earlier);
    let earlier = first.map(|line| way(&format!("{page}?before={}", line.number), "Earlier lines"));
    let last = log.is_earlier.then(|| way(&page, "The last lines"));
    let lines = log.lines.iter().cloned().map(|line| view! { <LogLine line/> }).collect_view();
    view! { {earlier}{lines}{last} }.into_any()
}

fn way(address: &str, text: &'static str) -> AnyView {
    view! { <p class="nothing"><a href=format!("{address}#log-heading")>{text}</a></p> }.into_any()
}

fn took(job: &JobLine) -> Option<AnyView> {
    let word = if job.ended_at.is_some() { ", took " } else { ", runs for " };
    job.started_at
        .filter(|_| job.ended_at.is_some() || !job.state.is_over())
        .map(|_| view! { {word}{duration(job)} }.into_any())
}

fn waiting(whole: &Job) -> Option<AnyView> {
    let job = &whole.line;
    let stop = match job.state {
        _ if job.cancel_requested_at.is_some() => None,
        _ if whole.past_cancel => Some(NO_WAY_BACK),
        _ if !whole.may_decide => Some("Who may decide about it can cancel it."),
        JobState::Running if job.kind == JobKind::ProjectDestroy => Some(
            "To keep the project, cancel the job: until it begins to destroy the first guest everything is as it was.",
        ),
        JobState::Waiting => Some("To stop it, cancel the job: it has done nothing yet."),
        JobState::Running => Some("To stop it, cancel the job: what it did so far is undone."),
        _ => Some("Its undo goes on until it succeeds or is stuck."),
    };
    waits_for(job).map(|what| {
        notice(
            if job.state == JobState::Waiting { Tone::Wait } else { Tone::Warn },
            "Waits",
            view! { <span>"for "{what}</span><span class="quiet">{stop}</span> }.into_any(),
        )
    })
}

/// A cancel takes as long as what runs on the node takes to end.
fn cancelling(job: &JobLine) -> Option<AnyView> {
    let asked = job.cancel_requested_at.filter(|_| job.state == JobState::Running)?;
    let more = view! {
        <span>"asked "{age(asked)}</span>
        <span class="quiet">"What runs on the node is ended and seen to be gone, then what was done is undone."</span>
    };
    Some(notice(Tone::Busy, "Being cancelled", more.into_any()))
}

fn outcome(whole: &Job) -> Option<AnyView> {
    let job = &whole.line;
    let error = || job.error.as_deref().map(sentence);
    match job.state {
        JobState::Undone => {
            let (tone, word) = if job.was_cancelled() { (Tone::Off, "Cancelled") } else { (Tone::Fail, "Undone") };
            let why = job.fault().map(sentence);
            let by = whole.cancel_requested_by.as_ref().filter(|_| job.was_cancelled());
            let by = by.map(|by| format!("By {}.", by.shown()));
            let left = if is_in_part(whole) {
                "What it destroyed is gone. Destroy the project again: that goes on where this ended."
            } else {
                "Everything it had done was undone."
            };
            let more = view! { <span>{why}{by}</span><span class="quiet">{left}</span> };
            Some(notice(tone, word, more.into_any()))
        }
        JobState::Stuck => {
            let more = view! { <span>{error()}</span><span class="quiet">"Something may be left behind; what it works on stays locked until this is settled."</span> };
            Some(notice(Tone::Fail, "Stuck", more.into_any()))
        }
        JobState::Abandoned => {
            let comment = whole.comment.clone();
            Some(notice(Tone::Off, "Abandoned", view! { <span>{comment}</span> }.into_any()))
        }
        JobState::Undoing => Some(notice(Tone::Busy, "Being undone", view! { <span>{error()}</span> }.into_any())),
        JobState::Waiting | JobState::Running | JobState::Done => None,
    }
}

/// Whether it ended after it had begun to destroy a project.
fn is_in_part(whole: &Job) -> bool {
    let begun = |step: &JobStep| step.name == "begin" && step.state != StepState::Pending;
    whole.line.kind == JobKind::ProjectDestroy && !whole.line.was_cancelled() && whole.steps.iter().any(begun)
}

fn cancel(whole: &Job) -> Option<AnyView> {
    let job = &whole.line;
    let open = matches!(job.state, JobState::Waiting | JobState::Running);
    let asked = job.cancel_requested_at.map(|_| "Its cancel was asked for".to_owned());
    (open && whole.may_decide && !whole.past_cancel)
        .then(|| action(to::<CancelJob>(&[&job.id]), "Cancel the job", "btn danger", asked))
}

fn decide(whole: &Job, form: &FormState) -> Option<AnyView> {
    let job = &whole.line;
    if job.state != JobState::Stuck || !whole.may_decide {
        return None;
    }
    let is_left = |step: &&JobStep| step.state == StepState::UndoFailed;
    let left = whole
        .steps
        .iter()
        .filter(is_left)
        .map(|step| view! { <li><b>{step.title.clone()}</b>": "{step.undo_error.clone()}</li> })
        .collect_view();
    let (retry, abandon) = (to::<RetryJob>(&[&job.id]), to::<AbandonJob>(&[&job.id]));
    let body = view! {
        <div class="body form">
            <ul class="plain">{left}</ul>
            <div class="grid two">
                <div>{action(retry, "Try again", "btn primary", None)}<p class="hint">"Runs the undos that failed once more."</p></div>
                <form method="post" action=abandon class="form">
                    {shown_at(&format!("/jobs/{}", job.id), "")}
                    {Field::new(form, "comment", "Comment").required().hint("What is left behind, and why that is fine; it is kept with the job and in the audit.").lines(2)}
                    <div><button class="btn danger">"Abandon"</button></div>
                </form>
            </div>
        </div>
    };
    Some(card("decide", "What was left, and what to do", ().into_any(), body.into_any()))
}

const fn if_cancelled(whole: &Job) -> &'static str {
    match whole.line.kind {
        _ if whole.past_cancel => "it can't be: there is no way back any more",
        JobKind::ProjectDestroy => {
            "the project stays as it is; that can be done until it begins to destroy the first guest"
        }
        _ => "what runs on the node is ended, then what was done is undone",
    }
}

fn about(whole: &Job) -> AnyView {
    let job = &whole.line;
    let node = job.node.map(|id| view! { <a class="link" href=format!("/nodes/{id}")>"Open the node"</a> });
    let guest = job.guest.map(|id| view! { <a class="link" href=format!("/guests/{id}")>"Open the guest"</a> });
    let rows: Vec<Option<Fact>> = vec![
        Some(("Kind", view! { <code>{job.kind.as_str()}</code> }.into_any())),
        Some(("Asked", age(job.created_at))),
        job.started_at.map(|at| ("Started", age(at))),
        job.ended_at.map(|at| ("Ended", age(at))),
        job.by.as_ref().map(|by| ("Asked by", by.shown().into_any())),
        node.map(|node| ("Node", node.into_any())),
        guest.map(|guest| ("Guest", guest.into_any())),
        job.cancel_requested_at.map(|at| ("Cancel asked", age(at))),
        matches!(job.state, JobState::Waiting | JobState::Running)
            .then(|| ("If cancelled", if_cancelled(whole).into_any())),
        (whole.taken > 1).then(|| ("Servers", format!("taken {} times", whole.taken).into_any())),
        Some(("Id", view! { <code class="wrap">{job.id.to_string()}</code> }.into_any())),
    ];
    facts(rows.into_iter().flatten().collect())
}
