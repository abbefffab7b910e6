//! DNS: the zones, and the names that lead to guests.

use corpus_api::Principal;
use corpus_api::names::{ListNames, NameLine, NamePage};
use corpus_api::zones::{CreateZone, ListZones, RemoveZone, SetZoneAccess, Zone};
use corpus_domain::NameState;
use leptos::prelude::*;

use super::Asked;
use super::zone::{access_fields, access_words};
use crate::asked::{Query, asked, page_after, typed};
use crate::caller::Caller;
use crate::components::{
    Field, age, card, code, confirm_at, count, empty, error_summary, head, name_status, next_link, picks, stays_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// The most zones that are shown at once.
const ZONES: u64 = 200;

/// Reads and shows them.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let limit = ZONES.try_into().ok();
    let zones = caller.ask(ListZones { limit, ..ListZones::default() }).await?.items;
    let names = caller.ask(asked::<ListNames>(&given.query)?).await?;
    Ok(Page::new("dns", "DNS", dns_view(&caller.who, &zones, &names, &given.query, &given.form)))
}

/// The view of plain values.
pub fn dns_view(principal: &Principal, zones: &[Zone], names: &NamePage, query: &Query, form: &FormState) -> AnyView {
    let attached: usize = zones.iter().map(|zone| zone.names as usize).sum();
    let below =
        view! { <span class="quiet">{format!("{}, {}", count(zones.len(), "zone"), count(attached, "name"))}</span> };
    let busy = names.items.iter().any(|name| name.job.is_some()).then_some("");
    let list = (attached > 0).then(|| filters(zones, query));
    view! {
        {head("DNS".into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {list}
        <div class="cols">
            <div class="stack" id="live-names" data-live="" data-busy=busy>
                {card("names", "Names", ().into_any(), name_table(&names.items, attached > 0))}
                {next_link(page_after("/dns", query, names.next.as_ref()))}
            </div>
            <div class="stack">{card("zones", "Zones", ().into_any(), zone_list(principal, zones, form))}</div>
        </div>
    }
    .into_any()
}

fn filters(zones: &[Zone], query: &Query) -> AnyView {
    let form = typed(query);
    let any = || std::iter::once((String::new(), "any".to_owned()));
    let zones = any().chain(zones.iter().map(|zone| (zone.id.to_string(), zone.name.to_string())));
    let states = any().chain(picks(NameState::ALL.iter().map(|one| one.as_str())));
    view! {
        <form method="get" action="/dns" class="filters" role="search" aria-label="Names">
            {Field::new(&form, "q", "Has in it").input()}
            {Field::new(&form, "project", "Of project").input()}
            {Field::new(&form, "zone", "Of zone").select(zones.collect())}
            {Field::new(&form, "state", "In state").select(states.collect())}
            <div class="actions"><button class="btn">"Filter"</button></div>
        </form>
    }
    .into_any()
}

fn name_table(names: &[NameLine], are_more: bool) -> AnyView {
    if names.is_empty() && are_more {
        return empty("No name matches", view! { <a class="link" href="/dns">"Show all names"</a> }.into_any());
    }
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

fn name_row(name: &NameLine) -> AnyView {
    let reason = name.state_reason.clone().map(|reason| view! { <div class="quiet reason">{reason}</div> });
    let answered = name.answered_at.map(|at| view! { <div class="quiet small">"answered "{age(at)}</div> });
    view! {
        <tr>
            <td data-label="Name">{name.name.to_string()}<div class="quiet small">{format!("in {}", name.zone_name)}</div></td>
            <td data-label="State">{name_status(name)}{reason}</td>
            <td data-label="Resolves to">{name.target.clone().map(|target| code("target", target))}{answered}</td>
            <td data-label="Guest"><a href=format!("/guests/{}", name.guest)>{name.guest_name.to_string()}</a></td>
        </tr>
    }
    .into_any()
}

fn zone_list(principal: &Principal, zones: &[Zone], form: &FormState) -> AnyView {
    let items = zones.iter().map(|zone| zone_item(principal, zone)).collect_view();
    let list = if zones.is_empty() {
        empty("No zone yet", "A zone is the part of DNS that names are attached in, such as example.org.".into_any())
    } else {
        view! { <ul class="items">{items}</ul> }.into_any()
    };
    let form = form.of("zone");
    let create = principal.can::<CreateZone>(None).then(|| {
        view! {
            <form method="post" action={to::<CreateZone>(&[])} class="form body foot">
                {stays_at("/dns", "zone")}
                {Field::new(&form, "name", "Zone name").required().mono().hint("Held by the DNS server of this installation").input()}
                {access_fields(&form, None)}
                <div><button class="btn">"Create the zone"</button></div>
            </form>
        }
    });
    view! { {list}{create} }.into_any()
}

fn zone_item(principal: &Principal, zone: &Zone) -> AnyView {
    let names = count(zone.names as usize, "name");
    let change = principal.can::<SetZoneAccess>(None).then(|| {
        let label = format!("Change who may take names in {}", zone.name);
        view! { <a class="btn small" href=format!("/dns/zones/{}", zone.id) aria-label=label>"Change"</a> }
    });
    let remove = (principal.can::<RemoveZone>(None) && zone.names == 0).then(|| {
        confirm_at(
            "Remove",
            zone.name.as_str(),
            format!("{} is removed from the DNS server.", zone.name),
            to::<RemoveZone>(&[&zone.id]),
            stays_at("/dns", "zone-remove"),
        )
    });
    view! {
        <li>
            <div><span class="strong">{zone.name.to_string()}</span><div class="quiet">{access_words(zone)}", "{names}", created "{age(zone.created_at)}</div></div>
            <span class="actions">{change}{remove}</span>
        </li>
    }
    .into_any()
}
