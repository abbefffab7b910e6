//! What a request has while it is served: the host, its events, and whether it was cancelled.

use std::sync::atomic::{AtomicBool, Ordering};

use corpus_protocol::{Event, Stream};

use crate::failure::Failure;
use crate::host::Host;

/// The longest text of a log event, in characters.
const MAX_TEXT: usize = 4096;

/// Set once, when the controller cancels a request.
#[derive(Debug, Default)]
pub struct Cancel(AtomicBool);

impl Cancel {
    /// Cancels.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it was cancelled.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A request while it is served.
pub struct Task<'a> {
    /// The host.
    pub host: &'a Host,
    /// Whether it was cancelled.
    pub cancel: &'a Cancel,
    /// Takes its events.
    pub events: &'a (dyn Fn(Event) + Sync),
}

impl Task<'_> {
    /// Tells what the agent does next.
    pub fn note(&self, text: impl AsRef<str>) {
        self.log(Stream::Note, text.as_ref());
    }

    /// Tells a line of a command's output.
    pub fn log(&self, stream: Stream, text: &str) {
        (self.events)(Event::Log { stream, text: text.chars().take(MAX_TEXT).collect() });
    }

    /// Tells how far a long step is.
    pub fn progress(&self, done: u64, total: u64) {
        (self.events)(Event::Progress { done, total });
    }

    /// Fails if the request was cancelled; called between steps.
    pub fn go_on(&self) -> Result<(), Failure> {
        if self.cancel.is_set() { Err(Failure::Cancelled) } else { Ok(()) }
    }
}

#[cfg(test)]
pub(crate) mod test {
    use super::*;

    /// Runs `act` with a task on `host` that tells its events to nobody.
    pub(crate) fn with_task<T>(host: &Host, act: impl FnOnce(&Task<'_>) -> T) -> T {
        act(&Task { host, cancel: &Cancel::default(), events: &|_| {} })
    }
}
