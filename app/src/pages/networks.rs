//! Named networks, for operators, and what is kept out of all nodes.

use corpus_api::firewall::networks::{CreateNetwork, ListNetworks, NamedNetwork, Networks, RemoveNetwork, SetNetwork};
use corpus_api::firewall::nodes::BlockEverywhere;
use corpus_domain::RuleSource;
use leptos::prelude::*;

use super::firewall_rules::{block_fields, choices, table};
use crate::caller::Caller;
use crate::components::{Field, age, card, confirm_at, count, empty, error_summary, head, stays_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

const PATH: &str = "/networks";

/// Reads and shows them.
pub async fn load(caller: &Caller, form: &FormState) -> Result<Page> {
    let networks = caller.ask(ListNetworks {}).await?;
    Ok(Page::new("networks", "Networks", networks_view(&networks, form)))
}

/// The view of plain values.
pub fn networks_view(networks: &Networks, form: &FormState) -> AnyView {
    let below = view! { <span class="quiet">"Rules name them, and follow when their addresses change."</span> };
    let sources: Vec<RuleSource> = networks.items.iter().map(|one| RuleSource::Network(one.name.clone())).collect();
    let list = if networks.items.is_empty() {
        empty("No named network", "Name those that projects should know: the office, the monitoring.".into_any())
    } else {
        networks.items.iter().map(|one| network(one, form)).collect_view().into_any()
    };
    let blocks = table(&networks.blocks, PATH, "Each node keeps out what its own rules say.", |_| true);
    let name = &form.of("network");
    let create = view! {
        <form method="post" action={to::<CreateNetwork>(&[])} class="form body">
            {stays_at(PATH, "network")}
            {Field::new(name, "name", "Name").beside("network").required().mono().input()}
            {addresses(name, "network", "")}
            {Field::new(name, "comment", "What it is").beside("network").input()}
            <div class="submit"><button class="btn primary">"Name the network"</button></div>
        </form>
    };
    let block = view! {
        <form method="post" action={to::<BlockEverywhere>(&[])} class="form body">
            {stays_at(PATH, "block")}
            {block_fields(&form.of("block"))}
            <p class="quiet">"From the guests of all nodes, the proxies and the SSH ports; projects can't lift it. A node that is away gets it by a repair."</p>
            <div class="submit"><button class="btn danger">"Keep it out everywhere"</button></div>
        </form>
    };
    view! {
        {head("Networks".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {choices(&sources)}
        <div class="cols">
            <div class="stack">
                {card("networks", "Named networks", ().into_any(), list)}
                {card("blocks", "Kept out everywhere", ().into_any(), view! { <div id="live-blocks" data-live="">{blocks}</div> }.into_any())}
            </div>
            <div class="stack">
                {card("network", "Name a network", ().into_any(), create.into_any())}
                {card("block", "Keep out everywhere", ().into_any(), block.into_any())}
            </div>
        </div>
    }
    .into_any()
}

fn addresses(form: &FormState, beside: &'static str, now: &str) -> AnyView {
    let hint = "Addresses and networks, with commas between: 192.0.2.7, 198.51.100.0/24";
    Field::new(form, "networks", "Addresses").beside(beside).suggest(now).required().mono().hint(hint).input()
}

/// A network, and the form that changes it. What was typed stays in the one that was sent.
fn network(one: &NamedNetwork, form: &FormState) -> AnyView {
    let own = format!("change-{}", one.id);
    let sent = form.of(&own);
    let now = one.networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let comment = one.comment.clone().map(|text| view! { <div class="quiet small">{text}</div> });
    let question = format!("No rule can name {} any more.", one.name);
    let remove = (one.rules == 0).then(|| {
        confirm_at("Remove", one.name.as_str(), question, to::<RemoveNetwork>(&[&one.id]), stays_at(PATH, "networks"))
    });
    let title = format!("Change {}", one.name);
    view! {
        <div class="body">
            <p><strong>{one.name.to_string()}</strong>" "<span class="mono">{now.clone()}</span>" "<span class="quiet">{count(one.rules as usize, "rule")}", named "{age(one.created_at)}</span></p>
            {comment}
            <details class="more" open=sent.was_sent()>
                <summary>{title.clone()}</summary>
                <form method="post" action={to::<SetNetwork>(&[&one.id])} class="form">
                    {stays_at(PATH, &own)}
                    <input type="hidden" name="version" value=sent.version(&one.version)/>
                    <label>"Addresses of "{one.name.to_string()}
                        <input id=sent.was_sent().then_some("f-networks") name="networks" class="mono" required=true autocomplete="off" value=sent.value("networks").unwrap_or(&now).to_owned()/>
                    </label>
                    {sent.error_at("networks").map(|text| view! { <p class="error">{crate::form::sentence(text)}</p> })}
                    <label>"What it is"
                        <input name="comment" autocomplete="off" value=sent.value("comment").or(one.comment.as_deref()).unwrap_or_default().to_owned()/>
                    </label>
                    <div class="submit"><button class="btn">{title}</button></div>
                </form>
            </details>
            {remove}
        </div>
    }
    .into_any()
}
