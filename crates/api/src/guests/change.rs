//! What is done to guests. What takes longer than a question is a job.

use std::net::Ipv4Addr;

use corpus_domain::{
    Backing, BackupId, ChosenLimits, CpuLimit, DnsName, Driver, Environment, GuestId, GuestName, GuestProfileName,
    ImageName, IoWeight, JobId, MacAddress, MemoryLimit, Mode, NodeId, ProcessLimit, ProjectName, Reason, SizeProfile,
    SnapshotId,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::settings::GuestConf;
use crate::Version;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Reply, Role, Scope, Write, delete, post, put};
use crate::words::{Fingerprint, GuestPassword};

/// Requests a guest.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct RequestGuest {
    /// Its name, which is its host name too.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The profile that says what this does not; the one that is usual in its environment unless said.
    pub profile: Option<GuestProfileName>,
    /// How much storage it may fill; as the profile says unless said, else `small`.
    pub size: Option<SizeProfile>,
    /// The node; the one with the most room unless said.
    pub node: Option<NodeId>,
    /// Memory; as the size says unless said.
    pub memory: Option<MemoryLimit>,
    /// Processor time; as the size says unless said.
    pub cpu: Option<CpuLimit>,
    /// Processes and threads; as the size says unless said.
    pub processes: Option<ProcessLimit>,
    /// Share of the disk's time; as the size says unless said.
    pub io_weight: Option<IoWeight>,
    /// Where its root file system lives; as its profile says unless said, or as is usual in its environment.
    pub backing: Option<Backing>,
    /// What makes it; `lxc` unless said.
    pub driver: Option<Driver>,
    /// What it is a clone of; `debian-12` unless said.
    pub image: Option<ImageName>,
    /// The backup of a guest of the project whose files it is to have, instead of those of its image alone. Who it is, is
    /// its own: name, address, host key, passwords and the SSH keys of members.
    pub backup: Option<BackupId>,
    /// The snapshot of a guest of the project whose files it is to have, in the same way.
    pub snapshot: Option<SnapshotId>,
    /// How its configuration is managed; `masterless` unless said.
    pub mode: Option<Mode>,
    /// An address inside the node's guest network; a free one unless said.
    #[schema(value_type = Option<String>, format = "ipv4")]
    pub ip: Option<Ipv4Addr>,
    /// A MAC; the one of the address unless said.
    pub mac: Option<MacAddress>,
    /// The password of root; a generated one unless said.
    pub password: Option<GuestPassword>,
    /// DNS names to attach once it runs.
    #[serde(default)]
    pub names: WantedNames,
    /// Whether the node starts it at boot; not unless said.
    #[serde(default)]
    pub autostart: bool,
    /// The lines of its configuration, of those that operators allow: beside those of its profile, and before such as set the
    /// same keys.
    #[serde(default)]
    pub conf: GuestConf,
    /// Why its root is to be root on the node, if it is; only operators may ask for that.
    pub privileged: Option<Reason>,
    /// The job that could not make it before: that it made nothing is dismissed.
    pub instead_of: Option<JobId>,
}
impl Operation for RequestGuest {
    type Kind = Write;
    type Output = GuestRequested;
    const META: Meta<Write> = post("request_guest", "/guests").needs(Role::Maintainer).robots();
    // Root in such a guest is root on its node.
    const MORE: &'static [(&'static str, Role)] = &[("privileged", Role::Ops)];
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
    fn needs(&self) -> Role {
        if self.privileged.is_some() { Role::Ops } else { Self::META.plain().needs }
    }
}
impl RequestGuest {
    /// A guest of a project with nothing else chosen.
    pub fn new(project: ProjectName, environment: Environment, name: GuestName, size: SizeProfile) -> Self {
        Self {
            name,
            project,
            environment,
            profile: None,
            size: Some(size),
            node: None,
            memory: None,
            cpu: None,
            processes: None,
            io_weight: None,
            backing: None,
            driver: None,
            image: None,
            backup: None,
            snapshot: None,
            mode: None,
            ip: None,
            mac: None,
            password: None,
            names: WantedNames::default(),
            autostart: false,
            conf: GuestConf::default(),
            privileged: None,
            instead_of: None,
        }
    }
    /// What was chosen of its limits.
    pub const fn limits(&self) -> ChosenLimits {
        ChosenLimits { memory: self.memory, cpu: self.cpu, processes: self.processes, io_weight: self.io_weight }
    }
}

crate::several!(
    /// DNS names.
    WantedNames, DnsName, 100
);

/// A guest is being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestRequested {
    /// Which.
    pub guest: GuestId,
    /// The job that makes it.
    pub job: JobId,
}
impl Reply for GuestRequested {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/guests/{}", self.guest))
    }
}

macro_rules! power {
    ($(#[$doc:meta])* $name:ident, $id:literal, $path:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub struct $name {
            /// Which.
            pub guest: GuestId,
        }
        impl Operation for $name {
            type Kind = Write;
            type Output = JobAccepted;
            const META: Meta<Write> = post($id, $path).needs(Role::Developer).robots();
            fn scope(&self) -> Scope {
                Scope::Guest(self.guest)
            }
        }
    };
}

power!(
    /// Starts a stopped guest.
    StartGuest, "start_guest", "/guests/{guest}/start"
);
power!(
    /// Stops a running guest.
    StopGuest, "stop_guest", "/guests/{guest}/stop"
);
power!(
    /// Stops and starts a running guest.
    RestartGuest, "restart_guest", "/guests/{guest}/restart"
);

/// Enlarges a guest's storage, whether it runs or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnlargeGuest {
    /// Which.
    pub guest: GuestId,
    /// A size larger than it has.
    pub size: SizeProfile,
}
impl Operation for EnlargeGuest {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("enlarge_guest", "/guests/{guest}/enlarge").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Shrinks a guest's storage, whether it runs or not: what lies beyond is moved, and what does not fit is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShrinkGuest {
    /// Which.
    pub guest: GuestId,
    /// A size smaller than it has.
    pub size: SizeProfile,
}
impl Operation for ShrinkGuest {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("shrink_guest", "/guests/{guest}/shrink").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Changes what a guest may take of its node, whether it runs or not. What is not given stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetGuestLimits {
    /// Which.
    pub guest: GuestId,
    /// The limits that are to be changed.
    pub version: Version,
    /// Memory.
    pub memory: Option<MemoryLimit>,
    /// Processor time.
    pub cpu: Option<CpuLimit>,
    /// Processes and threads.
    pub processes: Option<ProcessLimit>,
    /// Share of the disk's time.
    pub io_weight: Option<IoWeight>,
}
impl Operation for SetGuestLimits {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        put("set_guest_limits", "/guests/{guest}/limits").needs(Role::Maintainer).robots().if_match("version");
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}
impl SetGuestLimits {
    /// What was chosen.
    pub const fn limits(&self) -> ChosenLimits {
        ChosenLimits { memory: self.memory, cpu: self.cpu, processes: self.processes, io_weight: self.io_weight }
    }
}

/// Pins the key that a guest shows in the place of its own, after a person has compared it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfirmGuestHostKey {
    /// Which.
    pub guest: GuestId,
    /// The fingerprint of the key that was compared.
    pub fingerprint: Fingerprint,
}
impl Operation for ConfirmGuestHostKey {
    type Kind = Write;
    type Output = GuestHostKeyConfirmed;
    const META: Meta<Write> = post("confirm_guest_host_key", "/guests/{guest}/host-key").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// The key by which a guest is recognised from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestHostKeyConfirmed {
    /// Which guest.
    pub guest: GuestId,
    /// The fingerprint of its key.
    pub fingerprint: String,
}
impl Reply for GuestHostKeyConfirmed {}

/// Moves a guest to another node. It goes on meanwhile but for as long as it takes to stop it, to bring what changed since
/// its files were brought, and to start it there. Id, name, DNS names, rules and files stay; its address and SSH port may
/// be others, and its snapshots are left behind and go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MoveGuest {
    /// Which.
    pub guest: GuestId,
    /// Where it goes; the node with the most room unless said.
    pub node: Option<NodeId>,
}
impl Operation for MoveGuest {
    type Kind = Write;
    type Output = GuestMoving;
    const META: Meta<Write> = post("move_guest", "/guests/{guest}/move").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Where a guest is going.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestMoving {
    /// The node that it goes to.
    pub node: NodeId,
    /// The job that moves it.
    pub job: JobId,
}
impl Reply for GuestMoving {}

/// Destroys a guest and all that belongs to it. There is no way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DestroyGuest {
    /// Which.
    pub guest: GuestId,
}
impl Operation for DestroyGuest {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = delete("destroy_guest", "/guests/{guest}").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}
