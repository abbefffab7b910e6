//! What the firewall has counted, and what it kept from guests last: read from the kernel, never from a log.
//!
//! Rules are replaced as a whole, and their counters with them. What was counted before is written to a file
//! that the rules read first, so a change of one rule does not begin the others at nothing.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use corpus_domain::{FirewallRuleId, Transport};
use corpus_protocol::{Dropped, FirewallReading, NodePlan, RuleCount};

use super::FAMILIES;
use super::far::let_out;
use super::rules::{KEPT_S, counted, counter};
use crate::failure::Failure;
use crate::files;
use crate::runner::Argv;
use crate::task::Task;

/// Drops that are told of each guest.
const TOLD: usize = 20;

/// Packets and bytes.
type Count = (u64, u64);

/// What was counted and dropped.
pub fn read(task: &Task<'_>) -> Result<FirewallReading, Failure> {
    let mut counts: BTreeMap<FirewallRuleId, Count> = BTreeMap::new();
    let mut drops = Vec::new();
    for family in FAMILIES {
        for (id, (packets, bytes)) in counts_of(&listed(task, &["counters", "table", family, "corpus"])?) {
            let sum = counts.entry(id).or_default();
            *sum = (sum.0.saturating_add(packets), sum.1.saturating_add(bytes));
        }
        drops.extend(drops_of(&listed(task, &["set", family, "corpus", "dropped"])?));
    }
    let counts = counts.into_iter().map(|(id, (packets, bytes))| RuleCount { id, packets, bytes }).collect();
    Ok(FirewallReading { counts, drops: newest(drops) })
}

/// Writes what was counted until now to where the rules of this plan begin.
pub fn keep(task: &Task<'_>, plan: &NodePlan) -> Result<(), Failure> {
    let there = |id: FirewallRuleId| {
        plan.firewall.iter().chain(let_out(plan)).any(|rule| rule.id == id)
            || plan.published.iter().any(|port| port.id == id)
            || plan.blocks.iter().any(|block| block.id == id)
    };
    let mut text = "# Written by corpus-agent; changes are overwritten.\n".to_owned();
    for family in FAMILIES {
        let counts = counts_of(&listed(task, &["counters", "table", family, "corpus"])?);
        let mut kept = counts.into_iter().filter(|(id, _)| there(*id)).peekable();
        if kept.peek().is_some() {
            let _ = writeln!(text, "add table {family} corpus");
        }
        for (id, (packets, bytes)) in kept {
            let _ = writeln!(text, "add counter {family} corpus {} {{ packets {packets} bytes {bytes} }}", counter(id));
        }
    }
    files::write(&task.host.configuration().join("counters.nft"), &text, 0o644)
}

/// What nft lists; empty where there is nothing of the kind.
pub fn listed(task: &Task<'_>, what: &[&str]) -> Result<String, Failure> {
    let (status, output) = Argv::new("nft").arg("list").args(what).quiet().end(task)?;
    Ok(if status.success() { output.stdout } else { String::new() })
}

/// The counters of a listing: `counter NAME {`, then `packets N bytes N`.
fn counts_of(listing: &str) -> Vec<(FirewallRuleId, Count)> {
    let mut found = Vec::new();
    let mut of = None;
    for line in listing.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("counter ") {
            of = counted(name.trim_end_matches('{').trim());
        } else if let Some((id, count)) = of.zip(count(line)) {
            found.push((id, count));
            of = None;
        }
    }
    found
}

/// What stands after `packets` and `bytes`.
pub fn count(text: &str) -> Option<Count> {
    let words: Vec<&str> = text.split_whitespace().collect();
    Some((after(&words, "packets")?.parse().ok()?, after(&words, "bytes")?.parse().ok()?))
}

fn after<'a>(words: &[&'a str], word: &str) -> Option<&'a str> {
    words.iter().position(|one| *one == word).and_then(|at| words.get(at + 1)).copied()
}

/// The elements of the set: `TO . FROM . tcp . PORT counter packets N bytes N expires 9m59s`.
fn drops_of(listing: &str) -> Vec<Dropped> {
    elements(listing).filter_map(dropped).collect()
}

/// The elements of a set of which nothing else is listed.
pub fn elements(listing: &str) -> impl Iterator<Item = &str> {
    let text = listing.split_once("elements = {").map_or("", |(_, rest)| rest);
    let text = text.split_once('}').map_or(text, |(elements, _)| elements);
    text.split(',')
}

fn dropped(element: &str) -> Option<Dropped> {
    let words: Vec<&str> = element.split_whitespace().collect();
    let [to, ".", from, ".", protocol, ".", port, ..] = words.as_slice() else { return None };
    let protocol = match *protocol {
        "tcp" | "6" => Transport::Tcp,
        "udp" | "17" => Transport::Udp,
        _ => return None,
    };
    let rest = after(&words, "expires").and_then(seconds).unwrap_or(KEPT_S);
    let age = KEPT_S.saturating_sub(rest);
    Some(Dropped {
        to: to.parse().ok()?,
        from: from.parse().ok()?,
        protocol,
        port: port.parse().ok()?,
        packets: count(element).map_or(1, |(packets, _)| packets.max(1)),
        age_s: u32::try_from(age).unwrap_or(u32::MAX),
    })
}

/// Whole seconds of `9m58s952ms`.
fn seconds(text: &str) -> Option<u64> {
    let (mut sum, mut number, mut rest) = (0_u64, String::new(), text);
    while let Some(one) = rest.chars().next() {
        if one.is_ascii_digit() {
            number.push(one);
            rest = rest.get(1..)?;
            continue;
        }
        let (unit, factor) = match one {
            'm' if rest.starts_with("ms") => ("ms", 0),
            'd' => ("d", 86_400),
            'h' => ("h", 3600),
            'm' => ("m", 60),
            's' => ("s", 1),
            _ => return None,
        };
        sum = sum.saturating_add(std::mem::take(&mut number).parse::<u64>().ok()?.saturating_mul(factor));
        rest = rest.strip_prefix(unit)?;
    }
    number.is_empty().then_some(sum)
}

/// The newest of each guest, so many of each.
fn newest(mut drops: Vec<Dropped>) -> Vec<Dropped> {
    drops.sort_by_key(|one| (one.to, one.age_s, one.from, one.port));
    let mut of: BTreeMap<Ipv4Addr, usize> = BTreeMap::new();
    drops.retain(|one| {
        let told = of.entry(one.to).or_default();
        *told += 1;
        *told <= TOLD
    });
    drops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nft_lists() {
        let id: FirewallRuleId = "0199d3c0-0000-7000-8000-000000000001".parse().unwrap();
        let listing = format!(
            "table inet corpus {{\n\tcounter {} {{\n\t\tpackets 5 bytes 300\n\t}}\n\tcounter other {{\n\t\tpackets 1 bytes 1\n\t}}\n}}\n",
            counter(id)
        );
        assert_eq!(counts_of(&listing), [(id, (5, 300))]);
        let listing = "table inet corpus {\n\tset dropped {\n\t\ttimeout 10m\n\t\telements = { \
                       10.5.0.10 . 192.0.2.7 . tcp . 22 counter packets 3 bytes 180 expires 9m58s952ms,\n\t\t\t     \
                       10.5.0.11 . 192.0.2.7 . 17 . 53 expires 8m counter packets 1 bytes 60,\n\
                       10.5.0.11 . 192.0.2.7 . icmp . 8 expires 8m }\n\t}\n}\n";
        let drops = newest(drops_of(listing));
        assert_eq!(drops.len(), 2);
        assert_eq!((drops[0].port, drops[0].packets, drops[0].age_s), (22, 3, 2));
        assert_eq!((drops[1].protocol, drops[1].age_s), (Transport::Udp, 120));
        assert_eq!((drops_of(""), counts_of("")), (vec![], vec![]));
    }

    #[test]
    fn times_as_nft_writes_them() {
        for (text, told) in [("10m", Some(600)), ("1h2m3s", Some(3723)), ("998ms", Some(0)), ("5", None), ("x", None)] {
            assert_eq!(seconds(text), told, "{text}");
        }
    }

    #[test]
    fn one_guest_takes_no_others_place() {
        let drop = |to: u8, port| Dropped {
            to: Ipv4Addr::new(10, 5, 0, to),
            from: Ipv4Addr::new(192, 0, 2, 1),
            protocol: Transport::Tcp,
            port,
            packets: 1,
            age_s: port.into(),
        };
        let told = newest((0..100).map(|port| drop(10, port)).chain([drop(11, 7)]).collect());
        assert_eq!((told.len(), told.iter().filter(|one| one.to.octets()[3] == 10).count()), (TOLD + 1, TOLD));
        assert_eq!(told[0].port, 0, "the newest are told");
    }
}
