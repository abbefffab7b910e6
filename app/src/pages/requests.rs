//! Requests to the operators: what waits for them first, then what became of the others.

use corpus_api::Principal;
use corpus_api::requests::rules::CreateRequestRule;
use corpus_api::requests::{ListRequests, RequestLine, RequestPage};
use corpus_domain::{RequestOf, RequestState};
use leptos::prelude::*;

use super::Asked;
use super::projects::project_path;
use crate::asked::{Query, asked, page_after, typed};
use crate::caller::Caller;
use crate::components::{Field, Tone, age, any_of, empty, head, next_link, picks, status};
use crate::form::Result;
use crate::layout::Page;

/// Its address.
pub const PATH: &str = "/requests";

/// Reads and shows them.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let page = caller.ask(asked::<ListRequests>(&given.query)?).await?;
    Ok(Page::new("requests", "Requests", requests_view(&caller.who, &page, &given.query)))
}

/// The view of plain values.
pub fn requests_view(who: &Principal, page: &RequestPage, query: &Query) -> AnyView {
    let decides = who.can::<CreateRequestRule>(None);
    let below = if decides {
        "What members ask for that they may not do alone; the open ones first"
    } else {
        "What you asked the operators for, and what was asked for projects that you maintain"
    };
    let below = view! { <span class="quiet">{below}</span> };
    let rules = decides.then(|| view! { <a class="btn" href="/requests/rules">"Rules"</a> });
    let filtered =
        ["state", "operation", "asker"].iter().any(|name| query.get(*name).is_some_and(|text| !text.trim().is_empty()));
    let body = match (page.items.is_empty(), filtered) {
        (false, _) => table(&page.items),
        (true, true) => empty("No request like that", view! { <a class="link" href=PATH>"Show all"</a> }.into_any()),
        (true, false) if decides => {
            empty("Nobody asked for anything yet", "What members ask for stands here.".into_any())
        }
        (true, false) => empty("You asked for nothing yet", ways()),
    };
    view! {
        {head("Requests".into_any(), below.into_any(), rules.into_any())}
        {filters(query, filtered, decides)}
        <section class="card" id="live-requests" data-live="">{body}</section>
        {next_link(page_after(PATH, query, page.next.as_ref()))}
    }
    .into_any()
}

/// Where one asks.
fn ways() -> AnyView {
    view! {
        "Ask for "<a class="link" href="/projects/new">"a project"</a>", "
        <a class="link" href="/guests/new?ask=yes">"a guest"</a>" or "
        <a class="link" href="/nodes/link">"a compute node"</a>"."
    }
    .into_any()
}

fn filters(query: &Query, filtered: bool, decides: bool) -> AnyView {
    let form = typed(query);
    let states = any_of(picks(RequestState::ALL.iter().map(|one| one.as_str())));
    let kinds = any_of(RequestOf::ALL.iter().map(|one| (one.as_str().to_owned(), kind(*one).to_owned())));
    let all = filtered.then(|| view! { <a class="btn" href=PATH>"Show all"</a> });
    view! {
        <form method="get" action=PATH class="filters" role="search" aria-label="Requests">
            {Field::new(&form, "state", "State").select(states)}
            {Field::new(&form, "operation", "For").select(kinds)}
            {decides.then(|| Field::new(&form, "asker", "Asked by").hint("The login name").input())}
            <div class="actions"><button class="btn">"Filter"</button>{all}</div>
        </form>
    }
    .into_any()
}

/// What is asked for, in a word.
pub const fn kind(of: RequestOf) -> &'static str {
    match of {
        RequestOf::CreateProject => "a project",
        RequestOf::LinkNode => "linking a node",
        RequestOf::InitializeNode => "initializing a node",
        RequestOf::RequestGuest => "a guest",
        RequestOf::AttachName => "a DNS name",
    }
}

/// How far a request is.
pub fn state_status(state: RequestState) -> AnyView {
    match state {
        RequestState::Open => status(Tone::Wait, "Open"),
        RequestState::Approved => status(Tone::Ok, "Approved"),
        RequestState::Refused => status(Tone::Fail, "Refused"),
        RequestState::Withdrawn => status(Tone::Off, "Withdrawn"),
        RequestState::Lapsed => status(Tone::Off, "Lapsed"),
    }
}

/// Who decided, or what.
pub fn decided_by(line: &RequestLine) -> Option<String> {
    match (&line.decided_by, &line.rule) {
        (Some(login), _) => Some(format!("by {login}")),
        (None, Some(rule)) => Some(format!("by the rule \u{201c}{rule}\u{201d}")),
        (None, None) => None,
    }
}

fn table(requests: &[RequestLine]) -> AnyView {
    let rows = requests.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Requests">
            <thead><tr><th>"What"</th><th>"State"</th><th>"Asked by"</th><th>"Project"</th><th>"Asked"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(line: &RequestLine) -> AnyView {
    let project =
        line.project.as_ref().map(|project| view! { <a href=project_path(project)>{project.to_string()}</a> });
    view! {
        <tr>
            <td data-label="What" class="wrap"><a href=format!("{PATH}/{}", line.id)>{line.title.clone()}</a></td>
            <td data-label="State">{state_status(line.state)}" "<span class="quiet small">{decided_by(line)}</span></td>
            <td data-label="Asked by">{line.asker.clone()}</td>
            <td data-label="Project">{project}</td>
            <td data-label="Asked" class="quiet">{age(line.created_at)}</td>
        </tr>
    }
    .into_any()
}
