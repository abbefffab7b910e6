//! Who asked a node's proxy for what: counted a minute at a time, and as single lines for who follows.
//!
//! Everything in it but names, numbers and times was chosen by strangers. The node bounds it before it leaves, and a node
//! may lie: who reads it bounds it again.

use corpus_domain::DnsName;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::project::Millis;

/// The most minutes of names in one reading. A minute of the node is never parted: this is the most names that are counted
/// in one, too. So many fit into a line whatever they counted, without their errors.
pub const TRAFFIC_AT_ONCE: usize = 2000;
/// The most errors that a minute of a name tells of.
pub const TRAFFIC_ERRORS: usize = 5;
/// The most names that are followed at once.
pub const FOLLOWED_NAMES: usize = 50;
/// The longest that names are followed by one request, in seconds.
pub const FOLLOW_LIMIT_S: u32 = 600;
/// The most lines in one event.
pub const LINES_AT_ONCE: usize = 200;
/// The most lines a second that one follower is given; of what is above it is told how many there were.
pub const LINES_A_SECOND: u32 = 100;
/// The longest path that is told of, in bytes of UTF-8; what follows is cut off.
pub const ACCESS_PATH: usize = 200;
/// The longest method that is told of, in bytes.
pub const ACCESS_METHOD: usize = 16;
/// The longest cause that is told of, in bytes.
pub const ACCESS_CAUSE: usize = 8;

/// Milliseconds up to which requests are counted together. What takes longer than the last one is counted after it.
pub const LATENCY_BOUNDS_MS: [u64; 30] = [
    1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000, 7000, 10_000,
    15_000, 20_000, 30_000, 50_000, 70_000, 100_000,
];

/// What the proxy routed a request by: a name of the plan, never what the visitor said.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RoutedName {
    /// The name, as in [`HttpRoute::name`].
    ///
    /// [`HttpRoute::name`]: crate::HttpRoute::name
    pub name: DnsName,
    /// Whether it is the route of all names right below this one, instead; as in [`HttpRoute::wildcard`].
    ///
    /// [`HttpRoute::wildcard`]: crate::HttpRoute::wildcard
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wildcard: bool,
}

/// What the proxy counted for one name in one minute. A request counts in the minute in which it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficMinute {
    /// For which name.
    pub name: RoutedName,
    /// When the minute began, by the node's clock: a multiple of 60,000.
    pub at_ms: Millis,
    /// All requests.
    pub requests: u64,
    /// Of those, answered with a status of 1xx, 2xx, 3xx, 4xx, 5xx. One that its visitor gave up before there was an
    /// answer is in none of them.
    pub statuses: [u64; 5],
    /// Bytes that came from visitors, heads included.
    pub bytes_in: u64,
    /// Bytes that went to visitors, heads included.
    pub bytes_out: u64,
    /// How long they took; see [`AccessLine::took_ms`].
    pub latency: Latency,
    /// The last [`TRAFFIC_ERRORS`] with a status of 500 and above, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<TrafficError>,
}

impl TrafficMinute {
    /// None yet.
    pub fn of(name: RoutedName, at_ms: Millis) -> Self {
        Self {
            name,
            at_ms,
            requests: 0,
            statuses: [0; 5],
            bytes_in: 0,
            bytes_out: 0,
            latency: Latency::default(),
            errors: Vec::new(),
        }
    }

    /// What was counted of the same minute elsewhere, too.
    pub fn merge(&mut self, other: Self) {
        let sum = |into: &mut u64, more: u64| *into = into.saturating_add(more);
        sum(&mut self.requests, other.requests);
        self.statuses.iter_mut().zip(other.statuses).for_each(|(into, more)| sum(into, more));
        sum(&mut self.bytes_in, other.bytes_in);
        sum(&mut self.bytes_out, other.bytes_out);
        self.latency.merge(&other.latency);
        self.errors.extend(other.errors);
        let excess = self.errors.len().saturating_sub(TRAFFIC_ERRORS);
        self.errors.drain(..excess);
    }
}

/// A request that was answered with a status of 500 or above.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficError {
    /// When it ended, by the node's clock.
    pub at_ms: Millis,
    /// As in [`AccessLine::method`].
    pub method: String,
    /// As in [`AccessLine::path`].
    pub path: String,
    /// The status.
    pub status: u16,
    /// As in [`AccessLine::took_ms`].
    pub took_ms: u64,
    /// As in [`AccessLine::cause`].
    pub cause: String,
}

/// What a node has counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficReading {
    /// Minutes of names, oldest first, [`TRAFFIC_AT_ONCE`] at most. Minutes are whole: none that still runs, and either all
    /// names of a minute or none. So the last one's time is where the next reading begins.
    pub minutes: Vec<TrafficMinute>,
    /// Whether there are later ones that found no room.
    pub more: bool,
    /// Requests of these minutes that are known to be missing in them.
    pub lost_lines: u64,
}

/// A request, as who follows a name is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessLine {
    /// When it ended, by the node's clock.
    pub at_ms: Millis,
    /// For which name.
    pub name: RoutedName,
    /// Its method, [`ACCESS_METHOD`] bytes at most, without control characters.
    pub method: String,
    /// Its path without a query, [`ACCESS_PATH`] bytes at most, without control characters: `\u{1b}` stands for one, and
    /// `\u{fffd}` for what is no UTF-8.
    pub path: String,
    /// Its status; 0 when its visitor gave it up before there was an answer.
    pub status: u16,
    /// Bytes that went to the visitor, head included.
    pub bytes_out: u64,
    /// Milliseconds from the whole head of the request to the head of the answer; to the end, when the proxy answered
    /// itself or nobody did. How long a visitor takes to fetch the rest is not in it.
    pub took_ms: u64,
    /// The visitor's address as far as it was asked for: `192.0.2.0/24`, `2001:db8::/48`, or a whole one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// How haproxy ended it (its termination state): `--`, `LR` when the proxy answered itself, `sH` when the guest did
    /// not in time; [`ACCESS_CAUSE`] bytes at most.
    pub cause: String,
}

/// How much of visitors' addresses leaves the node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressDetail {
    /// The network: a /24 of IPv4, a /48 of IPv6.
    #[default]
    Cut,
    /// All of it.
    Whole,
    /// None.
    None,
}

/// How many requests took how long: a count for each of [`LATENCY_BOUNDS_MS`] and one for what is above, without the
/// zeroes at the end. Those of several names or minutes can be added up, which percentiles can't.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>", into = "Vec<u64>")]
pub struct Latency(Vec<u64>);

/// There are more counts than bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} counts of latency are more than there are bounds")]
pub struct TooManyCounts(usize);

impl Latency {
    /// One more request, which took so many milliseconds.
    pub fn add(&mut self, ms: u64) {
        let place = LATENCY_BOUNDS_MS.partition_point(|bound| *bound < ms);
        self.count(place, 1);
    }

    /// What another one has counted, too.
    pub fn merge(&mut self, other: &Self) {
        for (place, more) in other.0.iter().enumerate().filter(|(_, more)| **more > 0) {
            self.count(place, *more);
        }
    }

    fn count(&mut self, place: usize, more: u64) {
        if self.0.len() <= place {
            self.0.resize(place + 1, 0);
        }
        if let Some(count) = self.0.get_mut(place) {
            *count = count.saturating_add(more);
        }
    }

    /// How many requests it has counted.
    pub fn requests(&self) -> u64 {
        self.0.iter().fold(0, |all, count| all.saturating_add(*count))
    }

    /// The counts, for the store.
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// How many milliseconds `p` percent of the requests took at most: the bound that they are counted under, or the last
    /// one for what is above it. None when there are no requests.
    pub fn percentile(&self, p: u8) -> Option<u64> {
        let all = u128::from(self.requests());
        // The smallest number of requests that is so much of all, one at least.
        let wanted = (all * u128::from(p.min(100))).div_ceil(100).max(1);
        let mut seen = 0_u128;
        let place = self.0.iter().position(|count| {
            seen += u128::from(*count);
            seen >= wanted
        })?;
        LATENCY_BOUNDS_MS.get(place).or(LATENCY_BOUNDS_MS.last()).copied()
    }
}

impl TryFrom<Vec<u64>> for Latency {
    type Error = TooManyCounts;

    fn try_from(mut counts: Vec<u64>) -> Result<Self, TooManyCounts> {
        if counts.len() > LATENCY_BOUNDS_MS.len() + 1 {
            return Err(TooManyCounts(counts.len()));
        }
        while counts.last() == Some(&0) {
            counts.pop();
        }
        Ok(Self(counts))
    }
}

impl From<Latency> for Vec<u64> {
    fn from(latency: Latency) -> Self {
        latency.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: impl IntoIterator<Item = u64>) -> Latency {
        let mut latency = Latency::default();
        times.into_iter().for_each(|ms| latency.add(ms));
        latency
    }

    #[test]
    fn percentiles_are_the_bounds_that_requests_are_under() {
        assert_eq!(Latency::default().percentile(50), None);
        let one = of([40]);
        assert_eq!((one.percentile(0), one.percentile(50), one.percentile(100)), (Some(50), Some(50), Some(50)));
        let hundred = of(1..=100);
        assert_eq!((hundred.percentile(50), hundred.percentile(95)), (Some(50), Some(100)));
        assert_eq!((hundred.percentile(1), hundred.percentile(255)), (Some(1), Some(100)));
        assert_eq!((of([0]).percentile(50), of([u64::MAX]).percentile(50)), (Some(1), Some(100_000)));
    }

    #[test]
    fn a_bound_counts_what_took_just_as_long() {
        for (place, bound) in LATENCY_BOUNDS_MS.into_iter().enumerate() {
            assert_eq!(of([bound]).counts().len(), place + 1, "{bound}");
            assert_eq!(of([bound + 1]).counts().len(), place + 2, "{bound}");
        }
        assert!(LATENCY_BOUNDS_MS.is_sorted());
    }

    #[test]
    fn what_is_merged_is_as_counted_together() {
        let (mut a, b) = (of(1..=30), of(20..=900));
        a.merge(&b);
        assert_eq!(a, of((1..=30).chain(20..=900)));
        let mut most: Latency = vec![u64::MAX, 0, u64::MAX].try_into().unwrap();
        most.merge(&most.clone());
        assert_eq!((most.requests(), most.percentile(51)), (u64::MAX, Some(1)));
    }

    #[test]
    fn a_node_tells_no_more_counts_than_there_are() {
        let whole = serde_json::to_string(&vec![1_u64; 31]).unwrap();
        assert_eq!(serde_json::from_str::<Latency>(&whole).unwrap().requests(), 31);
        assert!(serde_json::from_str::<Latency>(&serde_json::to_string(&vec![0_u64; 32]).unwrap()).is_err());
        assert_eq!(serde_json::to_string(&Latency::try_from(vec![0, 4, 0, 0]).unwrap()).unwrap(), "[0,4]");
    }
}
