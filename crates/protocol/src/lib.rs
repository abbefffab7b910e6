//! What controller and agent say to each other.
//!
//! One JSON value a line, UTF-8, on the agent's standard input and output. The controller
//! sends [`ToAgent`], the agent answers with [`FromAgent`]: first one `hello`, then for each
//! request any number of events and exactly one result, several requests at once. A request
//! says what must be true afterwards, so sending it again is harmless.
//!
//! Both sides come from one build: the agent is copied to the host under the hash of its
//! binary, so the version in `hello` only guards against a wrong binary, not for old ones.

mod certificates;
mod drift;
mod facts;
mod guest;
mod hook;
mod links;
mod mail;
mod mode;
mod node;
mod project;
mod request;
mod signs;
mod sites;
mod sums;
mod traffic;
mod tree;
mod updates;

pub use certificates::{
    CERTIFICATES_AT_ONCE, CertificateFile, HttpChallenge, MAX_CERTIFICATE, MAX_CERTIFICATES, NAMES_OF_CERTIFICATE,
    Secret, ServedCertificate,
};
pub use drift::{Difference, GuestCheck};
pub use facts::{
    BackingFact, Cpu, DriverFact, Facts, GuestReading, GuestStorage, Listener, MemberReading, Reading, SafeguardFact,
    Storage,
};
pub use guest::{
    Account, AuthorizedKeys, GuestFile, GuestNet, GuestPlan, GuestSetup, GuestUser, SshHostKey, UnixPasswordHash,
};
pub use hook::HookOrder;
pub use links::{
    FAR_PORT, LINK_PORT, LentGuest, Links, MAX_FAR_PORTS, MAX_PEERS, OpenGuest, OpenTo, STAND_INS, WAY_PORT, Way,
    is_link_name, is_stand_in, link_name, stand_in,
};
pub use mail::{MAX_MAIL_COUNTS, MailCount, MailGuest, MailPlan};
pub use mode::{
    BaselinePlan, Follows, MAX_SALT_KEY, MAX_STATES, MasterPlace, ModePlan, Operator, STATES_LIMIT_S, StatesRun,
};
pub use node::{
    Block, Dropped, Egress, FirewallReading, FirewallRule, GuestPort, HealthCheck, HttpRoute, Https, ImageSource,
    NodePlan, Pool, PoolMember, PublishedPort, RuleCount, SshRoute, ZoneServers,
};
pub use project::{
    ArchiveEntry, Commit, ConfigurationEntry, DeployOrder, DeploymentEvent, Entry, Fault, Live, Mapping, Millis,
    Moment, PhaseReport, ProjectPlan, Proof, RecipeReport, Report, Role, SaltBundle, SaltState, Source, Turn,
};
pub use request::{Answer, Dumped, ErrorKind, Event, FromAgent, JobRef, Reply, Request, RequestError, Stream, ToAgent};
pub use signs::{GuestDrops, MAX_BLOCKED, MAX_SSH_SIGNS, SignsReading, SshSign};
pub use sites::{AskedSite, Site};
pub use sums::{FolderSum, TreeDigest, TreeSums, differing};
pub use traffic::{
    ACCESS_CAUSE, ACCESS_METHOD, ACCESS_PATH, AccessLine, AddressDetail, FOLLOW_LIMIT_S, FOLLOWED_NAMES,
    LATENCY_BOUNDS_MS, LINES_A_SECOND, LINES_AT_ONCE, Latency, RoutedName, TRAFFIC_AT_ONCE, TRAFFIC_ERRORS,
    TooManyCounts, TrafficError, TrafficMinute, TrafficReading,
};
pub use tree::{
    Attributes, BROKEN, KEPT, MAX_DEPTH, MAX_ENTRIES, MAX_PIECE, MAX_TREE_LINE, TreeEntry, TreeKind, TreeLine,
};

/// The version of these shapes; raised with every change of them.
pub const VERSION: u32 = 17;

/// The longest line that either side accepts, in bytes.
pub const MAX_LINE: usize = 4 << 20;

/// The most values in a line of the agent, told by its commas and opening brackets: an honest one has some thousands, and
/// each costs memory to read.
pub const MAX_VALUES: usize = 100_000;

/// How many values a line has at most.
pub fn values(line: &[u8]) -> usize {
    line.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count()
}
pub use updates::{GuestUpdates, MAX_UPDATES};
