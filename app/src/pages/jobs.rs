//! Jobs: the list, and the parts of it that other pages show.

use corpus_api::jobs::{JobLine, JobPage, ListJobs};
use corpus_domain::{GuestId, JobKind, JobState, NodeId, ViewedList};
use leptos::prelude::*;

use super::Asked;
use crate::age::took;
use crate::asked::{Listing, Query, address, page_after};
use crate::caller::Caller;
use crate::components::{
    Field, Filters, Tone, age, any_of, clock, empty, head, job_look, job_status, next_link, notice, since,
};
use crate::form::Result;
use crate::layout::Page;

/// The states of jobs that want attention.
pub const OPEN: [JobState; 4] = [JobState::Waiting, JobState::Running, JobState::Undoing, JobState::Stuck];

/// Reads and shows them.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let query = spelled_out(given.query.clone());
    let (page, listing) = Listing::ask::<ListJobs>(caller, ViewedList::Jobs, query, &given.form).await?;
    Ok(Page { status: listing.status(), ..Page::new("jobs", "Jobs", jobs_view(&page, &listing)) })
}

/// The query with the states that the words of the first tabs stand for.
fn spelled_out(mut query: Query) -> Query {
    match query.get("state").map(String::as_str) {
        Some("open") => query.insert("state".to_owned(), OPEN.map(JobState::as_str).join(",")),
        Some("all") => query.remove("state"),
        _ => None,
    };
    query
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
pub fn jobs_view(page: &JobPage, listing: &Listing) -> AnyView {
    let jobs = &page.items;
    let chosen = listing.query.get("state").map_or("", String::as_str);
    let open = OPEN.map(JobState::as_str).join(",");
    let tabs = [("", "all", "All"), (open.as_str(), "open", "Open")].into_iter().chain(
        JobState::ALL.iter().map(|state| (state.as_str(), state.as_str(), crate::looks::look(state.as_str()).1)),
    );
    let tabs = tabs
        .map(|(state, word, title)| {
            let page = address("/jobs", &listing.query, Some(("state", word)));
            view! { <a href=page aria-current=(state == chosen).then_some("page")>{title}</a> }
        })
        .collect_view();
    let busy = jobs.iter().any(|job| !job.state.is_over()).then_some("");
    let below =
        view! { <span class="quiet">"Every change that takes longer than a moment, with its steps and its log"</span> };
    let nothing = match (listing.is_filtered(&["state"]), chosen) {
        (true, _) => "No job matches",
        (false, "") => "No job yet",
        (false, _) => "No job in this state",
    };
    view! {
        {head("Jobs".into_any(), below.into_any(), ().into_any())}
        <nav class="tabs" aria-label="State">{tabs}</nav>
        {filters(listing)}
        <section class="card" id="live-jobs" data-live="" data-busy=busy>{table(jobs, nothing)}</section>
        {next_link(page_after("/jobs", &listing.query, page.next.as_ref()))}
    }
    .into_any()
}

fn filters(listing: &Listing) -> AnyView {
    let form = &listing.filter;
    let kinds = JobKind::ALL.iter().map(|kind| (kind.to_string(), kind.as_str().replace('_', " ")));
    let fields = vec![
        Field::new(form, "q", "About").input(),
        Field::new(form, "kind", "Kind").select(any_of(kinds)),
        Field::new(form, "project", "Of project").input(),
        Field::new(form, "by", "Asked by").input(),
    ];
    let hidden = &["node", "guest", "job"];
    let orders: &[_] = &[("newest", "Newest first"), ("oldest", "Oldest first"), ("longest", "Longest first")];
    let (list, beside) = (ViewedList::Jobs, &["state", "sort"]);
    let filters = Filters { list, label: "Jobs", fields, hidden, beside, orders: Some(orders) };
    filters.view(listing)
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
            <td data-label="Job" class="wrap"><a href=format!("/jobs/{}", job.id)>{job.title.clone()}</a></td>
            <td data-label="State">{job_status(job)}</td>
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
                    <div><a class="strong" href=format!("/jobs/{}", job.id)>{job.title.clone()}</a><div class="quiet">{job_status(job)}{waits_for(job).map(|what| view! { {waits(job)}{what} })}</div></div>
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
        JobState::Undone if job.was_cancelled() => Tone::Off,
        JobState::Stuck | JobState::Undone => Tone::Fail,
        JobState::Waiting => Tone::Wait,
        _ => Tone::Busy,
    };
    let word = job_look(job).1;
    let error = job.fault().map(str::to_owned).map(|error| view! { <span class="quiet">{error}</span> });
    let by = job.cancelled_by.as_ref().filter(|_| job.was_cancelled()).map(|by| format!(" by {}", by.shown()));
    let waits =
        waits_for(job).map(|what| view! { <span class="quiet">{waits(job).trim_start_matches(", ")}{what}</span> });
    let more = view! {
        {error}{waits}
        <a class="link" href=format!("/jobs/{}", job.id)>"Follow the job"</a>
    };
    notice(tone, format!("{}: {}{}", job.title, word.to_lowercase(), by.unwrap_or_default()), more.into_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tab_keeps_the_filters_and_an_open_job_is_in_one_of_four_states() {
        let query = |pairs: &[(&str, &str)]| -> Query {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let open = spelled_out(query(&[("state", "open"), ("q", "www")]));
        let asked: ListJobs = crate::asked::asked(&open).unwrap();
        assert_eq!(asked.state.to_vec(), OPEN);
        let page = Owner::new().with(|| jobs_view(&JobPage::default(), &Listing::of(open)).to_html());
        assert!(page.contains("href=\"/jobs?q=www&amp;state=stuck\""), "{page}");
        assert!(page.contains("href=\"/jobs?q=www&amp;state=open\" aria-current=\"page\""), "{page}");
        assert!(page.contains("No job matches") && page.contains("Show all"), "{page}");
        let all = spelled_out(query(&[("state", "all")]));
        assert_eq!(all, Query::new());
        let page = Owner::new().with(|| jobs_view(&JobPage::default(), &Listing::of(all)).to_html());
        assert!(page.contains("No job yet") && !page.contains("Show all"), "{page}");
    }
}
