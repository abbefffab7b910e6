//! DNS: the zones, and the names that lead to guests.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::views::{NameView, ZoneView};
use corpus_controller::{Controller, Result};
use leptos::prelude::*;

use super::zone::{access_fields, access_words};
use crate::components::{Field, age, card, code, confirm, count, empty, error_summary, head, name_status};
use crate::form::FormState;
use crate::layout::Page;

/// Reads and shows them.
pub async fn load(controller: &Controller, principal: &Principal, form: &FormState) -> Result<Page> {
    let zones = controller.zones(principal).await?;
    let names = controller.names(principal).await?;
    Ok(Page::new("dns", "DNS", dns_view(principal, &zones, &names, form)))
}

/// The view of plain values.
pub fn dns_view(principal: &Principal, zones: &[ZoneView], names: &[NameView], form: &FormState) -> AnyView {
    let below = view! { <span class="quiet">{format!("{}, {}", count(zones.len(), "zone"), count(names.len(), "name"))}</span> };
    let busy = names.iter().any(|name| name.job.is_some()).then_some("");
    view! {
        {head("DNS".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack" id="live-names" data-live="" data-busy=busy>{card("names", "Names", ().into_any(), name_table(names))}</div>
            <div class="stack">{card("zones", "Zones", ().into_any(), zone_list(principal, zones, form))}</div>
        </div>
    }
    .into_any()
}

fn name_table(names: &[NameView]) -> AnyView {
    if names.is_empty() {
        return empty(
            "No name leads to a guest yet",
            view! { "Open a "<a class="link" href="/guests">"guest"</a>" and attach one." }.into_any(),
        );
    }
    let rows = names.iter().map(name_row).collect_view();
    view! {
        <table class="rows" aria-label="DNS names">
            <thead><tr><th>"Name"</th><th>"State"</th><th>"Resolves to"</th><th>"Guest"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn name_row(name: &NameView) -> AnyView {
    let reason = name.state_reason.clone().map(|reason| view! { <div class="quiet reason">{reason}</div> });
    let answered = name.answered_at.map(|at| view! { <div class="quiet small">"answered "{age(at)}</div> });
    view! {
        <tr>
            <td data-label="Name">{name.name.to_string()}<div class="quiet small">{format!("in {}", name.zone)}</div></td>
            <td data-label="State">{name_status(name)}{reason}</td>
            <td data-label="Resolves to">{name.target.clone().map(|target| code("target", target))}{answered}</td>
            <td data-label="Guest"><a href=format!("/guests/{}", name.guest_id)>{name.guest.to_string()}</a></td>
        </tr>
    }
    .into_any()
}

fn zone_list(principal: &Principal, zones: &[ZoneView], form: &FormState) -> AnyView {
    let items = zones.iter().map(|zone| zone_item(principal, zone)).collect_view();
    let list = if zones.is_empty() {
        empty("No zone yet", "A zone is the part of DNS that names are attached in, such as example.org.".into_any())
    } else {
        view! { <ul class="items">{items}</ul> }.into_any()
    };
    let form = form.of("zone");
    let create = principal.may(Operation::ZoneCreate, None).then(|| {
        view! {
            <form method="post" action="/dns" class="form body foot">
                {Field::new(&form, "name", "Zone name").required().mono().hint("Held by the DNS server of this installation").input()}
                {access_fields(&form, None)}
                <div><button class="btn">"Create the zone"</button></div>
            </form>
        }
    });
    view! { {list}{create} }.into_any()
}

fn zone_item(principal: &Principal, zone: &ZoneView) -> AnyView {
    let names = count(zone.names as usize, "name");
    let change = principal.may(Operation::ZoneGovern, None).then(|| {
        let label = format!("Change who may take names in {}", zone.name);
        view! { <a class="btn small" href=format!("/dns/zones/{}", zone.id) aria-label=label>"Change"</a> }
    });
    let remove = (principal.may(Operation::ZoneRemove, None) && zone.names == 0).then(|| {
        confirm(
            "Remove",
            zone.name.as_str(),
            format!("{} is removed from the DNS server.", zone.name),
            format!("/dns/zones/{}/remove", zone.id),
        )
    });
    view! {
        <li>
            <div><span class="strong">{zone.name.to_string()}</span><div class="quiet">{access_words(&zone.access)}", "{names}", created "{age(zone.created_at)}</div></div>
            <span class="actions">{change}{remove}</span>
        </li>
    }
    .into_any()
}
