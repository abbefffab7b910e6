//! One update of a zone: what must be so before it (the prerequisites), and what is changed, as one (RFC 2136).
//!
//! It is signed with our key (TSIG, RFC 8945), and its answer must be too: who can only write to the network can
//! neither change a zone nor tell us that it was changed.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use corpus_domain::DnsName;
use hickory_proto::op::{Message, OpCode, Query, ResponseCode, UpdateMessage};
use hickory_proto::rr::rdata::{A, AAAA, CNAME, PTR};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType, TSigner};

use crate::DnsError;
use crate::wire::{self, NoAnswer};

/// No update may take longer.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// How an update ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All of it was done.
    Done,
    /// A prerequisite does not hold: nothing was done.
    NotAsRequired,
}

/// An update that is put together.
pub(super) struct Update {
    zone: DnsName,
    message: Message,
}

impl Update {
    pub(super) fn of(zone: &DnsName) -> Option<Self> {
        let mut message = Message::query();
        message.metadata.op_code = OpCode::Update;
        message.metadata.recursion_desired = false;
        message.add_zone(Query::query(absolute(zone.as_str())?, RecordType::SOA));
        Some(Self { zone: zone.clone(), message })
    }

    /// The name has records of this type.
    pub(super) fn requires_any(&mut self, name: &Name, kind: RecordType) {
        self.message.add_pre_requisite(nothing(name, kind, DNSClass::ANY));
    }

    /// The name has no records of this type.
    pub(super) fn requires_none(&mut self, name: &Name, kind: RecordType) {
        self.message.add_pre_requisite(nothing(name, kind, DNSClass::NONE));
    }

    /// The name has this among what of its type is required, and none that is not.
    pub(super) fn requires(&mut self, name: &Name, data: RData) {
        self.message.add_pre_requisite(Record::from_rdata(name.clone(), 0, data));
    }

    pub(super) fn add(&mut self, name: &Name, data: RData, ttl_s: u32) {
        self.message.add_update(Record::from_rdata(name.clone(), ttl_s, data));
    }

    /// Removes this one record, if it is there.
    pub(super) fn remove(&mut self, name: &Name, data: RData) {
        let mut record = Record::from_rdata(name.clone(), 0, data);
        record.dns_class = DNSClass::NONE;
        self.message.add_update(record);
    }

    /// Signs and sends it.
    pub(super) async fn send(mut self, server: SocketAddr, signer: &TSigner) -> Result<Outcome, DnsError> {
        let not_understood = || DnsError::UpdateNotUnderstood(server);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let verifier = self.message.finalize(signer, now).ok().flatten();
        let mut verifier = verifier.ok_or_else(not_understood)?;
        let bytes = self.message.to_vec().map_err(|_| not_understood())?;
        let answer = wire::by_tcp(server, &bytes, TIME_LIMIT).await.map_err(|error| match error {
            NoAnswer::Silent => DnsError::NoAnswer(server, None),
            NoAnswer::Unreachable(error) => DnsError::NoAnswer(server, Some(error)),
            NoAnswer::NotUnderstood => not_understood(),
        })?;
        let said = Message::from_vec(&answer).map_err(|_| not_understood())?;
        if said.metadata.id != self.message.metadata.id {
            return Err(not_understood());
        }
        let key = || signer.signer_name().to_ascii();
        match said.metadata.response_code {
            // A refusal of the key is not signed with it.
            code @ (ResponseCode::NotAuth | ResponseCode::BADSIG | ResponseCode::BADKEY | ResponseCode::BADTIME) => {
                Err(DnsError::TsigRefused { key: key(), answer: code.to_string() })
            }
            code @ (ResponseCode::Refused | ResponseCode::NotImp | ResponseCode::NotZone | ResponseCode::FormErr) => {
                Err(DnsError::UpdateRefused { zone: self.zone, key: key(), answer: code.to_string() })
            }
            code => {
                verifier.verify(&answer).map_err(|_| not_understood())?;
                match code {
                    ResponseCode::NoError => Ok(Outcome::Done),
                    ResponseCode::YXDomain | ResponseCode::YXRRSet | ResponseCode::NXDomain | ResponseCode::NXRRSet => {
                        Ok(Outcome::NotAsRequired)
                    }
                    code => Err(DnsError::UpdateFailed { zone: self.zone, answer: code.to_string() }),
                }
            }
        }
    }
}

/// A record without content: in a prerequisite, that there is something or nothing of the type.
fn nothing(name: &Name, kind: RecordType, class: DNSClass) -> Record {
    let mut record = Record::update0(name.clone(), 0, kind);
    record.dns_class = class;
    record
}

/// A name as messages have it.
pub(super) fn absolute(name: &str) -> Option<Name> {
    Name::from_ascii(format!("{}.", name.trim_end_matches('.'))).ok()
}

/// What a line of a record says, as messages have it.
pub(super) fn data(kind: &str, content: &str) -> Option<RData> {
    Some(match kind {
        "A" => RData::A(A(content.parse().ok()?)),
        "AAAA" => RData::AAAA(AAAA(content.parse().ok()?)),
        "CNAME" => RData::CNAME(CNAME(absolute(content)?)),
        "PTR" => RData::PTR(PTR(absolute(content)?)),
        _ => return None,
    })
}

/// The type of a line.
pub(super) fn kind(word: &str) -> Option<RecordType> {
    RecordType::from_str(word).ok()
}

/// A record as a line.
pub(super) fn line(data: &RData) -> Option<(String, String)> {
    let content = match data {
        RData::CNAME(name) => name.0.to_ascii().to_ascii_lowercase(),
        RData::PTR(name) => name.0.to_ascii().to_ascii_lowercase(),
        address => address.ip_addr()?.to_string(),
    };
    Some((data.record_type().to_string(), content))
}
