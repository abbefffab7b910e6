//! A zone: which projects may take names in it.

use corpus_api::zones::{GetZone, SetZoneAccess, SetZoneTtl, Zone, ZoneAccess, ZoneOpenness};
use corpus_domain::ZoneId;
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{Field, card, count, error_summary, head, shown_at, stays_at};
use crate::form::{FormState, Result, sentence};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, id: ZoneId, form: &FormState) -> Result<Page> {
    let zone = caller.ask(GetZone { zone: id }).await?;
    Ok(Page::new("zone", zone.name.to_string(), zone_view(&zone, form)).under("DNS", "/dns"))
}

/// The view of plain values.
pub fn zone_view(zone: &Zone, form: &FormState) -> AnyView {
    let access = &form.of("");
    let version = ZoneOpenness::new(zone.access, zone.projects.clone()).version;
    let below = view! { <span class="quiet">{count(zone.names as usize, "name")}" attached"</span> };
    let body = view! {
        <form method="post" action={to::<SetZoneAccess>(&[&zone.id])} class="form body">
            {shown_at(&format!("/dns/zones/{}", zone.id), "")}
            <input type="hidden" name="_next" value="/dns"/>
            <input type="hidden" name="version" value=access.version(version)/>
            {access_fields(access, Some(zone))}
            <p class="quiet">"Names that are attached already stay."</p>
            <div class="submit"><button class="btn primary">"Save"</button><a class="btn" href="/dns">"Cancel"</a></div>
        </form>
    };
    view! {
        {head(zone.name.to_string().into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {card("access", "Who may take names in it", ().into_any(), body.into_any())}
        {card("answers", "Answers", ().into_any(), ttl(zone, &form.of("ttl")))}
    }
    .into_any()
}

/// Who holds it, and for how long what is answered may be kept.
fn ttl(zone: &Zone, form: &FormState) -> AnyView {
    let path = format!("/dns/zones/{}", zone.id);
    view! {
        <form method="post" action={to::<SetZoneTtl>(&[&zone.id])} class="form body">
            {stays_at(&path, "ttl")}
            <p class="quiet">"Held by the DNS server "{zone.provider.to_string()}"."</p>
            {Field::new(form, "ttl_s", "Answers may be kept for").beside("ttl").suggest(zone.ttl_s.to_string()).required().mono().hint("Seconds, 10 to 86400. Records that are there keep what they have.").input()}
            <div><button class="btn">"Save how long"</button></div>
        </form>
    }
    .into_any()
}

/// Who may take names in a zone, in words.
pub fn access_words(zone: &Zone) -> String {
    match zone.access {
        ZoneAccess::All => "open to all projects".to_owned(),
        ZoneAccess::Ask => "open to all projects, each name by an operator's approval".to_owned(),
        ZoneAccess::Only if zone.projects.is_empty() => "open to no project".to_owned(),
        ZoneAccess::Only => {
            let names: Vec<&str> = zone.projects.iter().map(AsRef::as_ref).collect();
            format!("only for {}", names.join(", "))
        }
    }
}

/// The fields that say so. Without `now` nothing is chosen: whoever makes a zone decides.
pub fn access_fields(form: &FormState, now: Option<&Zone>) -> AnyView {
    let chosen = match (form.was_sent(), now.map(|zone| zone.access)) {
        (true, _) => form.value("access"),
        (false, Some(ZoneAccess::All)) => Some("all"),
        (false, Some(ZoneAccess::Only)) => Some("only"),
        (false, Some(ZoneAccess::Ask)) => Some("ask"),
        (false, None) => None,
    };
    let radios = [("all", "All projects"), ("only", "Only these projects"), ("ask", "All projects, each name when an operator approves it")].map(|(value, text)| {
        let checked = chosen == Some(value);
        view! { <label class="check"><input type="radio" name="access" value=value checked=checked required=true/>{text}</label> }
    });
    let meanwhile = now.filter(|_| form.was_too_late());
    let meanwhile =
        meanwhile.map(|zone| view! { <p class="hint strong" id="f-access-now">"Now: "{access_words(zone)}</p> });
    let error = form.error_at("access").map(|text| view! { <p class="error" id="f-access-error">{sentence(text)}</p> });
    let described = error.is_some().then_some("f-access-error");
    let projects = now.map_or(&[][..], |zone| &zone.projects);
    let named = projects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    view! {
        <fieldset class="field" id="f-access" tabindex="-1" aria-describedby=described>
            <legend>"Who may take names in it"</legend>
            <div class="checks">{radios.into_iter().collect_view()}</div>
            {error}
            {meanwhile}
        </fieldset>
        {Field::new(form, "projects", "Projects").suggest(named).mono().hint("Their names, with commas between; for only these").input()}
    }
    .into_any()
}
