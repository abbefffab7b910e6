//! The settings of a guest: what it was made with, and the form for what of it is changed later.

use corpus_api::guests::{Guest, SetGuestSettings};
use corpus_api::lxc_lines::AllowedLine;
use corpus_domain::{GuestState, LxcLineName};
use leptos::prelude::*;

use super::guest::{is_settled, path};
use super::guest_parts::yes;
use crate::components::{Fact, card, check, facts, stays_at};
use crate::form::{FormState, sentence};
use crate::to::to;

/// The form.
const FORM: &str = "settings";

/// Everything it was made with; what is live is marked so, and what is changed later has a form.
pub fn settings(guest: &Guest, lines: &[AllowedLine], form: &FormState) -> AnyView {
    let text = |value: Option<String>| {
        value.map_or_else(
            || view! { <span class="quiet">"not set"</span> }.into_any(),
            |value| view! { <code>{value}</code> }.into_any(),
        )
    };
    let plain = |value: &str| text(Some(value.to_owned()));
    let domains: Vec<String> = guest.names.iter().map(|name| name.name.to_string()).collect();
    let rows: Vec<Fact> = vec![
        ("autostart", plain(yes(guest.autostart))),
        ("backing", plain(guest.backing.as_str())),
        ("bootstrap branch", text(None)),
        ("bridge", plain(&guest.bridge)),
        ("domains", text((!domains.is_empty()).then(|| domains.join(" ")))),
        ("gateway (live)", plain(&guest.network.gateway().to_string())),
        ("image", plain(guest.image.as_str())),
        ("origin image", plain(guest.image.as_str())),
        ("ids", text(guest.ids.map(|ids| ids.to_string()))),
        ("ip (live)", text(guest.line.ip.map(|ip| ip.to_string()))),
        ("lxc conf set, unset", text(conf(guest, lines))),
        ("mac", text(guest.mac.map(|mac| mac.to_string()))),
        ("master, port", text(None)),
        ("mode", plain(guest.mode.as_str())),
        ("name", plain(guest.line.name.as_str())),
        ("netmask", plain(&guest.network.netmask().to_string())),
        ("network", plain(&format!("{}/{}", guest.network.network(), guest.network.prefix()))),
        ("password", plain(if guest.has_password { "sealed" } else { "not set yet" })),
        ("privileged", text(guest.line.privileged.as_ref().map(ToString::to_string))),
        ("profile", text(guest.profile.as_ref().map(ToString::to_string))),
        ("script args", text(None)),
        ("snapshot", text(None)),
        ("ssh gateway", plain(&guest.line.node_address.to_string())),
        ("ssh reverse proxy port (live)", text(guest.line.ssh_port.map(|port| port.to_string()))),
        ("ssh user", plain("sysadmin")),
        ("sudo", plain("yes")),
        ("users", plain("root sysadmin")),
    ];
    let body = view! {
        <details class="settings"><summary>"Show all settings"</summary>{facts(rows)}</details>
        {change(guest, lines, form)}
    };
    card(
        "settings",
        "Settings",
        view! { <span class="quiet">"live ones as observed"</span> }.into_any(),
        body.into_any(),
    )
}

/// What its lines say, those that it has.
fn conf(guest: &Guest, lines: &[AllowedLine]) -> Option<String> {
    let said = guest
        .conf
        .iter()
        .map(|name| lines.iter().find(|line| line.name == *name).map_or_else(|| name.to_string(), AllowedLine::text));
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("; "))
}

fn change(guest: &Guest, lines: &[AllowedLine], form: &FormState) -> Option<AnyView> {
    if !is_settled(guest) || !guest.may_change {
        return None;
    }
    let (sent, version) = (form.was_sent(), form.version(&guest.settings_version));
    let form = &form.unless_too_late();
    Some(
        view! {
            <details class="more body" open=sent>
                <summary>"Change the settings"</summary>
                <form method="post" action={to::<SetGuestSettings>(&[&guest.line.id])} class="form">
                    {stays_at(&path(guest), FORM)}
                    <input type="hidden" name="version" value=version/>
                    {check(form, "autostart", "Autostart", "Starts when its node boots", guest.autostart)}
                    {form.error_at("autostart").map(|text| view! { <p class="error">{sentence(text)}</p> })}
                    {(!lines.is_empty()).then(|| choice(form, lines, &guest.conf, Some("f-conf")))}
                    <div class="submit"><button class="btn">"Change settings"</button>{when(guest)}</div>
                </form>
            </details>
        }
        .into_any(),
    )
}

/// The lines that operators allow, as check boxes; those that it has are checked. Several on a page have no ids.
pub fn choice(form: &FormState, lines: &[AllowedLine], has: &[LxcLineName], id: Option<&'static str>) -> AnyView {
    let boxes = lines.iter().map(|line| {
        let name = line.name.as_str();
        let checked = if form.was_sent() { form.all("conf").any(|one| one == name) } else { has.contains(&line.name) };
        let comment = line.comment.clone().map(|text| format!(": {text}"));
        view! {
            <label class="check">
                <input type="checkbox" name="conf" value=name.to_owned() checked=checked/>
                <span>{name.to_owned()}" "<span class="quiet"><code>{line.text()}</code>{comment}</span></span>
            </label>
        }
    });
    let boxes = boxes.collect_view();
    let error = form.error_at("conf").map(|text| view! { <p class="error">{sentence(text)}</p> });
    view! {
        <fieldset class="field" id=id tabindex=id.map(|_| "-1")>
            <legend>"Lines of its configuration"</legend>
            <div class="checks">{boxes}</div>
            {error}
            <p class="hint">"Of those that operators allow; in force from its next start on"</p>
        </fieldset>
    }
    .into_any()
}

/// When it has what is changed.
fn when(guest: &Guest) -> AnyView {
    if guest.line.state == GuestState::Running && guest.may_operate {
        view! { <span class="quiet">"It goes on as it is: lines apply at its next start. "<a class="link" href="#live-actions">"Restart it"</a>" for that."</span> }
            .into_any()
    } else {
        view! { <span class="quiet">"Lines apply at its next start"</span> }.into_any()
    }
}
