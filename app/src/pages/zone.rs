//! A zone: which projects may take names in it.

use corpus_api::zones::{GetZone, SetZoneAccess, Zone, ZoneAccess, ZoneOpenness};
use corpus_domain::ZoneId;
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{Field, card, count, error_summary, head, shown_at};
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
    let version = ZoneOpenness::new(zone.access, zone.projects.clone()).version;
    let below = view! { <span class="quiet">{count(zone.names as usize, "name")}" attached"</span> };
    let body = view! {
        <form method="post" action={to::<SetZoneAccess>(&[&zone.id])} class="form body">
            {shown_at(&format!("/dns/zones/{}", zone.id), "")}
            <input type="hidden" name="_next" value="/dns"/>
            <input type="hidden" name="version" value=version.to_string()/>
            {access_fields(form, Some(zone))}
            <p class="quiet">"Names that are attached already stay."</p>
            <div class="submit"><button class="btn primary">"Save"</button><a class="btn" href="/dns">"Cancel"</a></div>
        </form>
    };
    view! {
        {head(zone.name.to_string().into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {card("access", "Who may take names in it", ().into_any(), body.into_any())}
    }
    .into_any()
}

/// Who may take names in a zone, in words.
pub fn access_words(zone: &Zone) -> String {
    match zone.access {
        ZoneAccess::All => "open to all projects".to_owned(),
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
        (false, None) => None,
    };
    let radios = [("all", "All projects"), ("only", "Only these projects")].map(|(value, text)| {
        let checked = chosen == Some(value);
        view! { <label class="check"><input type="radio" name="access" value=value checked=checked required=true/>{text}</label> }
    });
    let error = form.error_at("access").map(|text| view! { <p class="error" id="f-access-error">{sentence(text)}</p> });
    let described = error.is_some().then_some("f-access-error");
    let projects = now.map_or(&[][..], |zone| &zone.projects);
    let named = projects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    view! {
        <fieldset class="field" id="f-access" tabindex="-1" aria-describedby=described>
            <legend>"Who may take names in it"</legend>
            <div class="checks">{radios.into_iter().collect_view()}</div>
            {error}
        </fieldset>
        {Field::new(form, "projects", "Projects").suggest(named).mono().hint("Their names, with commas between; for only these").input()}
    }
    .into_any()
}
