//! A server that takes updates by RFC 2136, signed with TSIG: BIND 9, Knot, `PowerDNS` and others.
//!
//! The protocol can't list or make zones: they are made on the server, and named in the configuration. What is there
//! is asked for as anybody asks the server. Each change names what must be so before it, down to the very content, and
//! is done by the server as one: so a record that somebody else wrote meanwhile is never overwritten. What is ours is
//! told by a [`mark`].

mod mark;
mod update;

use std::fmt;
use std::net::SocketAddr;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use corpus_domain::{DnsName, HostName};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::TXT;
use hickory_proto::rr::rdata::tsig::TsigAlgorithm;
use hickory_proto::rr::{RData, RecordType, TSigner};
use secrecy::{ExposeSecret, SecretString};

use super::record::above;
use super::{Challenge, DnsError, DnsProvider, Owner, Record, Removal, Zone};
use crate::authority::{self, AuthorityError};
use mark::Lines;
use update::{Outcome, Update, absolute};

/// What decides where a name leads.
const DECIDING: [RecordType; 4] = [RecordType::A, RecordType::AAAA, RecordType::CNAME, RecordType::PTR];
/// What shows that somebody uses a name, besides.
const OTHERS: [RecordType; 5] = [RecordType::TXT, RecordType::MX, RecordType::NS, RecordType::SRV, RecordType::CAA];
/// How far both clocks may differ, in seconds; what RFC 8945 recommends.
const FUDGE_S: u16 = 300;

/// Where the server is, and with which key its zones are changed.
#[derive(Debug, Clone)]
pub struct Rfc2136Settings {
    /// Where it answers, and takes updates: the primary of its zones.
    pub server: SocketAddr,
    /// The name of the TSIG key, as the server knows it.
    pub key_name: HostName,
    /// The key for HMAC-SHA256, in base64.
    pub key: SecretString,
    /// The zones that it holds and the key may change.
    pub zones: Vec<DnsName>,
}

/// A server that takes updates.
pub struct Rfc2136 {
    server: SocketAddr,
    signer: TSigner,
    zones: Vec<DnsName>,
}

impl fmt::Debug for Rfc2136 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rfc2136").field("server", &self.server).field("zones", &self.zones).finish_non_exhaustive()
    }
}

impl Rfc2136 {
    /// Prepares the key; nothing is sent yet.
    pub fn new(settings: Rfc2136Settings) -> Result<Self, DnsError> {
        let Rfc2136Settings { server, key_name, key, mut zones } = settings;
        let key = STANDARD.decode(key.expose_secret().trim()).ok().filter(|key| !key.is_empty());
        let key = key.ok_or(DnsError::TsigKeyInvalid)?;
        let name = absolute(key_name.as_str()).ok_or(DnsError::TsigKeyInvalid)?;
        let signer =
            TSigner::new(key, TsigAlgorithm::HmacSha256, name, FUDGE_S).map_err(|_| DnsError::TsigKeyInvalid)?;
        zones.sort();
        zones.dedup();
        Ok(Self { server, signer, zones })
    }

    async fn send(&self, update: Update) -> Result<Outcome, DnsError> {
        update.send(self.server, &self.signer).await
    }

    fn begin(&self, zone: &DnsName) -> Result<Update, DnsError> {
        Update::of(zone).ok_or(DnsError::UpdateNotUnderstood(self.server))
    }

    fn begin_challenge(&self, challenge: &Challenge) -> Result<(Update, hickory_proto::rr::Name), DnsError> {
        let owner = absolute(&challenge.owner()).ok_or(DnsError::UpdateNotUnderstood(self.server))?;
        Ok((self.begin(&challenge.zone)?, owner))
    }

    fn configured(&self, zone: &DnsName) -> Result<(), DnsError> {
        if self.zones.contains(zone) { Ok(()) } else { Err(DnsError::ZoneNotConfigured { zone: zone.clone() }) }
    }

    /// Replaces what the name has, if it is exactly `there`, by `wanted`.
    async fn replace(&self, record: &Record, there: &Lines, mark: Option<&RData>) -> Result<Outcome, DnsError> {
        let not_understood = || DnsError::UpdateNotUnderstood(self.server);
        let mut update = self.begin(&record.zone)?;
        let name = absolute(&record.owner.to_string()).ok_or_else(not_understood)?;
        let mark_name = absolute(&mark::name(&record.owner)).ok_or_else(not_understood)?;
        for kind in DECIDING {
            if !there.iter().any(|(of, _)| update::kind(of) == Some(kind)) {
                update.requires_none(&name, kind);
            }
        }
        for (kind, content) in there {
            let data = update::data(kind, content).ok_or_else(not_understood)?;
            update.requires(&name, data.clone());
            update.remove(&name, data);
        }
        match mark {
            Some(mark) => {
                update.requires(&mark_name, mark.clone());
                update.remove(&mark_name, mark.clone());
            }
            None => update.requires_none(&mark_name, RecordType::TXT),
        }
        let wanted = mark::lines(record);
        for (kind, content) in &wanted {
            update.add(&name, update::data(kind, content).ok_or_else(not_understood)?, record.ttl_s);
        }
        update.add(&mark_name, mark::of(&record.owner, &wanted), record.ttl_s);
        self.send(update).await
    }

    /// What decides where a name leads, as the server answers it; where a wildcard covers it, what that says.
    async fn there(&self, owner: &Owner) -> Result<Lines, DnsError> {
        let mut lines = Lines::new();
        let name = owner.to_string();
        for kind in DECIDING {
            let answer = authority::ask(self.server, &name, kind).await.map_err(|error| self.unread(error))?;
            let own = answer.answers.iter().filter(|record| is_named(record, &name) && record.record_type() == kind);
            lines.extend(own.filter_map(|record| update::line(&record.data)));
        }
        lines.sort();
        lines.dedup();
        Ok(lines)
    }

    async fn mark(&self, owner: &Owner) -> Result<Option<(RData, Lines)>, DnsError> {
        mark::read(self.server, owner).await.map_err(|error| self.unread(error))
    }

    fn unread(&self, error: AuthorityError) -> DnsError {
        match error {
            AuthorityError::Unreachable(server, error) => DnsError::NoAnswer(server, Some(error)),
            AuthorityError::Silent(server) => DnsError::NoAnswer(server, None),
            _ => DnsError::UpdateNotUnderstood(self.server),
        }
    }

    /// The first record under a name that others made: none of `ours`.
    async fn foreign(&self, owner: &Owner, ours: &Lines) -> Result<Option<String>, DnsError> {
        for kind in DECIDING.into_iter().chain(OTHERS) {
            let answer = authority::ask(self.server, &owner.to_string(), kind).await;
            let answer = answer.map_err(|error| self.unread(error))?;
            if answer.metadata.response_code == ResponseCode::NXDomain && answer.answers.is_empty() {
                return Ok(None);
            }
            // Held elsewhere: the server names whom to ask.
            let away = answer.authorities.iter().find(|record| record.record_type() == RecordType::NS);
            if let Some(away) = away.filter(|_| !answer.metadata.authoritative) {
                return Ok(Some(title(&away.name.to_ascii(), RecordType::NS)));
            }
            // What an alias leads to is of another name; a DNAME above says where all below it leads.
            let name = owner.to_string();
            let mut about = answer
                .answers
                .iter()
                .filter(|record| is_named(record, &name) || record.record_type() == RecordType::DNAME);
            let other = about.find(|record| update::line(&record.data).is_none_or(|line| !ours.contains(&line)));
            if let Some(other) = other {
                return Ok(Some(title(&other.name.to_ascii(), other.record_type())));
            }
        }
        Ok(None)
    }
}

fn is_named(record: &hickory_proto::rr::Record, name: &str) -> bool {
    record.name.to_ascii().trim_end_matches('.').eq_ignore_ascii_case(name)
}

fn title(name: &str, kind: RecordType) -> String {
    format!("{} {kind}", name.trim_end_matches('.').to_ascii_lowercase())
}

#[async_trait]
impl DnsProvider for Rfc2136 {
    /// Asks each zone for a change that changes nothing.
    async fn check(&self) -> Result<(), DnsError> {
        for zone in &self.zones {
            self.ensure_zone(zone).await?;
        }
        Ok(())
    }

    async fn zones(&self) -> Result<Vec<Zone>, DnsError> {
        Ok(self.zones.iter().map(|name| Zone { name: name.clone(), ours: false }).collect())
    }

    async fn ensure_zone(&self, zone: &DnsName) -> Result<(), DnsError> {
        self.configured(zone)?;
        let held = authority::records(self.server, &zone.into(), RecordType::SOA).await;
        match held {
            Ok(found) if found.iter().any(|data| data.record_type() == RecordType::SOA) => {}
            Ok(_) | Err(AuthorityError::NotAuthoritative { .. }) => return Err(DnsError::ZoneMissing(zone.clone())),
            Err(error) => return Err(self.unread(error)),
        }
        let mut update = self.begin(zone)?;
        if let Some(name) = absolute(zone.as_str()) {
            update.requires_any(&name, RecordType::SOA);
        }
        match self.send(update).await? {
            Outcome::Done => Ok(()),
            Outcome::NotAsRequired => Err(DnsError::ZoneMissing(zone.clone())),
        }
    }

    /// It was made on the server, and stays there.
    async fn remove_zone(&self, _: &DnsName) -> Result<Removal, DnsError> {
        Ok(Removal::NotOurs)
    }

    async fn made_by_others(&self, zone: &DnsName, owner: &Owner) -> Result<Option<String>, DnsError> {
        self.configured(zone)?;
        let mut ours = self.mark(owner).await?.map(|(_, lines)| lines).unwrap_or_default();
        let name = owner.to_string();
        for above in above(zone, &name) {
            let Ok(above) = above.parse::<DnsName>() else { continue };
            let wildcard = Owner::wildcard(above);
            let of_wildcard = self.mark(&wildcard).await?.map(|(_, lines)| lines).unwrap_or_default();
            if let Some(other) = self.foreign(&wildcard, &of_wildcard).await? {
                return Ok(Some(other));
            }
            // What a wildcard of ours says is answered for the name too.
            ours.extend(of_wildcard);
        }
        self.foreign(owner, &ours).await
    }

    async fn ensure_record(&self, record: &Record) -> Result<(), DnsError> {
        let Record { zone, owner, .. } = record;
        self.configured(zone)?;
        if !owner.name().is_in(zone) {
            return Err(DnsError::OutsideZone { name: owner.clone(), zone: zone.clone() });
        }
        let (mark, ours) = self.mark(owner).await?.map_or((None, Lines::new()), |(mark, ours)| (Some(mark), ours));
        if self.replace(record, &ours, mark.as_ref()).await? == Outcome::Done {
            return Ok(());
        }
        // Something is not as we left it: a record of ours that is gone may be written anew, one of others may not.
        let there = self.there(owner).await?;
        if there == mark::lines(record) && !there.iter().all(|line| ours.contains(line)) {
            return Ok(());
        }
        if let Some((kind, content)) = there.iter().find(|line| !ours.contains(line)) {
            return Err(DnsError::Foreign { name: owner.clone(), kind: kind.clone(), content: content.clone() });
        }
        match self.replace(record, &there, mark.as_ref()).await? {
            Outcome::Done => Ok(()),
            Outcome::NotAsRequired => {
                let answer = "it was changed meanwhile".to_owned();
                Err(DnsError::UpdateFailed { zone: zone.clone(), answer })
            }
        }
    }

    async fn remove_record(&self, zone: &DnsName, owner: &Owner) -> Result<Removal, DnsError> {
        self.configured(zone)?;
        let not_understood = || DnsError::UpdateNotUnderstood(self.server);
        let Some((mark, ours)) = self.mark(owner).await? else {
            let taken = !self.there(owner).await?.is_empty();
            return Ok(if taken { Removal::NotOurs } else { Removal::Absent });
        };
        let mut update = self.begin(zone)?;
        let name = absolute(&owner.to_string()).ok_or_else(not_understood)?;
        let mark_name = absolute(&mark::name(owner)).ok_or_else(not_understood)?;
        update.requires(&mark_name, mark.clone());
        for (kind, content) in &ours {
            update.remove(&name, update::data(kind, content).ok_or_else(not_understood)?);
        }
        update.remove(&mark_name, mark);
        match self.send(update).await? {
            Outcome::Done => Ok(Removal::Removed),
            // Another call of ours has removed it.
            Outcome::NotAsRequired => Ok(Removal::Absent),
        }
    }

    async fn ensure_challenge(&self, challenge: &Challenge) -> Result<(), DnsError> {
        let Challenge { zone, name, value } = challenge;
        self.configured(zone)?;
        if !name.is_in(zone) {
            return Err(DnsError::OutsideZone { name: name.into(), zone: zone.clone() });
        }
        let (mut update, owner) = self.begin_challenge(challenge)?;
        update.add(&owner, RData::TXT(TXT::new(vec![value.clone()])), Challenge::TTL_S);
        // Nothing is required: one that is there already stays.
        self.send(update).await.map(drop)
    }

    async fn remove_challenge(&self, challenge: &Challenge) -> Result<Removal, DnsError> {
        self.configured(&challenge.zone)?;
        let (mut update, owner) = self.begin_challenge(challenge)?;
        update.remove(&owner, RData::TXT(TXT::new(vec![challenge.value.clone()])));
        self.send(update).await.map(|_| Removal::Removed)
    }
}
