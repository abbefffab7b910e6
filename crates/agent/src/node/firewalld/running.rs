//! What firewalld works by, whatever its files say.
//!
//! Rules may have been changed without `--permanent`, and what was written may not have been read. It is asked on the
//! bus of the system by `busctl`, which takes a few hundredths of a second where `firewall-cmd` takes half of one, and
//! no question starts it.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::Duration;

use corpus_domain::Ipv4Network;
use corpus_protocol::NodePlan;
use serde_json::Value;

use super::{PRIORITY, TO_GUESTS, TO_NODE, ZONE, ports};
use crate::failure::Failure;
use crate::runner::Argv;
use crate::task::Task;

const NAME: &str = "org.fedoraproject.FirewallD1";
const ZONES: &str = "org.fedoraproject.FirewallD1.zone";
const POLICIES: &str = "org.fedoraproject.FirewallD1.policy";
/// How long an answer may take, in seconds.
const ANSWER_TIMEOUT: &str = "--timeout=5";
/// It runs for a moment before it is on the bus.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(400);

/// A zone or a policy of ours.
struct Ours {
    what: &'static str,
    name: &'static str,
    settings: Settings,
}

/// What of a zone or a policy decides about packets.
#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    target: String,
    /// Zones have none.
    priority: Option<i64>,
    /// All that lets something in or keeps it out, by firewalld's own word for it, such as `ports`.
    lists: BTreeMap<String, BTreeSet<String>>,
}

impl Settings {
    fn new(target: &str, priority: Option<i64>, lists: &[(&str, &[String])]) -> Self {
        let list = |(key, all): &(&str, &[String])| ((*key).to_owned(), all.iter().cloned().collect());
        Self { target: target.to_owned(), priority, lists: lists.iter().map(list).collect() }
    }

    /// From a dictionary of the bus, whose values say their type.
    fn read(answer: &Value) -> Self {
        let mut settings = Self::default();
        let entries = answer.as_object().into_iter().flatten();
        for (key, value) in entries.filter_map(|(key, value)| Some((key, value.get("data")?))) {
            match value {
                Value::String(text) if key == "target" => text.clone_into(&mut settings.target),
                Value::Number(number) if key == "priority" => settings.priority = number.as_i64(),
                // Who comes would be hidden from guests.
                Value::Bool(true) if key == "masquerade" => {
                    settings.lists.insert(key.clone(), BTreeSet::new());
                }
                Value::Array(all) if !all.is_empty() => {
                    settings.lists.insert(key.clone(), all.iter().map(text).collect());
                }
                _ => {}
            }
        }
        settings
    }
}

/// A port is a pair of its number and a protocol.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(text).collect::<Vec<_>>().join("/"),
        other => other.to_string(),
    }
}

fn ours(plan: &NodePlan) -> [Ours; 3] {
    let one = |text: &str| [text.to_owned()];
    let any = one("ANY");
    let ports: Vec<String> = ports(plan).iter().map(|port| format!("{port}/tcp")).collect();
    let policy = |target, lists: &[(&str, &[String])]| Settings::new(target, Some(PRIORITY), lists);
    let zone = Settings::new("ACCEPT", None, &[("interfaces", &one(&plan.bridge))]);
    let to_guests = policy("ACCEPT", &[("ingress_zones", &any), ("egress_zones", &one(ZONE))]);
    let to_node = policy("CONTINUE", &[("ingress_zones", &any), ("egress_zones", &one("HOST")), ("ports", &ports)]);
    [
        Ours { what: "zone", name: ZONE, settings: zone },
        Ours { what: "policy", name: TO_GUESTS, settings: to_guests },
        Ours { what: "policy", name: TO_NODE, settings: to_node },
    ]
}

/// What of ours it does not have, or has otherwise.
pub fn differences(task: &Task<'_>, plan: &NodePlan) -> Result<Vec<String>, Failure> {
    let mut differences = Vec::new();
    for Ours { what, name, settings } in ours(plan) {
        match settings_of(task, what, name)? {
            None => differences.push(format!("firewalld works without the {what} {name}")),
            Some(found) if found != settings => {
                differences.push(format!("the {what} {name}, by which firewalld works, was changed by someone else"));
            }
            Some(_) => {}
        }
    }
    Ok(differences)
}

/// Zones by the address of whoever comes are before those by interface: guests fall into them, and only their owner can
/// say what is meant.
pub fn in_front(task: &Task<'_>, plan: &NodePlan) -> Result<Vec<String>, Failure> {
    let guests = Ipv4Network::new(plan.network.network(), plan.network.prefix());
    Ok(sources_over(&ask(task, ZONES, "getActiveZones", None)?.unwrap_or_default(), guests))
}

fn sources_over(zones: &Value, guests: Ipv4Network) -> Vec<String> {
    let zones = zones.as_object().into_iter().flatten().filter(|(name, _)| *name != ZONE);
    let sources = zones.flat_map(|(name, zone)| {
        let sources = zone.get("sources").and_then(Value::as_array).into_iter().flatten();
        sources.filter_map(move |source| Some((name, source.as_str()?)))
    });
    let over = sources.filter(|(_, source)| {
        source.parse::<Ipv4Network>().is_ok_and(|network| network.holds(guests) || guests.holds(network))
    });
    over.map(|(name, source)| {
        format!("guests ({guests}) fall into firewalld's zone {name} by its source {source}; take that out of the zone")
    })
    .collect()
}

/// Whether it has anything of ours.
pub fn has_ours(task: &Task<'_>) -> Result<bool, Failure> {
    for (what, name) in [("zone", ZONE), ("policy", TO_GUESTS), ("policy", TO_NODE)] {
        if settings_of(task, what, name)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn settings_of(task: &Task<'_>, what: &str, name: &str) -> Result<Option<Settings>, Failure> {
    let (interface, method) =
        if what == "zone" { (ZONES, "getZoneSettings2") } else { (POLICIES, "getPolicySettings") };
    Ok(ask(task, interface, method, Some(name))?.as_ref().map(Settings::read))
}

/// An answer; none where it does not know the name.
fn ask(task: &Task<'_>, interface: &str, method: &str, name: Option<&str>) -> Result<Option<Value>, Failure> {
    let object = "/org/fedoraproject/FirewallD1";
    let argv = Argv::new("busctl").args(["--system", "--json=short", "--auto-start=no", ANSWER_TIMEOUT, "call"]);
    let argv = argv.args([NAME, object, interface, method]).quiet();
    let argv = name.into_iter().fold(argv, |argv, name| argv.args(["s", name]));
    let mut tries = TRIES;
    loop {
        match argv.clone().run(task) {
            Ok(output) => return Ok(answer(&output.stdout)),
            Err(Failure::Command { tail, .. }) if tail.iter().any(|line| line.contains("INVALID_")) => return Ok(None),
            Err(Failure::Command { tail, .. })
                if tries > 1 && tail.iter().any(|line| line.contains("does not exist")) =>
            {
                tries -= 1;
            }
            Err(failure) => return Err(failure),
        }
        sleep(PAUSE);
    }
}

fn answer(line: &str) -> Option<Value> {
    let answer: Value = serde_json::from_str(line).ok()?;
    answer.get("data")?.get(0).cloned()
}

#[cfg(test)]
mod tests {
    use super::super::super::plan::tests::{linked, plan};
    use super::*;

    /// As firewalld 1.3 answers.
    const NODE: &str = r#"{"type":"a{sv}","data":[{"short":{"type":"s","data":"Corpus: to the node"},"target":{"type":"s","data":"CONTINUE"},"ports":{"type":"a(ss)","data":[["80","tcp"],["443","tcp"],["40000-50000","tcp"]]},"masquerade":{"type":"b","data":false},"priority":{"type":"i","data":1},"ingress_zones":{"type":"as","data":["ANY"]},"egress_zones":{"type":"as","data":["HOST"]}}]}"#;
    const ZONE_SAYS: &str = r#"{"type":"a{sv}","data":[{"short":{"type":"s","data":"Corpus"},"target":{"type":"s","data":"ACCEPT"},"masquerade":{"type":"b","data":false},"interfaces":{"type":"as","data":["lxcbr1"]},"icmp_block_inversion":{"type":"b","data":false},"forward":{"type":"b","data":false}}]}"#;

    #[test]
    fn what_runs_is_held_against_the_plan() {
        let read = |line: &str| Settings::read(&answer(line).unwrap());
        let [zone, _, node] = ours(&plan());
        assert_eq!(read(ZONE_SAYS), zone.settings);
        assert_eq!(read(NODE), node.settings);
        assert_ne!(read(NODE), ours(&linked())[2].settings);
        for (from, to) in [
            (r#"["443","tcp"],"#, ""),
            (r#""priority":{"type":"i","data":1}"#, r#""priority":{"type":"i","data":-1}"#),
            ("CONTINUE", "DROP"),
            (r#""masquerade":{"type":"b","data":false}"#, r#""masquerade":{"type":"b","data":true}"#),
            (r#""short""#, r#""rules_str":{"type":"as","data":["rule protocol value=\"icmp\" drop"]},"short""#),
        ] {
            assert_ne!(read(&NODE.replace(from, to)), node.settings, "{to}");
        }
        assert_ne!(read(&ZONE_SAYS.replace(r#"["lxcbr1"]"#, "[]")), zone.settings);
    }

    #[test]
    fn zones_that_take_guests_by_their_address_are_named() {
        let guests: Ipv4Network = "10.5.0.0/16".parse().unwrap();
        let zones = |source: &str| {
            let line = r#"{"type":"a{sa{sas}}","data":[{"corpus":{"interfaces":["lxcbr1"]},"internal":{"interfaces":["eth0"],"sources":["SOURCE"]}}]}"#;
            sources_over(&answer(&line.replace("SOURCE", source)).unwrap(), guests)
        };
        let text = "guests (10.5.0.0/16) fall into firewalld's zone internal by its source 10.0.0.0/8; take that out of the zone";
        assert_eq!(zones("10.0.0.0/8"), [text]);
        assert_eq!(zones("10.5.7.0/24").len(), 1);
        for other in ["192.0.2.0/24", "10.6.0.0/16", "ipset:office", "00:16:3e:05:00:0a", "2001:db8::/32"] {
            assert_eq!(zones(other), Vec::<String>::new());
        }
    }
}
