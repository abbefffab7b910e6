//! Deployments: the list with its filters, and the table that other pages show.

use corpus_api::deployments::{DeploymentLine, DeploymentPage, ListDeployments};
use corpus_api::words::Limit;
use corpus_domain::{DeploymentState, Environment, Trigger, ViewedList, shown_actor};
use leptos::prelude::*;

use super::Asked;
use super::deployment_paths::deployment_path;
use crate::asked::{Listing, page_after};
use crate::caller::Caller;
use crate::components::{
    Field, Filters, age, any_of, commit, deployment_look, empty, environment, head, line_status, next_link, picks,
    reason, since, took,
};
use crate::form::Result;
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let list = ViewedList::Deployments;
    let (page, listing) = Listing::ask::<ListDeployments>(caller, list, given.query.clone(), &given.form).await?;
    let view = deployments_view(&page, &listing);
    Ok(Page { status: listing.status(), ..Page::new("deployments", "Deployments", view) })
}

/// The newest few, for the overview.
pub async fn latest(caller: &Caller) -> Result<Vec<DeploymentLine>> {
    let asked = ListDeployments { limit: Limit::try_from(6).ok(), ..ListDeployments::default() };
    Ok(caller.ask(asked).await?.items)
}

/// The view of plain values.
pub fn deployments_view(page: &DeploymentPage, listing: &Listing) -> AnyView {
    let found = &page.items;
    let below =
        view! { <span class="quiet">"Every run of the pipeline, with its phases, its log and its proofs"</span> };
    let busy = found.iter().any(|one| !one.state.is_over()).then_some("");
    let body = if found.is_empty() && (listing.is_filtered(&[]) || listing.query.contains_key("cursor")) {
        empty("No deployment like that", view! { <a class="link" href="/deployments">"Show all"</a> }.into_any())
    } else {
        table(found, Shown::Everywhere)
    };
    view! {
        {head("Deployments".into_any(), below.into_any(), ().into_any())}
        {filters(listing)}
        <section class="card" id="live-deployments" data-live="" data-busy=busy>{body}</section>
        {next_link(page_after("/deployments", &listing.query, page.next.as_ref()))}
    }
    .into_any()
}

fn filters(listing: &Listing) -> AnyView {
    let form = &listing.filter;
    let environments = any_of(picks(Environment::ALL.iter().map(|one| one.as_str())));
    let states = DeploymentState::ALL.iter().map(|one| (one.as_str().to_owned(), deployment_look(*one).1.to_owned()));
    let fields = vec![
        Field::new(form, "project", "Project").input(),
        Field::new(form, "environment", "Environment").select(environments),
        Field::new(form, "state", "State").select(any_of(states)),
        Field::new(form, "by", "By").input(),
        Field::new(form, "q", "Commit or subject").input(),
    ];
    let list = ViewedList::Deployments;
    let orders: &[_] = &[("newest", "Newest first"), ("oldest", "Oldest first"), ("longest", "Longest first")];
    let (hidden, beside, orders) = (&["guest"], &["sort"], Some(orders));
    let filters = Filters { list, label: "Deployments", fields, hidden, beside, orders };
    filters.view(listing)
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
    let fault = one.fault.as_deref().map(reason);
    let subject =
        one.subject.clone().map(|text| view! { <div class="quiet small clip" title=text.clone()>{text.clone()}</div> });
    let word = if one.state.is_over() { "took " } else { "for " };
    let took = (one.elapsed_ms.is_some() || !one.state.is_over())
        .then(|| view! { <div class="small">{word}{duration(one)}</div> });
    view! {
        <tr data-deployment=one.number.to_string()>
            <td data-label="Deployment"><a href=deployment_path(one)>{name}</a></td>
            <td data-label="Environment">{environment(one.environment)}</td>
            <td data-label="Result" class="result">{line_status(one)}{fault}</td>
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
    view! { {shown_actor(&one.by)}{how} }.into_any()
}

/// How long it took, or runs.
pub fn duration(one: &DeploymentLine) -> AnyView {
    match one.elapsed_ms {
        Some(ms) if one.state.is_over() => took(ms).into_any(),
        _ if one.state.is_over() => ().into_any(),
        _ => since(one.ordered_at),
    }
}
