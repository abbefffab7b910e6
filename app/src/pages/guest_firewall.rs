//! The firewall of a guest: who may reach which of its ports, by whose word, and what was kept out last.

use corpus_api::firewall::{AllowToGuest, FirewallDrop, GetGuestFirewall, GuestFirewall, PublishPort};
use corpus_api::intrusion::{GuestSigns, SignCount};
use corpus_api::quotas::{GetQuota, ProjectQuota};
use corpus_domain::{GuestId, QuotaOf};
use leptos::prelude::*;

use super::firewall_rules::{allow_fields, choices, protocol, table};
use super::quotas::left;
use crate::caller::Caller;
use crate::components::{Field, age, card, empty, environment, error_summary, head, stays_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, id: GuestId, form: &FormState) -> Result<Page> {
    let firewall = caller.ask(GetGuestFirewall { guest: id }).await?;
    let quota = caller.ask(GetQuota { project: firewall.project.clone() }).await?;
    let page =
        Page::new("guest-firewall", format!("Firewall of {}", firewall.name), firewall_view(&firewall, &quota, form));
    Ok(page.under(firewall.name.as_str(), format!("/guests/{id}")).under("Guests", "/guests"))
}

fn path(firewall: &GuestFirewall) -> String {
    format!("/guests/{}/firewall", firewall.guest)
}

/// The view of plain values.
pub fn firewall_view(firewall: &GuestFirewall, quota: &ProjectQuota, form: &FormState) -> AnyView {
    let title = view! { "Firewall of "<a href=format!("/guests/{}", firewall.guest)>{firewall.name.to_string()}</a>" "{environment(firewall.environment)} };
    let read = firewall.read_at.map(|at| view! { " Counted "{age(at)}"." });
    let below = view! { <span class="quiet" id="live-read" data-live="">"What no rule lets in is kept out. Sites and SSH come by the node's proxy, and need no rule."{read}</span> };
    let page = path(firewall);
    let own = |rule: &corpus_api::firewall::FirewallRuleLine| firewall.may_change && rule.guest == Some(firewall.guest);
    let nothing = "Nobody reaches it but by the node's proxy.";
    let rules = view! { <div id="live-rules" data-live="">{table(&firewall.rules, &page, nothing, own)}</div> };
    let drops = view! { <div id="live-drops" data-live="">{drops(&firewall.drops)}</div> };
    let signs = view! { <div id="live-signs" data-live="">{signs(&firewall.signs)}</div> };
    let forms = firewall.may_change.then(|| {
        view! {
            <div class="stack">
                {choices(&firewall.sources)}
                {card("allow", "Allow", ().into_any(), allow(firewall, &form.of("allow")))}
                {card("publish", "Publish a port", ().into_any(), publish(firewall, quota, &form.of("publish")))}
            </div>
        }
    });
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">
                {card("rules", "Rules", ().into_any(), rules.into_any())}
                {card("signs", "Signs of intrusion", view! { <a class="link" href="/docs/intrusion#what-is-counted">"What is counted"</a> }.into_any(), signs.into_any())}
                {card("drops", "Kept out last", view! { <span class="quiet">"in the last 10 minutes"</span> }.into_any(), drops.into_any())}
            </div>
            {forms}
        </div>
    }
    .into_any()
}

fn allow(firewall: &GuestFirewall, form: &FormState) -> AnyView {
    let hint = "anywhere, an address, a network such as 192.0.2.0/24, guest:NAME, environment:dev, or network:NAME";
    view! {
        <form method="post" action={to::<AllowToGuest>(&[&firewall.guest])} class="form body">
            {stays_at(&path(firewall), "allow")}
            {allow_fields(form, hint)}
            <p class="quiet">"Guests of two nodes reach each other by TCP only, at 16 ports of a rule at most."</p>
            <div class="submit"><button class="btn primary">"Allow it"</button></div>
        </form>
    }
    .into_any()
}

fn publish(firewall: &GuestFirewall, quota: &ProjectQuota, form: &FormState) -> AnyView {
    let at = format!("Of {}: 30000 to 39999; empty: a free one", firewall.node_address);
    view! {
        <form method="post" action={to::<PublishPort>(&[&firewall.guest])} class="form body">
            {stays_at(&path(firewall), "publish")}
            <div class="grid two">
                {Field::new(form, "port", "Port of the guest").beside("publish").required().number().mono().input()}
                {protocol(form, "publish")}
            </div>
            {Field::new(form, "node_port", "Port of the node").beside("publish").number().mono().hint(at).input()}
            {Field::new(form, "from", "For whom").beside("publish").choices("sources").mono().hint("anywhere unless said; an address, a network, or network:NAME").input()}
            {Field::new(form, "comment", "What for").beside("publish").input()}
            {left(quota, &[QuotaOf::Ports])}
            <div class="submit"><button class="btn primary">"Publish the port"</button></div>
        </form>
    }
    .into_any()
}

/// Counted at the node's edge, by whole hours.
fn signs(signs: &GuestSigns) -> AnyView {
    let row = |what: &'static str, count: SignCount| {
        view! {
            <tr>
                <td data-label="What">{what}</td>
                <td data-label="This hour and the last" class="num">{count.hour.to_string()}</td>
                <td data-label="A day" class="num">{count.day.to_string()}</td>
            </tr>
        }
    };
    view! {
        <table class="rows" aria-label="Signs of intrusion">
            <thead><tr><th>"What"</th><th class="num">"This hour and the last"</th><th class="num">"A day"</th></tr></thead>
            <tbody>
                {row("Refused SSH logins", signs.refused_ssh)}
                {row("Dropped packets", signs.dropped_packets)}
            </tbody>
        </table>
    }
    .into_any()
}

fn drops(drops: &[FirewallDrop]) -> AnyView {
    if drops.is_empty() {
        return empty("Nothing was kept out", "What tries to reach it without a rule is shown here, but for guests of the node that no rule names: these do not even find it.".into_any());
    }
    let rows = drops
        .iter()
        .map(|one| {
            let guest = one.from_guest.as_ref().map(|name| view! { <div class="quiet small">{name.to_string()}</div> });
            view! {
                <tr>
                    <td data-label="From"><code>{one.from.to_string()}</code>{guest}</td>
                    <td data-label="To port"><code>{format!("{}/{}", one.port, one.protocol)}</code></td>
                    <td data-label="Packets" class="num">{one.packets.to_string()}</td>
                    <td data-label="Last" class="quiet">{age(one.last_at)}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Kept out last">
            <thead><tr><th>"From"</th><th>"To port"</th><th class="num">"Packets"</th><th>"Last"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}
