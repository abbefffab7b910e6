//! What controller and agent say to each other.
//!
//! One JSON value a line, UTF-8, on the agent's standard input and output. The controller
//! sends [`ToAgent`], the agent answers with [`FromAgent`]: first one `hello`, then for each
//! request any number of events and exactly one result, several requests at once. A request
//! says what must be true afterwards, so sending it again is harmless.
//!
//! Both sides come from one build: the agent is copied to the host under the hash of its
//! binary, so the version in `hello` only guards against a wrong binary, not for old ones.

mod drift;
mod facts;
mod guest;
mod node;
mod project;
mod request;

pub use drift::{Difference, GuestCheck};
pub use facts::{Cpu, DriverFact, Facts, GuestReading, Listener, Reading, SafeguardFact, Storage};
pub use guest::{Account, AuthorizedKeys, GuestFile, GuestNet, GuestPlan, GuestSetup, SshHostKey, UnixPasswordHash};
pub use node::{Egress, FirewallRule, GuestPort, HttpRoute, ImageSource, NodePlan, SshRoute, ZoneServers};
pub use project::{
    ArchiveEntry, Commit, ConfigurationEntry, DeployOrder, DeploymentEvent, Entry, Fault, Live, Mapping, Millis,
    Moment, PhaseReport, ProjectPlan, Proof, RecipeReport, Report, Role, SaltBundle, SaltState, Source,
};
pub use request::{Answer, ErrorKind, Event, FromAgent, JobRef, Reply, Request, RequestError, Stream, ToAgent};

/// The version of these shapes; raised with every change of them.
pub const VERSION: u32 = 7;

/// The longest line that either side accepts, in bytes.
pub const MAX_LINE: usize = 4 << 20;
