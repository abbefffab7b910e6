//! Jobs: the list, and the parts of it that other pages show.

use std::collections::BTreeMap;

use corpus_api::jobs::{JobLine, JobPage, ListJobs};
use corpus_domain::{GuestId, JobState, NodeId};
use leptos::prelude::*;

use crate::age::took;
use crate::caller::Caller;
use crate::components::{Tone, age, clock, empty, head, job_status, next_page, notice, since};
use crate::form::Result;
use crate::layout::Page;

/// The states of jobs that want attention.
pub const OPEN: [JobState; 4] = [JobState::Waiting, JobState::Running, JobState::Undoing, JobState::Stuck];

/// Reads and shows them.
pub async fn load(caller: &Caller, query: &BTreeMap<String, String>) -> Result<Page> {
    let chosen = query.get("state").map_or("all", String::as_str);
    let states = match chosen {
        "open" => OPEN.to_vec(),
        word => word.parse().map(|state| vec![state]).unwrap_or_default(),
    };
    let cursor = query.get("cursor").map(|text| text.parse()).transpose().unwrap_or_default();
    let jobs = caller.ask(ListJobs { state: states.try_into().unwrap_or_default(), cursor, ..ListJobs::default() });
    Ok(Page::new("jobs", "Jobs", jobs_view(chosen, &jobs.await?)))
}

async fn read(caller: &Caller, asked: ListJobs) -> Result<Vec<JobLine>> {
    Ok(caller.ask(asked).await?.items)
}

/// The jobs of a node.
pub async fn node_jobs(caller: &Caller, id: NodeId) -> Result<Vec<JobLine>> {
    read(caller, ListJobs { node: Some(id), ..ListJobs::default() }).await
}

/// The jobs of a guest.
pub async fn guest_jobs(caller: &Caller, id: GuestId) -> Result<Vec<JobLine>> {
    read(caller, ListJobs { guest: Some(id), ..ListJobs::default() }).await
}

/// The view of plain values.
pub fn jobs_view(chosen: &str, page: &JobPage) -> AnyView {
    let jobs = &page.items;
    let tabs = [("all", "All"), ("open", "Open")]
        .into_iter()
        .chain(JobState::ALL.iter().map(|state| (state.as_str(), crate::looks::look(state.as_str()).1)));
    let tabs = tabs
        .map(|(word, title)| view! { <a href=format!("/jobs?state={word}") aria-current=(word == chosen).then_some("page")>{title}</a> })
        .collect_view();
    let busy = jobs.iter().any(|job| !job.state.is_over()).then_some("");
    let below =
        view! { <span class="quiet">"Every change that takes longer than a moment, with its steps and its log"</span> };
    let nothing = if chosen == "all" { "No job yet" } else { "No job in this state" };
    view! {
        {head("Jobs".into_any(), below.into_any(), ().into_any())}
        <nav class="tabs" aria-label="State">{tabs}</nav>
        <section class="card" id="live-jobs" data-live="" data-busy=busy>{table(jobs, nothing)}</section>
        {next_page(&format!("/jobs?state={chosen}"), page.next.as_ref())}
    }
    .into_any()
}

/// Jobs, one a row.
pub fn table(jobs: &[JobLine], nothing: &'static str) -> AnyView {
    if jobs.is_empty() {
        return empty(nothing, "What you start shows here: linking, initializing, guests, DNS names.".into_any());
    }
    let rows = jobs.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Jobs">
            <thead><tr><th>"Job"</th><th>"State"</th><th>"Waits for"</th><th>"Asked"</th><th class="num">"Took"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(job: &JobLine) -> AnyView {
    view! {
        <tr>
            <td data-label="Job"><a href=format!("/jobs/{}", job.id)>{job.title.clone()}</a></td>
            <td data-label="State">{job_status(job.state)}</td>
            <td data-label="Waits for" class="wrap quiet">{waits_for(job)}</td>
            <td data-label="Asked" class="quiet">{age(job.created_at)}</td>
            <td data-label="Took" class="num quiet">{duration(job)}</td>
        </tr>
    }
    .into_any()
}

/// What a job waits for: until which try, since when, and whether its node answers at all.
pub fn waits_for(job: &JobLine) -> Option<AnyView> {
    let what = job.waiting_for.clone().filter(|_| !job.state.is_over())?;
    let blocker = job.blocked_by.map(|id| view! { " "<a class="link" href=format!("/jobs/{id}")>"Open that job"</a> });
    let next = job.retry_at.map(|at| view! { ", next try at "{clock(at)} });
    let unreachable = job.node_unreachable_since.map(|at| view! { ", its node is unreachable for "{since(at)} });
    let since = job.waiting_since.map(|at| view! { ", "{since(at)}" so far" });
    Some(view! { {what}{next}{since}{unreachable}{blocker} }.into_any())
}

/// What stands between the word of its state and what it waits for.
const fn waits(job: &JobLine) -> &'static str {
    if matches!(job.state, JobState::Waiting) { " for " } else { ", waits for " }
}

/// How long it took, or runs.
pub fn duration(job: &JobLine) -> AnyView {
    match (job.started_at, job.ended_at) {
        (Some(start), Some(end)) => took((end - start).num_milliseconds()).into_any(),
        (Some(start), None) => since(start),
        _ => ().into_any(),
    }
}

/// A short list: what, how far, since when.
pub fn list(jobs: &[JobLine], nothing: &'static str) -> AnyView {
    if jobs.is_empty() {
        return view! { <p class="body quiet">{nothing}</p> }.into_any();
    }
    let items = jobs
        .iter()
        .take(12)
        .map(|job| {
            let when = if job.state.is_over() { age(job.ended_at.unwrap_or(job.created_at)) } else { duration(job) };
            view! {
                <li>
                    <div><a class="strong" href=format!("/jobs/{}", job.id)>{job.title.clone()}</a><div class="quiet">{job_status(job.state)}{waits_for(job).map(|what| view! { {waits(job)}{what} })}</div></div>
                    <span class="quiet nowrap">{when}</span>
                </li>
            }
        })
        .collect_view();
    view! { <ul class="items">{items}</ul> }.into_any()
}

/// What was done with a thing.
pub fn history(jobs: &[JobLine]) -> AnyView {
    list(jobs, "Nothing was done with it yet")
}

/// The job that is on a thing now, for the top of its page; else why the last one failed.
pub fn progress(jobs: &[JobLine]) -> Option<AnyView> {
    let open = |job: &&JobLine| !job.state.is_over() || job.state == JobState::Stuck;
    let notices: Vec<AnyView> = jobs.iter().filter(open).map(job_notice).collect();
    let last = jobs.first().filter(|job| job.state == JobState::Undone).map(job_notice);
    (!notices.is_empty() || last.is_some()).then(|| view! { {notices}{last} }.into_any())
}

fn job_notice(job: &JobLine) -> AnyView {
    let tone = match job.state {
        JobState::Stuck | JobState::Undone => Tone::Fail,
        JobState::Waiting => Tone::Warn,
        _ => Tone::Busy,
    };
    let word = crate::looks::look(job.state.as_str()).1;
    let error =
        job.error.clone().filter(|_| tone == Tone::Fail).map(|error| view! { <span class="quiet">{error}</span> });
    let waits =
        waits_for(job).map(|what| view! { <span class="quiet">{waits(job).trim_start_matches(", ")}{what}</span> });
    let more = view! {
        {error}{waits}
        <a class="link" href=format!("/jobs/{}", job.id)>"Follow the job"</a>
    };
    notice(tone, format!("{}: {}", job.title, word.to_lowercase()), more.into_any())
}
