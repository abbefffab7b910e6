//! Tells what of a node is not as planned, by looking at what is in force.

use std::collections::BTreeSet;
use std::net::IpAddr;

use corpus_protocol::NodePlan;

use super::live::{self, inactive_units};
use super::plan::require_sound;
use super::{Part, Rendered, render, seen_rules};
use crate::facts::addresses;
use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::task::Task;

/// The differences, a sentence each.
pub fn check(task: &Task<'_>, plan: &NodePlan) -> Result<Vec<String>, Failure> {
    require_sound(plan)?;
    let rendered = render(task.host, plan);
    let mut differences = Vec::new();
    for file in &rendered {
        differences.extend(file_difference(file)?);
    }
    differences.extend(inactive_units(task)?.into_iter().map(|unit| format!("{unit} is not active")));
    differences.extend(network(task.host, plan)?);
    differences.extend(rules(task)?);
    let maps = rendered.iter().filter(|file| file.part == Part::Maps);
    differences.extend(maps.filter_map(|file| map_difference(task.host, file)));
    Ok(differences)
}

fn file_difference(file: &Rendered) -> Result<Option<String>, Failure> {
    let path = file.path.display();
    Ok(match files::read(&file.path)? {
        Some(text) if text == file.text => None,
        Some(_) => Some(format!("{path} is not as planned")),
        None => Some(format!("{path} is missing")),
    })
}

fn network(host: &Host, plan: &NodePlan) -> Result<Vec<String>, Failure> {
    let mut differences = Vec::new();
    let bridge = &plan.bridge;
    if !host.path(format!("/sys/class/net/{bridge}/bridge")).exists() {
        differences.push(format!("there is no bridge {bridge}"));
    } else if !addresses(host).contains(&IpAddr::V4(plan.network.gateway())) {
        differences.push(format!("the bridge {bridge} does not have the address {}", plan.network));
    }
    if files::read(&host.path("/proc/sys/net/ipv4/ip_forward"))?.is_none_or(|text| text.trim() != "1") {
        differences.push("the kernel does not forward IPv4".to_owned());
    }
    Ok(differences)
}

fn rules(task: &Task<'_>) -> Result<Option<String>, Failure> {
    let now = live::rules(task)?;
    let seen = files::read(&seen_rules(&task.host.configuration()))?;
    Ok(match seen {
        _ if now.is_empty() => Some("the firewall's tables are missing in the kernel".to_owned()),
        Some(seen) if seen != now => {
            Some("the firewall's tables in the kernel were changed by someone else".to_owned())
        }
        _ => None,
    })
}

fn map_difference(host: &Host, file: &Rendered) -> Option<String> {
    let path = file.path.display();
    match live::map(host, &file.path) {
        Ok(lines) if lines == file.text.lines().map(str::to_owned).collect::<BTreeSet<_>>() => None,
        Ok(_) => Some(format!("the running proxy does not route as {path} is planned")),
        Err(failure) => Some(failure.to_string()),
    }
}
