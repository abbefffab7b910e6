//! DNS: the zones, and the names that lead to guests.

use corpus_api::Principal;
use corpus_api::claims::{ListNameClaims, NameClaim};
use corpus_api::guests::ListGuests;
use corpus_api::names::{AttachName, ListNames, NameLine, NamePage};
use corpus_api::not_created::{Creation, NotCreated};
use corpus_api::undoes::{ListUndoes, UndoLine, Undoable};
use corpus_api::zones::{CreateZone, ListDnsServers, ListZones, RemoveZone, SetZoneAccess, Zone};
use corpus_domain::{GuestName, JobKind, NameState, ProviderName, ViewedList};
use leptos::prelude::*;

use super::zone::{access_fields, access_words};
use super::{Asked, again, not_created, undo};
use crate::asked::{Listing, page_after};
use crate::caller::Caller;
use crate::components::{
    Field, Filters, age, any_of, card, code, confirm_at, count, empty, error_summary, head, instead_of, name_evidence,
    name_status, next_link, picks, reason, shown_at, stays_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// The form that attaches a name, among those of the page.
const ATTACH: &str = "attach";
/// The most zones that are shown at once.
const ZONES: u64 = 200;
/// The most claims.
const CLAIMS: u64 = 50;

/// What stands beside the names.
#[derive(Debug, Default, Clone, Copy)]
pub struct Beside<'a> {
    /// What can be undone.
    pub undoes: &'a [UndoLine],
    /// What could not be attached.
    pub failed: &'a [NotCreated],
    /// Names from elsewhere that are not attached yet.
    pub claims: &'a [NameClaim],
    /// The DNS servers that a zone can be made at.
    pub servers: &'a [ProviderName],
}

/// Reads and shows them.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let limit = ZONES.try_into().ok();
    let zones = caller.ask(ListZones { limit, ..ListZones::default() }).await?.items;
    let again = if given.form.was_sent() { None } else { again::form(caller, &given.query, JobKind::NameAttach).await };
    let form = again.map_or_else(|| given.form.clone(), |form| FormState { form: ATTACH.to_owned(), ..form });
    let mut query = given.query.clone();
    query.remove("again");
    let asked = Listing::ask::<ListNames>(caller, ViewedList::Names, query, &form).await?;
    let (names, listing) = asked;
    let guests = if may_attach(&caller.who) && !zones.is_empty() {
        caller.ask(ListGuests::default()).await?.items.into_iter().map(|guest| guest.name).collect()
    } else {
        Vec::new()
    };
    let mut undoes = undo::few(caller, ListUndoes { of: Some(Undoable::Name), ..ListUndoes::default() }).await?;
    undoes.extend(undo::few(caller, ListUndoes { of: Some(Undoable::Switch), ..ListUndoes::default() }).await?);
    let failed = not_created::few(caller, Some(Creation::Name)).await?;
    let claims = caller.ask(ListNameClaims { limit: CLAIMS.try_into().ok(), ..ListNameClaims::default() }).await?.items;
    let makes_zones = caller.who.can::<CreateZone>(None);
    let servers = if makes_zones { caller.ask(ListDnsServers {}).await?.items } else { Vec::new() };
    let beside = Beside { undoes: &undoes, failed: &failed, claims: &claims, servers: &servers };
    let view = dns_view(&caller.who, &zones, &names, &guests, beside, &listing);
    Ok(Page { status: listing.status(), ..Page::new("dns", "DNS", view) })
}

/// Whether the principal may attach names to guests of any project.
fn may_attach(principal: &Principal) -> bool {
    principal.ops || principal.roles.keys().any(|project| principal.can::<AttachName>(Some(*project)))
}

/// The view of plain values; `guests` are some of those that a name may lead to. What can be undone and what could
/// not be attached is said at the top.
pub fn dns_view(
    principal: &Principal,
    zones: &[Zone],
    names: &NamePage,
    guests: &[GuestName],
    Beside { undoes, failed, claims, servers }: Beside<'_>,
    listing: &Listing,
) -> AnyView {
    let attached: usize = zones.iter().map(|zone| zone.names as usize).sum();
    let below =
        view! { <span class="quiet">{format!("{}, {}", count(zones.len(), "zone"), count(attached, "name"))}</span> };
    let busy = names.items.iter().any(|name| name.job.is_some()).then_some("");
    let is_asked = attached > 0 || listing.is_filtered(&[]);
    let above = if is_asked { filters(zones, listing) } else { error_summary(&listing.form) };
    let attach = (!guests.is_empty()).then(|| attach(guests, zones, &listing.form.of(ATTACH)));
    view! {
        {head("DNS".into_any(), below.into_any(), ().into_any())}
        {undo::offered(undoes, "/dns")}
        <div class="stack" id="live-notices" data-live="">{not_created::notices(failed, "/dns")}</div>
        {above}
        <div class="cols">
            <div class="stack" id="live-names" data-live="" data-busy=busy>
                {card("names", "Names", ().into_any(), name_table(&names.items, attached > 0))}
                {next_link(page_after("/dns", &listing.query, names.next.as_ref()))}
            </div>
            <div class="stack">
                {attach}
                {card("zones", "Zones", ().into_any(), zone_list(principal, zones, servers, &listing.form))}
                {claimed(claims)}
            </div>
        </div>
    }
    .into_any()
}

/// Names from elsewhere that wait for their records.
fn claimed(claims: &[NameClaim]) -> Option<AnyView> {
    if claims.is_empty() {
        return None;
    }
    let items = claims.iter().map(|claim| {
        let missing = match (claim.leads, claim.proven) {
            (true, true) => "both records are seen",
            (true, false) => "its proof is missing",
            (false, true) => "it does not lead here",
            (false, false) => "neither record is seen",
        };
        let path = format!("/name-claims/{}", claim.id);
        view! {
            <li><div><a class="link strong" href=path>{claim.name.to_string()}</a><div class="quiet">{format!("for {}: {missing}", claim.guest_name)}</div></div></li>
        }
    });
    let list = view! { <ul class="items">{items.collect_view()}</ul> };
    Some(card("claims", "Names from elsewhere", ().into_any(), list.into_any()))
}

fn filters(zones: &[Zone], listing: &Listing) -> AnyView {
    let form = &listing.filter;
    let zones = any_of(zones.iter().map(|zone| (zone.id.to_string(), zone.name.to_string())));
    let states = any_of(picks(NameState::ALL.iter().map(|one| one.as_str())));
    let fields = vec![
        Field::new(form, "q", "Has in it").input(),
        Field::new(form, "project", "Of project").input(),
        Field::new(form, "zone", "Of zone").select(zones),
        Field::new(form, "state", "In state").select(states),
    ];
    let orders: &[_] = &[("name", "By name"), ("newest", "Newest first")];
    let filters = Filters {
        list: ViewedList::Names,
        label: "Names",
        fields,
        hidden: &["guest"],
        beside: &["sort"],
        orders: Some(orders),
    };
    filters.view(listing)
}

/// The form that attaches a name from here: the guest is typed, and the first ones can be picked.
fn attach(guests: &[GuestName], zones: &[Zone], form: &FormState) -> AnyView {
    let mut within: Vec<&str> = zones.iter().take(3).map(|zone| zone.name.as_str()).collect();
    if zones.len() > within.len() {
        within.push("others");
    }
    let choices = guests.iter().map(|name| view! { <option value=name.to_string()></option> }).collect_view();
    let body = view! {
        <form method="post" action="/names" class="form body">
            {shown_at("/dns", ATTACH)}
            {instead_of(form)}
            {Field::new(form, "name", "DNS name").beside(ATTACH).required().mono().hint(format!("In {}", within.join(", "))).input()}
            {Field::new(form, "guest", "Guest").beside(ATTACH).required().mono().choices("guest-names").complete("on").hint("By its name").input()}
            {wildcard(form)}
            <datalist id="guest-names">{choices}</datalist>
            <div><button class="btn">"Attach"</button></div>
        </form>
    };
    card("attach", "Attach a name", ().into_any(), body.into_any())
}

/// The choice of all names below one.
pub fn wildcard(form: &FormState) -> AnyView {
    let checked = form.value("wildcard") == Some("true");
    view! { <label class="check"><input type="checkbox" name="wildcard" value="true" checked=checked/>"All names below it instead, that have none of their own: *.NAME"</label> }.into_any()
}

fn name_table(names: &[NameLine], are_more: bool) -> AnyView {
    if names.is_empty() && are_more {
        return empty("No name matches", view! { <a class="link" href="/dns">"Show all names"</a> }.into_any());
    }
    if names.is_empty() {
        return empty(
            "No name leads to a guest yet",
            "Attach one: HTTP of that name goes to port 80 of its guest.".into_any(),
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
    let why = name.state_reason.as_deref().map(reason);
    let answered = name_evidence(name);
    // Of a name on one node that by IPv4: its own page has all.
    let shown = if name.environment.is_some() { name.addresses.as_slice() } else { name.target.as_slice() };
    let addresses = shown.iter().map(|address| view! { <div>{code("target", address.clone())}</div> }).collect_view();
    let shared =
        name.environment.map(|of| view! { <div class="quiet small">{format!("and the other guests of {of}")}</div> });
    view! {
        <tr>
            <td data-label="Name"><a class="link" href=super::name::path(name.id)>{name.shown()}</a><div class="quiet small">{in_zone(name)}</div></td>
            <td data-label="State">{name_status(name)}{why}</td>
            <td data-label="Resolves to" class="wrap">{addresses}{answered}</td>
            <td data-label="Guest"><a href=format!("/guests/{}", name.guest)>{name.guest_name.to_string()}</a>{shared}</td>
        </tr>
    }
    .into_any()
}

/// Which zone holds it.
pub fn in_zone(name: &NameLine) -> String {
    let zone = name.zone_name.as_ref().map_or_else(|| "from elsewhere".to_owned(), |zone| format!("in {zone}"));
    name.alias_of.as_ref().map_or_else(|| zone.clone(), |of| format!("{zone}, alias of {}", of.name))
}

fn zone_list(principal: &Principal, zones: &[Zone], servers: &[ProviderName], form: &FormState) -> AnyView {
    let items = zones.iter().map(|zone| zone_item(principal, zone, servers)).collect_view();
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
                {at_server(servers, &form)}
                {Field::new(&form, "ttl_s", "Answers may be kept for").mono().hint("Seconds, 10 to 86400; 60 unless said").input()}
                {access_fields(&form, None)}
                <div><button class="btn">"Create the zone"</button></div>
            </form>
        }
    });
    view! { {list}{create} }.into_any()
}

/// The choice of the DNS server, where there is one.
fn at_server(servers: &[ProviderName], form: &FormState) -> Option<AnyView> {
    if servers.len() < 2 {
        return None;
    }
    let nothing = (String::new(), "Choose one".to_owned());
    let options = servers.iter().map(|name| (name.to_string(), name.to_string()));
    let options = std::iter::once(nothing).chain(options).collect();
    Some(Field::new(form, "provider", "DNS server").required().select(options))
}

fn zone_item(principal: &Principal, zone: &Zone, servers: &[ProviderName]) -> AnyView {
    let names = count(zone.names as usize, "name");
    let server = if principal.ops && (servers.len() > 1 || !servers.contains(&zone.provider)) {
        let gone = if servers.contains(&zone.provider) { "" } else { ", which is not configured any more" };
        format!("at the DNS server {}{gone}, ", zone.provider)
    } else {
        String::new()
    };
    let change = principal.can::<SetZoneAccess>(None).then(|| {
        let label = format!("Change access: who may take names in {}", zone.name);
        view! { <a class="btn small" href=format!("/dns/zones/{}", zone.id) aria-label=label>"Change access"</a> }
    });
    let remove = (principal.can::<RemoveZone>(None) && zone.names == 0).then(|| {
        confirm_at(
            "Remove zone",
            zone.name.as_str(),
            format!("{} is removed from the DNS server.", zone.name),
            to::<RemoveZone>(&[&zone.id]),
            stays_at("/dns", "zone-remove"),
        )
    });
    view! {
        <li>
            <div><span class="strong">{zone.name.to_string()}</span><div class="quiet">{server}{access_words(zone)}", "{names}", created "{age(zone.created_at)}</div></div>
            <span class="actions">{change}{remove}</span>
        </li>
    }
    .into_any()
}
