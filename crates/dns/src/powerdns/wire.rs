//! The JSON of the `PowerDNS` API, as far as Corpus speaks it, and the judgement of what is ours.

use corpus_domain::{DnsName, HostName};
use serde::{Deserialize, Serialize};

use crate::{Challenge, DnsError, Owner, Record, Zone};

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
        matches!(self.kind.as_str(), "A" | "AAAA" | "CNAME" | "ALIAS" | "PTR")
    }

    /// Whether what is below its name is held elsewhere.
    pub(super) fn leads_away(&self) -> bool {
        matches!(self.kind.as_str(), "NS" | "DNAME")
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

    pub(super) fn foreign(&self, name: &Owner) -> DnsError {
        let content = self.records.iter().map(|record| record.content.as_str()).collect::<Vec<_>>().join(", ");
        DnsError::Foreign { name: name.clone(), kind: self.kind.clone(), content }
    }

    fn deletion(&self) -> Self {
        Self { changetype: "DELETE", records: Vec::new(), comments: Vec::new(), ..self.clone() }
    }
}

/// The content of a TXT record, as the API has it.
fn quoted(value: &str) -> String {
    format!("\"{value}\"")
}

/// Whether what of these decides where their name leads is what the record says, and no more.
pub(super) fn say(sets: &[RrSet], record: &Record) -> bool {
    let deciding = sets.iter().filter(|set| set.leads_elsewhere());
    let mut said: Vec<(&str, String)> = deciding
        .flat_map(|set| set.records.iter().filter(|one| !one.disabled).map(move |one| (set.kind.as_str(), one.plain())))
        .collect();
    said.sort();
    said == record.lines()
}

impl Content {
    /// An address in its one form, since the server may keep it in another.
    fn plain(&self) -> String {
        let address = self.content.parse::<std::net::IpAddr>();
        address.map_or_else(|_| self.content.to_ascii_lowercase(), |address| address.to_string())
    }
}

/// Changes of record sets of one zone, applied by the server as one.
#[derive(Debug, Serialize)]
pub(super) struct Patch {
    rrsets: Vec<RrSet>,
}

impl Patch {
    /// The record, in place of whatever of ours the name has of the kind.
    pub(super) fn replace(record: &Record, existing: &[RrSet]) -> Self {
        let mut patch = Self::delete_ours(existing);
        let lines = record.lines();
        for (kind, _) in &lines {
            patch.rrsets.retain(|set| set.kind != *kind);
        }
        let mut kinds: Vec<&str> = lines.iter().map(|(kind, _)| *kind).collect();
        kinds.dedup();
        for kind in kinds {
            let contents = lines.iter().filter(|(of, _)| *of == kind);
            patch.rrsets.push(RrSet {
                name: absolute(record.owner.to_string()),
                kind: kind.to_owned(),
                ttl: record.ttl_s,
                records: contents.map(|(_, content)| Content { content: content.clone(), disabled: false }).collect(),
                comments: vec![Comment { content: "made by Corpus".to_owned(), account: MARK.to_owned() }],
                changetype: "REPLACE",
            });
        }
        patch
    }

    /// The end of every record of ours that leads somewhere among `existing`.
    pub(super) fn delete_ours(existing: &[RrSet]) -> Self {
        let ours = existing.iter().filter(|set| set.leads_elsewhere() && set.is_ours());
        Self { rrsets: ours.map(RrSet::deletion).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rrsets.is_empty()
    }

    /// The challenge besides what stands there; nothing when it does already.
    pub(super) fn with_challenge(challenge: &Challenge, existing: &[RrSet]) -> Self {
        let wanted = quoted(&challenge.value);
        let there = existing.iter().find(|set| set.kind == "TXT");
        if there.is_some_and(|set| set.records.iter().any(|one| one.content == wanted && !one.disabled)) {
            return Self { rrsets: Vec::new() };
        }
        let mut set = there.cloned().unwrap_or_else(|| RrSet {
            name: absolute(challenge.owner()),
            kind: "TXT".to_owned(),
            ttl: Challenge::TTL_S,
            records: Vec::new(),
            comments: vec![Comment { content: "made by Corpus".to_owned(), account: MARK.to_owned() }],
            changetype: "REPLACE",
        });
        set.records.retain(|one| one.content != wanted);
        set.records.push(Content { content: wanted, disabled: false });
        Self { rrsets: vec![RrSet { changetype: "REPLACE", ..set }] }
    }

    /// What stands there without the challenge; nothing when it is not there.
    pub(super) fn without_challenge(challenge: &Challenge, existing: &[RrSet]) -> Self {
        let ours = quoted(&challenge.value);
        let there = existing.iter().find(|set| set.kind == "TXT" && set.records.iter().any(|one| one.content == ours));
        let changed = there.map(|set| {
            let mut left = set.clone();
            left.records.retain(|one| one.content != ours);
            if left.records.is_empty() { set.deletion() } else { RrSet { changetype: "REPLACE", ..left } }
        });
        Self { rrsets: changed.into_iter().collect() }
    }
}
