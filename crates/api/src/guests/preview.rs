//! What would come of a request for a guest: asked while one fills in the form.

use corpus_domain::{
    Backing, Bytes, CpuLimit, Environment, GuestName, GuestProfileName, IoWeight, MemoryLimit, NodeAddress, NodeId,
    ProcessLimit, ProjectName, SizeProfile,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RequestGuest;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};
use crate::problem::Wrong;
use crate::quotas::ProjectQuota;

/// Says which node a guest would get and why, and whether its name is free, as things are now.
///
/// Nothing is kept for who asks: the request itself is judged anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewGuest {
    /// Its name; not looked at unless given.
    pub name: Option<GuestName>,
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
}
impl Operation for PreviewGuest {
    type Kind = Read;
    type Output = GuestPreview;
    const META: Meta<Read> = get("preview_guest", "/guest-preview").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}
impl PreviewGuest {
    /// Its fields, which are fields of the request's form.
    pub const FIELDS: [&str; 11] = [
        "name",
        "project",
        "environment",
        "profile",
        "size",
        "node",
        "memory",
        "cpu",
        "processes",
        "io_weight",
        "backing",
    ];

    /// The request that this asks about, called `name`.
    pub fn request(&self, name: GuestName) -> RequestGuest {
        let new = RequestGuest::new(self.project.clone(), self.environment, name, SizeProfile::Small);
        RequestGuest {
            profile: self.profile.clone(),
            size: self.size,
            node: self.node,
            memory: self.memory,
            cpu: self.cpu,
            processes: self.processes,
            io_weight: self.io_weight,
            backing: self.backing,
            ..new
        }
    }
}

/// What would come of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestPreview {
    /// What a request would be refused for, field by field.
    pub wrong: Vec<Wrong>,
    /// The node it would get, if one takes it.
    pub node: Option<PreviewedNode>,
    /// Memory that is promised to it.
    pub memory: Bytes,
    /// Processor time that is promised to it, in thousandths of a processor.
    pub cpu_millis: u64,
    /// Storage that is promised to it.
    pub storage: Bytes,
    /// What its project has taken of its quota, without it.
    pub quota: ProjectQuota,
}
impl Reply for GuestPreview {}

/// The node that a guest would get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewedNode {
    /// Which.
    pub id: NodeId,
    /// Where it answers.
    pub address: NodeAddress,
    /// How many guests like this one fit there now.
    pub fits: u64,
    /// Why this one.
    pub why: String,
}
