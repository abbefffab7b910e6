//! Tells what of a node is not as planned, by looking at what is in force.

use std::collections::BTreeSet;
use std::net::IpAddr;

use corpus_domain::DriftKind;
use corpus_protocol::{Difference, NodePlan};

use super::live::{self, Filter, inactive_units};
use super::plan::require_sound;
use super::{
    Part, Rendered, balance, blocked, certificates, firewalld, identity, mail, ports, render, reserved, resolver,
    seen_rules,
};
use crate::facts::{addresses, other_firewall};
use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::task::Task;

/// The differences.
pub fn check(task: &Task<'_>, plan: &NodePlan) -> Result<Vec<Difference>, Failure> {
    require_sound(plan)?;
    let (plan, problem) = mail::as_far_as_can_be(task.host, plan);
    let plan = plan.as_ref();
    let rendered = render(task.host, plan);
    let mut differences: Vec<Difference> = problem.into_iter().map(|text| found(DriftKind::Unit, text)).collect();
    let files = certificates::file_differences(task.host, plan)?;
    // A list that lacks what has no file is as it should be.
    let is_listed = |file: &Rendered| file.part == Part::Certificates && files.is_empty();
    let is_looked_at = |file: &&Rendered| match file.part {
        Part::Certificates => is_listed(file),
        Part::Firewalld => firewalld::is_told(task.host),
        _ => true,
    };
    for file in rendered.iter().filter(is_looked_at) {
        differences.extend(file_difference(file)?);
    }
    differences.extend(files.iter().map(|text| found(DriftKind::File, text)));
    let inactive = inactive_units(task)?.into_iter();
    differences.extend(inactive.map(|unit| found(DriftKind::Unit, format!("{unit} is not active"))));
    if !resolver::is_installed(task.host) {
        let text = "unbound is not installed, so guests resolve no names; a repair installs it";
        differences.push(found(DriftKind::Unit, text));
    }
    differences.extend(mail::differences(task.host, plan)?);
    differences.extend(network(task.host, plan)?);
    differences.extend(reserved::differences(task.host)?);
    differences.extend(rules(task, plan)?);
    let told = firewalld::differences(task, plan)?.into_iter().chain(other_firewall(task.host));
    differences.extend(told.map(|text| found(DriftKind::Rule, text)));
    let maps = rendered.iter().filter(|file| file.part == Part::Maps);
    differences.extend(maps.filter_map(|file| map_difference(task.host, file)));
    let list = rendered.iter().find(|file| is_listed(file));
    differences.extend(list.and_then(|file| served_difference(task.host, file)));
    let members = balance::differences(task.host, plan).into_iter();
    differences.extend(members.map(|text| found(DriftKind::Route, text)));
    Ok(differences)
}

fn found(kind: DriftKind, text: impl Into<String>) -> Difference {
    Difference::of_node(kind, text)
}

fn file_difference(file: &Rendered) -> Result<Option<Difference>, Failure> {
    let path = file.path.display();
    Ok(match files::read(&file.path)? {
        Some(text) if text == file.text => None,
        Some(_) => Some(found(DriftKind::File, format!("{path} was changed by someone else"))),
        None => Some(found(DriftKind::File, format!("{path} is missing"))),
    })
}

/// What of bridge, address and forwarding is not as planned.
pub(super) fn network(host: &Host, plan: &NodePlan) -> Result<Vec<Difference>, Failure> {
    let mut differences = Vec::new();
    let bridge = &plan.bridge;
    if !host.path(format!("/sys/class/net/{bridge}/bridge")).exists() {
        differences.push(format!("there is no bridge {bridge}"));
    } else if !addresses(host).contains(&IpAddr::V4(plan.network.gateway())) {
        differences.push(format!("the bridge {bridge} does not have the address {}", plan.network));
    }
    if learns_unseen(host, bridge) {
        differences.push(format!("the bridge {bridge} learns from frames that no rule sees"));
    }
    if files::read(&host.path("/proc/sys/net/ipv4/ip_forward"))?.is_none_or(|text| text.trim() != "1") {
        differences.push("the kernel does not forward IPv4".to_owned());
    }
    Ok(differences.into_iter().map(|text| found(DriftKind::Network, text)).collect())
}

/// Whether frames to link-local groups teach the bridge who is where.
pub(super) fn learns_unseen(host: &Host, bridge: &str) -> bool {
    let path = host.path(format!("/sys/class/net/{bridge}/bridge/no_linklocal_learn"));
    std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "0")
}

fn rules(task: &Task<'_>, plan: &NodePlan) -> Result<Vec<Difference>, Failure> {
    let now = live::filter(task)?;
    let seen = files::read(&seen_rules(&task.host.configuration()))?;
    let mut texts = Vec::new();
    if now.rules.is_empty() {
        texts.push("the firewall's tables are missing in the kernel".to_owned());
    } else {
        let changed = seen.is_some_and(|seen| seen != now.rules);
        texts.extend(changed.then(|| "the firewall's rules in the kernel were changed by someone else".to_owned()));
        texts.extend(port_differences(task.host, plan, &now));
        texts.extend(blocked::difference(task.host, plan, &now.blocked));
    }
    Ok(texts.into_iter().map(|text| found(DriftKind::Rule, text)).collect())
}

/// What of the guests' ports in the kernel is not as planned.
pub(super) fn port_differences(host: &Host, plan: &NodePlan, filter: &Filter) -> Vec<String> {
    let files = (identity::ports(plan), identity::neighbours(plan));
    ports::differences(host, &plan.bridge, (&files.0, &files.1), &filter.ports)
}

/// Whether the running proxy looks up in this map something else than the file says.
pub(super) fn map_difference(host: &Host, file: &Rendered) -> Option<Difference> {
    let path = file.path.display();
    let text = match live::map(host, &file.path) {
        Ok(lines) => routes(&path.to_string(), &file.text, &lines)?,
        Err(failure) => failure.to_string(),
    };
    Some(found(DriftKind::Route, text))
}

fn served_difference(host: &Host, list: &Rendered) -> Option<Difference> {
    let difference = certificates::running_difference(host, &list.text);
    difference.unwrap_or_else(|failure| Some(failure.to_string())).map(|text| found(DriftKind::Route, text))
}

/// Names the routes that differ, the first few of them.
fn routes(path: &str, planned: &str, running: &BTreeSet<String>) -> Option<String> {
    let planned: BTreeSet<String> = planned.lines().map(str::to_owned).collect();
    let difference = lines_differ(&planned, running)?;
    Some(format!("the running proxy does not route as {path} says: it {difference}"))
}

/// What is lacking and what is there besides, the first few of each: `lacks A, and it has besides B`.
pub(super) fn lines_differ(planned: &BTreeSet<String>, running: &BTreeSet<String>) -> Option<String> {
    let named = |lines: Vec<&str>, what: &str| (!lines.is_empty()).then(|| format!("{what} {}", some(&lines)));
    let lines = |of: &BTreeSet<String>, without: &BTreeSet<String>, what: &str| {
        named(of.difference(without).map(String::as_str).collect(), what)
    };
    let said = [lines(planned, running, "lacks"), lines(running, planned, "has besides")];
    let said: Vec<String> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(", and it "))
}

/// The first few, and how many more there are.
pub(super) fn some(texts: &[&str]) -> String {
    const NAMED: usize = 3;
    let first = texts.get(..NAMED).unwrap_or(texts).join(", ");
    match texts.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_that_differ_are_named() {
        let running = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<BTreeSet<_>>();
        let planned = "40000 10.5.0.2\n40001 10.5.0.3\n";
        assert_eq!(routes("m", planned, &running(&["40001 10.5.0.3", "40000 10.5.0.2"])), None);
        let text = routes("m", planned, &running(&["40001 10.5.0.3", "1 x"])).unwrap();
        assert_eq!(text, "the running proxy does not route as m says: it lacks 40000 10.5.0.2, and it has besides 1 x");
        let many = routes("m", "a\nb\nc\nd\ne\n", &running(&[])).unwrap();
        assert!(many.ends_with("it lacks a, b, c and 2 more"), "{many}");
    }
}
