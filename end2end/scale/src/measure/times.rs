//! Times, sorted.

use std::time::Duration;

/// So many times that something took.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort();
        Self(times)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The time within which so many of a hundred were done; none of none.
    pub(crate) fn percentile(&self, percent: usize) -> Option<Duration> {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let times = Times::of((1..=30).rev().map(Duration::from_millis).collect());
        let at = |percent| times.percentile(percent).map(|time| time.as_millis());
        assert_eq!([at(0), at(50), at(95), at(100)], [Some(1), Some(15), Some(29), Some(30)]);
        assert_eq!(Times::default().percentile(50), None);
    }
}
