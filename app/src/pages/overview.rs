//! The overview: what needs a look, the numbers, the nodes, and what is being done.

use corpus_api::Principal;
use corpus_api::deployments::DeploymentLine;
use corpus_api::first_steps::{FirstSteps, GetFirstSteps};
use corpus_api::nodes::{LinkNode, ListNodes, NodeLine, RepairNode};
use corpus_api::not_created::NotCreated;
use corpus_api::overview::{Counts, FailedGuest, GetOverview, Overview};
use corpus_api::words::Limit;
use corpus_domain::Reachability;
use leptos::prelude::*;

use super::deployments::{self, Shown};
use super::first_steps::first_steps;
use super::jobs::{list, table};
use super::nodes::{node_link, readings};
use super::not_created;
use crate::caller::Caller;
use crate::components::{Tone, card, count, drift_mark, drift_notice, empty, head, node_status, notice, since};
use crate::form::Result;
use crate::layout::Page;

/// How many nodes are shown; all have a page of their own.
const NODES_SHOWN: u64 = 12;

/// Reads and shows it.
pub async fn load(caller: &Caller) -> Result<Page> {
    let principal = &caller.who;
    let overview = caller.ask(GetOverview {}).await?;
    let nodes = caller.ask(ListNodes { limit: Limit::try_from(NODES_SHOWN).ok(), ..ListNodes::default() }).await?.items;
    let wrong = wrong(caller).await?;
    let deployed = deployments::latest(caller).await?;
    let failed = not_created::few(caller, None).await?;
    let steps = caller.ask(GetFirstSteps {}).await?;
    let nodes = Nodes { first: &nodes, wrong: &wrong, not_created: &failed };
    Ok(Page::new("overview", "Overview", overview_view(principal, &overview, &nodes, &deployed, &steps)))
}

/// The nodes that want a look, some at most of each kind: those that don't answer, then those that are not as
/// they should be.
async fn wrong(caller: &Caller) -> Result<Vec<NodeLine>> {
    let few = || ListNodes { limit: Limit::try_from(20).ok(), ..ListNodes::default() };
    let silent = [Reachability::Unreachable, Reachability::HostKeyChanged].to_vec().try_into().unwrap_or_default();
    let mut found = caller.ask(ListNodes { reachability: silent, ..few() }).await?.items;
    if caller.who.can::<RepairNode>(None) {
        let drifted = caller.ask(ListNodes { drifted: Some(true), ..few() }).await?.items;
        found.extend(
            drifted.into_iter().filter(|node| !found.iter().any(|known| known.id == node.id)).collect::<Vec<_>>(),
        );
    }
    Ok(found)
}

/// The nodes that the overview shows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nodes<'a> {
    /// The first of them, by address.
    pub first: &'a [NodeLine],
    /// Those that want a look.
    pub wrong: &'a [NodeLine],
    /// What could not be made, on them or of them.
    pub not_created: &'a [NotCreated],
}

/// The view of plain values.
pub fn overview_view(
    principal: &Principal,
    overview: &Overview,
    nodes: &Nodes<'_>,
    deployments: &[DeploymentLine],
    steps: &FirstSteps,
) -> AnyView {
    let Overview { counts, failed: guests, open_jobs: jobs, latest_jobs: latest, .. } = overview;
    let running = deployments.iter().any(|one| !one.state.is_over());
    let deployed = (!deployments.is_empty()).then(|| {
        let all = view! { <a class="quiet" href="/deployments">"All deployments"</a> };
        card("deployments", "Latest deployments", all.into_any(), deployments::table(deployments, Shown::Everywhere))
    });
    let Nodes { first: nodes, wrong, not_created } = *nodes;
    let notices = wrong.iter().filter_map(node_notice).collect_view();
    let drift = wrong.iter().filter_map(|node| drift_notice(principal, node)).collect_view();
    view! {
        {head("Overview".into_any(), ().into_any(), actions(principal, counts, nodes))}
        <div class="stack" id="live-notices" data-live="">{notices}{drift}{failed(counts, guests)}{stuck(counts)}{not_created::notices(not_created, "/")}</div>
        <div class="stack" id="live-first-steps" data-live="">{first_steps(steps)}</div>
        <div class="tiles" id="live-tiles" data-live="">{tiles(overview)}</div>
        <div class="cols">
            <div class="stack" id="live-nodes" data-live="" data-busy=running.then_some("")>
                {deployed}
                {card("nodes", "Compute nodes", view! { <a class="quiet" href="/nodes">"All nodes"</a> }.into_any(), node_table(principal, nodes))}
                {card("latest", "Latest jobs", view! { <a class="quiet" href="/jobs">"All jobs"</a> }.into_any(), table(latest, "No job yet"))}
            </div>
            <div class="stack" id="live-jobs" data-live="" data-busy=(!jobs.is_empty()).then_some("")>
                {card("jobs", "Being done now", view! { <a class="quiet" href="/jobs?state=open">"Open jobs"</a> }.into_any(), list(jobs, "Nothing is being done"))}
            </div>
        </div>
    }
    .into_any()
}

fn actions(principal: &Principal, counts: &Counts, nodes: &[NodeLine]) -> AnyView {
    let link = principal.can::<LinkNode>(None).then(|| {
        let class = if nodes.is_empty() { "btn primary" } else { "btn" };
        view! { <a class=class href="/nodes/link">"Link a compute node"</a> }
    });
    let request = (super::guests::may_request(principal, counts.projects) && !nodes.is_empty())
        .then(|| view! { <a class="btn primary" href="/guests/new">"Request a guest"</a> });
    view! { {link}{request} }.into_any()
}

/// What is wrong with a node, for the top of the page.
pub fn node_notice(node: &NodeLine) -> Option<AnyView> {
    let (tone, word) = match node.reachability {
        Reachability::Unreachable => (Tone::Warn, "unreachable"),
        Reachability::HostKeyChanged => (Tone::Fail, "shows another host key"),
        Reachability::Reachable | Reachability::Unknown => return None,
    };
    let guests = (node.guests > 0).then(|| format!(", {} guests shown as last known", node.guests));
    let more = view! {
        <span class="quiet">"since "{since(node.reachability_since)}{guests}</span>
        <a class="link" href=format!("/nodes/{}", node.id)>"Open node"</a>
    };
    Some(notice(tone, format!("{} {word}", node.title()), more.into_any()))
}

fn failed(counts: &Counts, guests: &[FailedGuest]) -> Option<AnyView> {
    let links = guests
        .iter()
        .map(|guest| view! { <a class="link" href=format!("/guests/{}", guest.id)>{guest.name.clone()}</a> })
        .collect_view();
    let words = format!("{} failed", count(counts.guests_failed as usize, "guest"));
    (counts.guests_failed > 0).then(|| notice(Tone::Fail, words, links.into_any()))
}

fn stuck(counts: &Counts) -> Option<AnyView> {
    let words = if counts.jobs_stuck == 1 {
        "1 job is stuck".to_owned()
    } else {
        format!("{} jobs are stuck", counts.jobs_stuck)
    };
    let more = view! {
        <span class="quiet">"an undo failed: try again, or abandon with a comment"</span>
        <a class="link" href="/jobs?state=stuck">"Open the stuck jobs"</a>
    };
    (counts.jobs_stuck > 0).then(|| notice(Tone::Fail, words, more.into_any()))
}

fn tile(name: &'static str, number: String, more: String) -> AnyView {
    view! { <div class="card tile"><span>{name}</span><b>{number}</b><span>{more}</span></div> }.into_any()
}

fn tiles(overview: &Overview) -> AnyView {
    let Overview { counts, slots, slots_free, .. } = overview;
    let guests = format!("{} stopped, {} failed", counts.guests_stopped, counts.guests_failed);
    let nodes = if counts.nodes == 1 { "node".to_owned() } else { "nodes".to_owned() };
    view! {
        {tile("Guests running", format!("{} / {}", counts.guests_running, counts.guests), guests)}
        {tile("Free slots", slots_free.to_string(), format!("of {slots} across {} {nodes}", counts.nodes))}
        {tile("DNS names attached", format!("{} / {}", counts.names_attached, counts.names), "answered by the name server".to_owned())}
        {tile("Jobs now", counts.jobs.to_string(), format!("{} stuck", counts.jobs_stuck))}
    }
    .into_any()
}

fn node_table(principal: &Principal, nodes: &[NodeLine]) -> AnyView {
    if nodes.is_empty() {
        let next = if principal.can::<LinkNode>(None) {
            view! { "Link a host over SSH; guests run on it. "<a class="link" href="/nodes/link">"Link a compute node"</a> }.into_any()
        } else {
            "Guests run on compute nodes. An operator links the first one.".into_any()
        };
        return empty("No compute node yet", next);
    }
    let rows = nodes
        .iter()
        .map(|node| {
            view! {
                <tr>
                    <td data-label="Node">{node_link(node)}</td>
                    <td data-label="State">{node_status(node)}{drift_mark(principal, node)}</td>
                    <td data-label="Guests">{format!("{} of {}", node.guests, node.slots)}</td>
                    {readings(node)}
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Compute nodes">
            <thead><tr><th>"Node"</th><th>"State"</th><th>"Guests"</th><th>"Memory"</th><th>"Storage"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}
