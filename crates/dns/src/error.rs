//! What can go wrong with a DNS server.

use std::net::SocketAddr;

use corpus_domain::DnsName;
use thiserror::Error;

use crate::Owner;

/// Why the DNS server did not do what was asked. No message holds the API key.
#[derive(Debug, Error)]
pub enum DnsError {
    /// Nothing answered within the time limit.
    #[error("the DNS server's API does not answer; try again later")]
    Unavailable(#[source] reqwest::Error),
    /// It answered with a failure of its own (5xx).
    #[error("the DNS server failed with status {status}: {text}; try again later")]
    Failing {
        /// HTTP status.
        status: u16,
        /// What the server said.
        text: String,
    },
    /// The API key is wrong.
    #[error("the DNS server refused the API key: correct `dns.api_key` in the configuration")]
    KeyRefused,
    /// The API key can't be sent, since it has characters that no HTTP header takes.
    #[error("the DNS server's API key has characters that can't be sent: correct `dns.api_key` in the configuration")]
    KeyInvalid,
    /// The API's URL is not one that paths can be added to.
    #[error(
        "{0:?} is no URL of a DNS server's API: correct `dns.api_url` in the configuration, such as http://127.0.0.1:8081"
    )]
    UrlInvalid(String),
    /// It understood and refused; the text is the server's own.
    #[error("the DNS server refused: {text}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// What the server said.
        text: String,
    },
    /// Its answer was not what the API's description promises.
    #[error("the DNS server's answer was not understood: is `dns.api_url` the API of a DNS server?")]
    NotUnderstood(#[source] reqwest::Error),
    /// The name is not in the zone that it was to be written to.
    #[error("{name} is not in the zone {zone}")]
    OutsideZone {
        /// The name.
        name: Owner,
        /// The zone.
        zone: DnsName,
    },
    /// The server does not hold the zone.
    #[error("the DNS server does not hold the zone {0}: create it first")]
    ZoneMissing(DnsName),
    /// A record that Corpus did not make is in the way.
    #[error(
        "{name} has a {kind} record that Corpus did not make ({content}): remove it on the DNS server, or choose another name"
    )]
    Foreign {
        /// The name.
        name: Owner,
        /// The record's type: A, AAAA, CNAME, PTR.
        kind: String,
        /// What it says.
        content: String,
    },
    /// The server that takes updates did not answer.
    #[error("the DNS server {0} does not answer; try again later")]
    NoAnswer(SocketAddr, #[source] Option<std::io::Error>),
    /// Its answer was no answer to what was asked, or not signed with our key.
    #[error("the answer of the DNS server {0} was not understood: is it one that takes updates (RFC 2136)?")]
    UpdateNotUnderstood(SocketAddr),
    /// The server does not know the key, or it is another one there, or the clocks differ.
    #[error(
        "the DNS server did not accept the key {key} ({answer}): correct `key_name` and `key` of its section in the configuration, and see that both clocks are right"
    )]
    TsigRefused {
        /// The key's name.
        key: String,
        /// Its response code.
        answer: String,
    },
    /// The server refuses updates of the zone.
    #[error("the DNS server refused to change the zone {zone} ({answer}): let the key {key} update all of it there")]
    UpdateRefused {
        /// The zone.
        zone: DnsName,
        /// The key's name.
        key: String,
        /// Its response code.
        answer: String,
    },
    /// The server's own failure.
    #[error("the DNS server failed to change the zone {zone} ({answer}); try again later")]
    UpdateFailed {
        /// The zone.
        zone: DnsName,
        /// Its response code.
        answer: String,
    },
    /// The zone is not among those that the server is configured for.
    #[error(
        "zones of this DNS server are made on the server itself, and named in the configuration: {zone} is not among its `zones`"
    )]
    ZoneNotConfigured {
        /// The zone.
        zone: DnsName,
    },
    /// The secret is not base64.
    #[error("the TSIG key of the DNS server is not base64: correct `key` of its section in the configuration")]
    TsigKeyInvalid,
    /// The zone to be removed holds records that Corpus did not make.
    #[error("the zone {zone} holds records that Corpus did not make ({records}): remove them on the DNS server first")]
    NotEmpty {
        /// The zone.
        zone: DnsName,
        /// A few of them: names and types.
        records: String,
    },
}

impl DnsError {
    /// Whether the same call may succeed later, without anybody changing anything.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Failing { .. } | Self::NoAnswer(..) | Self::UpdateFailed { .. })
    }
}
