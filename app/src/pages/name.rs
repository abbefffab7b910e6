//! A DNS name: where it leads, what the world sees of it, and its HTTPS.

use corpus_api::certificates::{
    CertificateAuthority, GetCertificate, GetCertificateAuthority, NameCertificate, RenewCertificate,
};
use corpus_api::guests::GetGuest;
use corpus_api::names::{GetName, NameLine};
use corpus_domain::{CertificateSource, CertificateState, DnsNameId};
use leptos::prelude::*;

use super::dns::in_zone;
use super::name_certificate::{certificate, https, root, upload};
use super::name_switch::{self, Ends};
use crate::caller::Caller;
use crate::components::{
    Fact, action_at, card, code, error_summary, facts, head, name_evidence, name_status, reason, stays_at,
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
    let shown = Shown { name: &name, served: &served, authority: authority.as_ref(), ends: &ends, may_change, form };
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
    let Shown { name, served, authority, ends, may_change, form } = shown;
    let guest = view! { <span>"Leads to "<a class="link" href=format!("/guests/{}", name.guest)>{name.guest_name.to_string()}</a></span> };
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
