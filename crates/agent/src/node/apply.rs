//! Brings a plan into force: check what changed, swap the files, reload what reads them; back if that fails.

use std::collections::HashSet;
use std::fs;

use corpus_protocol::NodePlan;

use super::check::{learns_unseen, map_difference, network, port_differences};
use super::live::{self, inactive_units};
use super::plan::require_sound;
use super::{
    Part, Rendered, applied_path, balance, blocked, certificate, certificates, mark, render, seen_rules, unit_path,
    units,
};
use super::{counts, firewalld, mail, own_line, ports, proxy, reserved, resolver, traffic};
use crate::drivers;
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::packages::require_free_ports;
use crate::runner::Argv;
use crate::task::Task;

const NETWORK: &str = "corpus-network.service";
const PROXY: &str = "corpus-proxy.service";
/// What a configuration that is checked reads besides; there may be none yet.
const READ_BY_OTHERS: [&str; 15] = [
    "hosts.map",
    "wildcards.map",
    "ports.map",
    "redirects.map",
    "hsts.map",
    "challenges.map",
    "pools.map",
    "members.map",
    "lent.map",
    "ways.map",
    "asked.map",
    "far.map",
    "servers.state",
    "ports.nft",
    "blocked.nft",
];

/// A file that is not as planned, and what it was.
struct Change {
    file: Rendered,
    old: Option<String>,
}

/// Bridge, firewall, proxy and routes are as planned.
pub fn apply(task: &Task<'_>, plan: &NodePlan) -> Result<bool, Failure> {
    require_sound(plan)?;
    let (plan, problem) = mail::as_far_as_can_be(task.host, plan);
    if let Some(problem) = problem {
        task.note(problem);
    }
    let (plan, applied) = (plan.as_ref(), applied(task.host)?);
    require_successor(task.host, applied.as_ref(), plan)?;
    own_line::require(task.host, applied.as_ref(), plan)?;
    blocked::tell_left_out(task, plan);
    let reserved = reserved::settle(task)?;
    ensure_certificate(task)?;
    drivers::ensure_tools(task.host)?;
    let changes = changes(task.host, plan)?;
    let inactive = inactive_units(task)?;
    if inactive.contains(&PROXY) {
        reserved::await_free(task, proxy::bound(plan), reserved::SHORTLY)?;
    }
    let interrupted = mark(task.host).exists();
    let runs = inactive.iter().all(|unit| traffic::is_ours(unit));
    let in_force = !interrupted && runs && applied.is_some();
    let undermined = in_force && !(rules_are_there(task, plan, &changes)? && proxy_has_all(task.host, plan, &changes));
    let all = interrupted || !runs || undermined;
    let swapped = !changes.is_empty() || all;
    let network_runs = applied.is_some() && !inactive.contains(&NETWORK);
    let remade = interrupted || (network_runs && is_elsewhere(task.host, plan)) || inactive.contains(&NETWORK);
    if swapped {
        check(task, &changes)?;
        swap(task, plan, &changes, &inactive, all)?;
    }
    let started = !swapped && traffic::start(task, &inactive)?;
    let told = firewalld::settle(task, plan)?;
    let mended = applied.is_some() && mend_bridge(task, plan, remade)?;
    let forgotten = certificates::forget(task.host, plan, applied.as_ref())?;
    let mailed = mail::settle(task, plan)?;
    if swapped || mended || applied.as_ref() != Some(plan) {
        remember(task.host, plan)?;
    }
    Ok(reserved || swapped || started || told || mended || forgotten || mailed)
}

/// The same where a plan is in force; a node that was given back stays so.
pub fn refresh(task: &Task<'_>, plan: &NodePlan) -> Result<bool, Failure> {
    if applied(task.host)?.is_none() { Ok(false) } else { apply(task, plan) }
}

/// The plan in force, if there is one.
pub fn applied(host: &Host) -> Result<Option<NodePlan>, Failure> {
    Ok(files::read(&applied_path(host))?.and_then(|text| serde_json::from_str(&text).ok()))
}

/// The files that are not as planned.
fn changes(host: &Host, plan: &NodePlan) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::new();
    for file in render(host, plan) {
        let old = files::read(&file.path)?;
        if old.as_ref() != Some(&file.text) {
            changes.push(Change { file, old });
        }
    }
    Ok(changes)
}

fn require_successor(host: &Host, applied: Option<&NodePlan>, plan: &NodePlan) -> Result<(), Failure> {
    let Some(applied) = applied else { return Ok(()) };
    if plan.revision < applied.revision {
        return Err(Failure::OldPlan { given: plan.revision, applied: applied.revision });
    }
    let moved = (&plan.bridge, plan.network) != (&applied.bridge, applied.network);
    if moved && !drivers::readings(host).is_empty() {
        return Err(Failure::Invalid(format!(
            "the node's guests live in {} on {}; destroy them before the network becomes {} on {}",
            applied.network, applied.bridge, plan.network, plan.bridge
        )));
    }
    Ok(())
}

/// Port 443 needs a certificate to be bound at all; until there is a real one, one that we signed ourselves.
fn ensure_certificate(task: &Task<'_>) -> Result<(), Failure> {
    let path = certificate(task.host);
    if path.exists() {
        return Ok(());
    }
    let folder = task.host.configuration();
    fs::create_dir_all(&folder).at("make", &folder)?;
    let (key, public) = (folder.join("default.key"), folder.join("default.crt"));
    let argv = Argv::new("openssl").args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    let argv = argv.args(["-noenc", "-days", "3650", "-subj", "/CN=no site of this name", "-keyout"]).arg(&key);
    match argv.arg("-out").arg(&public).quiet().run(task) {
        Ok(_) => {}
        Err(Failure::Start { .. }) => {
            task.note("no openssl on the host: port 443 stays closed until there is a certificate");
            return Ok(());
        }
        Err(other) => return Err(other),
    }
    let read = |path| fs::read_to_string(path).at("read", path);
    files::write(&path, &(read(&public)? + &read(&key)?), 0o600)?;
    files::remove(&key)?;
    files::remove(&public)?;
    Ok(())
}

/// Someone may have removed the bridge while its unit stayed active. A bridge that was made
/// anew, just now too, has no guest on it: the cables of those that run are put back. Tells
/// whether there was anything to do.
fn mend_bridge(task: &Task<'_>, plan: &NodePlan, remade: bool) -> Result<bool, Failure> {
    // As an older release made it: no reason to make it anew, which takes guests off it.
    let learned = learns_unseen(task.host, &plan.bridge);
    if learned {
        let argv =
            Argv::new("ip").args(["link", "set", "dev", &plan.bridge, "type", "bridge", "no_linklocal_learn", "1"]);
        argv.run(task)?;
    }
    let differs = !network(task.host, plan)?.is_empty();
    if differs {
        Argv::new("systemctl").args(["restart", NETWORK]).run(task)?;
    }
    let remade = remade || differs;
    for cable in drivers::cables(task.host).iter().filter(|_| remade) {
        Argv::new("ip").args(["link", "set", "dev", cable, "master", &plan.bridge]).run(task)?;
    }
    Ok(remade || learned)
}

/// Whether the bridge, or its address, is not the planned one.
fn is_elsewhere(host: &Host, plan: &NodePlan) -> bool {
    let there = host.path(format!("/sys/class/net/{}/bridge", plan.bridge)).exists();
    !there || !crate::facts::addresses(host).contains(&plan.network.gateway().into())
}

/// Whether the running proxy routes and serves what it should; what is replaced anyway is not looked at.
fn proxy_has_all(host: &Host, plan: &NodePlan, changes: &[Change]) -> bool {
    let rendered = render(host, plan).into_iter();
    let mut kept = rendered.filter(|file| !changes.iter().any(|change| change.file.path == file.path));
    kept.all(|file| match file.part {
        Part::Maps => map_difference(host, &file).is_none(),
        Part::Certificates => certificates::is_served(host, &file.text),
        // With other members the configuration is another one, and is read anyway.
        Part::Members if !changes.iter().any(|change| change.file.part == Part::Proxy) => {
            balance::differences(host, plan).is_empty()
        }
        _ => true,
    })
}

/// Something else on the host may have flushed the kernel's rules; not looked at when they are loaded anyway.
fn rules_are_there(task: &Task<'_>, plan: &NodePlan, changes: &[Change]) -> Result<bool, Failure> {
    let changes_part = |part| changes.iter().any(|change| change.file.part == part);
    if changes_part(Part::Firewall) {
        return Ok(true);
    }
    let seen = files::read(&seen_rules(&task.host.configuration()))?;
    let Ok(filter) = live::filter(task) else { return Ok(false) };
    let ports = changes_part(Part::Ports) || port_differences(task.host, plan, &filter).is_empty();
    let blocked = changes_part(Part::Blocked) || blocked::difference(task.host, plan, &filter.blocked).is_none();
    Ok(ports && blocked && seen.is_some_and(|seen| filter.rules == seen))
}

/// Asks haproxy and nft what they think of the changed files, beside the old ones.
fn check(task: &Task<'_>, changes: &[Change]) -> Result<(), Failure> {
    for name in READ_BY_OTHERS.map(|name| task.host.configuration().join(name)) {
        if !name.exists() {
            files::write(&name, "", 0o644)?;
        }
    }
    let list = changes.iter().map(|change| &change.file).find(|file| file.part == Part::Certificates);
    let checked = check_each(task, changes, list);
    if let Some(list) = list {
        files::remove(&list.path.with_extension("check"))?;
    }
    checked
}

fn check_each(task: &Task<'_>, changes: &[Change], list: Option<&Rendered>) -> Result<(), Failure> {
    for Change { file, .. } in changes {
        let argv = match file.part {
            Part::Proxy => Argv::new("haproxy").args(["-c", "-q", "-f"]),
            Part::Firewall => Argv::new("nft").args(["-c", "-f"]),
            Part::Resolver => Argv::new("unbound-checkconf"),
            _ => continue,
        };
        let beside = file.path.with_extension("check");
        let mut text = file.text.clone();
        // With the new list of certificates: the old one may name what is gone.
        if let Some(list) = list.filter(|_| file.part == Part::Proxy) {
            let other = list.path.with_extension("check");
            files::write(&other, &list.text, 0o600)?;
            text = text.replace(&list.path.display().to_string(), &other.display().to_string());
        }
        files::write(&beside, &text, 0o600)?;
        let checked = argv.arg(&beside).run(task);
        files::remove(&beside)?;
        checked.map_err(|failure| refused(file.part, failure))?;
    }
    Ok(())
}

fn refused(part: Part, failure: Failure) -> Failure {
    let file = match part {
        Part::Proxy => "haproxy.cfg",
        Part::Certificates => "certificates.list",
        Part::Resolver => "the resolver's corpus.conf",
        _ => "firewall.nft",
    };
    match failure {
        Failure::Command { tail, .. } => Failure::CheckFailed { file, tail },
        other => other,
    }
}

fn swap(
    task: &Task<'_>,
    plan: &NodePlan,
    changes: &[Change],
    inactive: &[&'static str],
    all: bool,
) -> Result<(), Failure> {
    files::write(&mark(task.host), "", 0o644)?;
    let mut parts: HashSet<Part> = changes.iter().map(|change| change.file.part).collect();
    if all {
        parts.extend([
            Part::Unit,
            Part::Traffic,
            Part::Firewall,
            Part::Ports,
            Part::Blocked,
            Part::Proxy,
            Part::Maps,
            Part::Members,
            Part::Certificates,
            Part::Resolver,
        ]);
    }
    let swapped = changes
        .iter()
        .try_for_each(|change| files::write(&change.file.path, &change.file.text, 0o644))
        .and_then(|()| bring_into_force(task, plan, &parts, changes, inactive));
    if let Err(failure) = swapped {
        task.note("that failed; the previous configuration comes back");
        go_back(task, plan, changes, parts);
        return Err(failure);
    }
    files::remove(&mark(task.host)).map(|_| ())
}

fn bring_into_force(
    task: &Task<'_>,
    plan: &NodePlan,
    parts: &HashSet<Part>,
    changes: &[Change],
    inactive: &[&'static str],
) -> Result<(), Failure> {
    let runs = |unit: &str| !inactive.contains(&unit);
    // What the host's boot is just starting may have read the files that were there before.
    let was_there = |parts: &[Part]| changes.iter().any(|one| one.old.is_some() && parts.contains(&one.file.part));
    // On the way back from a plan that was the first to have one of them, it is gone.
    let mut there = units(task.host);
    there.retain(|unit| unit_path(task.host, unit).exists());
    let systemctl = |verb: &str| Argv::new("systemctl").arg(verb);
    if parts.contains(&Part::Unit) || parts.contains(&Part::Traffic) {
        Argv::new("systemctl").arg("daemon-reload").run(task)?;
        systemctl("enable").arg("--quiet").args(&there).quiet().run(task)?;
    }
    // A bridge that is made anew takes the guests' cables off: never for another text of its unit alone.
    if runs(NETWORK) && is_elsewhere(task.host, plan) {
        systemctl("restart").arg(NETWORK).run(task)?;
    }
    if parts.contains(&Part::Firewall) {
        let folder = task.host.configuration();
        counts::keep(task, plan)?;
        Argv::new("nft").arg("-f").arg(folder.join("firewall.nft")).run(task)?;
        files::write(&seen_rules(&folder), &live::filter(task)?.rules, 0o600)?;
    } else {
        load_sets(task, parts)?;
    }
    if parts.contains(&Part::Firewalld) {
        firewalld::reload(task)?;
    }
    if !runs(PROXY) {
        require_free_ports(task.host)?;
    }
    if parts.contains(&Part::Traffic) {
        traffic::restart(task, &there)?;
    }
    if !inactive.is_empty() {
        traffic::start(task, inactive)?;
        there.retain(|unit| !traffic::is_ours(unit));
        live::start(task, &there)?;
    }
    if parts.contains(&Part::Ports) {
        ports::settle(task, &plan.bridge)?;
    }
    let is_stale = runs(resolver::UNIT) || was_there(&[Part::Resolver]);
    if parts.contains(&Part::Resolver) && units(task.host).contains(&resolver::UNIT) && is_stale {
        live::reload_resolver(task)?;
    }
    if !runs(PROXY) {
        let is_stale = was_there(&[Part::Proxy, Part::Maps, Part::Members, Part::Certificates]);
        return if is_stale { live::reload_proxy(task) } else { Ok(()) };
    }
    if parts.contains(&Part::Proxy) {
        return live::reload_proxy(task);
    }
    change_certificates(task, changes)?;
    replace_maps(task, parts, changes)?;
    if parts.contains(&Part::Members) { balance::set(task, plan) } else { Ok(()) }
}

/// Without the rules around them, and what those have counted.
fn load_sets(task: &Task<'_>, parts: &HashSet<Part>) -> Result<(), Failure> {
    if parts.contains(&Part::Ports) {
        ports::load(task)?;
    }
    if parts.contains(&Part::Blocked) { blocked::load(task) } else { Ok(()) }
}

/// In the running process; when it does not take one of them, it begins anew with what is on disk, as far as that is good.
fn change_certificates(task: &Task<'_>, changes: &[Change]) -> Result<(), Failure> {
    let list = changes.iter().find(|change| change.file.part == Part::Certificates);
    let Some(list) = list.filter(|_| certificate(task.host).exists()) else { return Ok(()) };
    let old = certificates::list::read(list.old.as_deref().unwrap_or_default());
    let new = certificates::list::read(&list.file.text);
    let Err(failure) = certificates::running::change(task.host, &list.file.path, &old, &new) else { return Ok(()) };
    task.note(format!("the running proxy is replaced, since it does not take a certificate: {failure}"));
    let configuration = task.host.configuration().join("haproxy.cfg");
    let checked = Argv::new("haproxy").args(["-c", "-q", "-f"]).arg(configuration).run(task);
    checked.map_err(|failure| refused(Part::Certificates, failure))?;
    live::reload_proxy(task)
}

fn replace_maps(task: &Task<'_>, parts: &HashSet<Part>, changes: &[Change]) -> Result<(), Failure> {
    if !parts.contains(&Part::Maps) {
        return Ok(());
    }
    let mut maps = changes.iter().filter(|change| change.file.part == Part::Maps);
    maps.try_for_each(|change| live::replace_map(task.host, &change.file.path, &change.file.text))
}

/// Puts the old files back and brings them into force as far as that goes. What fails here is
/// done again by the next request, for the mark stays.
fn go_back(task: &Task<'_>, plan: &NodePlan, changes: &[Change], mut parts: HashSet<Part>) {
    // A cancelled request can start no command any more; going back is not part of it.
    let task = &Task { host: task.host, cancel: &crate::task::Cancel::default(), events: task.events };
    let mut old = Vec::new();
    for Change { file, old: text } in changes {
        match text {
            Some(text) => {
                let _ = files::write(&file.path, text, 0o644);
                old.push(Change { file: Rendered { text: text.clone(), ..file.clone() }, old: None });
            }
            None => {
                let _ = files::remove(&file.path);
            }
        }
    }
    // Which members were in the balance says the old file only, which a process reads that starts. And it may have taken
    // some of the certificates: it begins anew with those of the old list.
    if parts.remove(&Part::Members) || parts.contains(&Part::Certificates) {
        parts.insert(Part::Proxy);
    }
    if applied_path(task.host).exists() {
        let inactive = inactive_units(task).unwrap_or_default();
        if bring_into_force(task, plan, &parts, &old, &inactive).is_ok() {
            let _ = files::remove(&mark(task.host));
        }
    }
}

fn remember(host: &Host, plan: &NodePlan) -> Result<(), Failure> {
    let text = serde_json::to_string(plan).unwrap_or_default();
    files::ensure(&applied_path(host), &text, 0o600).map(|_| ())
}
