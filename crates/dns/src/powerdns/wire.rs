//! The JSON of the `PowerDNS` API, as far as Corpus speaks it, and the judgement of what is ours.

use std::net::IpAddr;

use corpus_domain::{DnsName, HostName};
use serde::{Deserialize, Serialize};

use crate::{AddressRecord, DnsError, Zone};

/// The account that marks what Corpus made.
pub(super) const MARK: &str = "corpus";

/// A name as the API writes it, with its final dot.
pub(super) fn absolute(name: impl AsRef<str>) -> String {
    format!("{}.", name.as_ref())
}

#[derive(Debug, Serialize)]
pub(super) struct NewZone {
    name: String,
    kind: &'static str,
    account: &'static str,
    nameservers: Vec<String>,
}

impl NewZone {
    pub(super) fn new(zone: &DnsName, nameservers: &[HostName]) -> Self {
        Self {
            name: absolute(zone),
            kind: "Native",
            account: MARK,
            nameservers: nameservers.iter().map(absolute).collect(),
        }
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ZoneSummary {
    name: String,
    #[serde(default)]
    account: String,
}

impl ZoneSummary {
    /// The zone, unless its name is one that no guest could have (the root, a top-level domain).
    pub(super) fn into_zone(self) -> Option<Zone> {
        Some(Zone { name: self.name.parse().ok()?, ours: self.account == MARK })
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ZoneContents {
    #[serde(default)]
    pub(super) account: String,
    #[serde(default)]
    pub(super) rrsets: Vec<RrSet>,
}

/// All records of one name and one type.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RrSet {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    ttl: u32,
    #[serde(default)]
    records: Vec<Content>,
    #[serde(default)]
    comments: Vec<Comment>,
    #[serde(default, skip_deserializing)]
    changetype: &'static str,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Content {
    content: String,
    #[serde(default)]
    disabled: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Comment {
    content: String,
    account: String,
}

impl RrSet {
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name.strip_suffix('.').is_some_and(|own| own.eq_ignore_ascii_case(name))
    }

    pub(super) fn is_ours(&self) -> bool {
        self.comments.iter().any(|comment| comment.account == MARK)
    }

    /// Whether the set decides where its name leads.
    pub(super) fn leads_elsewhere(&self) -> bool {
        matches!(self.kind.as_str(), "A" | "AAAA" | "CNAME" | "ALIAS")
    }

    /// Whether what is below its name is held elsewhere.
    pub(super) fn leads_away(&self) -> bool {
        matches!(self.kind.as_str(), "NS" | "DNAME")
    }

    /// Whether the set is exactly this address.
    pub(super) fn says(&self, record: &AddressRecord) -> bool {
        let [only] = self.records.as_slice() else { return false };
        self.kind == kind_of(record.address)
            && !only.disabled
            && only.content.parse::<IpAddr>().is_ok_and(|address| address == record.address)
    }

    /// Whether the set, in a zone of ours, was made by somebody else. SOA and NS came with the zone.
    pub(super) fn is_foreign_in(&self, zone: &DnsName) -> bool {
        let came_with_zone = self.is_named(zone.as_str()) && matches!(self.kind.as_str(), "SOA" | "NS");
        !came_with_zone && !self.is_ours()
    }

    /// `www.example.org A`.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.name.trim_end_matches('.'), self.kind)
    }

    pub(super) fn foreign(&self, name: &DnsName) -> DnsError {
        let content = self.records.iter().map(|record| record.content.as_str()).collect::<Vec<_>>().join(", ");
        DnsError::Foreign { name: name.clone(), kind: self.kind.clone(), content }
    }

    fn deletion(&self) -> Self {
        Self { changetype: "DELETE", records: Vec::new(), comments: Vec::new(), ..self.clone() }
    }
}

fn kind_of(address: IpAddr) -> &'static str {
    if address.is_ipv4() { "A" } else { "AAAA" }
}

/// Changes of record sets of one zone, applied by the server as one.
#[derive(Debug, Serialize)]
pub(super) struct Patch {
    rrsets: Vec<RrSet>,
}

impl Patch {
    /// The record, in place of whatever address of ours the name has.
    pub(super) fn replace(record: &AddressRecord, existing: &[RrSet]) -> Self {
        let kind = kind_of(record.address);
        let mut patch = Self::delete_ours(existing);
        patch.rrsets.retain(|set| set.kind != kind);
        patch.rrsets.push(RrSet {
            name: absolute(&record.name),
            kind: kind.to_owned(),
            ttl: record.ttl_s,
            records: vec![Content { content: record.address.to_string(), disabled: false }],
            comments: vec![Comment { content: "made by Corpus".to_owned(), account: MARK.to_owned() }],
            changetype: "REPLACE",
        });
        patch
    }

    /// The end of every address of ours among `existing`.
    pub(super) fn delete_ours(existing: &[RrSet]) -> Self {
        let ours = existing.iter().filter(|set| set.leads_elsewhere() && set.is_ours());
        Self { rrsets: ours.map(RrSet::deletion).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rrsets.is_empty()
    }
}
