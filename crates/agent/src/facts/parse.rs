//! The texts of /proc, os-release(5) and dpkg, as values.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use corpus_domain::Bytes;
use corpus_protocol::Cpu;

/// `PRETTY_NAME` of os-release(5).
pub fn os_name(text: &str) -> String {
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or_else(|| "unknown".to_owned(), |name| name.trim_matches(['"', '\'']).to_owned())
}

/// Model and number of the processors of /proc/cpuinfo.
pub fn cpu(text: &str) -> Cpu {
    let values = |key: &'static str| {
        text.lines().filter_map(move |line| line.split_once(':').filter(|(found, _)| found.trim() == key))
    };
    let model = values("model name").chain(values("Model")).chain(values("CPU implementer")).next();
    Cpu {
        model: model.map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned()),
        count: u32::try_from(values("processor").count()).unwrap_or(u32::MAX).max(1),
    }
}

/// Total and used memory of /proc/meminfo.
pub fn memory(text: &str) -> (Bytes, Bytes) {
    let field = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    let total = field("MemTotal");
    (Bytes(total), Bytes(total.saturating_sub(field("MemAvailable"))))
}

/// The first number of /proc/loadavg.
pub fn load(text: &str) -> f32 {
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// Seconds since the host's init started: in a container, /proc/uptime is older than the host.
pub fn uptime(uptime: &str, init_stat: &str) -> u64 {
    let whole = uptime.split('.').next().and_then(|seconds| seconds.trim().parse::<u64>().ok()).unwrap_or(0);
    let fields = init_stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let started = fields.split_whitespace().nth(19).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(0);
    whole.saturating_sub(started / 100)
}

/// The local addresses of `/proc/net/fib_trie`, in which a leaf `|-- ADDRESS` is followed by its kinds.
pub fn ipv4(text: &str) -> Vec<Ipv4Addr> {
    let mut leaf = None;
    let mut found = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse().ok();
        } else if line == "/32 host LOCAL" {
            found.extend(leaf.filter(|ip: &Ipv4Addr| !ip.is_loopback() && !ip.is_link_local()));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The global addresses of `/proc/net/if_inet6`: 32 hexadecimal digits, index, prefix, scope 00.
pub fn ipv6(text: &str) -> Vec<Ipv6Addr> {
    let global = text.lines().filter(|line| line.split_whitespace().nth(3) == Some("00"));
    let address = |line: &str| u128::from_str_radix(line.split_whitespace().next()?, 16).ok();
    global.filter_map(address).map(Ipv6Addr::from_bits).collect()
}

/// Name and version of each installed package in dpkg's status file.
pub fn package_versions(status: &str) -> BTreeMap<&str, &str> {
    status.split("\n\n").filter_map(installed).collect()
}

fn installed(entry: &str) -> Option<(&str, &str)> {
    let field = |key| entry.lines().find_map(|line| line.strip_prefix(key));
    (field("Status: ") == Some("install ok installed")).then_some((field("Package: ")?, field("Version: ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let trie = "Local:\n  +-- 10.77.0.0/24 2 0 2\n     |-- 10.77.0.0\n        /24 link UNICAST\n     |-- 10.77.0.11\n        /32 host LOCAL\n     |-- 10.77.0.255\n        /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 10.77.0.11\n        /32 host LOCAL\n";
        assert_eq!(ipv4(trie), [Ipv4Addr::new(10, 77, 0, 11)]);
        let inet6 = "00000000000000000000000000000001 01 80 10 80       lo\nfe8000000000000002163efffe770011 02 40 20 80     eth0\n20010db8000000000000000000000001 02 40 00 80     eth0\n";
        assert_eq!(ipv6(inet6), ["2001:db8::1".parse::<Ipv6Addr>().unwrap()]);
    }

    #[test]
    fn packages() {
        let status = "Package: lxc\nStatus: install ok installed\nVersion: 1:5.0.2-1+deb12u4\nDescription: x\n y\n\nPackage: docker.io\nStatus: deinstall ok config-files\nVersion: 20\n";
        assert_eq!(package_versions(status).into_iter().collect::<Vec<_>>(), [("lxc", "1:5.0.2-1+deb12u4")]);
    }

    #[test]
    fn memory_and_processors() {
        assert_eq!(memory("MemTotal: 10 kB\nMemAvailable: 4 kB\n"), (Bytes(10240), Bytes(6144)));
        let cpu = cpu("processor\t: 0\nmodel name\t: AMD EPYC\nprocessor\t: 1\nmodel name\t: AMD EPYC\n");
        assert_eq!((cpu.model.as_str(), cpu.count), ("AMD EPYC", 2));
        assert!((load("0.52 0.4 0.3 1/2 3") - 0.52).abs() < f32::EPSILON);
        assert_eq!(uptime("1000.5 1", "1 (systemd) S 0 1 1 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 90000 1"), 100);
    }
}
