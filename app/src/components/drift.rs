//! What of a node is not as it should be: the card, the mark in lists, the notice.

use corpus_api::Principal;
use corpus_api::nodes::{Drift, Node, NodeLine, RepairNode};
use corpus_domain::{DriftKind, NodeState};
use leptos::prelude::*;

use super::card::{card, notice};
use super::form::{action_at, stays_at};
use super::status::{Tone, status};
use super::text::{age, count, since};
use crate::to::to;

/// Whether the principal is shown the drift of nodes: it names guests of every project.
fn may_see(principal: &Principal) -> bool {
    principal.can::<RepairNode>(None)
}

fn in_service(node: &NodeLine) -> bool {
    matches!(node.state, NodeState::Ready | NodeState::Draining)
}

const fn word(kind: DriftKind) -> &'static str {
    match kind {
        DriftKind::Unit => "Unit",
        DriftKind::File => "File",
        DriftKind::Network => "Network",
        DriftKind::Rule => "Firewall",
        DriftKind::Route => "Route",
        DriftKind::Image => "Image",
        DriftKind::Power => "Power",
        DriftKind::Key => "Keys",
        DriftKind::Gone => "Gone",
        DriftKind::Foreign => "Foreign",
    }
}

/// The card of a node in service: when it was checked, what differs since when, and the way back.
pub fn drift_card(principal: &Principal, node: &Node) -> Option<AnyView> {
    if !may_see(principal) || !in_service(&node.line) {
        return None;
    }
    let checked = node.checked_at.map(|at| view! { <span class="quiet">"checked "{age(at)}</span> });
    let body = match (node.checked_at, node.drift.as_slice()) {
        (None, _) => view! { <p class="body quiet">"Not checked yet."</p> }.into_any(),
        (Some(_), []) => view! { <p class="body">{status(Tone::Ok, "Nothing differs")}</p> }.into_any(),
        (Some(_), drift) => {
            let items = drift.iter().map(item).collect_view();
            view! { <ul class="items drift">{items}</ul>{repair(node)} }.into_any()
        }
    };
    let title = if node.drift.is_empty() { "As it should be" } else { "Not as it should be" };
    Some(card("drift", title, checked.into_any(), body))
}

fn item(one: &Drift) -> AnyView {
    let tone = if one.kind == DriftKind::Gone { Tone::Fail } else { Tone::Warn };
    let guest = one.guest_name.as_ref().map(|name| match one.guest {
        Some(id) => view! { <a class="link" href=format!("/guests/{id}")>{name.to_string()}</a>": " }.into_any(),
        None => view! { {name.to_string()}": " }.into_any(),
    });
    view! {
        <li>
            <div>{status(tone, word(one.kind))}<div>{guest}{one.text.clone()}</div></div>
            <span class="quiet nowrap">"for "{since(one.since)}</span>
        </li>
    }
    .into_any()
}

fn repair(node: &Node) -> AnyView {
    let id = node.line.id;
    let mendable = node.drift.iter().filter(|one| one.kind.is_mendable()).count();
    let rest = node.drift.len() - mendable;
    let why_not = node.line.job.is_some().then(|| "A job is on this node".to_owned());
    let hint = match (mendable, rest) {
        (0, _) => {
            "A repair can't mend this: it marks guests without container as failed, and touches no container that is not of Corpus."
        }
        (_, 0) => "A repair brings all of this back; guests that should run keep running.",
        _ => "A repair brings this back, but for what is gone or foreign.",
    };
    view! {
        <div class="body foot submit">
            {action_at(to::<RepairNode>(&[&id]), stays_at(&format!("/nodes/{id}"), "repair"), "Repair", "btn primary", why_not)}
            <span class="hint">{hint}</span>
        </div>
    }
    .into_any()
}

/// The mark beside a node's state in lists.
pub fn drift_mark(principal: &Principal, node: &NodeLine) -> Option<AnyView> {
    (may_see(principal) && node.drift > 0).then(|| {
        let href = format!("/nodes/{}#drift", node.id);
        view! { " "<a class="mark" href=href>{status(Tone::Warn, format!("Drift {}", node.drift))}</a> }.into_any()
    })
}

/// The notice for the top of the overview.
pub fn drift_notice(principal: &Principal, node: &NodeLine) -> Option<AnyView> {
    let first = node.drift_since.filter(|_| may_see(principal))?;
    let more = view! {
        <span class="quiet">"for "{since(first)}</span>
        <a class="link" href=format!("/nodes/{}#drift", node.id)>"See what differs"</a>
    };
    let what = format!(
        "{} is not as it should be: {}",
        node.address,
        count(usize::try_from(node.drift).unwrap_or(usize::MAX), "difference")
    );
    Some(notice(Tone::Warn, what, more.into_any()))
}
