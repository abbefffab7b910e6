//! What is written to a zone: whose record, what it says, and for how long it may be kept.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use corpus_domain::DnsName;

/// Whose record it is (the owner name of RFC 1034): a name, or all names below it that have no record of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    name: DnsName,
    is_wildcard: bool,
}

impl Owner {
    /// A name, or with `is_wildcard` all below it: `*.NAME`.
    pub const fn new(name: DnsName, is_wildcard: bool) -> Self {
        Self { name, is_wildcard }
    }

    /// All names below one.
    pub const fn wildcard(name: DnsName) -> Self {
        Self::new(name, true)
    }

    /// The name; of a wildcard the one that it is below.
    pub const fn name(&self) -> &DnsName {
        &self.name
    }

    /// Whether it is a wildcard.
    pub const fn is_wildcard(&self) -> bool {
        self.is_wildcard
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_wildcard { "*." } else { "" })?;
        self.name.fmt(f)
    }
}

impl From<&DnsName> for Owner {
    fn from(name: &DnsName) -> Self {
        Self::new(name.clone(), false)
    }
}

impl From<&Owner> for Owner {
    fn from(owner: &Owner) -> Self {
        owner.clone()
    }
}

/// What a record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The name leads to these: A and AAAA, as the addresses are.
    Addresses(Vec<IpAddr>),
    /// The name is another name for this one: CNAME.
    Alias(DnsName),
    /// The address whose reverse name this is, is this one's: PTR.
    Pointer(DnsName),
}

/// All that decides where a name leads; it has nothing else of the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The zone it is written to.
    pub zone: DnsName,
    /// The zone's name itself, or one below it.
    pub owner: Owner,
    /// What it says.
    pub content: Content,
    /// How long others may keep the answer, in seconds.
    pub ttl_s: u32,
}

/// What a directory of certificates looks for (ACME's DNS-01): a TXT record at `_acme-challenge.NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The zone it is written to.
    pub zone: DnsName,
    /// The name that is proven; of a wildcard the one that it is below.
    pub name: DnsName,
    /// What the record says: base64url.
    pub value: String,
}

impl Challenge {
    /// For how long others may keep it, in seconds: it is asked for once.
    pub(crate) const TTL_S: u32 = 1;

    /// Whose record it is.
    pub fn owner(&self) -> String {
        format!("_acme-challenge.{}", self.name)
    }
}

impl Record {
    /// Its lines: the type, and what it says; names with their final dot.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        match &self.content {
            Content::Addresses(addresses) => {
                let mut lines: Vec<_> = addresses.iter().map(|ip| (kind_of(*ip), ip.to_string())).collect();
                lines.sort();
                lines.dedup();
                lines
            }
            Content::Alias(name) => vec![("CNAME", format!("{name}."))],
            Content::Pointer(name) => vec![("PTR", format!("{name}."))],
        }
    }
}

const fn kind_of(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "A" } else { "AAAA" }
}

/// The reverse name of an address, under which its PTR record stands (RFC 1035, section 3.5; RFC 3596, section 2.5).
pub fn reverse(address: IpAddr) -> Option<DnsName> {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa").parse().ok()
        }
        IpAddr::V6(v6) => reverse_v6(v6).parse().ok(),
    }
}

/// Whether a name is a reverse name, or a zone of them: what such names say follows from what has the addresses.
pub fn is_reverse(name: &DnsName) -> bool {
    let below = |top: &str| name.as_str().strip_suffix(top).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    below("in-addr.arpa") || below("ip6.arpa")
}

fn reverse_v6(address: Ipv6Addr) -> String {
    let bits = address.to_bits();
    let nibbles = (0..32).map(|place| format!("{:x}.", (bits >> (4 * place)) & 0xf));
    nibbles.collect::<String>() + "ip6.arpa"
}

/// The names above a name, down from the next one to the zone itself.
pub(crate) fn above<'a>(zone: &DnsName, name: &'a str) -> Vec<&'a str> {
    let parent = |name: &&'a str| name.split_once('.').map(|(_, parent)| parent);
    std::iter::successors(parent(&name), parent).take_while(|above| above.len() >= zone.as_str().len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reverse_names() {
        let name = |ip: &str| reverse(ip.parse().unwrap()).unwrap().to_string();
        assert_eq!(name("192.0.2.10"), "10.2.0.192.in-addr.arpa");
        let v6 = name("2001:db8::a1");
        assert_eq!(v6, "1.a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa");
    }

    #[test]
    fn which_names_are_reverse_names() {
        let is = |text: &str| is_reverse(&text.parse().unwrap());
        assert!(
            is("10.2.0.192.in-addr.arpa") && is("2.0.192.in-addr.arpa") && is("in-addr.arpa") && is("8.b.d.ip6.arpa")
        );
        assert!(!is("in-addr.arpa.example.org") && !is("myin-addr.arpa") && !is("www.example.org"));
    }

    #[test]
    fn an_alias_is_one_line() {
        let record = Record {
            zone: "example.org".parse().unwrap(),
            owner: Owner::new("docs.example.org".parse().unwrap(), false),
            content: Content::Alias("www.example.net".parse().unwrap()),
            ttl_s: 60,
        };
        assert_eq!(record.lines(), [("CNAME", "www.example.net.".to_owned())]);
    }

    #[test]
    fn lines_are_in_order_and_once() {
        let addresses = ["2001:db8::1", "192.0.2.1", "192.0.2.1"].map(|ip| ip.parse().unwrap()).into();
        let name: DnsName = "www.example.org".parse().unwrap();
        let zone = "example.org".parse().unwrap();
        let record = Record { zone, owner: Owner::wildcard(name), content: Content::Addresses(addresses), ttl_s: 60 };
        assert_eq!(record.lines(), [("A", "192.0.2.1".to_owned()), ("AAAA", "2001:db8::1".to_owned())]);
        assert_eq!(record.owner.to_string(), "*.www.example.org");
    }

    #[test]
    fn what_is_above_a_name() {
        let zone: DnsName = "example.org".parse().unwrap();
        assert_eq!(above(&zone, "a.b.example.org"), ["b.example.org", "example.org"]);
        assert!(above(&zone, "example.org").is_empty());
    }
}
