//! The access log of the proxy: what visitors of the guests' names asked for, counted, and told to who follows it.
//!
//! haproxy tells of each request that has ended by a datagram. Nobody of the agent would be there to hear it, which runs
//! while the controller asks for something: so a collector, the same binary, runs as a service of its own
//! (`node::traffic` has its units). It counts by name and minute, keeps the counts of a day ([`store`]), and gives lines
//! to who follows a name ([`followers`]); for [`read`] and [`follow`] the agent asks what it left, and itself.
//!
//! Guarantees, and where they are kept:
//! - a visitor counts for the name that the proxy routed by, and can't make up another, nor a line ([`line`]);
//! - no query leaves haproxy, no address the node but as it was asked for ([`line`], [`address`]);
//! - strangers fill neither memory nor disk: names, lines, errors, files and followers are counted ([`count`], [`store`],
//!   [`followers`]), and what found no place is told of;
//! - haproxy waits for nobody: a collector that is slow or dead costs lines, and how many is known ([`count`]);
//! - who takes the collector over is nobody on the node, and what it left is read as a stranger's ([`store`], [`follow`]).

mod address;
mod collector;
mod count;
mod follow;
mod followers;
pub mod line;
mod store;

pub use self::collector::collect;
pub use self::follow::follow;

use std::time::{SystemTime, UNIX_EPOCH};

use corpus_protocol::{Millis, TrafficReading};

use crate::failure::Failure;
use crate::host::Host;

/// What the collector is started by: `corpus-agent traffic`.
pub const WORD: &str = "traffic";
/// What it keeps is here, and nothing else is.
pub const STATE: &str = "/var/lib/corpus-traffic";
/// Where it takes those who follow; only root can enter the folder.
const FOLLOW: &str = "/run/corpus-traffic/follow";
const A_MINUTE: Millis = 60_000;

/// What was counted in the minutes that began after this one.
pub fn read(host: &Host, after: Option<Millis>) -> Result<TrafficReading, Failure> {
    store::Store::of(host).read(after, now())
}

fn now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis().try_into().unwrap_or(Millis::MAX))
}
