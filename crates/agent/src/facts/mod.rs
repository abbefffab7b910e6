//! What the host is, and how it is now: read from files. A reading starts no process, and what the host is one only for the
//! room of pools that no file tells.

mod driver;
mod foreign;
mod listener;
mod parse;

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use corpus_domain::Bytes;
use corpus_protocol::{Facts, Reading, Storage};

use crate::failure::{At, Failure};
use crate::host::Host;
use crate::project::saved;
use crate::task::Task;
use crate::{confinement, drivers, image, node};

pub use self::foreign::{in_the_way as other_firewall, require_none as require_no_other_firewall};
pub use self::listener::{is_taken, is_taken_at, listeners, processes_of};
pub use self::parse::package_versions;

/// What the host is.
pub fn facts(task: &Task<'_>) -> Result<Facts, Failure> {
    let host = task.host;
    let system = rustix::system::uname();
    let (memory, _) = memory(host)?;
    Ok(Facts {
        hostname: system.nodename().to_string_lossy().into_owned(),
        os: parse::os_name(&text(host, "/etc/os-release").unwrap_or_default()),
        kernel: system.release().to_string_lossy().into_owned(),
        architecture: system.machine().to_string_lossy().into_owned(),
        cpu: parse::cpu(&text(host, "/proc/cpuinfo")?),
        memory,
        storage: storage(host)?,
        addresses: addresses(host),
        drivers: driver::facts(task),
        listeners: listeners(host),
        confinement: confinement::facts(host),
        not_held: drivers::all().iter().flat_map(|driver| driver.not_held(host)).collect(),
    })
}

/// How the host and its guests are now.
pub fn reading(host: &Host) -> Result<Reading, Failure> {
    let (memory_total, memory_used) = memory(host)?;
    Ok(Reading {
        load: parse::load(&text(host, "/proc/loadavg")?),
        uptime_s: parse::uptime(&text(host, "/proc/uptime")?, &text(host, "/proc/1/stat")?),
        memory_total,
        memory_used,
        storage: storage(host)?,
        guests: drivers::readings(host),
        images: image::list(host).into_iter().map(|(name, _)| name).collect(),
        members: node::members(host),
        clock_ms: Some(saved::now()),
    })
}

/// The host's addresses, without loopback and link-local ones.
pub fn addresses(host: &Host) -> Vec<IpAddr> {
    let read = |path| text(host, path).unwrap_or_default();
    let v4 = parse::ipv4(&read("/proc/net/fib_trie")).into_iter().map(IpAddr::from);
    v4.chain(parse::ipv6(&read("/proc/net/if_inet6")).into_iter().map(IpAddr::from)).collect()
}

fn text(host: &Host, path: &str) -> Result<String, Failure> {
    fs::read_to_string(host.path(path)).at("read", path)
}

/// The memory of the host; 0 when that can't be read.
pub fn memory_total(host: &Host) -> u64 {
    memory(host).map_or(0, |(total, _)| total.0)
}

/// Total and used.
fn memory(host: &Host) -> Result<(Bytes, Bytes), Failure> {
    Ok(parse::memory(&text(host, "/proc/meminfo")?))
}

/// The file system that guests live on.
pub fn storage(host: &Host) -> Result<Storage, Failure> {
    let folder = ["/var/lib/lxc", "/var/lib"].map(|path| host.path(path)).into_iter().find(|path| path.is_dir());
    let folder = folder.unwrap_or_else(|| Path::new("/").to_owned());
    let disk = rustix::fs::statvfs(&folder).at("look at", &folder)?;
    let promised = drivers::promised(host);
    Ok(Storage { promised, ..of_disk(disk.f_blocks, disk.f_bavail, disk.f_frsize) })
}

/// What is kept for root, or lies beyond what the host was given, is not free: a job that needs room counts so too.
const fn of_disk(blocks: u64, available: u64, block: u64) -> Storage {
    let used = Bytes(blocks.saturating_sub(available) * block);
    Storage { total: Bytes(blocks * block), used, promised: Bytes(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::test::with_task;

    #[test]
    fn what_nobody_can_have_is_not_free() {
        let storage = of_disk(270, 64, 1_000);
        assert_eq!((storage.total, storage.used), (Bytes(270_000), Bytes(206_000)));
    }

    #[test]
    fn this_host_has_facts() {
        let facts = with_task(&Host::default(), facts).unwrap();
        assert!(facts.cpu.count >= 1 && facts.memory > Bytes(0) && facts.storage.total > facts.storage.used);
        let reading = reading(&Host::default()).unwrap();
        assert!(reading.uptime_s > 0 && reading.memory_total == facts.memory);
    }
}
