//! The cards of a guest's page.

use corpus_api::claims::ClaimName;
use corpus_api::guests::{
    ConfirmGuestHostKey, EnlargeGuest, Guest, GuestEnvironment, RevealGuestPassword, ShrinkGuest, StorageUse,
};
use corpus_api::moves::LastMove;
use corpus_api::names::{AttachName, DetachName, NameLine};
use corpus_api::quotas::ProjectQuota;
use corpus_api::zones::Zone;
use corpus_domain::{Bytes, Environment, EnvironmentState, NameState, QuotaOf, SizeProfile};
use leptos::prelude::*;

use super::dns::{in_zone, wildcard};
use super::guest::{is_settled, path};
use super::move_guest::whole;
use super::project_environments::environment_path;
use super::projects::project_path;
use super::quotas::left;
use super::request_ask::{ASK, name_form};
use crate::age::took;
use crate::components::{
    Field, Tone, age, at, bytes, card, code, confinement, confirm_at, copied, empty, facts, meter, name_evidence,
    name_status, reason, shown_at, size_of, sizes, status, stays_at,
};
use crate::form::FormState;
use crate::to::to;

/// How to enter it.
pub fn connect(guest: &Guest, revealed: Option<&str>) -> AnyView {
    let pending = || view! { <span class="quiet">"not allocated yet"</span> }.into_any();
    let shell = guest.ssh_command.clone().map_or_else(pending, |command| copied("ssh", "the SSH command", command));
    let address = guest.line.ip.map_or_else(pending, |ip| {
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
            view! { <code>"sysadmin"</code>" with sudo, "<code>"root"</code>{entered_by(guest.line.environment)} }
                .into_any(),
        ),
        ("Root password", password(guest, revealed)),
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

fn password(guest: &Guest, revealed: Option<&str>) -> AnyView {
    if let Some(password) = revealed {
        return copied("password", "the password", password);
    }
    if !guest.has_password {
        return view! { <span class="quiet">"not set yet"</span> }.into_any();
    }
    let reveal = guest.may_change.then(|| {
        view! {
            <form method="post" action={to::<RevealGuestPassword>(&[&guest.line.id])} class="inline">
                {shown_at(&path(guest), "reveal")}
                <button class="copy always">"Reveal, recorded in the audit log"</button>
            </form>
        }
    });
    view! { <code aria-label="hidden">"••••••••••••••••"</code>{reveal} }.into_any()
}

/// Its DNS names, and the form for one more; who asks the operators has one for that too.
pub fn names(guest: &Guest, zones: &[Zone], quota: &ProjectQuota, form: &FormState, asks: bool) -> AnyView {
    let rows = guest.names.iter().map(|name| name_row(guest, name)).collect_view();
    let table = if guest.names.is_empty() {
        empty("No DNS name leads here", "Attach one, and HTTP of that name goes to port 80 of this guest.".into_any())
    } else {
        view! {
            <table class="rows" aria-label="DNS names">
                <thead><tr><th>"Name"</th><th>"State"</th><th>"Resolves to"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    };
    let attach = guest.may_change.then(|| attach(guest, zones, quota, &form.of("names")));
    let ask = asks.then(|| name_form(guest, zones, quota, &form.of(ASK)));
    let claim = guest.may_change.then(|| claim(guest, &form.of("claim")));
    let body = view! { <div id="live-names" data-live="">{table}</div>{attach}{ask}{claim} };
    card("names", "DNS names", ().into_any(), body.into_any())
}

fn name_row(guest: &Guest, name: &NameLine) -> AnyView {
    let shown = match name.url().filter(|_| name.state == NameState::Attached) {
        Some(url) => view! { <a class="link" href=url>{name.name.to_string()}</a> }.into_any(),
        None => name.shown().into_any(),
    };
    let https = if name.https { "HTTPS" } else { "no certificate" };
    let https = view! { <a class="link" href=super::name::path(name.id) aria-label=format!("{https}: {}", name.shown())>{https}</a> };
    let target = name.target.clone().map(|target| code("target", target));
    let answered = name_evidence(name);
    let why = name.state_reason.as_deref().map(reason);
    let detach = (guest.may_change && name.job.is_none() && name.state != NameState::Detaching).then(|| {
        let question = format!("{} stops leading to {}.", name.shown(), guest.line.name);
        let hidden = stays_at(&path(guest), "names");
        confirm_at("Detach", &name.shown(), question, to::<DetachName>(&[&name.id]), hidden)
    });
    view! {
        <tr>
            <td data-label="Name">{shown}<div class="quiet small">{in_zone(name)}", "{https}</div></td>
            <td data-label="State">{name_status(name)}{why}</td>
            <td data-label="Resolves to" class="wrap">{target}{answered}</td>
            <td class="right">{detach}</td>
        </tr>
    }
    .into_any()
}

/// The form for a name of a zone that others hold.
fn claim(guest: &Guest, form: &FormState) -> AnyView {
    view! {
        <form method="post" action={to::<ClaimName>(&[&guest.line.id])} class="body row foot">
            {shown_at(&path(guest), "claim")}
            {Field::new(form, "name", "Name from elsewhere").beside("claim").required().mono().hint("In a zone that others hold").input()}
            <button class="btn">"Claim name"</button>
        </form>
    }
    .into_any()
}

fn attach(guest: &Guest, zones: &[Zone], quota: &ProjectQuota, form: &FormState) -> AnyView {
    if zones.is_empty() {
        return view! { <p class="body quiet foot">"A name needs a zone, and there is none yet. "<a class="link" href="/dns">"DNS"</a></p> }.into_any();
    }
    let zones: Vec<String> = zones.iter().map(|zone| zone.name.to_string()).collect();
    view! {
        <form method="post" action={to::<AttachName>(&[&guest.line.id])} class="body row foot">
            {stays_at(&path(guest), "names")}
            <div class="stack">
                {Field::new(form, "name", "DNS name").required().mono().hint(format!("In {}", zones.join(", "))).input()}
                {wildcard(form)}
            </div>
            <button class="btn">"Attach"</button>
        </form>
        {left(quota, &[QuotaOf::Names]).map(|left| view! { <div class="body">{left}</div> })}
    }
    .into_any()
}

/// The version of an image that it is a clone of, and how old that is.
fn clone_of(guest: &Guest) -> AnyView {
    let made = guest.image_made_at.map(|at| view! { ", made "{age(at)} });
    let old =
        guest.image_is_old.then(|| view! { " "<span class="quiet">"New guests are made from a newer one"</span> });
    view! { {guest.image.to_string()}{made}{old} }.into_any()
}

/// What in it is older than in the newest version of its image.
fn updates(guest: &Guest) -> AnyView {
    let Some(found) = &guest.updates else {
        return view! { <span class="quiet">"not known"</span> }.into_any();
    };
    let seen = view! { <div class="quiet small">"Beside "{found.image.to_string()}", "{age(found.at)}</div> };
    if found.count == 0 {
        return view! { {status(Tone::Ok, "None that its image has")}{seen} }.into_any();
    }
    let names = found.packages.join(", ");
    let more = usize::try_from(found.count).unwrap_or_default().saturating_sub(found.packages.len());
    let more = (more > 0).then(|| format!(" and {more} more"));
    let lacks = if found.count == 1 { "It lacks one".to_owned() } else { format!("It lacks {}", found.count) };
    view! {
        <details class="more"><summary>{status(Tone::Warn, lacks)}</summary><p class="small">{names}{more}</p></details>
        {seen}
    }
    .into_any()
}

/// What it is, and which environment stands on it.
pub fn about(guest: &Guest) -> AnyView {
    let mut body = vec![
        (
            "Project",
            view! { <a class="link" href=project_path(&guest.line.project)>{guest.line.project.to_string()}</a> }
                .into_any(),
        ),
        ("Environment", stands(guest)),
        ("Driver", guest.driver.as_str().into_any()),
        ("Clone of", clone_of(guest)),
        ("Updates", updates(guest)),
        ("Backing", guest.backing.as_str().into_any()),
        ("Size", size_of(&guest.line).into_any()),
        ("Confinement", confinement(guest)),
        ("Mode", mode_link(guest)),
        ("Autostart", yes(guest.autostart).into_any()),
        ("Firewall", firewall_link(guest)),
        ("Mail", mail_link(guest)),
        ("Snapshots", snapshots_link(guest)),
        ("Backups", backups_link(guest)),
        ("Requested", age(guest.created_at)),
    ];
    body.extend(guest.last_move.as_ref().map(|last| ("Moved", moved(last))));
    let body = facts(body);
    let right = view! { <span class="quiet">{guest.line.observed_at.map(|at| view! { "read "{age(at)} })}</span> };
    view! { <div id="live-about" data-live="">{card("guest", "Guest", right.into_any(), body)}</div> }.into_any()
}

/// When it was moved last, and for how long it answered nothing.
fn moved(last: &LastMove) -> AnyView {
    let from = last.from.as_ref().map(|from| format!(" from {from}"));
    let still = format!("; answered nothing for {}, while ", took(whole(last.downtime_ms)));
    view! { {age(last.at)}{from}{still}{bytes(last.bytes.0)}" were brought" }.into_any()
}

fn mode_link(guest: &Guest) -> AnyView {
    view! { {guest.mode.as_str()}", "<a class="link" href=format!("{}/states", path(guest))>"its states"</a> }
        .into_any()
}

fn firewall_link(guest: &Guest) -> AnyView {
    view! { <a class="link" href=format!("{}/firewall", path(guest))>"Who may reach it"</a> }.into_any()
}

fn snapshots_link(guest: &Guest) -> AnyView {
    view! { <a class="link" href=format!("{}/snapshots", path(guest))>"What it was"</a> }.into_any()
}

fn backups_link(guest: &Guest) -> AnyView {
    view! { <a class="link" href=format!("{}/backups", path(guest))>"What is left of it elsewhere"</a> }.into_any()
}

fn mail_link(guest: &Guest) -> AnyView {
    view! { <a class="link" href=format!("{}/mail", path(guest))>"What it sends"</a> }.into_any()
}

/// What to do about a guest that shows another key than its own.
pub fn host_key(guest: &Guest) -> Option<AnyView> {
    let shown = guest.other_host_key.clone()?;
    let own = guest.host_fingerprint.clone().unwrap_or_default();
    let trust = guest.may_change.then(|| {
        view! {
            <form method="post" action={to::<ConfirmGuestHostKey>(&[&guest.line.id])} class="body">
                {stays_at(&path(guest), "host-key")}
                <input type="hidden" name="fingerprint" value=shown.clone()/>
                <button class="btn danger">"This is the guest: trust the new key"</button>
            </form>
        }
    });
    let card = view! {
        <section class="card alarm" aria-labelledby="host-key-heading">
            <header><h2 id="host-key-heading">"This guest shows another key than its own"</h2></header>
            <p class="body">"Nothing is sent to it, and it can't be pushed to. Either its key was made anew, or something else answers in its place."</p>
            <dl class="facts">
                <dt>"Confirmed"</dt><dd>{code("pinned-fingerprint", own)}</dd>
                <dt>"Shown now"</dt><dd>{code("fingerprint", shown)}</dd>
                <dt>"Compare with"</dt><dd><code>"ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub"</code><span class="quiet">" on the guest's own console"</span></dd>
            </dl>
            {trust}
        </section>
    };
    Some(card.into_any())
}

/// What is in its storage, and the forms for more and for less of it, where it has a size.
pub fn storage(guest: &Guest, quota: &ProjectQuota, forms: &FormState) -> AnyView {
    // Its node may hold it all the same, and tells of it then.
    if !guest.backing.has_size() && guest.storage.is_none() {
        let told = format!(
            "On {} it is not held to its size here: it fills its node's disk. Guests that lie on loop, btrfs, lvm or zfs are, and all that are made on a node which counts for projects.",
            guest.backing
        );
        return card("storage", "Storage", ().into_any(), view! { <p class="body quiet">{told}</p> }.into_any());
    }
    let has = view! { <span class="quiet">{format!("has {}", guest.line.size.storage().gb())}</span> };
    let changes = (is_settled(guest) && guest.may_change).then(|| {
        view! { {enlarge(guest, quota, &forms.of("enlarge"))}{shrink(guest, &forms.of("shrink"))} }
    });
    let body = view! { <div id="live-storage" data-live="">{guest.storage.as_ref().map(taken)}</div>{changes} };
    card("storage", "Storage", has.into_any(), body.into_any())
}

fn taken(storage: &StorageUse) -> AnyView {
    let percent = storage.used.percent_of(storage.of);
    let tone = if percent >= 90 { Tone::Warn } else { Tone::Ok };
    let full = match storage.full_at {
        Some(at_then) if percent < 100 => {
            Some(("Full", view! { {at(at_then)}", if it goes on as in the last 30 days" }.into_any()))
        }
        _ => None,
    };
    let used = view! { {meter(percent, "Storage used")}" "<span class="quiet">{format!("{} of {}", storage.used.gb(), storage.of.gb())}</span>{(percent >= 90).then(|| view! { " "{status(tone, "Nearly full")} })} };
    let rows =
        [Some(("In it", used.into_any())), Some(("Of its node's", view! { {storage.taken.gb()} }.into_any())), full];
    facts(rows.into_iter().flatten().collect()).into_any()
}

fn enlarge(guest: &Guest, quota: &ProjectQuota, form: &FormState) -> Option<AnyView> {
    let larger = sizes(guest.line.size.larger_than());
    let next = larger.first()?.0.clone();
    let form = view! {
        <form method="post" action={to::<EnlargeGuest>(&[&guest.line.id])} class="body row">
            {stays_at(&path(guest), "enlarge")}
            {Field::new(form, "size", "New size").suggest(next).required().hint("It grows at once, also while it runs").select(larger)}
            <button class="btn">"Enlarge"</button>
        </form>
        {left(quota, &[QuotaOf::Storage]).map(|left| view! { <div class="body">{left}</div> })}
    };
    Some(form.into_any())
}

/// Only what holds what is in it; what is there is shown before it is asked for.
fn shrink(guest: &Guest, form: &FormState) -> Option<AnyView> {
    let used = guest.storage.map(|storage| storage.used)?;
    let fits = guest.line.size.smaller_than().filter(|size| size.storage() > used);
    let has = guest.line.size.storage().0;
    let text = |size: SizeProfile| {
        let less = Bytes(has.saturating_sub(size.storage().0)).gb();
        (size.to_string(), format!("{size}, {}: {less} less promised", size.storage().gb()))
    };
    let mut smaller: Vec<_> = fits.map(text).collect();
    smaller.reverse();
    let next = smaller.first()?.0.clone();
    let form = view! {
        <details class="more body" open=form.was_sent()>
            <summary>"Shrink it"</summary>
            <form method="post" action={to::<ShrinkGuest>(&[&guest.line.id])} class="row">
                {stays_at(&path(guest), "shrink")}
                {Field::new(form, "size", "Smaller size").suggest(next).required().hint("Also while it runs: what lies beyond is moved first").select(smaller)}
                <button class="btn">"Shrink"</button>
            </form>
        </details>
    };
    Some(form.into_any())
}

fn stands(guest: &Guest) -> AnyView {
    let Some(GuestEnvironment { state, is_leader }) = guest.deployed_to else {
        let set_up = format!("{}#set-up", project_path(&guest.line.project));
        return view! { <span class="quiet">{format!("{}, not set up for pushes. ", guest.line.environment)}</span><a class="link" href=set_up>{format!("Set up {}", guest.line.environment)}</a> }.into_any();
    };
    let word = match state {
        EnvironmentState::Ready if is_leader => "can be pushed to",
        EnvironmentState::Ready => "deploys what its leader does",
        EnvironmentState::SettingUp => "being set up",
        EnvironmentState::Failed => "not set up: it failed",
        EnvironmentState::Leaving => "being removed",
    };
    let page = environment_path(&guest.line.project, guest.line.environment);
    view! { <a class="link" href=page>{guest.line.environment.as_str()}</a>", "{word} }.into_any()
}

pub(super) const fn yes(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}
