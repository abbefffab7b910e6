//! How one asks the operators: an operation for each thing that may be asked for, and what is kept of it.
//!
//! What is asked for is typed as what would be done, so that wrong input is refused where it is asked. No field of it
//! is a secret: the password of a guest is generated, and a host's key is compared by who approves.

use std::net::Ipv4Addr;

use corpus_domain::{
    Backing, ChosenLimits, CpuLimit, DnsName, Driver, Environment, GuestId, GuestName, GuestProfileName, ImageName,
    IoWeight, JobId, MacAddress, MemoryLimit, Mode, NodeAddress, NodeId, ProcessLimit, ProjectName, Reason, RequestOf,
    SizeProfile, UnixUser,
};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::{ApproveRequest, RequestMade};
use crate::guests::{GuestConf, RequestGuest, WantedNames};
use crate::names::AttachName;
use crate::nodes::{Environments, InitializeNode, LinkNode};
use crate::operation::{Meta, Operation, Role, Scope, Write, post};
use crate::problem::Wrong;
use crate::projects::CreateProject;
use crate::words::{Comment, KeyText, Port};

/// Asks the operators for a project; who asks becomes its maintainer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskForProject {
    /// Its name, which stays: it is part of the addresses that code is pushed to.
    pub name: ProjectName,
    /// Why one needs it.
    pub comment: Comment,
}
impl Operation for AskForProject {
    type Kind = Write;
    type Output = RequestMade;
    const META: Meta<Write> = post("ask_for_project", "/requests/projects").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Asks the operators to link a host. They compare its key, and let Corpus in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskForNode {
    /// Where it answers SSH.
    pub address: NodeAddress,
    /// Its SSH port; 22 unless said.
    pub port: Option<Port>,
    /// Root, or an account with `sudo` without a password; root unless said.
    pub user: Option<UnixUser>,
    /// The environments that it takes guests of.
    #[serde(default)]
    pub environments: Environments,
    /// Why one needs it.
    pub comment: Comment,
}
impl Operation for AskForNode {
    type Kind = Write;
    type Output = RequestMade;
    const META: Meta<Write> = post("ask_for_node", "/requests/nodes").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Asks the operators to initialize a linked node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskToInitialize {
    /// Which.
    pub node: NodeId,
    /// Why one needs it.
    pub comment: Comment,
}
impl Operation for AskToInitialize {
    type Kind = Write;
    type Output = RequestMade;
    const META: Meta<Write> = post("ask_to_initialize", "/requests/initializations").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Asks the operators for a guest: beyond the quota of its project, privileged, or of another kind than one may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskForGuest {
    /// Its name, which is its host name too.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The profile that says what this does not; the one that is usual in its environment unless said.
    pub profile: Option<GuestProfileName>,
    /// How much storage it may fill; `small` where its profile does not say it either.
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
    /// How its configuration is managed; `masterless` unless said.
    pub mode: Option<Mode>,
    /// An address inside the node's guest network; a free one unless said.
    #[schema(value_type = Option<String>, format = "ipv4")]
    pub ip: Option<Ipv4Addr>,
    /// A MAC; the one of the address unless said.
    pub mac: Option<MacAddress>,
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
    /// Why its root is to be root on the node, if it is.
    pub privileged: Option<Reason>,
    /// The job that could not make it before: that it made nothing is dismissed.
    pub instead_of: Option<JobId>,
    /// Why one needs it.
    pub comment: Comment,
}
impl Operation for AskForGuest {
    type Kind = Write;
    type Output = RequestMade;
    const META: Meta<Write> = post("ask_for_guest", "/requests/guests").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}
impl AskForGuest {
    /// What was chosen of its limits.
    pub const fn limits(&self) -> ChosenLimits {
        ChosenLimits { memory: self.memory, cpu: self.cpu, processes: self.processes, io_weight: self.io_weight }
    }

    /// How much storage it may fill: what was asked with its profile, or what is usual.
    pub fn size(&self) -> SizeProfile {
        self.size.unwrap_or(SizeProfile::USUAL)
    }

    /// What is done when it is approved.
    pub fn operation(&self) -> RequestGuest {
        RequestGuest {
            size: self.size,
            profile: self.profile.clone(),
            node: self.node,
            memory: self.memory,
            cpu: self.cpu,
            processes: self.processes,
            io_weight: self.io_weight,
            backing: self.backing,
            driver: self.driver,
            image: self.image.clone(),
            mode: self.mode,
            ip: self.ip,
            mac: self.mac,
            names: self.names.clone(),
            autostart: self.autostart,
            conf: self.conf.clone(),
            privileged: self.privileged.clone(),
            instead_of: self.instead_of,
            ..RequestGuest::new(self.project.clone(), self.environment, self.name.clone(), self.size())
        }
    }

    /// The same with what its profile says, so that it is decided on what is done in the end.
    #[must_use]
    pub fn filled(self, by: RequestGuest) -> Self {
        let RequestGuest {
            profile, size, memory, cpu, processes, io_weight, backing, driver, image, mode, conf, ..
        } = by;
        Self { profile, size, memory, cpu, processes, io_weight, backing, driver, image, mode, conf, ..self }
    }
}

/// Asks the operators for a DNS name for a guest, in a zone that asks first or beyond the quota.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskForName {
    /// For which guest.
    pub guest: GuestId,
    /// The name.
    pub name: DnsName,
    /// Why one needs it.
    pub comment: Comment,
}
impl Operation for AskForName {
    type Kind = Write;
    type Output = RequestMade;
    const META: Meta<Write> = post("ask_for_name", "/requests/names").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// What is asked for, as it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum Wanted {
    /// A project.
    CreateProject(AskForProject),
    /// That a host is linked.
    LinkNode(AskForNode),
    /// That a node is initialized.
    InitializeNode(AskToInitialize),
    /// A guest.
    RequestGuest(Box<AskForGuest>),
    /// A DNS name for a guest.
    AttachName(AskForName),
}

/// As an answer it is open: which operation, and the fields by which that was asked.
impl PartialSchema for Wanted {
    fn schema() -> RefOr<Schema> {
        let text = "What is asked for: the operation, and the fields by which it was asked.";
        let of = Ref::from_schema_name(<RequestOf as ToSchema>::name());
        ObjectBuilder::new().property("operation", of).required("operation").description(Some(text)).into()
    }
}

impl ToSchema for Wanted {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((<RequestOf as ToSchema>::name().into_owned(), <RequestOf as PartialSchema>::schema()));
    }
}

impl Wanted {
    /// Which operation it is.
    pub const fn of(&self) -> RequestOf {
        match self {
            Self::CreateProject(_) => RequestOf::CreateProject,
            Self::LinkNode(_) => RequestOf::LinkNode,
            Self::InitializeNode(_) => RequestOf::InitializeNode,
            Self::RequestGuest(_) => RequestOf::RequestGuest,
            Self::AttachName(_) => RequestOf::AttachName,
        }
    }

    /// What who asked must still be when it is done: all that it takes but what was asked for.
    pub const fn least(&self) -> Role {
        match self {
            Self::CreateProject(_) | Self::LinkNode(_) | Self::InitializeNode(_) => Role::Member,
            Self::RequestGuest(_) | Self::AttachName(_) => Role::Maintainer,
        }
    }

    /// Why it was asked for.
    pub const fn comment(&self) -> &Comment {
        match self {
            Self::CreateProject(asked) => &asked.comment,
            Self::LinkNode(asked) => &asked.comment,
            Self::InitializeNode(asked) => &asked.comment,
            Self::RequestGuest(asked) => &asked.comment,
            Self::AttachName(asked) => &asked.comment,
        }
    }

    /// The same with what operators chose instead; all that is no part of it, or wrong.
    pub fn changed(mut self, by: &ApproveRequest) -> Result<Self, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let mut rest = Chosen::of(by);
        match &mut self {
            Self::CreateProject(asked) => rest.name(&mut asked.name, &mut wrong),
            Self::AttachName(asked) => rest.name(&mut asked.name, &mut wrong),
            Self::InitializeNode(_) => {}
            Self::LinkNode(_) => rest.host_key = false,
            Self::RequestGuest(asked) => {
                rest.name(&mut asked.name, &mut wrong);
                set(&mut rest.environment, &mut asked.environment);
                asked.size = rest.size.take().or(asked.size);
                asked.node = rest.node.take().or(asked.node);
                asked.memory = rest.memory.take().or(asked.memory);
                asked.cpu = rest.cpu.take().or(asked.cpu);
            }
        }
        wrong.extend(rest.left().map(|field| Wrong::new(field, "What is asked for has no such field.")));
        if wrong.is_empty() { Ok(self) } else { Err(wrong) }
    }
}

fn set<T>(chosen: &mut Option<T>, field: &mut T) {
    if let Some(chosen) = chosen.take() {
        *field = chosen;
    }
}

/// What operators chose and was not used yet.
struct Chosen<'a> {
    name: Option<&'a str>,
    environment: Option<Environment>,
    size: Option<SizeProfile>,
    node: Option<NodeId>,
    memory: Option<MemoryLimit>,
    cpu: Option<CpuLimit>,
    host_key: bool,
}

impl<'a> Chosen<'a> {
    fn of(by: &'a ApproveRequest) -> Self {
        Self {
            name: by.name.as_ref().map(crate::words::Label::as_str),
            environment: by.environment,
            size: by.size,
            node: by.node,
            memory: by.memory,
            cpu: by.cpu,
            host_key: by.host_key.is_some() || by.password.is_some(),
        }
    }

    fn name<T: std::str::FromStr<Err = corpus_domain::Invalid>>(&mut self, field: &mut T, wrong: &mut Vec<Wrong>) {
        match self.name.take().map(str::parse) {
            None => {}
            Some(Ok(name)) => *field = name,
            Some(Err(invalid)) => wrong.push(Wrong::new("name", format!("{invalid}."))),
        }
    }

    fn left(&self) -> impl Iterator<Item = &'static str> + use<> {
        let left = [
            ("name", self.name.is_some()),
            ("environment", self.environment.is_some()),
            ("size", self.size.is_some()),
            ("node", self.node.is_some()),
            ("memory", self.memory.is_some()),
            ("cpu", self.cpu.is_some()),
            ("host_key", self.host_key),
        ];
        left.into_iter().filter_map(|(field, is_left)| is_left.then_some(field))
    }
}

impl AskForProject {
    /// What is done when it is approved.
    pub fn operation(&self) -> CreateProject {
        CreateProject { name: self.name.clone() }
    }
}

impl AskForNode {
    /// What is done when it is approved by somebody who compared the key.
    pub fn operation(&self, host_key: KeyText, password: Option<crate::words::Password>) -> LinkNode {
        LinkNode {
            port: self.port,
            user: self.user.clone(),
            password,
            ..LinkNode::new(self.address.clone(), host_key, self.environments.clone())
        }
    }
}

impl AskToInitialize {
    /// What is done when it is approved.
    pub const fn operation(&self) -> InitializeNode {
        InitializeNode { node: self.node }
    }
}

impl AskForName {
    /// What is done when it is approved.
    pub fn operation(&self) -> AttachName {
        AttachName { guest: self.guest, name: self.name.clone(), wildcard: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest() -> Wanted {
        let json = serde_json::json!({
            "operation": "request_guest", "name": "www.test", "project": "shop", "environment": "dev", "size": "large",
            "comment": "load test",
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn what_is_kept_is_read_again_and_names_its_operation() {
        let kept = serde_json::to_value(guest()).unwrap();
        assert_eq!(kept["operation"], "request_guest");
        assert!(kept.get("password").is_none());
        assert_eq!(serde_json::from_value::<Wanted>(kept).unwrap(), guest());
        for of in RequestOf::ALL {
            assert!(serde_json::to_string(of).unwrap().len() > 2);
        }
    }

    #[test]
    fn operators_change_what_there_is_to_change() {
        let id = corpus_domain::RequestId(uuid::Uuid::nil());
        let smaller =
            ApproveRequest { size: Some(SizeProfile::Small), name: "a.test".parse().ok(), ..ApproveRequest::new(id) };
        let Wanted::RequestGuest(changed) = guest().changed(&smaller).unwrap() else { panic!("no guest") };
        assert_eq!((changed.size(), changed.name.as_str()), (SizeProfile::Small, "a.test"));
        assert_eq!(changed.operation().size, Some(SizeProfile::Small));
        let project = AskForProject { name: "shop".parse().unwrap(), comment: "x".parse().unwrap() };
        let wrong = Wanted::CreateProject(project.clone()).changed(&smaller).unwrap_err();
        let fields: Vec<&str> = wrong.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(fields, ["name", "size"], "a.test is no name of a project, and a project has no size");
        let none = ApproveRequest::new(id);
        assert_eq!(Wanted::CreateProject(project.clone()).changed(&none), Ok(Wanted::CreateProject(project)));
        assert_eq!(guest().changed(&ApproveRequest { host_key: "x".parse().ok(), ..none }).unwrap_err().len(), 1);
    }
}
