//! The words of Corpus as types.
//!
//! A name, a size, a state or an id that came through one of these constructors is
//! valid everywhere: in SQL, in an argv on a node, in a rendered configuration, in
//! a page. Nothing here does I/O, and all of it compiles to wasm, so that browser,
//! controller and agent share one definition of what is allowed.

mod address;
mod bytes;
mod deployment;
mod egress;
mod git;
mod guest;
mod id_range;
mod ids;
mod job;
mod limits;
mod names;
mod net;
mod node;
mod plain;
mod role;
mod room;
mod schema;
mod size;
mod text;

pub use address::NodeAddress;
pub use bytes::Bytes;
pub use deployment::{CommitId, DeploymentState, EnvironmentState, GuestRole, Origin, Outcome, Phase, Trigger};
pub use egress::{EgressRule, Ipv4Network, Transport};
pub use git::{GitService, Repository};
pub use guest::{Backing, Driver, GuestState, Mode, NameState, Reason, Safeguard};
pub use id_range::IdRange;
pub use ids::{
    AuditId, DeploymentId, DnsNameId, GuestId, JobId, KeyClaimId, NodeId, ProjectId, SshKeyId, TokenId, UserId, ZoneId,
};
pub use job::{JobKind, JobState, StepState};
pub use limits::{AMOUNT, ChosenLimits, CpuLimit, IoWeight, Limits, MemoryLimit, ProcessLimit};
pub use names::{DnsName, Environment, GuestName, HostName, ImageName, ProjectName, UnixUser, UserName};
pub use net::{GuestNetwork, MacAddress, SSH_PORTS, SshPort};
pub use node::{DriftKind, NodeState, Reachability};
pub use plain::{Plain, is_harmful, plain, plain_bytes, plain_line};
pub use role::{Grant, MailPreference, ProjectCreators, ProjectRole};
pub use room::{Factor, Overcommit, Room, processors};
pub use size::SizeProfile;
pub use text::Invalid;
