//! A DNS name: where it leads, what the world sees of it, and its HTTPS.

use corpus_api::certificates::{
    CertificateAuthority, GetCertificate, GetCertificateAuthority, NameCertificate, RenewCertificate,
};
use corpus_api::guests::GetGuest;
use corpus_api::names::{AttachAlias, GetName, ListNames, NameLine, NamePointer, PointGuest};
use corpus_domain::{CertificateSource, CertificateState, DnsNameId, NameState};
use leptos::prelude::*;

use super::dns::in_zone;
use super::name_certificate::{certificate, https, root, upload};
use super::name_switch::{self, Ends};
use crate::caller::Caller;
use crate::components::{
    Fact, Field, Tone, action_at, age, card, code, error_summary, facts, head, name_evidence, name_status, reason,
    status, stays_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, id: DnsNameId, form: &FormState) -> Result<Page> {
    let name = caller.ask(GetName { name: id }).await?;
    let served = caller.ask(GetCertificate { name: id }).await?;
    let guest = caller.ask(GetGuest { guest: name.guest }).await?;
    let may_change = guest.may_change;
    let ends = if may_change { name_switch::read(caller, &name, &guest.line.project).await? } else { Ends::default() };
    let is_internal = served.served.as_ref().is_some_and(|one| one.source == CertificateSource::Internal);
    let authority = if is_internal { Some(caller.ask(GetCertificateAuthority {}).await?) } else { None };
    let can_have = can_have_aliases(&name);
    let aliases = ListNames { alias_of: Some(id), ..ListNames::default() };
    let aliases = if can_have { caller.ask(aliases).await?.items } else { Vec::new() };
    let (authority, aliases) = (authority.as_ref(), &aliases[..]);
    let shown = Shown { name: &name, aliases, served: &served, authority, ends: &ends, may_change, form };
    Ok(Page::new("name", name.shown(), name_view(&shown)).under("DNS", "/dns"))
}

/// What the page is made of.
pub struct Shown<'a> {
    /// The name.
    pub name: &'a NameLine,
    /// Those that are another name for it; a name has few.
    pub aliases: &'a [NameLine],
    /// Its certificate, and its HTTPS.
    pub served: &'a NameCertificate,
    /// Who signed it, where that is Corpus itself.
    pub authority: Option<&'a CertificateAuthority>,
    /// What it can lead to instead.
    pub ends: &'a Ends,
    /// Whether who looks may change it.
    pub may_change: bool,
    /// A form that came back.
    pub form: &'a FormState,
}

/// Its path.
pub fn path(id: DnsNameId) -> String {
    format!("/names/{id}")
}

/// The view of plain values.
pub fn name_view(shown: &Shown<'_>) -> AnyView {
    let Shown { name, aliases, served, authority, ends, may_change, form } = shown;
    let others = name.environment.map(|of| format!(" and the other guests of {of}"));
    let guest = view! { <span>"Leads to "<a class="link" href=format!("/guests/{}", name.guest)>{name.guest_name.to_string()}</a>{others}</span> };
    let is_busy = name.job.is_some() || matches!(served.state, CertificateState::Wanted | CertificateState::Issuing);
    let busy = is_busy.then_some("");
    let switch = may_change.then(|| name_switch::switch(name, ends, &form.of("switch"))).flatten();
    let changes = may_change.then(|| {
        view! {
            {card("https", "Who comes by HTTP", ().into_any(), https(served, &form.of("https")))}
            {card("upload", "A certificate of your own", ().into_any(), upload(name, served, &form.of("upload")))}
        }
    });
    view! {
        {head(name.shown().into_any(), guest.into_any(), may_change.then(|| renew(served)).into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">
                <div class="stack" id="live-certificate" data-live="" data-busy=busy>
                    {card("certificate", "Certificate", ().into_any(), certificate(served))}
                </div>
                {changes}
            </div>
            <div class="stack">
                <div class="stack" id="live-leads" data-live="">{card("leads", "Name", ().into_any(), leads(name))}</div>
                {switch.map(|form| card("switch", "Lead it to another guest", ().into_any(), form))}
                {can_have_aliases(name).then(|| alias_card(name, aliases, *may_change, &form.of("alias")))}
                {pointer(name, *may_change)}
                {authority.map(|authority| card("root", "Trust", ().into_any(), root(authority)))}
            </div>
        </div>
    }
    .into_any()
}

/// One that was brought is replaced by another one only.
fn renew(served: &NameCertificate) -> Option<AnyView> {
    if served.served.as_ref().is_some_and(|one| one.source == CertificateSource::Uploaded) {
        return None;
    }
    let word = match (served.state, &served.served) {
        (CertificateState::Failed, _) => "Try certificate now",
        (_, Some(_)) => "Renew certificate now",
        (_, None) => "Get certificate now",
    };
    let post = to::<RenewCertificate>(&[&served.name]);
    Some(action_at(post, stays_at(&path(served.name), "renew"), word, "btn", None))
}

fn leads(name: &NameLine) -> AnyView {
    let why = name.state_reason.as_deref().map(reason);
    let state = view! { {name_status(name)}{why}{name_evidence(name)} };
    let mut rows: Vec<Fact> = vec![("State", state.into_any()), ("Zone", in_zone(name).into_any())];
    if let Some(url) = name.url() {
        rows.insert(0, ("Address", view! { <a class="link wrap" href=url.clone()>{url.clone()}</a> }.into_any()));
    }
    if let Some(of) = &name.alias_of {
        rows.push(("Alias of", view! { <a class="link wrap" href=path(of.id)>{of.name.to_string()}</a> }.into_any()));
    }
    for address in &name.addresses {
        rows.push(("Resolves to", code("target", address.clone())));
    }
    facts(rows)
}

/// Whether others can be another name for it: it has addresses, for as long as we say which.
fn can_have_aliases(name: &NameLine) -> bool {
    !name.wildcard && name.zone.is_some() && name.alias_of.is_none() && name.state == NameState::Attached
}

/// Those that are another name for it, and the form for one more.
fn alias_card(name: &NameLine, aliases: &[NameLine], may_change: bool, form: &FormState) -> AnyView {
    let rows = aliases.iter().map(|alias| {
        let link = view! { <a class="link wrap" href=path(alias.id)>{alias.name.to_string()}</a> };
        view! { <tr><td data-label="Name">{link}</td><td data-label="State">{name_status(alias)}</td></tr> }
    });
    let table = if aliases.is_empty() {
        view! { <p class="body quiet">"No name is an alias of it."</p> }.into_any()
    } else {
        view! {
            <table class="rows" aria-label="Aliases">
                <thead><tr><th>"Name"</th><th>"State"</th></tr></thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        }
        .into_any()
    };
    let attach = may_change.then(|| {
        view! {
            <form method="post" action={to::<AttachAlias>(&[&name.id])} class="body row foot">
                {stays_at(&path(name.id), "alias")}
                {Field::new(form, "alias", "Alias").required().mono().hint("Leads where this name leads, also when it is switched").input()}
                <button class="btn">"Attach alias"</button>
            </form>
        }
    });
    let body = view! { <div id="live-aliases" data-live="">{table}</div>{attach} };
    card("aliases", "Aliases", ().into_any(), body.into_any())
}

/// Whether the address of its guest points back to it. That it can't say of a wildcard, of an alias, and of a name of a
/// zone that others hold.
fn pointer(name: &NameLine, may_change: bool) -> Option<AnyView> {
    if !can_have_aliases(name) {
        return None;
    }
    let now = match &name.pointer {
        Some(pointer) => points(pointer),
        None => view! { <p class="body quiet">"The address of its guest does not point back to it."</p> }.into_any(),
    };
    let change = may_change.then(|| point(name));
    Some(card(
        "pointer",
        "Reverse record",
        ().into_any(),
        view! { <div id="live-pointer" data-live="">{now}</div>{change} }.into_any(),
    ))
}

fn points(pointer: &NamePointer) -> AnyView {
    let state = match (&pointer.problem, pointer.stands) {
        (Some(why), _) => view! { {status(Tone::Wait, "Not written")}{reason(why)} }.into_any(),
        (None, true) => status(Tone::Ok, "Written"),
        (None, false) => status(Tone::Busy, "Being written"),
    };
    let mut rows = vec![("Address", code("pointer", pointer.address.clone())), ("State", state)];
    if let Some(since) = pointer.since {
        rows.push(("Since", age(since)));
    }
    facts(rows)
}

/// What was not written is tried again by the same form: a reverse zone may be there by now.
fn point(name: &NameLine) -> AnyView {
    let post = to::<PointGuest>(&[&name.guest]);
    let form = |id: String, word: &'static str| {
        let hidden = view! { {stays_at(&path(name.id), "pointer")}<input type="hidden" name="name" value=id/> };
        action_at(post.clone(), hidden.into_any(), word, "btn", None)
    };
    let word = match &name.pointer {
        None => Some("Point its address here"),
        Some(pointer) if pointer.problem.is_some() => Some("Try again"),
        Some(_) => None,
    };
    let here = word.map(|word| form(name.id.to_string(), word));
    let nowhere = name.pointer.is_some().then(|| form(String::new(), "Point it to no name"));
    view! { <div class="body row">{here}{nowhere}</div> }.into_any()
}
