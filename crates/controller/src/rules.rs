//! What operators decide about names and projects for everybody, without I/O.
//!
//! A name that people trust must not lead to a member's guest: a zone's own name, Corpus's own
//! and what is around it (a page there could set cookies for Corpus), the hosts of mail and of
//! name servers, and the names that programs look for by themselves. Operators may attach them.

use corpus_domain::{DnsName, ProjectCreators};
use corpus_protocol::is_link_name;

/// What operators decide for everybody.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Who makes projects.
    pub project_creators: ProjectCreators,
    /// The names of Corpus itself: of its pages, and of its git server.
    pub own_hosts: Vec<DnsName>,
    /// The names of what it works with: the mail domain and relay, the name servers.
    pub service_hosts: Vec<DnsName>,
    /// After how many days a request to the operators lapses, if not after [`REQUEST_DAYS`].
    pub request_days: Option<u16>,
}

/// After how many days a request to the operators lapses that nobody decided.
pub const REQUEST_DAYS: u16 = 14;

/// Labels right below a zone that mail programs, browsers and resolvers look for by themselves.
const LOOKED_FOR: [&str; 13] = [
    "autoconfig",
    "autodiscover",
    "imap",
    "isatap",
    "localhost",
    "mail",
    "mta-sts",
    "ns",
    "pop",
    "pop3",
    "smtp",
    "submission",
    "wpad",
];

/// How many labels a member's name may have below its zone: each is looked up before it is given.
const DEPTH: usize = 5;

impl Rules {
    /// Why a member's guest gets no such name in the zone that holds it; none when nothing is against it.
    pub fn reserved(&self, name: &DnsName, zone: &DnsName) -> Option<String> {
        let why = if name == zone {
            format!("{name} is the name of the zone itself")
        } else if self.is_near_own(name, zone) {
            format!("{name} is too near to the name of Corpus itself")
        } else if self.service_hosts.contains(name) {
            format!("{name} is a host of mail or of DNS")
        } else if is_looked_for(name, zone) {
            format!("programs look for {name} by themselves")
        } else if labels_below(name, zone).len() > DEPTH {
            return Some(format!("A name has at most {DEPTH} labels below its zone {zone}."));
        } else {
            return None;
        };
        Some(format!("{why}; an operator can attach it."))
    }

    /// Why a member's guest can't be called so in the zone that holds its name.
    pub fn reserved_for_guests(&self, name: &DnsName, zone: Option<&DnsName>) -> Option<String> {
        let taken = zone == Some(name) || self.own_hosts.contains(name) || self.service_hosts.contains(name);
        taken.then(|| {
            format!("{name} is the name of a zone or of a service; an operator can make a guest of that name.")
        })
    }

    /// Why a member's guest gets no such name from elsewhere: it is Corpus's own, near to it, or a service's.
    pub fn reserved_elsewhere(&self, name: &DnsName) -> Option<String> {
        let near = self.own_hosts.iter().any(|own| own == name || own.is_in(name) || name.is_in(own));
        (near || self.service_hosts.contains(name)).then(|| {
            format!("{name} is the name of Corpus or of a service, or too near to it; an operator can claim it.")
        })
    }

    /// A zone that operators have made below Corpus's own name was made for guests.
    fn is_near_own(&self, name: &DnsName, zone: &DnsName) -> bool {
        let below = |own: &DnsName| name.is_in(own) && !zone.is_in(own);
        self.own_hosts.iter().any(|own| own == name || own.is_in(name) || below(own))
    }
}

fn labels_below<'a>(name: &'a DnsName, zone: &DnsName) -> Vec<&'a str> {
    let below = name.as_str().strip_suffix(zone.as_str()).unwrap_or_default();
    below.split('.').filter(|label| !label.is_empty()).collect()
}

fn is_looked_for(name: &DnsName, zone: &DnsName) -> bool {
    let labels = labels_below(name, zone);
    let [label] = labels.as_slice() else { return false };
    // mx1, ns2: numbered ones too.
    let bare = label.trim_end_matches(|c: char| c.is_ascii_digit());
    LOOKED_FOR.contains(label) || (["mx", "ns"].contains(&bare))
}

/// Why nobody gets such a name, or a zone for it: by names of these nodes know each other.
pub(crate) fn kept_for_nodes(name: &DnsName) -> Option<String> {
    is_link_name(name)
        .then(|| format!("{name} is kept for what nodes are called among themselves: choose another name."))
}

/// What to say of a name that others' records are about.
pub(crate) fn made_by_others(name: &DnsName, record: &str) -> String {
    format!(
        "{name} is decided by a record that Corpus did not make ({record}): choose another name, or ask an operator to attach it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DnsName {
        text.parse().unwrap()
    }

    fn rules(own: &str) -> Rules {
        let service_hosts = vec![name("relay.example.org")];
        Rules { own_hosts: vec![name(own)], service_hosts, ..Rules::default() }
    }

    #[test]
    fn what_is_trusted_is_reserved() {
        let (rules, zone) = (rules("corpus.in.example.org"), name("example.org"));
        for (reserved, why) in [
            ("example.org", "the zone itself"),
            ("EXAMPLE.org.", "the zone itself"),
            ("corpus.in.example.org", "Corpus itself"),
            ("x.corpus.in.example.org", "Corpus itself"),
            ("in.example.org", "Corpus itself"),
            ("relay.example.org", "mail or of DNS"),
            ("Autodiscover.example.org", "by themselves"),
            ("mx.example.org", "by themselves"),
            ("ns12.example.org", "by themselves"),
            ("a.b.c.d.e.f.example.org", "5 labels"),
        ] {
            let refused = rules.reserved(&name(reserved), &zone);
            assert!(refused.as_ref().is_some_and(|text| text.contains(why)), "{reserved}: {refused:?}");
        }
        for free in ["www.example.org", "nsa.example.org", "mail.shop.example.org", "a.b.c.d.e.example.org"] {
            assert_eq!(rules.reserved(&name(free), &zone), None, "{free}");
        }
    }

    #[test]
    fn a_zone_below_corpus_is_for_guests() {
        let (rules, zone) = (rules("example.org"), name("guests.example.org"));
        assert_eq!(rules.reserved(&name("www.guests.example.org"), &zone), None);
        assert!(rules.reserved(&name("www.example.org"), &name("org.example")).is_some());
    }

    #[test]
    fn guests_are_not_called_like_zones_and_services() {
        let rules = rules("corpus.example.org");
        let zone = name("example.org");
        assert!(rules.reserved_for_guests(&zone, Some(&zone)).is_some());
        assert!(rules.reserved_for_guests(&name("corpus.example.org"), None).is_some());
        assert_eq!(rules.reserved_for_guests(&name("www.example.org"), Some(&zone)), None);
    }
}
