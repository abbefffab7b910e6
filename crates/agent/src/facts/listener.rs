//! Who listens on the ports that the proxy needs, and on those that are to be published.

use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;

use corpus_domain::Transport;
use corpus_protocol::Listener;

use crate::host::Host;

/// The ports that the proxy needs for HTTP and HTTPS.
const PORTS: [u16; 2] = [80, 443];
/// Where the control groups of services are.
const GROUPS: [&str; 3] = ["systemd/system.slice", "system.slice", "unified/system.slice"];

/// The listeners on ports 80 and 443, and whether each is our proxy's.
pub fn listeners(host: &Host) -> Vec<Listener> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(host.path(path)).unwrap_or_default());
    let found: BTreeSet<(u16, u64)> = tables.iter().flat_map(|table| table.lines().filter_map(listening)).collect();
    let ours = if found.is_empty() { BTreeSet::new() } else { proxy_sockets(host) };
    PORTS
        .iter()
        .filter_map(|&port| {
            let sockets: Vec<u64> = found.iter().filter(|(at, _)| *at == port).map(|(_, inode)| *inode).collect();
            (!sockets.is_empty()).then(|| Listener { port, ours: sockets.iter().all(|inode| ours.contains(inode)) })
        })
        .collect()
}

/// Port and inode of a listening socket (state 0A) of /proc/net/tcp.
fn listening(line: &str) -> Option<(u16, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
    (*fields.get(3)? == "0A" && PORTS.contains(&port)).then_some((port, fields.get(9)?.parse().ok()?))
}

/// Whether something on the host takes what comes from outside to this port.
pub fn is_taken(host: &Host, protocol: Transport, port: u16) -> bool {
    // A socket of UDP that is bound has the state 07.
    let (files, state) = match protocol {
        Transport::Tcp => (["/proc/net/tcp", "/proc/net/tcp6"], "0A"),
        Transport::Udp => (["/proc/net/udp", "/proc/net/udp6"], "07"),
    };
    let takes = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, at) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(at, 16).ok()? == port && *fields.get(3)? == state;
        Some(is_it && !is_loopback(address))
    };
    files.iter().any(|path| {
        let table = fs::read_to_string(host.path(path)).unwrap_or_default();
        table.lines().any(|line| takes(line).unwrap_or(false))
    })
}

/// Whether a program listens at this address and TCP port, or at that port of every address.
pub fn is_taken_at(host: &Host, address: Ipv4Addr, port: u16) -> bool {
    // Words of the machine's order.
    let own = format!("{:08X}", u32::from_ne_bytes(address.octets()));
    let mapped = format!("0000000000000000{:08X}{own}", u32::from_ne_bytes([0, 0, 0xff, 0xff]));
    let takes = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (at, of) = fields.get(1)?.rsplit_once(':')?;
        let listens = u16::from_str_radix(of, 16).ok()? == port && *fields.get(3)? == "0A";
        Some(listens && (at == own || at == mapped || at.bytes().all(|digit| digit == b'0')))
    };
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|path| {
        let table = fs::read_to_string(host.path(path)).unwrap_or_default();
        table.lines().any(|line| takes(line).unwrap_or(false))
    })
}

/// Whether an address of /proc/net is the host's own: `127.0.0.0/8`, or `::1`, as words of the machine's order.
fn is_loopback(address: &str) -> bool {
    address == "00000000000000000000000001000000" || (address.len() == 8 && address.ends_with("7F"))
}

fn proxy_sockets(host: &Host) -> BTreeSet<u64> {
    processes_of(host, "corpus-proxy.service").iter().flat_map(|pid| sockets_of(host, pid)).collect()
}

/// The processes of a unit, as its control group tells them.
pub fn processes_of(host: &Host, unit: &str) -> Vec<String> {
    let procs = GROUPS.iter().find_map(|group| {
        let path = format!("/sys/fs/cgroup/{group}/{unit}/cgroup.procs");
        fs::read_to_string(host.path(path)).ok()
    });
    procs.unwrap_or_default().lines().map(str::to_owned).collect()
}

fn sockets_of(host: &Host, pid: &str) -> Vec<u64> {
    let files = fs::read_dir(host.path(format!("/proc/{pid}/fd"))).into_iter().flatten().flatten();
    let links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.filter_map(|link| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets() {
        let line = "   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0";
        assert_eq!(listening(line), Some((80, 4711)));
        assert_eq!(listening(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listening("  sl  local_address rem_address   st"), None);
    }

    #[test]
    fn ports_that_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let line =
            |address: &str, port: &str, state: &str| format!("   0: {address}:{port} 00000000:0000 {state} 0:0\n");
        let tcp = line("0100007F", "7530", "0A") + &line("0B004D0A", "7531", "0A") + &line("00000000", "7532", "01");
        crate::files::write(&host.path("/proc/net/tcp"), &tcp, 0o644).unwrap();
        let six = line("00000000000000000000000000000000", "7533", "0A");
        crate::files::write(&host.path("/proc/net/tcp6"), &six, 0o644).unwrap();
        crate::files::write(&host.path("/proc/net/udp"), &line("00000000", "7534", "07"), 0o644).unwrap();
        let taken = |port: u16| is_taken(&host, Transport::Tcp, port);
        assert_eq!([30_000, 30_001, 30_002, 30_003, 30_004].map(taken), [false, true, false, true, false]);
        assert!(is_taken(&host, Transport::Udp, 30_004) && !is_taken(&host, Transport::Udp, 30_001));
    }
}
