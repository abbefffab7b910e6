//! The cards of a guest's page.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::views::{GuestView, NameView, ZoneView};
use corpus_domain::{Environment, EnvironmentState, GuestState, NameState};
use leptos::prelude::*;

use super::project_environments::environment_path;
use super::projects::project_path;
use crate::components::{Fact, Field, age, card, code, confinement, confirm, copied, empty, facts, name_status, sizes};
use crate::form::{FormState, Revealed};

/// How to enter it.
pub fn connect(principal: &Principal, guest: &GuestView, revealed: Option<&Revealed>) -> AnyView {
    let pending = || view! { <span class="quiet">"not allocated yet"</span> }.into_any();
    let shell = guest.ssh_command().map_or_else(pending, |command| copied("ssh", "the SSH command", command));
    let address = guest.ip.map_or_else(pending, |ip| {
        view! {
            {copied("ip", "the address", format!("{ip}/{}", guest.network.prefix()))}
            " via "{code("gateway", guest.network.gateway().to_string())}" on "{code("bridge", guest.bridge.clone())}
        }
        .into_any()
    });
    let body = facts(vec![
        ("Shell", shell),
        ("Address", address),
        ("MAC", guest.mac.map_or_else(pending, |mac| copied("mac", "the MAC", mac.to_string()))),
        (
            "Users",
            view! { <code>"sysadmin"</code>" with sudo, "<code>"root"</code>{entered_by(guest.environment)} }
                .into_any(),
        ),
        ("Root password", password(principal, guest, revealed)),
        (
            "Host key",
            guest
                .host_fingerprint
                .clone()
                .map_or_else(pending, |print| copied("host-fingerprint", "the fingerprint", print)),
        ),
    ]);
    if revealed.is_some() {
        return card("connect", "Connect", ().into_any(), body);
    }
    view! { <div id="live-connect" data-live="">{card("connect", "Connect", ().into_any(), body)}</div> }.into_any()
}

/// Whose keys open it, where that is not plain.
fn entered_by(of: Environment) -> Option<AnyView> {
    (of == Environment::Prod).then(|| {
        view! { <span class="quiet">"; keys of maintainers, and of developers where the project lets them into prod"</span> }
            .into_any()
    })
}

fn password(principal: &Principal, guest: &GuestView, revealed: Option<&Revealed>) -> AnyView {
    if let Some(Revealed(password)) = revealed {
        return copied("password", "the password", password.clone());
    }
    if !guest.has_password {
        return view! { <span class="quiet">"not set yet"</span> }.into_any();
    }
    let reveal = principal.may(Operation::GuestReveal, Some(guest.project_id)).then(|| {
        view! {
            <form method="post" action=format!("/guests/{}/reveal", guest.id) class="inline">
                <button class="copy always">"Reveal, recorded in the audit log"</button>
            </form>
        }
    });
    view! { <code aria-label="hidden">"••••••••••••••••"</code>{reveal} }.into_any()
}

/// Its DNS names, and the form for one more.
pub fn names(principal: &Principal, guest: &GuestView, zones: &[ZoneView], form: &FormState) -> AnyView {
    let may_detach = principal.may(Operation::NameDetach, Some(guest.project_id));
    let rows = guest.names.iter().map(|name| name_row(guest, name, may_detach)).collect_view();
    let table = if guest.names.is_empty() {
        empty("No DNS name leads here", "Attach one, and HTTP of that name goes to port 80 of this guest.".into_any())
    } else {
        view! {
            <table class="rows" aria-label="DNS names">
                <thead><tr><th>"Name"</th><th>"State"</th><th>"Resolves to"</th><th>"Zone"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    };
    let attach = principal.may(Operation::NameAttach, Some(guest.project_id)).then(|| attach(guest, zones, form));
    let body = view! { <div id="live-names" data-live="">{table}</div>{attach} };
    card("names", "DNS names", ().into_any(), body.into_any())
}

fn name_row(guest: &GuestView, name: &NameView, may_detach: bool) -> AnyView {
    let link = format!("http://{}/", name.name);
    let shown = if name.state == NameState::Attached {
        view! { <a class="link" href=link>{name.name.to_string()}</a> }.into_any()
    } else {
        name.name.to_string().into_any()
    };
    let target = name.target.clone().map(|target| code("target", target));
    let answered = name.answered_at.map(|at| view! { <div class="quiet small">"answered "{age(at)}</div> });
    let reason = name.state_reason.clone().map(|reason| view! { <div class="quiet reason">{reason}</div> });
    let detach = (may_detach && name.job.is_none() && name.state != NameState::Detaching).then(|| {
        let question = format!("{} stops leading to {}.", name.name, guest.name);
        confirm("Detach", name.name.as_str(), question, format!("/guests/{}/names/{}/detach", guest.id, name.id))
    });
    view! {
        <tr>
            <td data-label="Name">{shown}</td>
            <td data-label="State">{name_status(name)}{reason}</td>
            <td data-label="Resolves to">{target}{answered}</td>
            <td data-label="Zone">{name.zone.to_string()}</td>
            <td class="right">{detach}</td>
        </tr>
    }
    .into_any()
}

fn attach(guest: &GuestView, zones: &[ZoneView], form: &FormState) -> AnyView {
    if zones.is_empty() {
        return view! { <p class="body quiet foot">"A name needs a zone, and there is none yet. "<a class="link" href="/dns">"DNS"</a></p> }.into_any();
    }
    let zones: Vec<String> = zones.iter().map(|zone| zone.name.to_string()).collect();
    view! {
        <form method="post" action=format!("/guests/{}/names", guest.id) class="body row foot">
            {Field::new(form, "name", "DNS name").required().mono().hint(format!("In {}", zones.join(", "))).input()}
            <button class="btn">"Attach"</button>
        </form>
    }
    .into_any()
}

/// What it is, and which environment stands on it.
pub fn about(guest: &GuestView, environment: Option<(EnvironmentState, bool)>) -> AnyView {
    let body = facts(vec![
        (
            "Project",
            view! { <a class="link" href=project_path(&guest.project)>{guest.project.to_string()}</a> }.into_any(),
        ),
        ("Environment", stands(guest, environment)),
        ("Driver", format!("{}, clone of {}", guest.driver, guest.image).into_any()),
        ("Backing", guest.backing.as_str().into_any()),
        ("Size", format!("{}, {}", guest.size, guest.size.storage().gb()).into_any()),
        ("Confinement", confinement(guest)),
        ("Mode", guest.mode.as_str().into_any()),
        ("Autostart", yes(guest.autostart).into_any()),
        ("Requested", age(guest.created_at)),
    ]);
    let right = view! { <span class="quiet">{guest.observed_at.map(|at| view! { "read "{age(at)} })}</span> };
    view! { <div id="live-about" data-live="">{card("guest", "Guest", right.into_any(), body)}</div> }.into_any()
}

/// The form for more storage, where storage has a size and there is a larger one.
pub fn enlarge(principal: &Principal, guest: &GuestView, form: &FormState) -> Option<AnyView> {
    let settled = matches!(guest.state, GuestState::Running | GuestState::Stopped);
    if !guest.backing.has_size() || !settled || !principal.may(Operation::GuestEnlarge, Some(guest.project_id)) {
        return None;
    }
    let larger = sizes(guest.size.larger_than());
    let next = larger.first()?.0.clone();
    let hint = "It grows at once, also while it runs; it does not shrink again";
    let body = view! {
        <form method="post" action=format!("/guests/{}/enlarge", guest.id) class="body row">
            {Field::new(form, "size", "New size").suggest(next).required().hint(hint).select(larger)}
            <button class="btn">"Enlarge"</button>
        </form>
    };
    let has = view! { <span class="quiet">{format!("has {}", guest.size.storage().gb())}</span> };
    Some(card("enlarge", "Storage", has.into_any(), body.into_any()))
}

fn stands(guest: &GuestView, environment: Option<(EnvironmentState, bool)>) -> AnyView {
    let Some((state, is_first)) = environment else {
        let set_up = format!("{}#set-up", project_path(&guest.project));
        return view! { <span class="quiet">{format!("{}, not set up for pushes. ", guest.environment)}</span><a class="link" href=set_up>"Set up"</a> }.into_any();
    };
    let word = match state {
        EnvironmentState::Ready if is_first => "can be pushed to",
        EnvironmentState::Ready => "deploys what its first guest does",
        EnvironmentState::SettingUp => "being set up",
        EnvironmentState::Failed => "not set up: it failed",
        EnvironmentState::Leaving => "being removed",
    };
    let page = environment_path(&guest.project, guest.environment);
    view! { <a class="link" href=page>{guest.environment.as_str()}</a>", "{word} }.into_any()
}

const fn yes(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

/// Everything it was made with; what is live is marked so.
pub fn settings(guest: &GuestView) -> AnyView {
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
        ("ip (live)", text(guest.ip.map(|ip| ip.to_string()))),
        ("lxc conf set, unset", text(None)),
        ("mac", text(guest.mac.map(|mac| mac.to_string()))),
        ("master, port", text(None)),
        ("mode", plain(guest.mode.as_str())),
        ("name", plain(guest.name.as_str())),
        ("netmask", plain(&guest.network.netmask().to_string())),
        ("network", plain(&format!("{}/{}", guest.network.network(), guest.network.prefix()))),
        ("password", plain(if guest.has_password { "sealed" } else { "not set yet" })),
        ("privileged", text(guest.privileged.as_ref().map(ToString::to_string))),
        ("profile", plain(guest.size.as_str())),
        ("script args", text(None)),
        ("snapshot", text(None)),
        ("ssh gateway", plain(&guest.node_address.to_string())),
        ("ssh reverse proxy port (live)", text(guest.ssh_port.map(|port| port.to_string()))),
        ("ssh user", plain("sysadmin")),
        ("sudo", plain("yes")),
        ("users", plain("root sysadmin")),
    ];
    let body = view! { <details class="settings"><summary>"Show all settings"</summary>{facts(rows)}</details> };
    card(
        "settings",
        "Settings",
        view! { <span class="quiet">"as of creation; live ones as observed"</span> }.into_any(),
        body.into_any(),
    )
}
