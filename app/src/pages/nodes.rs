//! The compute nodes, as last known.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::views::NodeView;
use corpus_controller::{Controller, Result};
use corpus_domain::Reachability;
use leptos::prelude::*;

use crate::components::{age, code, drift_mark, empty, environments, head, meter, node_status, since};
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(controller: &Controller, principal: &Principal) -> Result<Page> {
    let nodes = controller.nodes(principal).await?;
    Ok(Page::new("nodes", "Compute nodes", nodes_view(principal, &nodes)))
}

/// The view of plain values.
pub fn nodes_view(principal: &Principal, nodes: &[NodeView]) -> AnyView {
    let may_link = principal.may(Operation::NodeLink, None);
    let link = may_link.then(|| view! { <a class="btn primary" href="/nodes/link">"Link a compute node"</a> });
    let slots: u32 = nodes.iter().map(|node| node.slots).sum();
    let free: u32 = nodes.iter().map(NodeView::free_slots).sum();
    let below = view! { <span class="quiet">{format!("{} linked, {slots} slots, {free} free", nodes.len())}</span> };
    let busy = nodes.iter().any(|node| node.job.is_some() || node.busy).then_some("");
    view! {
        {head("Compute nodes".into_any(), below.into_any(), link.into_any())}
        <section class="card" id="live-nodes" data-live="" data-busy=busy>{table(principal, may_link, nodes)}</section>
    }
    .into_any()
}

fn table(principal: &Principal, may_link: bool, nodes: &[NodeView]) -> AnyView {
    if nodes.is_empty() {
        let next = if may_link {
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

fn row(principal: &Principal, node: &NodeView) -> AnyView {
    let address = node
        .public_ip
        .clone()
        .map_or_else(|| view! { <span class="quiet">"not known"</span> }.into_any(), |ip| code("public-ip", ip));
    view! {
        <tr>
            <td data-label="Node"><a href=format!("/nodes/{}", node.id)>{node.address.to_string()}</a></td>
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

fn unreachable_since(node: &NodeView) -> Option<AnyView> {
    (node.reachability == Reachability::Unreachable).then(|| view! { " "{since(node.reachability_since)} }.into_any())
}

/// The drivers that can be used, in words.
pub fn drivers(node: &NodeView) -> String {
    let usable = node.facts.iter().flat_map(|facts| &facts.drivers).filter(|driver| driver.obstacle.is_none());
    let words: Vec<&str> = usable.map(|driver| driver.driver.as_str()).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// The cells of memory and storage at the last reading.
pub fn readings(node: &NodeView) -> AnyView {
    let Some(reading) = node.reading.as_ref() else {
        return view! { <td data-label="Memory" class="quiet">"not read"</td><td data-label="Storage" class="quiet">"not read"</td> }.into_any();
    };
    let memory = reading.memory_used.percent_of(reading.memory_total);
    let storage = reading.storage.used.percent_of(reading.storage.total);
    let class = if node.reachability == Reachability::Reachable { "" } else { "last-known" };
    view! {
        <td data-label="Memory" class=class>{meter(memory, "Memory used")}</td>
        <td data-label="Storage" class=class>{meter(storage, "Storage used")}</td>
    }
    .into_any()
}
