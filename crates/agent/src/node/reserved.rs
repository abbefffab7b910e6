//! The ports of guests' SSH are none that the kernel gives to connections.
//!
//! They lie among those that it gives to whoever connects to somewhere and asks for no port of its own. At one that such a
//! connection of the host has, or had until a minute ago, nobody can listen: a proxy that starts meanwhile does not start, and no
//! guest is reached. So the kernel is told to give others, now and at each boot, beside those that the host itself keeps.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::{DriftKind, SSH_PORTS};
use corpus_protocol::Difference;

use super::check::some;
use crate::facts::listeners;
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::task::Task;

/// What the kernel gives to nobody that asks for no port: `40000-50000,8080`.
const KERNEL: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";
/// What it is told at boot, before anything connects.
const FILE: &str = "/etc/sysctl.d/60-corpus-ports.conf";
/// What was there before, in that file.
const OWN: &str = "# The host's own: ";
/// A connection that has ended keeps its port for a minute.
pub const PATIENCE: Duration = Duration::from_secs(65);
/// What a request may wait that is to be short.
pub const SHORTLY: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(250);

/// The kernel is told, and will be at boot; tells whether it had to be.
pub fn settle(task: &Task<'_>) -> Result<bool, Failure> {
    let (kernel, file) = (task.host.path(KERNEL), task.host.path(FILE));
    let Some(now) = files::read(&kernel)? else { return Ok(false) };
    let now = now.trim();
    let is_kept = are_kept(now);
    if is_kept && file.exists() {
        return Ok(false);
    }
    let ours = format!("{}-{}", SSH_PORTS.start(), SSH_PORTS.end());
    let all = [now, &ours].into_iter().filter(|ports| !ports.is_empty()).collect::<Vec<_>>().join(",");
    let text = format!(
        "# Written by corpus-agent; changes are overwritten. At these ports guests are reached.\n\
         {OWN}{now}\nnet.ipv4.ip_local_reserved_ports = {all}\n"
    );
    files::write(&file, &text, 0o644)?;
    if !is_kept {
        fs::write(&kernel, all).at("write", &kernel)?;
    }
    Ok(true)
}

/// What of it is not so.
pub fn differences(host: &Host) -> Result<Option<Difference>, Failure> {
    let Some(now) = files::read(&host.path(KERNEL))? else { return Ok(None) };
    let text = match (are_kept(now.trim()), host.path(FILE).exists()) {
        (true, true) => return Ok(None),
        (true, false) => format!("{FILE} is missing"),
        (false, _) => "the kernel gives ports of guests to connections of the host".to_owned(),
    };
    Ok(Some(Difference::of_node(DriftKind::Network, text)))
}

/// The kernel has what it had before.
pub fn remove(host: &Host) -> Result<bool, Failure> {
    let (kernel, file) = (host.path(KERNEL), host.path(FILE));
    let Some(text) = files::read(&file)? else { return Ok(false) };
    let own = text.lines().find_map(|line| line.strip_prefix(OWN)).unwrap_or_default();
    if kernel.exists() {
        fs::write(&kernel, format!("{own}\n")).at("write", &kernel)?;
    }
    files::remove(&file)
}

fn are_kept(now: &str) -> bool {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some((first.parse::<u16>().ok()?, last.parse::<u16>().ok()?))
    };
    now.split(',').filter_map(range).any(|(first, last)| first <= *SSH_PORTS.start() && *SSH_PORTS.end() <= last)
}

/// Waits until nothing but our proxy has any of these ports; fails with what is left when the time is over.
pub fn await_free(task: &Task<'_>, mut ports: Vec<u16>, limit: Duration) -> Result<(), Failure> {
    let end = Instant::now() + limit;
    let mut is_told = false;
    loop {
        ports.retain(|port| !is_free(*port));
        // The host's boot may just start the proxy.
        if ports.is_empty() || listeners(task.host).iter().any(|one| one.ours) {
            return Ok(());
        }
        let named: Vec<String> = ports.iter().map(u16::to_string).collect();
        let named = some(&named.iter().map(String::as_str).collect::<Vec<_>>());
        if Instant::now() >= end {
            let first = ports.first().copied().unwrap_or_default();
            return Err(Failure::Invalid(format!(
                "guests are to be reached at ports of the host that are in use: {named}; `ss -tanp 'sport = :{first}'` there says by what"
            )));
        }
        if !is_told {
            task.note(format!(
                "guests are to be reached at ports of the host that are in use, and waited for: {named}"
            ));
            is_told = true;
        }
        task.go_on()?;
        sleep(PAUSE);
    }
}

/// Whether one could listen there, as the proxy does.
fn is_free(port: u16) -> bool {
    let is_taken = |bound: std::io::Result<TcpListener>| bound.is_err_and(|error| error.kind() == ErrorKind::AddrInUse);
    !is_taken(TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)))
        && !is_taken(TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::test::with_task;

    #[test]
    fn ports_of_guests_are_kept_beside_those_of_the_host() {
        for (own, all) in [("8080,9000-9100", "8080,9000-9100,40000-50000"), ("", "40000-50000")] {
            let folder = tempfile::tempdir().unwrap();
            let host = Host::below(folder.path());
            let now = || fs::read_to_string(host.path(KERNEL)).unwrap().trim().to_owned();
            with_task(&host, |task| assert!(!settle(task).unwrap(), "a kernel that has no such ports"));
            files::write(&host.path(KERNEL), &format!("{own}\n"), 0o644).unwrap();
            assert!(differences(&host).unwrap().is_some());
            assert_eq!(with_task(&host, |task| [settle(task).unwrap(), settle(task).unwrap()]), [true, false]);
            assert_eq!(now(), all);
            assert!(differences(&host).unwrap().is_none());
            // Somebody reads the host's own settings again.
            fs::write(host.path(KERNEL), "7\n").unwrap();
            assert!(differences(&host).unwrap().is_some());
            assert!(with_task(&host, |task| settle(task).unwrap()));
            assert_eq!(now(), "7,40000-50000");
            assert!(remove(&host).unwrap() && !remove(&host).unwrap());
            assert_eq!(now(), "7");
        }
    }

    #[test]
    fn a_port_that_is_in_use_is_waited_for_and_named() {
        let taken = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let wait = |limit| with_task(&host, |task| await_free(task, vec![port], limit));
        let failed = wait(Duration::ZERO).unwrap_err().to_string();
        assert!(failed.contains(&format!("in use: {port}; `ss -tanp 'sport = :{port}'`")), "{failed}");
        let ended = std::thread::spawn(move || {
            sleep(Duration::from_millis(300));
            drop(taken);
        });
        wait(Duration::from_secs(20)).unwrap();
        ended.join().unwrap();
    }
}
