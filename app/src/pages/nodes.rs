//! The compute nodes, as last known: a page of them, filtered as the query says.

use std::collections::BTreeMap;

use corpus_api::nodes::{LinkNode, ListNodes, NodeLine, NodePage, NodeSort};
use corpus_api::{Cursor, Principal};
use corpus_domain::{Environment, NodeState, Reachability};
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{
    Field, age, code, drift_mark, empty, environments, head, meter, next_page, node_status, picks, since,
};
use crate::form::{FormState, Result};
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(caller: &Caller, query: &BTreeMap<String, String>) -> Result<Page> {
    let asked = asked(query);
    let page = caller.ask(asked.clone()).await?;
    Ok(Page::new("nodes", "Compute nodes", nodes_view(&caller.who, &asked, &page)))
}

/// What the query asks for; what it can't mean is left out.
fn asked(query: &BTreeMap<String, String>) -> ListNodes {
    fn of<T: std::str::FromStr>(query: &BTreeMap<String, String>, name: &str) -> Option<T> {
        query.get(name).and_then(|text| text.trim().parse().ok())
    }
    let state: Option<NodeState> = of(query, "state");
    let reachability: Option<Reachability> = of(query, "reachability");
    ListNodes {
        state: state.into_iter().collect::<Vec<_>>().try_into().unwrap_or_default(),
        reachability: reachability.into_iter().collect::<Vec<_>>().try_into().unwrap_or_default(),
        environment: of(query, "environment"),
        q: of(query, "q"),
        sort: query.get("sort").filter(|word| *word == FREE_SLOTS).map(|_| NodeSort::FreeSlots),
        cursor: of(query, "cursor"),
        ..ListNodes::default()
    }
}

const FREE_SLOTS: &str = "free_slots";

/// What is filtered and sorted by, as a form has it.
fn filters(asked: &ListNodes) -> Vec<(String, String)> {
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let state = asked.state.iter().map(|state| pair("state", state.to_string()));
    let reachability = asked.reachability.iter().map(|word| pair("reachability", word.to_string()));
    let environment = asked.environment.iter().map(|one| pair("environment", one.to_string()));
    let q = asked.q.iter().map(|text| pair("q", text.to_string()));
    let sort = (asked.sort == Some(NodeSort::FreeSlots)).then(|| pair("sort", FREE_SLOTS.to_owned()));
    state.chain(reachability).chain(environment).chain(q).chain(sort).collect()
}

/// The view of plain values.
pub fn nodes_view(principal: &Principal, asked: &ListNodes, page: &NodePage) -> AnyView {
    let (nodes, may_link) = (page.items.as_slice(), principal.can::<LinkNode>(None));
    let link = may_link.then(|| view! { <a class="btn primary" href="/nodes/link">"Link a compute node"</a> });
    let below = view! { <span class="quiet">{summary(page, asked.cursor.as_ref())}</span> };
    let busy = nodes.iter().any(NodeLine::is_changing).then_some("");
    let chosen = filters(asked);
    let search = (!nodes.is_empty() || !chosen.is_empty()).then(|| search(&chosen));
    view! {
        {head("Compute nodes".into_any(), below.into_any(), link.into_any())}
        {search}
        <section class="card" id="live-nodes" data-live="" data-busy=busy>{table(principal, !chosen.is_empty(), nodes)}</section>
        {next_page(&path(&chosen), page.next.as_ref())}
    }
    .into_any()
}

/// How many there are, and how much room they have: of those on this page.
fn summary(page: &NodePage, cursor: Option<&Cursor>) -> String {
    let slots: u32 = page.items.iter().map(|node| node.slots).sum();
    let free: u32 = page.items.iter().map(NodeLine::free_slots).sum();
    let which = if page.next.is_some() || cursor.is_some() { "on this page" } else { "linked" };
    format!("{} {which}, {slots} slots, {free} free", page.items.len())
}

/// The path of the list with these filters.
fn path(chosen: &[(String, String)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let query = query.extend_pairs(chosen).finish();
    if query.is_empty() { "/nodes".to_owned() } else { format!("/nodes?{query}") }
}

fn search(chosen: &[(String, String)]) -> AnyView {
    let form = FormState::new("", chosen.to_vec()).status(200);
    let any = |words: Vec<(String, String)>| -> Vec<_> {
        std::iter::once((String::new(), "any".to_owned())).chain(words).collect()
    };
    let states = any(picks(NodeState::ALL.iter().map(|state| state.as_str())));
    let environments = any(picks(Environment::ALL.iter().map(|one| one.as_str())));
    let all = (!chosen.is_empty()).then(|| view! { <a class="btn" href="/nodes">"Show all"</a> });
    let sorts = [("", "address"), (FREE_SLOTS, "most free slots")];
    let sorts = sorts.map(|(word, text)| (word.to_owned(), text.to_owned())).to_vec();
    view! {
        <form method="get" action="/nodes" class="filters" role="search" aria-label="Compute nodes">
            {Field::new(&form, "q", "Address").input()}
            {Field::new(&form, "state", "State").select(states)}
            {Field::new(&form, "environment", "Environment").select(environments)}
            {Field::new(&form, "sort", "Order").select(sorts)}
            <div class="actions"><button class="btn">"Filter"</button>{all}</div>
        </form>
    }
    .into_any()
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

fn unreachable_since(node: &NodeLine) -> Option<AnyView> {
    (node.reachability == Reachability::Unreachable).then(|| view! { " "{since(node.reachability_since)} }.into_any())
}

/// The drivers that can be used, in words.
fn drivers(node: &NodeLine) -> String {
    let words: Vec<&str> = node.drivers.iter().map(|driver| driver.as_str()).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

/// The cells of memory and storage at the last reading.
pub fn readings(node: &NodeLine) -> AnyView {
    let Some(used) = node.used else {
        return view! { <td data-label="Memory" class="quiet">"not read"</td><td data-label="Storage" class="quiet">"not read"</td> }.into_any();
    };
    let memory = used.memory_used.percent_of(used.memory_total);
    let storage = used.storage_used.percent_of(used.storage_total);
    let class = if node.reachability == Reachability::Reachable { "" } else { "last-known" };
    view! {
        <td data-label="Memory" class=class>{meter(memory, "Memory used")}</td>
        <td data-label="Storage" class=class>{meter(storage, "Storage used")}</td>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_the_filters_and_the_filters_are_the_query() {
        let query = [("state", "ready"), ("environment", "dev"), ("q", "a&b c"), ("sort", "free_slots"), ("page", "2")];
        let query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let asked = asked(&query);
        assert_eq!((asked.state.to_vec(), asked.sort), (vec![NodeState::Ready], Some(NodeSort::FreeSlots)));
        assert_eq!(path(&filters(&asked)), "/nodes?state=ready&environment=dev&q=a%26b+c&sort=free_slots");
        let none = super::asked(&[("state".to_owned(), "no such".to_owned())].into());
        assert_eq!((none.clone(), path(&filters(&none))), (ListNodes::default(), "/nodes".to_owned()));
    }
}
