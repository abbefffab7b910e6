//! How many connections the proxy holds, and how many of them one guest or one source may have.
//!
//! Places are what the host has files and memory for. One guest, and one source, gets an eighth of
//! those for HTTP at most, whoever asks for it: what more comes is turned away at once, and all others are
//! served as before. SSH has places of its own, which HTTP can't take. A source is an IPv4
//! address, or the /64 of an IPv6 one; the numbers are such that a balancer or a whole office
//! behind one address is served too.

use std::path::Path;

use crate::host::Host;

/// What haproxy and its listeners need besides two files for each connection.
const OTHER_FILES: u64 = 1000;
/// A connection with TLS and its buffers.
const MEMORY: u64 = 64 << 10;
/// More than one process serves well.
const MAX_CONNECTIONS: u64 = 40_000;
/// Where nothing can be read: what systemd gives any service is more.
const FEWEST_FILES: u64 = 8192;
/// No more files are asked for than can be of use.
const MOST_FILES: u64 = 200_000;

/// The numbers, as they stand in `haproxy.cfg`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// Files that the process may open.
    pub files: u64,
    /// Connections at once.
    pub all: u64,
    /// Of those, for HTTP.
    pub http: u64,
    /// Requests to one guest, under way at once.
    pub http_of_guest: u64,
    /// Connections of one source, and its requests under way.
    pub http_of_source: u64,
    /// Of all, for SSH.
    pub ssh: u64,
    /// Connections to one guest.
    pub ssh_of_guest: u64,
    /// Connections of one source; the controller is one, too.
    pub ssh_of_source: u64,
    /// Of all, for what guests of this node open to guests of others, and as many for what others open here.
    pub far: u64,
    /// Connections of one guest, and of one node.
    pub far_of_one: u64,
}

impl Places {
    /// For so many files and so much memory, besides `listeners` ports.
    pub fn of(files: u64, memory: u64, listeners: u64) -> Self {
        let files = files.clamp(FEWEST_FILES / 2, MOST_FILES);
        let by_files = files.saturating_sub(OTHER_FILES + listeners) / 2;
        // The total that a kernel tells differs a little from boot to boot.
        let by_memory = (memory / MEMORY).checked_ilog2().map_or(1, |log| 1 << log);
        let all = by_files.min(by_memory).clamp(256, MAX_CONNECTIONS);
        let (http, ssh) = (all * 3 / 4, all / 4);
        Self {
            files,
            all,
            http,
            http_of_guest: (http / 8).min(1000),
            http_of_source: (http / 8).min(2000),
            ssh,
            ssh_of_guest: (ssh / 8).min(250),
            ssh_of_source: ssh / 4,
            far: 0,
            far_of_one: 0,
        }
    }

    /// Where guests reach guests of other nodes, a sixth of those for HTTP is for that.
    pub fn with_far(self) -> Self {
        let far = self.http / 12;
        Self { http: self.http - 2 * far, far, far_of_one: (far / 2).min(500), ..self }
    }

    /// For this host.
    pub fn here(host: &Host, listeners: u64) -> Self {
        let text = |path: &str| std::fs::read_to_string(host.path(Path::new(path))).unwrap_or_default();
        let files = hard_limit(&text("/proc/1/limits")).unwrap_or(FEWEST_FILES);
        Self::of(files, crate::facts::memory_total(host), listeners)
    }
}

/// The most files that a service may open, as init may: `Max open files  SOFT  HARD  files`.
fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let hard = line.split_whitespace().nth(1)?;
    if hard == "unlimited" { Some(MOST_FILES) } else { hard.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn of_a_container_and_of_a_host() {
        let small = Places::of(20_000, 24 << 30, 102);
        assert_eq!((small.all, small.http, small.http_of_guest, small.http_of_source), (9449, 7086, 885, 885));
        assert_eq!((small.ssh, small.ssh_of_guest, small.ssh_of_source), (2362, 250, 590));
        let host = Places::of(524_288, 24 << 30, 102);
        assert_eq!((host.all, host.http_of_guest, host.http_of_source, host.ssh_of_source), (40_000, 1000, 2000, 2500));
        assert_eq!(Places::of(524_288, 1 << 30, 102).all, 16_384);
    }

    #[test]
    fn what_init_may_open() {
        let line = "Max open files            1024                 20000                files     \n";
        assert_eq!(hard_limit(line), Some(20_000));
        assert_eq!(hard_limit(&line.replace("20000", "unlimited")), Some(MOST_FILES));
        assert_eq!(hard_limit("Max processes 1 2 processes\n"), None);
    }

    proptest! {
        #[test]
        fn all_have_files_and_nobody_has_all(files in 8000_u64..2_000_000, memory in (512_u64 << 20)..(1 << 40), blocks in 0_u64..20) {
            let places = Places::of(files, memory, blocks * 100);
            prop_assert!(places.all * 2 + blocks * 100 <= places.files || places.all == 256);
            prop_assert!(places.http + places.ssh <= places.all);
            let far = places.with_far();
            prop_assert!(far.http + far.ssh + 2 * far.far <= far.all);
            prop_assert!(far.http_of_guest * 4 <= far.http && far.http_of_source * 4 <= far.http);
            prop_assert!(far.far_of_one > 0 && far.far_of_one * 2 <= far.far);
            prop_assert!(places.http_of_guest * 4 <= places.http && places.http_of_source * 4 <= places.http);
            prop_assert!(places.ssh_of_guest * 4 <= places.ssh && places.ssh_of_source * 2 <= places.ssh);
        }
    }
}
