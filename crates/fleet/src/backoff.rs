//! The memory of failed connections, so that a node that just failed isn't hammered.

use std::time::{Duration, Instant};

use super::error::NodeError;

const FIRST_DELAY: Duration = Duration::from_millis(250);
const MAX_DELAY: Duration = Duration::from_secs(5);
/// After a failure that does not go away by itself: hosts ban those who fail to log in often.
const LASTING: Duration = Duration::from_secs(15);

/// How often connecting failed in a row, and until when it is not tried again.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    last: Option<(Instant, NodeError)>,
}

impl Backoff {
    /// Remembers a failure; each one in a row doubles the pause.
    pub(super) fn failed(&mut self, now: Instant, error: NodeError) {
        let pause = if error.is_transient() {
            FIRST_DELAY.saturating_mul(1 << self.failures.min(10)).min(MAX_DELAY)
        } else {
            LASTING
        };
        self.failures = self.failures.saturating_add(1);
        self.last = Some((now + pause, error));
    }

    /// The failure that is still fresh, if any.
    pub(super) fn holds(&self, now: Instant) -> Option<NodeError> {
        self.last.as_ref().filter(|(until, _)| now < *until).map(|(_, error)| error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_end() {
        let refused = || NodeError::Refused { host: "n:22".into() };
        let (mut backoff, mut now) = (Backoff::default(), Instant::now());
        assert!(backoff.holds(now).is_none());
        for pause in [250, 500, 1000, 2000, 4000, 5000, 5000] {
            backoff.failed(now, refused());
            assert!(backoff.holds(now + Duration::from_millis(pause - 1)).is_some());
            now += Duration::from_millis(pause);
            assert!(backoff.holds(now).is_none());
        }
        backoff.failed(now, NodeError::NoRoot { host: "n:22".into(), user: "u".into() });
        assert!(backoff.holds(now + Duration::from_secs(14)).is_some());
    }
}
