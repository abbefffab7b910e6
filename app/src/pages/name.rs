//! A DNS name: where it leads, what the world sees of it, and its HTTPS.

use corpus_api::certificates::{
    CertificateAuthority, GetCertificate, GetCertificateAuthority, NameCertificate, RenewCertificate,
};
use corpus_api::guests::GetGuest;
use corpus_api::names::{GetName, NameLine, NamePointer, PointGuest};
use corpus_domain::{CertificateSource, CertificateState, DnsNameId, NameState};
use leptos::prelude::*;

use super::dns::in_zone;
use super::name_certificate::{certificate, https, root, upload};
use crate::caller::Caller;
use crate::components::{
    Fact, Tone, action_at, age, card, code, error_summary, facts, head, name_evidence, name_status, reason, stays_at,
    status,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, id: DnsNameId, form: &FormState) -> Result<Page> {
    let name = caller.ask(GetName { name: id }).await?;
    let served = caller.ask(GetCertificate { name: id }).await?;
    let may_change = caller.ask(GetGuest { guest: name.guest }).await?.may_change;
    let is_internal = served.served.as_ref().is_some_and(|one| one.source == CertificateSource::Internal);
    let authority = if is_internal { Some(caller.ask(GetCertificateAuthority {}).await?) } else { None };
    let shown = Shown { name: &name, served: &served, authority: authority.as_ref(), may_change, form };
    Ok(Page::new("name", name.shown(), name_view(&shown)).under("DNS", "/dns"))
}

/// What the page is made of.
pub struct Shown<'a> {
    /// The name.
    pub name: &'a NameLine,
    /// Its certificate, and its HTTPS.
    pub served: &'a NameCertificate,
    /// Who signed it, where that is Corpus itself.
    pub authority: Option<&'a CertificateAuthority>,
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
    let Shown { name, served, authority, may_change, form } = shown;
    let guest = view! { <span>"Leads to "<a class="link" href=format!("/guests/{}", name.guest)>{name.guest_name.to_string()}</a></span> };
    let is_busy = name.job.is_some() || matches!(served.state, CertificateState::Wanted | CertificateState::Issuing);
    let busy = is_busy.then_some("");
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
    for target in [&name.target, &name.target_ipv6].into_iter().flatten() {
        rows.push(("Resolves to", code("target", target.clone())));
    }
    facts(rows)
}

/// Whether the address of its guest points back to it. A wildcard, and a name of a zone that others hold, it can't say.
fn pointer(name: &NameLine, may_change: bool) -> Option<AnyView> {
    if name.wildcard || name.zone.is_none() || name.state != NameState::Attached {
        return None;
    }
    let now = match &name.pointer {
        Some(pointer) => points(pointer),
        None => view! { <p class="body quiet">"The address of its guest does not point back to it."</p> }.into_any(),
    };
    let change = may_change.then(|| point(name));
    Some(card("pointer", "Reverse record", ().into_any(), view! { <div id="live-pointer" data-live="">{now}</div>{change} }.into_any()))
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
