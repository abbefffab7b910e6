//! What can go wrong with a DNS server.

use corpus_domain::DnsName;
use thiserror::Error;

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
        name: DnsName,
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
        name: DnsName,
        /// The record's type: A, AAAA, CNAME.
        kind: String,
        /// What it says.
        content: String,
    },
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
        matches!(self, Self::Unavailable(_) | Self::Failing { .. })
    }
}
