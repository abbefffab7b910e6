//! A node as it is answered, made from its row.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use corpus_api::nodes::{Drift, DriverFact, Node, NodeFacts, NodeGateway, NodeLine, NodeReading, SafeguardFact};
use corpus_domain::{GuestId, GuestName, Reachability};
use corpus_protocol::{Facts, Reading};

use crate::nodes::{GATEWAY, Gateway};
use crate::store::drift::Finding;
use crate::store::nodes;

/// A reading takes a moment to come, and clocks that are looked after differ by less.
const CLOCKS_DIFFER_S: i64 = 60;

/// Leaves what members may know. What differs, what was read and why it failed names guests and routes of
/// every project: that is for those who repair, as is the way to the node.
pub(super) fn tell_less(row: &mut nodes::Node) {
    row.drift.clear();
    row.gateway = None;
    row.state_reason = None;
    row.reachability_reason = None;
}

/// The whole, with the guests that its findings name.
pub(super) fn whole(line: NodeLine, row: nodes::Node, guests: &HashMap<GuestName, GuestId>) -> Node {
    let read_at = line.reading_at;
    Node {
        line,
        dns_name: None,
        ssh_port: row.ssh_port,
        ssh_user: row.ssh_user,
        fingerprint: row.fingerprint,
        gateway: row.gateway.map(|it| gateway(*it, row.reachability, row.reachability_reason.as_deref())),
        state_reason: row.state_reason,
        reachability_reason: row.reachability_reason,
        network: row.network,
        bridge: row.bridge,
        capacity: row.capacity,
        promised: row.promised,
        pools: row.pools,
        overcommit: row.overcommit,
        facts: row.facts.map(facts),
        facts_at: row.facts_at,
        reading: row.reading.as_ref().map(|read| reading(read, read_at)),
        images: row.reading.map(|read| read.images).unwrap_or_default(),
        drift: row.drift.into_iter().map(|one| drift(one, guests)).collect(),
        checked_at: row.checked_at,
    }
}

/// Which of two host keys is another one stands at the beginning of the reason.
fn gateway(of: Gateway, reachability: Reachability, reason: Option<&str>) -> NodeGateway {
    let is_told_of = reason.is_some_and(|reason| reason.starts_with(GATEWAY));
    NodeGateway {
        address: of.address,
        port: of.port,
        user: of.user,
        fingerprint: of.pinned_host_key.seen().fingerprint,
        shows_other_key: reachability == Reachability::HostKeyChanged && is_told_of,
    }
}

fn reading(read: &Reading, at: Option<DateTime<Utc>>) -> NodeReading {
    let ahead = |clock| Some(i64::try_from(clock).ok()? / 1_000 - at?.timestamp());
    let clock_ahead_s = read.clock_ms.and_then(ahead).filter(|ahead| ahead.abs() >= CLOCKS_DIFFER_S);
    NodeReading { load: read.load, uptime_s: read.uptime_s, clock_ahead_s }
}

fn drift(one: Finding, guests: &HashMap<GuestName, GuestId>) -> Drift {
    let guest = one.guest.as_ref().and_then(|name| guests.get(name).copied());
    Drift { kind: one.kind, guest, guest_name: one.guest, text: one.text, since: one.since }
}

fn facts(facts: Facts) -> NodeFacts {
    let driver = |one: corpus_protocol::DriverFact| {
        let corpus_protocol::DriverFact { driver, version, obstacle, .. } = one;
        DriverFact { driver, version, obstacle }
    };
    let safeguard = |one: corpus_protocol::SafeguardFact| {
        let corpus_protocol::SafeguardFact { safeguard, in_force, detail } = one;
        SafeguardFact { safeguard, in_force, detail }
    };
    NodeFacts {
        hostname: facts.hostname,
        os: facts.os,
        kernel: facts.kernel,
        architecture: facts.architecture,
        processor: facts.cpu.model,
        processors: facts.cpu.count,
        memory: facts.memory,
        storage: facts.storage.total,
        addresses: facts.addresses.iter().map(ToString::to_string).collect(),
        drivers: facts.drivers.into_iter().map(driver).collect(),
        confinement: facts.confinement.into_iter().map(safeguard).collect(),
        not_held: facts.not_held,
    }
}
