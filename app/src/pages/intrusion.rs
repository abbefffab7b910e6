//! Signs of intrusion, for operators: what nodes counted, who failed of late, and who is kept out of all of them.

use corpus_api::intrusion::{
    BlockAddress, BlockedAddress, BlockedAddressPage, FailingAddress, GuestSigns, GuestSignsLine, IntrusionRules,
    IntrusionSigns, LiftBlock, ListBlockedAddresses, ListIntrusionSigns, NodeSigns, SignCount,
};
use leptos::prelude::*;

use super::Asked;
use crate::caller::Caller;
use crate::components::{Field, age, at, card, confirm_at, empty, error_summary, head, next_page, stays_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

const PATH: &str = "/intrusion";

/// Reads and shows it.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    let signs = caller.ask(ListIntrusionSigns {}).await?;
    let list = ListBlockedAddresses { cursor: asked.cursor(), ..ListBlockedAddresses::default() };
    let blocked = caller.ask(list).await?;
    let ended = caller.ask(ListBlockedAddresses { ended: Some(true), ..ListBlockedAddresses::default() }).await?;
    let view = intrusion_view(&signs, (&blocked, &ended.items), &asked.form);
    Ok(Page::new("intrusion", "Intrusion", view))
}

/// The view of plain values: the signs, who is blocked, and who was.
pub fn intrusion_view(
    signs: &IntrusionSigns,
    (blocked, ended): (&BlockedAddressPage, &[BlockedAddress]),
    form: &FormState,
) -> AnyView {
    let below = view! { <span class="quiet">{rules(signs.rules)}</span> };
    let kept_out = view! {
        <div id="live-blocked" data-live="">{blocked_table(&blocked.items)}</div>
        {next_page(PATH, blocked.next.as_ref())}
    };
    let number = view! { <span class="quiet" id="live-number" data-live="">{format!("{} now", signs.blocked)}</span> };
    let failing = view! { <div id="live-failing" data-live="">{failing_table(&signs.addresses)}</div> };
    let nodes = view! { <div id="live-nodes" data-live="">{nodes_table(&signs.nodes)}</div> };
    let guests = view! { <div id="live-guests" data-live="">{guests_table(&signs.guests)}</div> };
    let hours = || view! { <span class="quiet">"this hour and the last; a day"</span> }.into_any();
    view! {
        {head("Intrusion".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">
                {card("blocked", "Kept out of all nodes", number.into_any(), kept_out.into_any())}
                {card("failing", "Refused of late", ().into_any(), failing.into_any())}
                {card("nodes", "By node", hours(), nodes.into_any())}
                {card("guests", "By guest", hours(), guests.into_any())}
                {(!ended.is_empty()).then(|| card("ended", "Let in again", ().into_any(), ended_table(ended)))}
            </div>
            <div class="stack">{card("block", "Keep an address out", ().into_any(), block(&form.of("block")))}</div>
        </div>
    }
    .into_any()
}

/// What is done about it, in a sentence or two.
fn rules(rules: IntrusionRules) -> String {
    let IntrusionRules { failures, window_minutes, block_minutes, .. } = rules;
    match (failures, block_minutes) {
        (0, _) => "Signs are counted; no address is blocked for them.".to_owned(),
        (_, 0) => format!(
            "You are told of {failures} refused SSH logins from one address within {window_minutes} minutes; it is not blocked."
        ),
        _ => format!(
            "An address with {failures} refused SSH logins within {window_minutes} minutes is kept out of all nodes for {block_minutes} minutes."
        ),
    }
}

fn block(form: &FormState) -> AnyView {
    view! {
        <form method="post" action={to::<BlockAddress>(&[])} class="form body">
            {stays_at(PATH, "block")}
            {Field::new(form, "address", "Address").beside("block").required().mono().hint("of IPv6 its network of 64 bits").input()}
            {Field::new(form, "minutes", "For how many minutes").beside("block").required().number().suggest("60").input()}
            {Field::new(form, "reason", "Why").beside("block").required().input()}
            <p class="quiet">"From all nodes and their guests. What Corpus is made of, guests and named networks are never kept out."</p>
            <div class="submit"><button class="btn danger">"Keep it out"</button></div>
        </form>
    }
    .into_any()
}

fn blocked_table(blocked: &[BlockedAddress]) -> AnyView {
    if blocked.is_empty() {
        return empty("Nobody is kept out", "Who fails to log in too often is shown here.".into_any());
    }
    let rows = blocked
        .iter()
        .map(|one| {
            let address = one.address.to_string();
            let question = format!("{address} reaches all nodes and guests again.");
            let lift = confirm_at("Lift", &address, question, to::<LiftBlock>(&[&one.id]), stays_at(PATH, "blocked"));
            view! {
                <tr>
                    <td data-label="Address"><code>{address}</code></td>
                    <td data-label="Why" class="wrap">{one.why.clone()}{by(one)}</td>
                    <td data-label="Since" class="quiet">{age(one.since)}</td>
                    <td data-label="Until" class="quiet">{at(one.until)}</td>
                    <td class="actions">{lift}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Kept out of all nodes">
            <thead><tr><th>"Address"</th><th>"Why"</th><th>"Since"</th><th>"Until"</th><th><span class="sr">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn by(one: &BlockedAddress) -> Option<AnyView> {
    one.by.as_ref().map(|by| view! { <div class="quiet small">{format!("by {by}")}</div> }.into_any())
}

fn ended_table(ended: &[BlockedAddress]) -> AnyView {
    let rows = ended
        .iter()
        .map(|one| {
            let lifted =
                one.lifted_by.as_ref().map(|by| view! { <div class="quiet small">{format!("lifted by {by}")}</div> });
            view! {
                <tr>
                    <td data-label="Address"><code>{one.address.to_string()}</code></td>
                    <td data-label="Why" class="wrap">{one.why.clone()}{by(one)}</td>
                    <td data-label="Since" class="quiet">{at(one.since)}</td>
                    <td data-label="Ended" class="quiet">{one.ended_at.map(at)}{lifted}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Let in again">
            <thead><tr><th>"Address"</th><th>"Why"</th><th>"Since"</th><th>"Ended"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn failing_table(addresses: &[FailingAddress]) -> AnyView {
    if addresses.is_empty() {
        return empty("Nobody was refused", "Refused SSH logins at the ports of guests are shown here.".into_any());
    }
    let rows = addresses
        .iter()
        .map(|one| {
            view! {
                <tr>
                    <td data-label="Address"><code>{one.address.to_string()}</code></td>
                    <td data-label="Refused" class="num">{one.refused.to_string()}</td>
                    <td data-label="Guests" class="num">{one.guests.to_string()}</td>
                    <td data-label="Last" class="quiet">{age(one.last_at)}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Refused of late">
            <thead><tr><th>"Address"</th><th class="num">"Refused"</th><th class="num">"Guests"</th><th>"Last"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// Of this hour and the last, and of a day.
fn told(count: SignCount) -> String {
    format!("{}; {}", count.hour, count.day)
}

fn signs_cells(signs: &GuestSigns) -> AnyView {
    view! {
        <td data-label="Refused SSH" class="num">{told(signs.refused_ssh)}</td>
        <td data-label="Dropped packets" class="num">{told(signs.dropped_packets)}</td>
    }
    .into_any()
}

fn nodes_table(nodes: &[NodeSigns]) -> AnyView {
    if nodes.is_empty() {
        return empty("No node is in service", "What nodes count is shown here.".into_any());
    }
    let rows = nodes
        .iter()
        .map(|one| {
            let read = one.read_at.map_or_else(|| "not read yet".into_any(), age);
            view! {
                <tr>
                    <td data-label="Node"><a href=format!("/nodes/{}", one.node)>{one.address.to_string()}</a></td>
                    {signs_cells(&one.guests)}
                    <td data-label="TLS errors" class="num">{told(one.tls_errors)}</td>
                    <td data-label="Read" class="quiet">{read}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="By node">
            <thead><tr><th>"Node"</th><th class="num">"Refused SSH"</th><th class="num">"Dropped packets"</th><th class="num">"TLS errors"</th><th>"Read"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn guests_table(guests: &[GuestSignsLine]) -> AnyView {
    if guests.is_empty() {
        return empty(
            "Nothing was counted",
            "Guests with refused logins or dropped packets are shown here.".into_any(),
        );
    }
    let rows = guests
        .iter()
        .map(|one| {
            view! {
                <tr>
                    <td data-label="Guest"><a href=format!("/guests/{}/firewall", one.guest)>{one.name.to_string()}</a></td>
                    <td data-label="Project">{one.project.to_string()}</td>
                    {signs_cells(&one.signs)}
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="By guest">
            <thead><tr><th>"Guest"</th><th>"Project"</th><th class="num">"Refused SSH"</th><th class="num">"Dropped packets"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}
