//! Deployments: the list with its filters, and the table that other pages show.

use std::collections::BTreeMap;

use corpus_controller::authz::Principal;
use corpus_controller::project_views::{DeploymentFilter, DeploymentSummary};
use corpus_controller::views::ProjectView;
use corpus_controller::{Controller, DEPLOYMENTS_PAGE, Result};
use corpus_domain::{DeploymentState, Environment, Trigger};
use leptos::prelude::*;

use super::deployment_paths::deployment_path;
use crate::components::{
    Field, age, commit, deployment_look, deployment_status, empty, environment, head, picks, since, took,
};
use crate::form::FormState;
use crate::layout::Page;

/// What the list is asked with, besides the place to go on from.
const ASKED: [&str; 4] = ["project", "environment", "state", "by"];

/// Reads and shows them.
pub async fn load(controller: &Controller, principal: &Principal, query: &BTreeMap<String, String>) -> Result<Page> {
    let projects = controller.projects(principal).await?;
    let found = match filter_of(query, &projects) {
        Some(filter) => controller.deployments(principal, &filter).await?,
        None => Vec::new(),
    };
    let more = i64::try_from(found.len()).unwrap_or(i64::MAX) >= DEPLOYMENTS_PAGE;
    Ok(Page::new("deployments", "Deployments", deployments_view(&projects, query, &found, more)))
}

/// The newest few, for the overview.
pub async fn latest(controller: &Controller, principal: &Principal) -> Result<Vec<DeploymentSummary>> {
    let mut found = controller.deployments(principal, &DeploymentFilter::default()).await?;
    found.truncate(6);
    Ok(found)
}

/// What a query asks for; none when it is of a project that is not there to see. Other words
/// that mean nothing ask for nothing.
fn filter_of(query: &BTreeMap<String, String>, projects: &[ProjectView]) -> Option<DeploymentFilter> {
    let word = |name: &str| query.get(name).map(|text| text.trim()).filter(|text| !text.is_empty());
    let id_of = |name: &str| projects.iter().find(|one| one.name.as_str() == name).map(|one| one.id);
    let project = match word("project") {
        Some(name) => Some(id_of(name)?),
        None => None,
    };
    Some(DeploymentFilter {
        project,
        environment: word("environment").and_then(|text| text.parse().ok()),
        state: word("state").and_then(|text| text.parse().ok()),
        by: word("by").map(str::to_owned),
        before: word("before").and_then(|text| text.parse().ok()),
    })
}

/// The view of plain values.
pub fn deployments_view(
    projects: &[ProjectView],
    query: &BTreeMap<String, String>,
    found: &[DeploymentSummary],
    more: bool,
) -> AnyView {
    let below =
        view! { <span class="quiet">"Every run of the pipeline, with its phases, its log and its proofs"</span> };
    let busy = found.iter().any(|one| !one.state.is_over()).then_some("");
    let asked = query.iter().any(|(name, text)| ASKED.contains(&name.as_str()) && !text.trim().is_empty());
    let body = if found.is_empty() && (asked || query.contains_key("before")) {
        empty("No deployment like that", view! { <a class="link" href="/deployments">"Show all"</a> }.into_any())
    } else {
        table(found, Shown::Everywhere)
    };
    view! {
        {head("Deployments".into_any(), below.into_any(), ().into_any())}
        {filters(projects, query, asked)}
        <section class="card" id="live-deployments" data-live="" data-busy=busy>{body}</section>
        {pages(query, found, more)}
    }
    .into_any()
}

fn filters(projects: &[ProjectView], query: &BTreeMap<String, String>, asked: bool) -> AnyView {
    let any = || std::iter::once((String::new(), "any".to_owned()));
    let names = any().chain(picks(projects.iter().map(|one| one.name.as_str()))).collect();
    let environments = any().chain(picks(Environment::ALL.iter().map(|one| one.as_str()))).collect();
    let states = DeploymentState::ALL.iter().map(|one| (one.as_str().to_owned(), deployment_look(*one).1.to_owned()));
    let states = any().chain(states).collect();
    let given = |name: &str| query.get(name).cloned().unwrap_or_default();
    let field = |name: &'static str, label: &str| Field::new(&FormState::default(), name, label).suggest(given(name));
    let all = asked.then(|| view! { <a class="btn" href="/deployments">"Show all"</a> });
    view! {
        <form method="get" action="/deployments" class="filters" role="search" aria-label="Deployments">
            {field("project", "Project").select(names)}
            {field("environment", "Environment").select(environments)}
            {field("state", "State").select(states)}
            {field("by", "By").input()}
            <div class="actions"><button class="btn">"Filter"</button>{all}</div>
        </form>
    }
    .into_any()
}

fn pages(query: &BTreeMap<String, String>, found: &[DeploymentSummary], more: bool) -> AnyView {
    let kept: Vec<(&str, &str)> = query
        .iter()
        .filter(|(name, text)| ASKED.contains(&name.as_str()) && !text.is_empty())
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let path = |before: Option<String>| {
        let pairs = kept.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let pairs = pairs.chain(before.map(|id| ("before".to_owned(), id)));
        let query: Vec<String> = pairs.map(|(name, text)| format!("{name}={}", encoded(&text))).collect();
        format!("/deployments?{}", query.join("&"))
    };
    let newest =
        query.contains_key("before").then(|| view! { <a class="btn" rel="first" href=path(None)>"Newest"</a> });
    let older = found
        .last()
        .filter(|_| more)
        .map(|last| view! { <a class="btn" rel="next" href=path(Some(last.id.to_string()))>"Older"</a> });
    (newest.is_some() || older.is_some())
        .then(|| view! { <nav class="pager" aria-label="Pages">{newest}{older}</nav> })
        .into_any()
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
pub fn table(found: &[DeploymentSummary], shown: Shown) -> AnyView {
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

fn row(one: &DeploymentSummary, shown: Shown) -> AnyView {
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

fn by(one: &DeploymentSummary) -> AnyView {
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
pub fn duration(one: &DeploymentSummary) -> AnyView {
    match one.elapsed_ms {
        Some(ms) if one.state.is_over() => took(ms).into_any(),
        _ if one.state.is_over() => ().into_any(),
        _ => since(one.ordered_at),
    }
}
