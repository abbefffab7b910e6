//! How fast a host is read.
//!
//! Each line costs the controller time, also one that nobody waits for: a host that talks without
//! end would take the processors from all others. It is slowed down instead, and loses nothing: what
//! is not read yet stays with it.

use std::time::{Duration, Instant};

use tokio::time::sleep;

/// What a host may say in a second, as bytes; what each line costs beside its length, which is mostly
/// the time to read it; and for how many seconds it may say so much at once.
const BYTES_PER_SECOND: u64 = 4 << 20;
const BYTES_PER_LINE: u64 = 500;
const BURST: Duration = Duration::from_secs(4);

/// How fast a host is read: it is what it said that is slowed down, nothing is lost.
pub(super) struct Pace {
    /// When all that it said is paid for.
    paid: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Self { paid: Instant::now() }
    }
}

impl Pace {
    /// Takes a line of so many bytes, and waits while too much was said.
    pub(super) async fn take(&mut self, bytes: usize) {
        let wait = self.wait(bytes, Instant::now());
        if !wait.is_zero() {
            sleep(wait).await;
        }
    }

    fn wait(&mut self, bytes: usize, now: Instant) -> Duration {
        let cost = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(BYTES_PER_LINE);
        let time = Duration::from_micros(cost.saturating_mul(1_000_000) / BYTES_PER_SECOND);
        self.paid = self.paid.max(now) + time;
        self.paid.duration_since(now).saturating_sub(BURST)
    }
}

#[cfg(test)]
mod tests {
    use corpus_protocol::MAX_LINE;

    use super::*;

    #[test]
    fn a_host_is_read_at_once_and_one_that_says_too_much_slower() {
        let (mut pace, begin) = (Pace::default(), Instant::now());
        // A report, and the longest line there is.
        assert_eq!(pace.wait(20_000, begin), Duration::ZERO);
        assert_eq!(pace.wait(MAX_LINE, begin), Duration::ZERO);
        let flood: Duration = (0..100_000).map(|_| pace.wait(100, begin)).max().unwrap();
        assert!(flood > Duration::from_secs(8), "{flood:?}");
        assert_eq!(pace.wait(100, begin + Duration::from_mins(1)), Duration::ZERO, "it has been silent since");
    }
}
