//! Signs of intrusion, measured at the node's own edge: what a guest writes is not read for it, since its root could
//! write there whom it pleases.
//!
//! The proxy notes each SSH session that is over in a ring of its memory, and what it notes is its own: from where, to
//! which port, how long, how much. Whether a login was refused only the guest knows, so this is told from outside: a
//! session looks refused that a client of SSH began, that soon ended, and in which the guest said no more than it needs
//! to refuse. A session in which it said more is one that it accepted. What does not speak SSH is not counted: a
//! browser can be led to any port by a page that it shows, but it can't be made to begin as a client of SSH does.
//!
//! The ring is bounded, and begins anew when the proxy is reloaded: what is told is never more than there was.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::SystemTime;

use corpus_domain::{SourceAddress, SshPort};
use corpus_protocol::{GuestDrops, MAX_SSH_SIGNS, SignsReading, SshSign};

use super::counts::{count, elements, listed};
use super::{FAMILIES, live};
use crate::failure::Failure;
use crate::task::Task;

/// The ring of the proxy in which sessions are noted.
pub const RING: &str = "ssh_sessions";
/// How the proxy notes one: when it ended, from where, to which port, bytes that the guest said, milliseconds, and
/// whether it began as a client of SSH does.
pub const NOTED: &str = "%[date] %ci %fp %B %Tt %[var(sess.speaks)]";

/// A guest says no more to refuse. Measured with OpenSSH 9.2 on both sides, one to six keys: 1,900 to 2,200 bytes with the
/// exchange curve25519-sha256, 2,890 to 3,260 with sntrup761x25519-sha512, which clients begin with. After a login that
/// runs `true` the latter came to 3,560, more with host keys of several kinds; the former to 2,520, which looks refused.
const REFUSAL: u64 = 3_400;
/// Who was refused is gone after so many milliseconds: six tries with a password, and the pause that follows each.
const SOON_MS: u64 = 60_000;
/// How far back is looked where nothing was read before, in seconds, and at most.
const LOOK_BACK: i64 = 600;
const MOST_BACK: i64 = 3_600;

/// What the edge has seen since then.
pub fn read(task: &Task<'_>, after: Option<i64>) -> Result<SignsReading, Failure> {
    // What ends in this second may not be noted yet.
    let until = now() - 1;
    let after = after.unwrap_or(until - LOOK_BACK).clamp(until - MOST_BACK, until);
    let noted = live::ask(task.host, &format!("show events {RING}\n"))?;
    let table = live::ask(task.host, "show stat http 1 -1\n")?;
    let mut dropped: BTreeMap<Ipv4Addr, u64> = BTreeMap::new();
    for family in FAMILIES {
        for (to, packets) in losses(&listed(task, &["set", family, "corpus", "losses"])?) {
            let sum = dropped.entry(to).or_default();
            *sum = sum.saturating_add(packets);
        }
    }
    Ok(SignsReading {
        until,
        ssh: sessions(&noted, after, until),
        dropped: dropped.into_iter().map(|(to, packets)| GuestDrops { to, packets }).collect(),
        tls_errors: failed_handshakes(&table),
    })
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// A session that is over.
struct Session {
    ended: i64,
    from: SourceAddress,
    port: SshPort,
    said: u64,
    lasted_ms: u64,
    speaks: bool,
}

fn session(line: &str) -> Option<Session> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [ended, from, port, said, lasted, speaks] = words.as_slice() else { return None };
    Some(Session {
        ended: ended.parse().ok()?,
        from: SourceAddress::of(from.parse::<IpAddr>().ok()?),
        port: port.parse::<u16>().ok()?.try_into().ok()?,
        said: said.parse().ok()?,
        lasted_ms: lasted.parse().ok()?,
        speaks: *speaks == "1",
    })
}

/// The sessions that ended after one time and until another, by address and port; those that were refused most first.
fn sessions(noted: &str, after: i64, until: i64) -> Vec<SshSign> {
    let mut found: BTreeMap<(SourceAddress, SshPort), (u32, u32)> = BTreeMap::new();
    let ended = noted.lines().filter_map(session).filter(|one| one.ended > after && one.ended <= until);
    for one in ended.filter(|one| one.speaks && one.said > 0) {
        let (refused, accepted) = found.entry((one.from, one.port)).or_default();
        if one.said > REFUSAL {
            *accepted = accepted.saturating_add(1);
        } else if one.lasted_ms <= SOON_MS {
            *refused = refused.saturating_add(1);
        }
    }
    let signs = found.into_iter().filter(|(_, (refused, accepted))| refused + accepted > 0);
    let mut signs: Vec<SshSign> =
        signs.map(|((from, port), (refused, accepted))| SshSign { from, port, refused, accepted }).collect();
    signs.sort_by_key(|one| Reverse((one.refused, one.accepted)));
    signs.truncate(MAX_SSH_SIGNS);
    signs
}

/// The elements of the set: `10.5.0.10 counter packets 3 bytes 180 expires 59m58s`.
fn losses(listing: &str) -> Vec<(Ipv4Addr, u64)> {
    let loss = |element: &str| {
        let to = element.split_whitespace().next()?.parse().ok()?;
        Some((to, count(element).map_or(0, |(packets, _)| packets)))
    };
    elements(listing).filter_map(loss).collect()
}

/// Of the table with commas that the proxy tells; 0 where it serves no TLS.
fn failed_handshakes(table: &str) -> u64 {
    let mut lines = table.lines();
    let at = lines.next().and_then(|columns| columns.split(',').position(|one| one == "ssl_failed_handshake"));
    let row = lines.next().unwrap_or_default();
    at.and_then(|at| row.split(',').nth(at)?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(noted: &str) -> Vec<(String, u16, u32, u32)> {
        let signs = sessions(noted, 100, 200);
        signs.iter().map(|one| (one.from.to_string(), one.port.get(), one.refused, one.accepted)).collect()
    }

    #[test]
    fn sessions_that_look_refused() {
        let noted = "\
            150 192.0.2.7 40000 1700 350 1\n\
            151 ::ffff:192.0.2.7 40000 3400 15000 1\n\
            151 192.0.2.7 40001 1700 350 1\n\
            152 192.0.2.7 40001 90000 350 1\n\
            153 2001:db8:1:2::7 40000 1700 20 1\n\
            154 2001:db8:1:2:f::9 40000 1700 20 1\n\
            155 2001:db8:1:2:f::a 40000 3400 20 1\n";
        assert_eq!(
            told(noted),
            [
                ("2001:db8:1:2::/64".to_owned(), 40_000, 3, 0),
                ("192.0.2.7".to_owned(), 40_000, 2, 0),
                ("192.0.2.7".to_owned(), 40_001, 1, 1),
            ]
        );
    }

    /// A page can lead a browser to a port, a guest can answer it as it likes: neither makes it a client of SSH.
    #[test]
    fn what_is_no_client_of_ssh_is_not_counted() {
        for (noted, why) in [
            ("150 192.0.2.7 40000 1700 350 -\n", "it does not begin as a client of SSH does"),
            ("150 192.0.2.7 40000 0 350 1\n", "the guest said nothing: it was not there"),
            ("150 192.0.2.7 40000 1700 60001 1\n", "it stayed"),
            ("100 192.0.2.7 40000 1700 350 1\n", "it was counted before"),
            ("201 192.0.2.7 40000 1700 350 1\n", "it is counted next time"),
            ("150 192.0.2.7 22 1700 350 1\n", "no guest has that port"),
            ("150 nobody 40000 1700 350 1\n", "that is no address"),
            ("150 192.0.2.7 40000 1700 350 1 1\n", "that is no line of ours"),
        ] {
            assert_eq!(told(noted), [], "{why}");
        }
    }

    #[test]
    fn handshakes_and_losses_as_they_are_listed() {
        let table =
            "# pxname,svname,status,-,ssl_sess,ssl_reused_sess,ssl_failed_handshake,\nhttp,FRONTEND,OPEN,,9,0,7,\n\n";
        assert_eq!(failed_handshakes(table), 7);
        assert_eq!((failed_handshakes("# pxname,svname\nhttp,FRONTEND\n"), failed_handshakes("")), (0, 0));
        let listing = "table inet corpus {\n\tset losses {\n\t\ttimeout 1h\n\t\telements = { 10.5.0.10 counter packets 3 \
                       bytes 180 expires 59m58s,\n\t\t\t     10.5.0.11 expires 9m counter packets 1 bytes 60 }\n\t}\n}\n";
        let of = |last| Ipv4Addr::new(10, 5, 0, last);
        assert_eq!(losses(listing), [(of(10), 3), (of(11), 1)]);
        assert_eq!(losses(""), []);
    }

    proptest! {
        #[test]
        fn whatever_is_noted_is_bounded(noted in "([0-9]{1,3} [0-9a-f.:]{1,12} 4[0-9]{4} [0-9]{1,9} [0-9]{1,6} [1-]\n|[ -~\n]{0,40}){0,60}") {
            let signs = sessions(&noted, 0, 1000);
            prop_assert!(signs.len() <= MAX_SSH_SIGNS);
            prop_assert!(signs.is_sorted_by_key(|one| Reverse(one.refused)));
        }
    }
}
