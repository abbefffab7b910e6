//! Mail from guests: who may send how much through their node, and what they sent.

use std::net::{Ipv4Addr, SocketAddr};

use corpus_domain::GuestName;
use serde::{Deserialize, Serialize};

/// A node tells of so many hours of guests at most.
pub const MAX_MAIL_COUNTS: usize = 8_000;

/// The node takes mail from its guests, on port 25 of their gateway, and hands it to a relay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailPlan {
    /// The relay, as the node reaches it. Guests are never told where it is.
    pub relay: SocketAddr,
    /// The largest message that is taken, in bytes.
    pub max_bytes: u64,
    /// The guests whose mail is taken; all others are refused.
    pub guests: Vec<MailGuest>,
}

/// A guest whose mail is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailGuest {
    /// The guest.
    pub guest: GuestName,
    /// Its address, by which it is known.
    pub ip: Ipv4Addr,
    /// How many messages it may send in an hour of the clock.
    pub messages_per_hour: u32,
}

/// What became of a guest's mail in an hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailCount {
    /// The guest.
    pub guest: GuestName,
    /// The hour, counted from 1970 in UTC.
    pub hour: i64,
    /// Messages that the relay took.
    pub accepted: u64,
    /// Messages beyond what the guest may send.
    pub limited: u64,
    /// Messages that the relay did not take.
    pub refused: u64,
    /// Messages that were malformed or broken off, or that came while the relay was away.
    pub failed: u64,
    /// The size of those that the relay took.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, FromAgent, MAX_LINE};

    #[test]
    fn as_many_counts_as_may_come_fit_into_a_line() {
        let guest: GuestName = format!("{}.example.org", "a".repeat(51)).parse().unwrap();
        let most = u64::MAX;
        let count = MailCount {
            guest,
            hour: i64::MAX,
            accepted: most,
            limited: most,
            refused: most,
            failed: most,
            bytes: most,
        };
        let answer = Answer::Mail { counts: vec![count; MAX_MAIL_COUNTS] };
        let text = serde_json::to_string(&FromAgent::Result { id: u64::MAX, result: Ok(answer) }).unwrap();
        assert!(text.len() < MAX_LINE, "{}", text.len());
    }
}
