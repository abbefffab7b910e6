//! The words of Corpus as types.
//!
//! A name, a size, a state or an id that came through one of these constructors is
//! valid everywhere: in SQL, in an argv on a node, in a rendered configuration, in
//! a page. Nothing here does I/O, and all of it compiles to wasm, so that browser,
//! controller and agent share one definition of what is allowed.

mod bytes;
mod deployment;
mod egress;
mod guest;
mod ids;
mod job;
mod names;
mod net;
mod node;
mod role;
mod size;
mod text;

pub use bytes::Bytes;
pub use deployment::{CommitId, DeploymentState, EnvironmentState, Origin, Outcome, Phase, Trigger};
pub use egress::{EgressRule, Ipv4Network, Transport};
pub use guest::{Backing, Driver, GuestState, Mode, NameState};
pub use ids::{AuditId, DeploymentId, DnsNameId, GuestId, JobId, NodeId, ProjectId, SshKeyId, UserId, ZoneId};
pub use job::{JobKind, JobState, StepState};
pub use names::{DnsName, Environment, GuestName, HostName, ImageName, NodeAddress, ProjectName, UnixUser, UserName};
pub use net::{GuestNetwork, MacAddress, SSH_PORTS, SshPort};
pub use node::{DriftKind, NodeState, Reachability};
pub use role::{MailPreference, ProjectRole};
pub use size::SizeProfile;
pub use text::Invalid;
