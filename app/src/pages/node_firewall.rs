//! The firewall of a node, for operators: what holds for all of its guests, and which of its ports lead to guests.

use corpus_api::firewall::nodes::{AllowToNode, BlockAtNode, GetNodeFirewall, NodeFirewall};
use corpus_domain::{NodeId, RuleAction};
use leptos::prelude::*;

use super::firewall_rules::{allow_fields, block_fields, choices, table};
use crate::caller::Caller;
use crate::components::{card, error_summary, head, stays_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, id: NodeId, form: &FormState) -> Result<Page> {
    let firewall = caller.ask(GetNodeFirewall { node: id }).await?;
    let page = Page::new("node-firewall", format!("Firewall of {}", firewall.address), firewall_view(&firewall, form));
    Ok(page.under(&firewall.address.to_string(), format!("/nodes/{id}")).under("Compute nodes", "/nodes"))
}

/// The view of plain values.
pub fn firewall_view(firewall: &NodeFirewall, form: &FormState) -> AnyView {
    let page = format!("/nodes/{}/firewall", firewall.node);
    let title = view! { "Firewall of "<a href=format!("/nodes/{}", firewall.node)>{firewall.address.to_string()}</a> };
    let below =
        view! { <span class="quiet">"What holds for all guests of the node; each has its own rules beside."</span> };
    // What is kept out everywhere is removed where it was made.
    let here = |rule: &corpus_api::firewall::FirewallRuleLine| rule.node == Some(firewall.node);
    let (published, rules): (Vec<_>, Vec<_>) =
        firewall.rules.iter().cloned().partition(|rule| rule.action == RuleAction::Publish);
    let rules = view! { <div id="live-rules" data-live="">{table(&rules, &page, "Guests have their own rules only.", here)}</div> };
    let published = view! { <div id="live-published" data-live="">{table(&published, &page, "No port leads to a guest.", here)}</div> };
    let count = view! { <span class="quiet">{firewall.published.to_string()}</span> };
    let hint = "anywhere, an address, a network such as 192.0.2.0/24, or network:NAME";
    let allow = view! {
        <form method="post" action={to::<AllowToNode>(&[&firewall.node])} class="form body">
            {stays_at(&page, "allow")}
            {allow_fields(&form.of("allow"), hint)}
            <div class="submit"><button class="btn primary">"Allow it to all guests"</button></div>
        </form>
    };
    let block = view! {
        <form method="post" action={to::<BlockAtNode>(&[&firewall.node])} class="form body">
            {stays_at(&page, "block")}
            {block_fields(&form.of("block"))}
            <p class="quiet">"From its guests, its proxy and the SSH ports; projects can't lift it. "<a class="link" href="/networks">"Keep out of all nodes"</a></p>
            <div class="submit"><button class="btn danger">"Keep it out"</button></div>
        </form>
    };
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {choices(&firewall.sources)}
        <div class="cols">
            <div class="stack">
                {card("rules", "Rules", ().into_any(), rules.into_any())}
                {card("published", "Published ports", count.into_any(), published.into_any())}
            </div>
            <div class="stack">
                {card("allow", "Allow", ().into_any(), allow.into_any())}
                {card("block", "Keep out", ().into_any(), block.into_any())}
            </div>
        </div>
    }
    .into_any()
}
