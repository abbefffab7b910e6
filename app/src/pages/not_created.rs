//! What was asked for and could not be made.
//!
//! Nothing is left of it but the job that was undone. Where the thing would have its page stands why it is not
//! there, and the way to ask again with the form as it was; lists say the same at their top until it is dismissed.
//! A list says the newest ones; all of them have a page of their own.

use corpus_api::jobs::{GetJob, Job, JobLine, ListJobs};
use corpus_api::not_created::{Creation, DismissJob, ListNotCreated, NotCreated, NotCreatedPage};
use corpus_api::words::Limit;
use corpus_domain::{Environment, GuestId, JobKind, JobState, NodeId, ProjectName};
use leptos::prelude::*;

use super::projects::project_path;
use super::{Asked, again};
use crate::asked::{Query, asked, page_after};
use crate::caller::Caller;
use crate::components::{Fact, Tone, action_at, age, card, empty, facts, head, next_link, notice, status, stays_at};
use crate::form::{Failure, Result, sentence};
use crate::layout::Page;
use crate::to::to;

/// As many are said at the top of a list.
const FEW: usize = 3;
/// The page of all of them.
const ALL: &str = "/not-created";

/// Those that the top of a list says, of one kind of thing or of all, and one more where there are more.
pub async fn few(caller: &Caller, of: Option<Creation>) -> Result<Vec<NotCreated>> {
    few_of(caller, ListNotCreated { of, ..ListNotCreated::default() }).await
}

/// The same of the environments of a project.
pub async fn few_environments(caller: &Caller, project: &ProjectName) -> Result<Vec<NotCreated>> {
    let (of, project) = (Some(Creation::Environment), Some(project.clone()));
    few_of(caller, ListNotCreated { of, project, ..ListNotCreated::default() }).await
}

async fn few_of(caller: &Caller, asked: ListNotCreated) -> Result<Vec<NotCreated>> {
    let limit = u64::try_from(FEW + 1).ok().and_then(|limit| Limit::try_from(limit).ok());
    Ok(caller.ask(ListNotCreated { limit, ..asked }).await?.items)
}

/// Reads and shows all of them.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let page = caller.ask(asked::<ListNotCreated>(&given.query)?).await?;
    Ok(Page::new("all-not-created", "Not created", all_view(&page, &given.query)).under("Overview", "/"))
}

/// The view of plain values.
pub fn all_view(page: &NotCreatedPage, query: &Query) -> AnyView {
    let below =
        view! { <span class="quiet">"What could not be made in the last 30 days, until it is dismissed"</span> };
    let none = page.items.is_empty().then(|| {
        let text = "What could not be made, and was not dismissed, shows here with why.";
        view! { <section class="card">{empty("Nothing", text.into_any())}</section> }
    });
    let items = page.items.iter().map(|one| said(one, ALL)).collect_view();
    view! {
        {head("Not created".into_any(), below.into_any(), ().into_any())}
        {none}
        <div class="stack" id="live-notices" data-live="">{items}</div>
        {next_link(page_after(ALL, query, page.next.as_ref()))}
    }
    .into_any()
}

/// The page of a guest that is not there: why it could not be made, if that is why.
pub async fn guest(caller: &Caller, id: GuestId, missing: Failure) -> Result<Page> {
    let asked = ListJobs { guest: Some(id), kind: Some(JobKind::GuestCreate), ..ListJobs::default() };
    page(caller, asked, missing).await.map(|page| page.under("Guests", "/guests"))
}

/// The same of a node.
pub async fn node(caller: &Caller, id: NodeId, missing: Failure) -> Result<Page> {
    let asked = ListJobs { node: Some(id), kind: Some(JobKind::NodeLink), ..ListJobs::default() };
    page(caller, asked, missing).await.map(|page| page.under("Compute nodes", "/nodes"))
}

/// The same of an environment.
pub async fn environment(
    caller: &Caller,
    (project, which): (&ProjectName, Environment),
    missing: Failure,
) -> Result<Page> {
    let (project_is, kind) = (Some(project.clone()), Some(JobKind::EnvironmentSetUp));
    let asked = ListJobs { project: project_is, environment: Some(which), kind, ..ListJobs::default() };
    page(caller, asked, missing)
        .await
        .map(|page| page.under(project.as_str(), project_path(project)).under("Projects", "/projects"))
}

async fn page(caller: &Caller, asked: ListJobs, missing: Failure) -> Result<Page> {
    if missing.status != 404 {
        return Err(missing);
    }
    let made = caller.ask(ListJobs { limit: Limit::try_from(1).ok(), ..asked }).await?.items;
    let failed = made.first().filter(|job| matches!(job.state, JobState::Undone | JobState::Undoing));
    let Some(job) = failed else { return Err(missing) };
    let job = caller.ask(GetJob { job: job.id, wait: None }).await?;
    Ok(Page::new("not-created", what(&job.line), not_created_view(&job)))
}

/// The view of plain values.
pub fn not_created_view(whole: &Job) -> AnyView {
    let job = &whole.line;
    let below = view! {
        {status(tone(job), word(job))}" "<span class="quiet">{age(job.ended_at.unwrap_or(job.created_at))}</span>
    };
    let dismissed = whole.dismissed_at.is_some();
    let actions = whole.may_decide.then(|| {
        let dismiss = (!dismissed && job.state == JobState::Undone).then(|| dismiss(job, &list_of(job)));
        view! { {retry(job, "btn primary")}{dismiss} }
    });
    let why = view! { <span>{reason(job)}</span><span class="quiet">{after(job)}</span> };
    let asked = whole.asked.as_ref().map(|asked| {
        let rows: Vec<Fact> = again::told(job.kind, asked);
        card("asked", "What was asked for", ().into_any(), facts(rows))
    });
    view! {
        {head(what(job).into_any(), below.into_any(), actions.into_any())}
        <div class="stack">{notice(tone(job), word(job), why.into_any())}</div>
        <div class="cols">
            <div class="stack">{asked}</div>
            <div class="stack">{card("job", "Job", ().into_any(), facts(about(whole)))}</div>
        </div>
    }
    .into_any()
}

fn about(whole: &Job) -> Vec<Fact> {
    let job = &whole.line;
    let link = view! { <a class="link" href=format!("/jobs/{}", job.id)>{job.title.clone()}</a> };
    let rows = [
        Some(("Job", link.into_any())),
        job.by.as_ref().map(|by| ("Asked by", by.shown().into_any())),
        Some(("Asked", age(job.created_at))),
        job.ended_at.map(|at| ("Undone", age(at))),
        whole.cancel_requested_by.as_ref().map(|by| ("Cancelled by", by.shown().into_any())),
        whole.dismissed_at.map(|at| ("Dismissed", age(at))),
    ];
    rows.into_iter().flatten().collect()
}

/// The notices at the top of a list, and the way to all when there are more; `page` is the list.
pub fn notices(found: &[NotCreated], page: &str) -> AnyView {
    let more = (found.len() > FEW).then(|| {
        let all = found.first().filter(|one| found.iter().all(|other| other.job.kind == one.job.kind));
        let all =
            all.and_then(|one| creation(one.job.kind)).map_or_else(|| ALL.to_owned(), |of| format!("{ALL}?of={of}"));
        view! { <p><a class="link" href=all>"All that could not be made"</a></p> }
    });
    let items = found.iter().take(FEW).map(|one| said(one, page)).collect_view();
    view! { {items}{more} }.into_any()
}

fn said(NotCreated { job, may_decide }: &NotCreated, page: &str) -> AnyView {
    let offered = may_decide.then(|| view! { {retry(job, "btn small")}{dismiss(job, page)} });
    let more = view! {
        <span>{reason(job)}</span>
        <span class="quiet">{age(job.ended_at.unwrap_or(job.created_at))}</span>
        <a class="link" href=format!("/jobs/{}", job.id)>"Open the job"</a>
        <span class="actions">{offered}</span>
    };
    notice(tone(job), format!("{}: {}", what(job), word(job).to_lowercase()), more.into_any())
}

/// As the query of the list says it.
const fn creation(kind: JobKind) -> Option<&'static str> {
    match kind {
        JobKind::GuestCreate => Some("guest"),
        JobKind::NodeLink => Some("node"),
        JobKind::EnvironmentSetUp => Some("environment"),
        JobKind::NameAttach => Some("name"),
        _ => None,
    }
}

/// What was to be made: the title of its job without its verb.
fn what(job: &JobLine) -> String {
    let verbs = ["Create guest ", "Link node ", "Set up ", "Attach "];
    let title = verbs.iter().find_map(|verb| job.title.strip_prefix(verb));
    title.unwrap_or(&job.title).to_owned()
}

/// What became of it.
const fn after(job: &JobLine) -> &'static str {
    match job.kind {
        JobKind::EnvironmentSetUp => "What was begun is undone, and its guest is free.",
        _ => "What was begun is undone, and its name is free.",
    }
}

const fn word(job: &JobLine) -> &'static str {
    match (job.kind, job.state) {
        (_, JobState::Undoing) => "Being undone",
        (JobKind::NodeLink, _) => "Not linked",
        (JobKind::EnvironmentSetUp, _) => "Not set up",
        (JobKind::NameAttach, _) => "Not attached",
        _ => "Not created",
    }
}

/// One's own cancel is no failure.
fn tone(job: &JobLine) -> Tone {
    match job.state {
        JobState::Undoing => Tone::Busy,
        _ if job.was_cancelled() => Tone::Off,
        _ => Tone::Fail,
    }
}

fn reason(job: &JobLine) -> String {
    match (job.was_cancelled(), &job.cancelled_by, job.error.as_deref()) {
        (true, Some(by), _) => format!("Cancelled by {}.", by.shown()),
        (_, _, Some(error)) => sentence(error),
        _ => "Its job was undone.".to_owned(),
    }
}

fn list_of(job: &JobLine) -> String {
    match (job.kind, &job.project) {
        (JobKind::NodeLink, _) => "/nodes".to_owned(),
        (JobKind::NameAttach, _) => "/dns".to_owned(),
        (JobKind::EnvironmentSetUp, Some(project)) => project_path(project),
        _ => "/guests".to_owned(),
    }
}

fn retry(job: &JobLine, class: &'static str) -> AnyView {
    let (form, place) = match job.kind {
        JobKind::NodeLink => ("/nodes/link".to_owned(), ""),
        JobKind::EnvironmentSetUp => (list_of(job), "#set-up"),
        JobKind::NameAttach => (list_of(job), "#attach"),
        _ => ("/guests/new".to_owned(), ""),
    };
    let (form, label) = (format!("{form}?again={}{place}", job.id), format!("Change and retry {}", what(job)));
    view! { <a class=class href=form aria-label=label>"Change and retry"</a> }.into_any()
}

fn dismiss(job: &JobLine, page: &str) -> AnyView {
    action_at(to::<DismissJob>(&[&job.id]), stays_at(page, "dismiss"), "Dismiss", "btn small", None)
}
