//! How fast simulated nodes are, and what is wrong with some.

use std::time::Duration;

use rand::RngExt;
use serde::{Deserialize, Serialize};

/// What is wrong with a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// It takes connections and requests and never says a word, like a host behind a black hole.
    Silent,
    /// Every answer comes this many milliseconds late.
    Slow(u64),
    /// It cuts the line at each request.
    Reset,
    /// It answers what is no answer.
    Rubbish,
}

/// How long answers take; each between half and one and a half of it.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// What only reads.
    pub read: Duration,
    /// What changes something.
    pub change: Duration,
}

impl Default for Pace {
    /// A little slower than the agent on a real node of the lab when it reads; changes as fast as they come.
    fn default() -> Self {
        Self { read: Duration::from_millis(2), change: Duration::from_millis(20) }
    }
}

impl Pace {
    /// How long the next answer takes.
    pub(crate) fn next(&self, changes: bool) -> Duration {
        let usual = if changes { self.change } else { self.read };
        usual.mul_f64(rand::rng().random_range(0.5..1.5))
    }
}
