//! The count of refused logins: many at once are one row of the database and one line of the log.
//!
//! Of what was typed as a login only what can be one is kept here for some seconds, and only that
//! of a known account gets into the database; so no password that was typed into the wrong
//! field is written anywhere. At most [`MAX_COUNTS`] kinds are told apart at a time; beyond these an
//! account keeps its count without the addresses, for as many again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::Utc;
use corpus_controller::Controller;
use corpus_controller::store::logins::RefusedLogins;
use corpus_domain::UserName;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Refusal;
use crate::member::network;

/// How long a count may wait to be kept.
const FLUSH_INTERVAL: Duration = Duration::from_secs(2);
/// How many kinds are told apart until they are kept.
const MAX_COUNTS: usize = 256;

type Kind = (Option<UserName>, Option<IpAddr>, &'static str);

/// Logins that were refused and are not kept yet.
#[derive(Debug, Clone, Default)]
pub struct Refused(Arc<Mutex<HashMap<Kind, RefusedLogins>>>);

impl Refused {
    /// Counts one.
    pub fn count(&self, login: &str, address: IpAddr, refusal: &Refusal) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Utc::now();
        let mut kind = (login.parse().ok(), Some(network(address)), refusal.reason());
        if kept.len() >= MAX_COUNTS && !kept.contains_key(&kind) {
            kind.1 = None;
        }
        if kept.len() >= 2 * MAX_COUNTS && !kept.contains_key(&kind) {
            kind.0 = None;
        }
        let (login, network, reason) = kind.clone();
        let network = network.map(|network| network.to_string());
        let new = RefusedLogins { login, network, reason, first: now, last: now, count: 0 };
        let counted = kept.entry(kind).or_insert(new);
        counted.last = now;
        counted.count += 1;
    }

    /// Keeps what was counted, now and then until `stop`, and once more then.
    pub async fn keep(self, controller: Controller, stop: CancellationToken) {
        let mut round = interval(FLUSH_INTERVAL);
        round.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => {}
                _ = round.tick() => {}
            }
            self.keep_now(&controller).await;
        }
    }

    /// Keeps what was counted so far. What can't be kept is lost, and said.
    pub async fn keep_now(&self, controller: &Controller) {
        let counted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let counted: Vec<RefusedLogins> = counted.into_values().collect();
        if counted.is_empty() {
            return;
        }
        let attempts: i64 = counted.iter().map(|one| one.count).sum();
        match controller.count_refused_logins(&counted).await {
            Ok(()) => tracing::warn!(attempts, "refused logins; the audit page says whose and from where"),
            Err(error) => {
                tracing::error!(attempts, error = &error as &dyn std::error::Error, "refused logins could not be kept");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_bounded_and_counted_all() {
        let refused = Refused::default();
        for n in 0..10_000_u32 {
            refused.count(&format!("u{n}"), IpAddr::from(n.to_be_bytes()), &Refusal::WrongPassword);
        }
        let kept = refused.0.lock().unwrap();
        assert_eq!(kept.len(), 2 * MAX_COUNTS + 1);
        assert_eq!(kept.values().map(|one| one.count).sum::<i64>(), 10_000);
    }

    #[test]
    fn an_account_that_is_tried_from_everywhere_is_counted_as_that_account() {
        let refused = Refused::default();
        for n in 0..10_000_u32 {
            refused.count("alice", IpAddr::from(n.to_be_bytes()), &Refusal::WrongPassword);
        }
        let kept = refused.0.lock().unwrap();
        assert_eq!(kept.len(), MAX_COUNTS + 1);
        assert!(kept.values().all(|one| one.login.is_some()));
    }

    #[test]
    fn what_is_no_login_is_not_even_held() {
        let refused = Refused::default();
        for typed in ["my secret!", "x".repeat(100_000).as_str(), "ü", "a\nb"] {
            refused.count(typed, IpAddr::from([127, 0, 0, 1]), &Refusal::WrongPassword);
        }
        let kept = refused.0.lock().unwrap();
        assert_eq!(kept.values().map(|one| (one.login.is_some(), one.count)).collect::<Vec<_>>(), [(false, 4)]);
    }
}
