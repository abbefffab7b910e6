//! The compute nodes, as last known: a page of them, filtered as the query says.

use corpus_api::Principal;
use corpus_api::moves::ProposeMoves;
use corpus_api::nodes::{LinkNode, ListNodes, NodeLine, NodePage};
use corpus_api::not_created::{Creation, NotCreated};
use corpus_domain::{Environment, NodeState, Reachability, ViewedList};
use leptos::prelude::*;

use super::{Asked, not_created};
use crate::asked::{Listing, page_after};
use crate::caller::Caller;
use crate::components::{
    Field, Filters, age, any_of, code, drift_mark, empty, environments, head, meter, next_link, node_status, picks,
    since,
};
use crate::form::Result;
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let asked = Listing::ask::<ListNodes>(caller, ViewedList::Nodes, given.query.clone(), &given.form).await?;
    let (page, listing) = asked;
    let failed = not_created::few(caller, Some(Creation::Node)).await?;
    let view = nodes_view(&caller.who, &page, &failed, &listing);
    Ok(Page { status: listing.status(), ..Page::new("nodes", "Compute nodes", view) })
}

/// The view of plain values.
pub fn nodes_view(principal: &Principal, page: &NodePage, failed: &[NotCreated], listing: &Listing) -> AnyView {
    let (nodes, may_link) = (page.items.as_slice(), principal.can::<LinkNode>(None));
    let link = may_link.then(|| view! { <a class="btn primary" href="/nodes/link">"Link a compute node"</a> });
    let even = (principal.can::<ProposeMoves>(None) && nodes.len() > 1)
        .then(|| view! { <a class="btn" href="/nodes/balance">"Even out nodes"</a> });
    let links = view! { <span class="actions">{even}{link}</span> };
    let below = view! { <span class="quiet">{summary(page, listing)}</span> };
    let busy = nodes.iter().any(NodeLine::is_changing).then_some("");
    let filtered = listing.is_filtered(&[]);
    let filter = (!nodes.is_empty() || filtered).then(|| filters(listing));
    view! {
        {head("Compute nodes".into_any(), below.into_any(), links.into_any())}
        <div class="stack" id="live-notices" data-live="">{not_created::notices(failed, "/nodes")}</div>
        {filter}
        <section class="card" id="live-nodes" data-live="" data-busy=busy>{table(principal, filtered, nodes)}</section>
        {next_link(page_after("/nodes", &listing.query, page.next.as_ref()))}
    }
    .into_any()
}

/// How many there are, and how much room they have: of those on this page.
fn summary(page: &NodePage, listing: &Listing) -> String {
    let slots: u32 = page.items.iter().map(|node| node.slots).sum();
    let free: u32 = page.items.iter().map(NodeLine::free_slots).sum();
    let which = if page.next.is_some() || listing.query.contains_key("cursor") { "on this page" } else { "linked" };
    format!("{} {which}, {slots} slots, {free} free", page.items.len())
}

fn filters(listing: &Listing) -> AnyView {
    let form = &listing.filter;
    let states = any_of(picks(NodeState::ALL.iter().map(|state| state.as_str())));
    let environments = any_of(picks(Environment::ALL.iter().map(|one| one.as_str())));
    let sorts = [("", "address"), ("free_slots", "most free slots")];
    let sorts = sorts.map(|(word, text)| (word.to_owned(), text.to_owned())).to_vec();
    let fields = vec![
        Field::new(form, "q", "Name or address has").input(),
        Field::new(form, "state", "State").select(states),
        Field::new(form, "environment", "Environment").select(environments),
        Field::new(form, "sort", "Order").select(sorts),
    ];
    let hidden = &["reachability", "drifted"];
    let filters =
        Filters { list: ViewedList::Nodes, label: "Compute nodes", fields, hidden, beside: &[], orders: None };
    filters.view(listing)
}

fn table(principal: &Principal, is_filtered: bool, nodes: &[NodeLine]) -> AnyView {
    if nodes.is_empty() && is_filtered {
        let all = view! { <a class="link" href="/nodes">"All compute nodes"</a> };
        return empty("No compute node is like this", all.into_any());
    }
    if nodes.is_empty() {
        let next = if principal.can::<LinkNode>(None) {
            "Any Debian host that you can reach over SSH as root, or as a user with sudo: paste its address, compare its fingerprint, done."
        } else {
            "An operator links hosts over SSH; guests then run on them."
        };
        return empty("No compute node is linked yet", next.into_any());
    }
    let rows = nodes.iter().map(|node| row(principal, node)).collect_view();
    view! {
        <table class="rows" aria-label="Compute nodes">
            <thead><tr>
                <th>"Node"</th><th>"State"</th><th>"Address"</th><th>"Drivers"</th><th>"Environments"</th>
                <th class="num">"Free slots"</th><th>"Memory"</th><th>"Storage"</th><th>"Seen"</th>
            </tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(principal: &Principal, node: &NodeLine) -> AnyView {
    let address = node
        .public_ip
        .clone()
        .map_or_else(|| view! { <span class="quiet">"not known"</span> }.into_any(), |ip| code("public-ip", ip));
    view! {
        <tr>
            <td data-label="Node">{node_link(node)}</td>
            <td data-label="State">{node_status(node)}{unreachable_since(node)}{drift_mark(principal, node)}</td>
            <td data-label="Address">{address}</td>
            <td data-label="Drivers">{drivers(node)}</td>
            <td data-label="Environments">{environments(&node.environments)}</td>
            <td data-label="Free slots" class="num">{format!("{} of {}", node.free_slots(), node.slots)}</td>
            {readings(node)}
            <td data-label="Seen" class="quiet">{node.reading_at.map_or_else(|| "never".into_any(), age)}</td>
        </tr>
    }
    .into_any()
}

/// The way to its page by its name, with its address below if that is another.
pub fn node_link(node: &NodeLine) -> AnyView {
    let address = node.name.is_some().then(|| view! { <div class="quiet small">{node.address.to_string()}</div> });
    view! { <a href=format!("/nodes/{}", node.id)>{node.title()}</a>{address} }.into_any()
}

fn unreachable_since(node: &NodeLine) -> Option<AnyView> {
    (node.reachability == Reachability::Unreachable).then(|| view! { " "{since(node.reachability_since)} }.into_any())
}

/// The drivers that can be used, in words.
fn drivers(node: &NodeLine) -> String {
    let words: Vec<&str> = node.drivers.iter().map(|driver| driver.as_str()).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// Which storage is meant where a bar shows it: new guests get what is neither used nor promised.
pub const STORAGE: &str = "Storage where guests live, used or promised";

/// The cells of memory and storage at the last reading.
pub fn readings(node: &NodeLine) -> AnyView {
    let Some(used) = node.used else {
        return view! { <td data-label="Memory" class="quiet">"not read"</td><td data-label="Storage" class="quiet">"not read"</td> }.into_any();
    };
    let memory = used.memory_used.percent_of(used.memory_total);
    let class = if node.reachability == Reachability::Reachable { "" } else { "last-known" };
    view! {
        <td data-label="Memory" class=class>{meter(memory, "Memory used")}</td>
        <td data-label="Storage" class=class>{meter(used.storage_taken(), STORAGE)}</td>
    }
    .into_any()
}
