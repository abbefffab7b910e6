//! Deployments: the list with its filters, and the table that other pages show.

use std::collections::BTreeMap;

use corpus_api::Cursor;
use corpus_api::deployments::{DeploymentLine, DeploymentPage, ListDeployments};
use corpus_api::words::Limit;
use corpus_domain::{DeploymentState, Environment, Trigger};
use leptos::prelude::*;

use super::deployment_paths::deployment_path;
use crate::caller::Caller;
use crate::components::{
    Field, age, commit, deployment_look, deployment_status, empty, environment, head, next_page, picks, since, took,
};
use crate::form::{FormState, Result};
use crate::layout::Page;

/// What the list is asked with, besides the place to go on from.
const ASKED: [&str; 5] = ["project", "environment", "state", "by", "limit"];

/// Reads and shows them.
pub async fn load(caller: &Caller, query: &BTreeMap<String, String>) -> Result<Page> {
    let found = match asked(query) {
        Some(asked) => caller.ask(asked).await?,
        None => DeploymentPage::default(),
    };
    Ok(Page::new("deployments", "Deployments", deployments_view(query, &found)))
}

/// The newest few, for the overview.
pub async fn latest(caller: &Caller) -> Result<Vec<DeploymentLine>> {
    let asked = ListDeployments { limit: Limit::try_from(6).ok(), ..ListDeployments::default() };
    Ok(caller.ask(asked).await?.items)
}

/// What a query asks for; none when it is of a project that can't be there, or of a name that nobody has.
/// Other words that mean nothing ask for nothing.
fn asked(query: &BTreeMap<String, String>) -> Option<ListDeployments> {
    let word = |name: &str| query.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
    Some(ListDeployments {
        project: word("project").map(str::parse).transpose().ok()?,
        environment: word("environment").and_then(|text| text.parse().ok()),
        state: word("state").and_then(|text| text.parse().ok()),
        by: word("by").map(str::parse).transpose().ok()?,
        guest: word("guest").and_then(|text| text.parse().ok()),
        cursor: word("cursor").and_then(|text| text.parse().ok()),
        limit: word("limit").and_then(|text| text.parse().ok()),
    })
}

/// The view of plain values.
pub fn deployments_view(query: &BTreeMap<String, String>, page: &DeploymentPage) -> AnyView {
    let found = &page.items;
    let below =
        view! { <span class="quiet">"Every run of the pipeline, with its phases, its log and its proofs"</span> };
    let busy = found.iter().any(|one| !one.state.is_over()).then_some("");
    let asked = query.iter().any(|(name, text)| ASKED.contains(&name.as_str()) && !text.trim().is_empty());
    let body = if found.is_empty() && (asked || query.contains_key("cursor")) {
        empty("No deployment like that", view! { <a class="link" href="/deployments">"Show all"</a> }.into_any())
    } else {
        table(found, Shown::Everywhere)
    };
    view! {
        {head("Deployments".into_any(), below.into_any(), ().into_any())}
        {filters(query, asked)}
        <section class="card" id="live-deployments" data-live="" data-busy=busy>{body}</section>
        {pages(query, page.next.as_ref())}
    }
    .into_any()
}

fn filters(query: &BTreeMap<String, String>, asked: bool) -> AnyView {
    let any = || std::iter::once((String::new(), "any".to_owned()));
    let environments = any().chain(picks(Environment::ALL.iter().map(|one| one.as_str()))).collect();
    let states = DeploymentState::ALL.iter().map(|one| (one.as_str().to_owned(), deployment_look(*one).1.to_owned()));
    let states = any().chain(states).collect();
    let given = |name: &str| query.get(name).cloned().unwrap_or_default();
    let field = |name: &'static str, label: &str| Field::new(&FormState::default(), name, label).suggest(given(name));
    let all = asked.then(|| view! { <a class="btn" href="/deployments">"Show all"</a> });
    view! {
        <form method="get" action="/deployments" class="filters" role="search" aria-label="Deployments">
            {field("project", "Project").input()}
            {field("environment", "Environment").select(environments)}
            {field("state", "State").select(states)}
            {field("by", "By").input()}
            <div class="actions"><button class="btn">"Filter"</button>{all}</div>
        </form>
    }
    .into_any()
}

fn pages(query: &BTreeMap<String, String>, next: Option<&Cursor>) -> Option<AnyView> {
    let kept = query.iter().filter(|(name, text)| ASKED.contains(&name.as_str()) && !text.is_empty());
    let kept: Vec<String> = kept.map(|(name, text)| format!("{name}={}", encoded(text))).collect();
    let path = if kept.is_empty() { "/deployments".to_owned() } else { format!("/deployments?{}", kept.join("&")) };
    next_page(&path, next)
}

/// A value as a part of a query.
pub fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Where a table of deployments stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Among those of all projects.
    Everywhere,
    /// On the page of their project.
    InProject,
}

/// Deployments, one a row.
pub fn table(found: &[DeploymentLine], shown: Shown) -> AnyView {
    if found.is_empty() {
        return empty(
            "No deployment yet",
            "Push to an environment of a project, and it shows here while it runs.".into_any(),
        );
    }
    let rows = found.iter().map(|one| row(one, shown)).collect_view();
    view! {
        <table class="rows" aria-label="Deployments">
            <thead><tr><th>"Deployment"</th><th>"Environment"</th><th>"Result"</th><th>"Commit"</th><th>"By"</th><th class="num">"When"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(one: &DeploymentLine, shown: Shown) -> AnyView {
    let name = match shown {
        Shown::Everywhere => format!("{} #{}", one.project, one.number),
        Shown::InProject => format!("#{}", one.number),
    };
    let fault = one.fault.clone().map(|text| view! { <div class="quiet reason">{text}</div> });
    let subject =
        one.subject.clone().map(|text| view! { <div class="quiet small clip" title=text.clone()>{text.clone()}</div> });
    let word = if one.state.is_over() { "took " } else { "for " };
    let took = (one.elapsed_ms.is_some() || !one.state.is_over())
        .then(|| view! { <div class="small">{word}{duration(one)}</div> });
    view! {
        <tr data-deployment=one.number.to_string()>
            <td data-label="Deployment"><a href=deployment_path(one)>{name}</a></td>
            <td data-label="Environment">{environment(one.environment)}</td>
            <td data-label="Result">{deployment_status(one.state)}{fault}</td>
            <td data-label="Commit">{one.commit.as_ref().map(commit)}{subject}</td>
            <td data-label="By">{by(one)}</td>
            <td data-label="When" class="num quiet">{age(one.ordered_at)}{took}</td>
        </tr>
    }
    .into_any()
}

fn by(one: &DeploymentLine) -> AnyView {
    let how = match one.trigger {
        Trigger::Push => None,
        Trigger::Hand => Some("by hand"),
        Trigger::Restore => Some("restore"),
        Trigger::Drill => Some("drill"),
    };
    let how = how.map(|word| view! { <div class="quiet small">{word}</div> });
    view! { {one.by.clone()}{how} }.into_any()
}

/// How long it took, or runs.
pub fn duration(one: &DeploymentLine) -> AnyView {
    match one.elapsed_ms {
        Some(ms) if one.state.is_over() => took(ms).into_any(),
        _ if one.state.is_over() => ().into_any(),
        _ => since(one.ordered_at),
    }
}
