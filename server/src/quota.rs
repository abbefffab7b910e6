//! How many requests a member may send to the API: so many a minute, and a tenth of that at once.
//!
//! Each member has a bucket in the memory of this server, which fills steadily; what is left in it is said
//! in every answer (draft-ietf-httpapi-ratelimit-headers), so that a client slows down before it is refused.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use corpus_domain::UserId;

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LEFT: HeaderName = HeaderName::from_static("ratelimit");
/// Above this many members those whose bucket is full are forgotten.
const SWEEP_ABOVE: usize = 256;

/// The buckets of all members.
#[derive(Debug)]
pub struct Quota {
    /// How long one request takes to come back.
    period: Duration,
    /// What a bucket holds.
    burst: u32,
    full_at: Mutex<HashMap<UserId, Instant>>,
}

/// What a member may still send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    /// What a bucket holds, and how long an empty one takes to be full.
    policy: (u32, Duration),
    /// What is in it, and how long until it is full.
    now: (u32, Duration),
    /// How long to wait, if this request is one too many.
    pub wait: Option<Duration>,
}

impl Quota {
    /// So many requests a minute.
    pub fn new(per_minute: u32) -> Self {
        let per_minute = per_minute.max(1);
        Self { period: Duration::from_mins(1) / per_minute, burst: (per_minute / 10).max(1), full_at: Mutex::default() }
    }

    /// Takes a request of a member.
    pub fn take(&self, member: UserId) -> Left {
        self.take_at(member, Instant::now())
    }

    fn take_at(&self, member: UserId, now: Instant) -> Left {
        let whole = self.period * self.burst;
        let mut members = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if members.len() >= SWEEP_ABOVE {
            members.retain(|_, full_at| *full_at > now);
        }
        let full_at = members.entry(member).or_insert(now);
        let taken = (*full_at).max(now) + self.period;
        let wait = (taken - now).checked_sub(whole).filter(|wait| !wait.is_zero());
        if wait.is_none() {
            *full_at = taken;
        }
        let missing = full_at.saturating_duration_since(now);
        Left { policy: (self.burst, whole), now: (self.burst.saturating_sub(self.count(missing)), missing), wait }
    }

    /// How many requests are missing in a bucket that is full so much later.
    fn count(&self, missing: Duration) -> u32 {
        u32::try_from(missing.as_nanos().div_ceil(self.period.as_nanos().max(1))).unwrap_or(u32::MAX)
    }
}

impl Left {
    /// Says it in the headers of an answer.
    pub fn write(&self, headers: &mut HeaderMap) {
        let ((most, window), (left, full_in)) = (self.policy, self.now);
        let policy = format!("\"member\";q={most};w={}", seconds(window));
        let left = format!("\"member\";r={left};t={}", seconds(full_in));
        for (name, text) in [(POLICY, policy), (LEFT, left)] {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        }
    }
}

/// Whole seconds, no less than it takes.
pub fn seconds(duration: Duration) -> u128 {
    duration.as_nanos().div_ceil(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn member(n: u128) -> UserId {
        UserId(Uuid::from_u128(n))
    }

    #[test]
    fn a_burst_then_so_many_a_minute() {
        let (quota, start) = (Quota::new(6_000), Instant::now());
        for n in 1..=600 {
            let left = quota.take_at(member(1), start);
            assert_eq!((left.now.0, left.wait), (600 - n, None));
        }
        let refused = quota.take_at(member(1), start);
        assert_eq!((refused.now.0, refused.wait), (0, Some(Duration::from_millis(10))));
        assert_eq!(quota.take_at(member(2), start).now.0, 599, "each has their own");
        assert_eq!(quota.take_at(member(1), start + Duration::from_millis(10)).wait, None);
        assert!(quota.take_at(member(1), start + Duration::from_millis(11)).wait.is_some());
        assert_eq!(quota.take_at(member(1), start + Duration::from_mins(1)).now.0, 599);
    }

    #[test]
    fn an_answer_says_what_is_left() {
        let mut headers = HeaderMap::new();
        Quota::new(6_000).take_at(member(1), Instant::now()).write(&mut headers);
        assert_eq!(headers[POLICY], "\"member\";q=600;w=6");
        assert_eq!(headers[LEFT], "\"member\";r=599;t=1");
    }

    #[test]
    fn who_asks_nothing_is_forgotten() {
        let (quota, start) = (Quota::new(60), Instant::now());
        for n in 0..1_000 {
            quota.take_at(member(n), start + Duration::from_secs(2) * u32::try_from(n).unwrap());
        }
        assert!(quota.full_at.lock().unwrap().len() <= SWEEP_ABOVE);
    }
}
