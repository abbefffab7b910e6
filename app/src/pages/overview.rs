//! The overview: what needs a look, the numbers, the nodes, and what is being done.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::jobs::JobRow;
use corpus_controller::project_views::DeploymentSummary;
use corpus_controller::views::{Counts, GuestView, NodeView};
use corpus_controller::{Controller, Result};
use corpus_domain::{GuestState, Reachability};
use leptos::prelude::*;

use super::deployments::{self, Shown};
use super::jobs::{latest_jobs, list, open_jobs, table};
use super::nodes::readings;
use crate::components::{Tone, card, count, drift_mark, drift_notice, empty, head, node_status, notice, since};
use crate::layout::Page;

/// Reads and shows it.
pub async fn load(controller: &Controller, principal: &Principal) -> Result<Page> {
    let counts = controller.counts(principal).await?;
    let nodes = controller.nodes(principal).await?;
    let guests = controller.guests(principal).await?;
    let jobs = open_jobs(controller, principal).await?;
    let latest = latest_jobs(controller, principal).await?;
    let deployed = deployments::latest(controller, principal).await?;
    let done = Done { open: &jobs, latest: &latest, deployments: &deployed };
    Ok(Page::new("overview", "Overview", overview_view(principal, &counts, &nodes, &guests, &done)))
}

/// What is and was being done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done<'a> {
    /// The jobs that are not over, and the stuck ones.
    pub open: &'a [JobRow],
    /// The jobs that were asked for last.
    pub latest: &'a [JobRow],
    /// The newest deployments.
    pub deployments: &'a [DeploymentSummary],
}

/// The view of plain values.
pub fn overview_view(
    principal: &Principal,
    counts: &Counts,
    nodes: &[NodeView],
    guests: &[GuestView],
    done: &Done<'_>,
) -> AnyView {
    let Done { open: jobs, latest, deployments } = *done;
    let running = deployments.iter().any(|one| !one.state.is_over());
    let deployed = (!deployments.is_empty()).then(|| {
        let all = view! { <a class="quiet" href="/deployments">"All deployments"</a> };
        card("deployments", "Latest deployments", all.into_any(), deployments::table(deployments, Shown::Everywhere))
    });
    let notices = nodes.iter().filter_map(node_notice).collect_view();
    let drift = nodes.iter().filter_map(|node| drift_notice(principal, node)).collect_view();
    view! {
        {head("Overview".into_any(), ().into_any(), actions(principal, nodes))}
        <div class="stack" id="live-notices" data-live="">{notices}{drift}{failed(guests)}{stuck(counts)}</div>
        <div class="tiles" id="live-tiles" data-live="">{tiles(counts)}</div>
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

fn actions(principal: &Principal, nodes: &[NodeView]) -> AnyView {
    let link = principal.may(Operation::NodeLink, None).then(|| {
        let class = if nodes.is_empty() { "btn primary" } else { "btn" };
        view! { <a class=class href="/nodes/link">"Link a compute node"</a> }
    });
    let request = (super::guests::may_request(principal) && !nodes.is_empty())
        .then(|| view! { <a class="btn primary" href="/guests/new">"Request a guest"</a> });
    view! { {link}{request} }.into_any()
}

/// What is wrong with a node, for the top of the page.
pub fn node_notice(node: &NodeView) -> Option<AnyView> {
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
    Some(notice(tone, format!("{} {word}", node.address), more.into_any()))
}

fn failed(guests: &[GuestView]) -> Option<AnyView> {
    let failed: Vec<&GuestView> = guests.iter().filter(|guest| guest.state == GuestState::Failed).collect();
    let links = failed
        .iter()
        .take(5)
        .map(|guest| view! { <a class="link" href=format!("/guests/{}", guest.id)>{guest.name.to_string()}</a> })
        .collect_view();
    let words = format!("{} failed", count(failed.len(), "guest"));
    (!failed.is_empty()).then(|| notice(Tone::Fail, words, links.into_any()))
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

fn tiles(counts: &Counts) -> AnyView {
    let guests = format!("{} stopped, {} failed", counts.guests_stopped, counts.guests_failed);
    let nodes = if counts.nodes == 1 { "node".to_owned() } else { "nodes".to_owned() };
    view! {
        {tile("Guests running", format!("{} / {}", counts.guests_running, counts.guests), guests)}
        {tile("Free slots", counts.slots_free.to_string(), format!("of {} across {} {nodes}", counts.slots, counts.nodes))}
        {tile("DNS names attached", format!("{} / {}", counts.names_attached, counts.names), "answered by the name server".to_owned())}
        {tile("Jobs now", counts.jobs.to_string(), format!("{} stuck", counts.jobs_stuck))}
    }
    .into_any()
}

fn node_table(principal: &Principal, nodes: &[NodeView]) -> AnyView {
    if nodes.is_empty() {
        let next = if principal.may(Operation::NodeLink, None) {
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
                    <td data-label="Node"><a href=format!("/nodes/{}", node.id)>{node.address.to_string()}</a></td>
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
