//! The words of Corpus as types.
//!
//! A name, a size, a state or an id that came through one of these constructors is
//! valid everywhere: in SQL, in an argv on a node, in a rendered configuration, in
//! a page. Nothing here does I/O, and all of it compiles to wasm, so that browser,
//! controller and agent share one definition of what is allowed.

mod address;
mod balance;
mod bytes;
mod certificate;
mod controller_backup;
mod deployment;
mod door;
mod egress;
mod export;
mod file;
mod firewall;
mod git;
mod guest;
mod hook;
mod id_range;
mod ids;
mod intrusion;
mod job;
mod limits;
mod lxc;
mod mail;
mod names;
mod net;
mod node;
mod plain;
mod quota;
mod release;
mod request;
mod role;
mod room;
mod schema;
mod size;
mod source_address;
mod test_report;
mod text;
mod traffic;
mod view;
mod webhook;

pub use address::NodeAddress;
pub use balance::{BalancePolicy, CheckPath, PoolId, Stickiness};
pub use bytes::Bytes;
pub use certificate::{CertificateSource, CertificateState};
pub use controller_backup::ControllerBackupState;
pub use deployment::{CommitId, DeploymentState, EnvironmentState, GuestRole, Origin, Outcome, Phase, Trigger};
pub use door::Door;
pub use egress::{EgressRule, Ipv4Network, Transport};
pub use export::ExportFormat;
pub use file::{FileKind, FilePath};
pub use firewall::{PUBLISHED_PORTS, PortRange, RuleAction, RuleSource, RuleState};
pub use git::{GitService, Repository};
pub use guest::{
    Backing, BackupEvery, BackupState, Driver, GuestState, Leaving, Mode, NameState, Reason, Safeguard, SnapshotEvery,
    SnapshotState, StatesEvery, StatesOutcome,
};
pub use hook::{HookFailure, HookHost, HookName, HookSide, HookStage, HookState, HookUndo};
pub use id_range::IdRange;
pub use ids::{
    AuditId, BackupId, BlockId, CertificateId, ControllerBackupId, DeploymentId, DnsNameId, FirewallRuleId, GuestId,
    JobId, KeyClaimId, NameClaimId, NamedNetworkId, NodeId, NoticeId, ProjectId, RequestId, RequestRuleId, SnapshotId,
    SshKeyId, TokenId, UndoId, UserId, ViewId, WebhookDeliveryId, WebhookId, ZoneId,
};
pub use intrusion::IntrusionKind;
pub use job::{JobKind, JobState, StepState};
pub use limits::{AMOUNT, ChosenLimits, CpuLimit, IoWeight, Limits, MemoryLimit, ProcessLimit};
pub use lxc::{LxcKey, LxcLine, LxcLineName, LxcValue};
pub use mail::{EnvironmentMailSwitch, GuestMailSwitch, MailDelivery, MailKind, MailPreference};
pub use names::{
    ActorName, CertifiedName, DnsName, Environment, GUEST_ZONE, GuestName, GuestProfileName, HostName, ImageName,
    NetworkName, NodeName, PreviewName, ProjectName, ProviderName, RobotName, UnixUser, UserName, shown_actor,
};
pub use net::{GuestNetwork, MacAddress, SSH_PORTS, SshPort};
pub use node::{DriftKind, NodeState, Reachability};
pub use plain::{Plain, is_harmful, plain, plain_bytes, plain_line};
pub use quota::{CpuQuota, GuestQuota, MemoryQuota, NameQuota, PortQuota, QuotaOf, StorageQuota};
pub use release::Release;
pub use request::{RequestOf, RequestState, Verdict};
pub use role::{Grant, ProjectCreators, ProjectRole};
pub use room::{Factor, Overcommit, Room, processors};
pub use size::SizeProfile;
pub use source_address::SourceAddress;
pub use test_report::{TestReportName, TestResult};
pub use text::Invalid;
pub use traffic::TrafficSpan;
pub use view::ViewedList;
pub use webhook::{DeliveryState, WebhookEvent, WebhookUrl};
