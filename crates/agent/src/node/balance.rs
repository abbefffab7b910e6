//! Which members of pools the running proxy gives requests, and what is under way there.

use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::GuestName;
use corpus_protocol::{MemberReading, NodePlan};

use super::live::{self, Server};
use super::pools::{self, PREFIX};
use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::task::Task;

/// No wait is longer.
const LONGEST_WAIT_S: u32 = 300;
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Members are given requests, or none, as the plan says.
pub fn set(task: &Task<'_>, plan: &NodePlan) -> Result<(), Failure> {
    let running = servers(task.host)?;
    for (pool, member) in pools::all(plan) {
        let backend = pools::backend(&pool.id);
        let found = running.iter().find(|one| one.pool == backend && one.guest == member.guest.as_str());
        if found.is_none_or(|one| one.is_out() == member.active) {
            live::set_server(task.host, &backend, member.guest.as_str(), member.active)?;
        }
    }
    Ok(())
}

/// What of the members in the running proxy is not as planned, a sentence each.
pub fn differences(host: &Host, plan: &NodePlan) -> Vec<String> {
    if plan.pools.is_empty() {
        return Vec::new();
    }
    let running = match servers(host) {
        Ok(running) => running,
        Err(failure) => return vec![failure.to_string()],
    };
    let different = pools::all(plan).filter_map(|(pool, member)| {
        let backend = pools::backend(&pool.id);
        let found = running.iter().find(|one| one.pool == backend && one.guest == member.guest.as_str());
        match (found, member.active) {
            (None, _) => Some(format!("the running proxy does not know {} as one of {}", member.guest, pool.id)),
            (Some(one), true) if one.is_out() => {
                Some(format!("the running proxy gives {} no requests, though it is in the balance", member.guest))
            }
            (Some(one), false) if !one.is_out() => {
                Some(format!("the running proxy gives {} requests, though it is out of the balance", member.guest))
            }
            _ => None,
        }
    });
    different.collect()
}

/// Waits until no request is under way at the guest as a member of a pool; tells whether there was one at first. What
/// is under way for longer than the limit is said, and not waited for.
pub fn await_idle(task: &Task<'_>, guest: &GuestName, limit_s: u32) -> Result<bool, Failure> {
    let end = Instant::now() + Duration::from_secs(limit_s.min(LONGEST_WAIT_S).into());
    let mut has_waited = false;
    loop {
        task.go_on()?;
        let of_guest = servers(task.host)?.into_iter().filter(|one| one.guest == guest.as_str());
        let under_way: u32 = of_guest.map(|one| one.requests).fold(0, u32::saturating_add);
        if under_way == 0 {
            return Ok(has_waited);
        }
        if Instant::now() >= end {
            task.note(format!("{under_way} requests are still under way at {guest} after {limit_s} s"));
            return Ok(true);
        }
        has_waited = true;
        sleep(POLL_INTERVAL);
    }
}

/// The members as the proxy sees them; none on a node without pools, and where it does not tell.
pub fn members(host: &Host) -> Vec<MemberReading> {
    // A node whose pools have members elsewhere only lends a guest to those.
    let has_pools = ["members.map", "lent.map"].iter().any(|map| {
        files::read(&host.configuration().join(map)).is_ok_and(|text| text.is_some_and(|text| !text.is_empty()))
    });
    let servers = if has_pools { servers(host).unwrap_or_default() } else { Vec::new() };
    let reading = |one: Server| {
        let guest = one.guest.parse().ok()?;
        Some(MemberReading { guest, takes: one.takes(), seen: one.seen(), requests: one.requests })
    };
    servers.into_iter().filter_map(reading).collect()
}

/// Those of pools.
fn servers(host: &Host) -> Result<Vec<Server>, Failure> {
    let mut servers = live::servers(host)?;
    servers.retain(|one| one.pool.starts_with(PREFIX));
    Ok(servers)
}
