//! Firewalls: who may reach which ports of guests, which ports of nodes lead to them, and what is kept out.

pub mod networks;
pub mod nodes;

use chrono::{DateTime, Utc};
use corpus_domain::{
    ActorName, Environment, FirewallRuleId, GuestId, GuestName, Ipv4Network, JobId, NodeAddress, NodeId, PortRange,
    ProjectName, RuleAction, RuleSource, RuleState, Transport,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::intrusion::GuestSigns;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::{Label, Port};

/// The most rules of a guest, of an environment, or of a node: so a page shows them all.
pub const MOST_RULES: usize = 64;

/// Shows who may reach a guest: the rules, what each let through, and what was kept out last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetGuestFirewall {
    /// Which guest.
    pub guest: GuestId,
}
impl Operation for GetGuestFirewall {
    type Kind = Read;
    type Output = GuestFirewall;
    const META: Meta<Read> = get("get_guest_firewall", "/guests/{guest}/firewall").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Lets something in to ports of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllowToGuest {
    /// To which guest.
    pub guest: GuestId,
    /// Who is let in.
    pub from: RuleSource,
    /// TCP or UDP.
    pub protocol: Transport,
    /// To which ports.
    pub ports: PortRange,
    /// What it is for.
    pub comment: Option<Label>,
}
impl Operation for AllowToGuest {
    type Kind = Write;
    type Output = RuleAccepted;
    const META: Meta<Write> = post("allow_to_guest", "/guests/{guest}/firewall").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Leads a port of a guest's node to a port of the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PublishPort {
    /// Of which guest.
    pub guest: GuestId,
    /// TCP or UDP.
    pub protocol: Transport,
    /// The guest's port.
    pub port: Port,
    /// The node's port: from 30000 to 39999, and for operators others that are nobody's. A free one unless said.
    pub node_port: Option<Port>,
    /// For whom: anywhere, addresses, or a named network. For all unless said.
    pub from: Option<RuleSource>,
    /// What it is for.
    pub comment: Option<Label>,
}
impl Operation for PublishPort {
    type Kind = Write;
    type Output = PortAccepted;
    const META: Meta<Write> = post("publish_port", "/guests/{guest}/ports").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Takes a rule away: what it let in is kept out from then on, connections that are there too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveFirewallRule {
    /// Which.
    pub rule: FirewallRuleId,
}
impl Operation for RemoveFirewallRule {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = delete("remove_firewall_rule", "/firewall-rules/{rule}").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::FirewallRule(self.rule)
    }
}

/// Frees a port of a node that leads to a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnpublishPort {
    /// Which published port.
    pub rule: FirewallRuleId,
}
impl Operation for UnpublishPort {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = delete("unpublish_port", "/published-ports/{rule}").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::FirewallRule(self.rule)
    }
}

/// Shows who may reach the guests of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetEnvironmentFirewall {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub environment: Environment,
}
impl Operation for GetEnvironmentFirewall {
    type Kind = Read;
    type Output = EnvironmentFirewall;
    const META: Meta<Read> = get("get_environment_firewall", "/projects/{project}/environments/{environment}/firewall")
        .needs(Role::Viewer)
        .robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// Lets something in to ports of all guests of an environment, of those too that come later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllowToEnvironment {
    /// Of which project.
    pub project: ProjectName,
    /// To which environment.
    pub environment: Environment,
    /// Who is let in.
    pub from: RuleSource,
    /// TCP or UDP.
    pub protocol: Transport,
    /// To which ports.
    pub ports: PortRange,
    /// What it is for.
    pub comment: Option<Label>,
}
impl Operation for AllowToEnvironment {
    type Kind = Write;
    type Output = RuleAccepted;
    const META: Meta<Write> = post("allow_to_environment", "/projects/{project}/environments/{environment}/firewall")
        .needs(Role::Maintainer)
        .robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// A rule of a firewall, or a published port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FirewallRuleLine {
    /// Its id.
    pub id: FirewallRuleId,
    /// What it does.
    pub action: RuleAction,
    /// How far it is.
    pub state: RuleState,
    /// Whose it is; none: the operators'.
    pub project: Option<ProjectName>,
    /// The guest that it is about, if it is about one.
    pub guest: Option<GuestId>,
    /// That guest's name.
    pub guest_name: Option<GuestName>,
    /// The environment that it is about, if it is about one.
    pub environment: Option<Environment>,
    /// The node that it is about, or whose port it is.
    pub node: Option<NodeId>,
    /// Where that node answers.
    pub node_address: Option<NodeAddress>,
    /// Who is let in, or kept out.
    pub from: RuleSource,
    /// What a named network stands for now.
    pub networks: Vec<Ipv4Network>,
    /// TCP or UDP; none: both, and all ports.
    pub protocol: Option<Transport>,
    /// The ports of guests.
    pub ports: Option<PortRange>,
    /// The node's port that leads there.
    pub node_port: Option<u16>,
    /// What it is for.
    pub comment: Option<String>,
    /// Who made it.
    pub by: Option<ActorName>,
    /// When.
    pub created_at: DateTime<Utc>,
    /// How many packets it let through, or kept out; none before the first reading.
    pub packets: Option<u64>,
    /// Their size.
    pub bytes: Option<u64>,
    /// How many of the guests whom it lets in can't come, since they are on another node: by UDP, or to more ports than a
    /// rule between nodes may be for.
    pub elsewhere: u32,
    /// By which addresses guests of other nodes reach whom it lets them in to; 20 at most are told.
    pub far: Vec<FarGuest>,
    /// The job that is on it, if one is.
    pub job: Option<JobId>,
}

/// A guest that is reached from other nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FarGuest {
    /// The guest.
    pub guest: GuestName,
    /// The address that stands in for its own there.
    #[schema(value_type = String, format = "ipv4")]
    pub address: std::net::Ipv4Addr,
}

/// Packets that were kept from a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FirewallDrop {
    /// Where they came from.
    #[schema(value_type = String, format = "ipv4")]
    pub from: std::net::Ipv4Addr,
    /// The guest of the same project that has this address, if one has.
    pub from_guest: Option<GuestName>,
    /// TCP or UDP.
    pub protocol: Transport,
    /// To which port of the guest.
    pub port: u16,
    /// How many.
    pub packets: u64,
    /// When the last one came.
    pub last_at: DateTime<Utc>,
}

/// Who may reach a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestFirewall {
    /// The guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// Its node.
    pub node: NodeId,
    /// Where published ports are reached: the node's public address, or the one that it is linked by.
    pub node_address: String,
    /// The rules that hold for it: its own, those of its environment and node, and what operators keep out.
    pub rules: Vec<FirewallRuleLine>,
    /// What was kept from it in the last ten minutes, the newest first.
    pub drops: Vec<FirewallDrop>,
    /// When its node told that.
    pub read_at: Option<DateTime<Utc>>,
    /// What was counted at its node's edge: who was refused, and what was dropped.
    pub signs: GuestSigns,
    /// Who can be let in by name.
    pub sources: Vec<RuleSource>,
    /// Whether who asks may change the rules of the guest.
    pub may_change: bool,
}
impl Reply for GuestFirewall {}

/// Who may reach the guests of an environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EnvironmentFirewall {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub environment: Environment,
    /// The rules of the environment.
    pub rules: Vec<FirewallRuleLine>,
    /// Who can be let in by name.
    pub sources: Vec<RuleSource>,
    /// Whether who asks may change them.
    pub may_change: bool,
}
impl Reply for EnvironmentFirewall {}

/// A rule is on its way to its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RuleAccepted {
    /// Which.
    pub rule: FirewallRuleId,
    /// The job that brings it there.
    pub job: JobId,
}
impl Reply for RuleAccepted {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/jobs/{}", self.job))
    }
}

/// A port is being published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortAccepted {
    /// Which.
    pub rule: FirewallRuleId,
    /// The node's port.
    pub node_port: u16,
    /// The job that brings it to the node.
    pub job: JobId,
}
impl Reply for PortAccepted {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/jobs/{}", self.job))
    }
}
