//! Compute nodes: the hosts that guests run on.
//!
//! Linking a host takes two questions, and a person between them: [`ProbeHostKey`] asks the host for its
//! key, the person compares it on the host itself, and [`LinkNode`] brings the very key that they saw. A host that is
//! reached through a gateway takes a third one before: [`ProbeHostKey`] asks the gateway for its key, and
//! [`ProbeBehindGateway`] the host.

mod shown;

use corpus_domain::{
    Environment, Factor, GuestNetwork, JobId, NodeAddress, NodeId, NodeName, NodeState, Overcommit, Reachability,
    UnixUser,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use shown::{
    Drift, DriverFact, Node, NodeFacts, NodeGateway, NodeLine, NodePage, NodePool, NodeReading, NodeUse, SafeguardFact,
};

use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post, put};
use crate::words::{KeyText, Limit, Password, Port, SearchText};
use crate::{Cursor, Version};

/// Lists compute nodes.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListNodes {
    /// Only in one of these states.
    #[serde(default)]
    pub state: NodeStates,
    /// Only those that answer so.
    #[serde(default)]
    pub reachability: Reachabilities,
    /// Only those that take guests of this environment.
    pub environment: Option<Environment>,
    /// Only those that differ from what they should be, or only those that don't; for operators.
    pub drifted: Option<bool>,
    /// Only those with this in their address.
    pub q: Option<SearchText>,
    /// By address unless said.
    pub sort: Option<NodeSort>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListNodes {
    type Kind = Read;
    type Output = NodePage;
    const META: Meta<Read> = get("list_nodes", "/nodes").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Shows a compute node as last known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetNode {
    /// Which.
    pub node: NodeId,
}
impl Operation for GetNode {
    type Kind = Read;
    type Output = Node;
    const META: Meta<Read> = get("get_node", "/nodes/{node}").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Links a host whose key was compared. With a password the key of Corpus is let in first, at once: the
/// password is used then and kept nowhere.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LinkNode {
    /// Where it answers SSH.
    pub address: NodeAddress,
    /// Its SSH port; 22 unless said.
    pub port: Option<Port>,
    /// Root, or an account with `sudo` without a password; root unless said.
    pub user: Option<UnixUser>,
    /// The host key that was compared, as the probe gave it.
    pub host_key: KeyText,
    /// Of that account, to let the key of Corpus in.
    pub password: Option<Password>,
    /// The environments that it takes guests of.
    #[serde(default)]
    pub environments: Environments,
    /// The guests' network, if not the usual one.
    pub network: Option<GuestNetwork>,
    /// The job that could not link it before: that it linked nothing is dismissed.
    pub instead_of: Option<JobId>,
    /// Where its gateway answers SSH: the host that it is reached through, if it does not answer from here.
    pub gateway_address: Option<NodeAddress>,
    /// The gateway's SSH port; 22 unless said.
    pub gateway_port: Option<Port>,
    /// The account there, which needs no rights; root unless said.
    pub gateway_user: Option<UnixUser>,
    /// The gateway's host key that was compared, as the probe gave it.
    pub gateway_host_key: Option<KeyText>,
    /// Of that account, to let the key that is made for this gateway in.
    pub gateway_password: Option<Password>,
}
impl LinkNode {
    /// A host with nothing special about it, whose key is let in already.
    pub fn new(address: NodeAddress, host_key: KeyText, environments: Environments) -> Self {
        Self {
            address,
            port: None,
            user: None,
            host_key,
            password: None,
            environments,
            network: None,
            instead_of: None,
            gateway_address: None,
            gateway_port: None,
            gateway_user: None,
            gateway_host_key: None,
            gateway_password: None,
        }
    }
}
impl Operation for LinkNode {
    type Kind = Write;
    type Output = NodeLinking;
    const META: Meta<Write> = post("link_node", "/nodes").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Shows the key by which Corpus enters hosts, and that by which it enters the gateway of a host.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetControlKey {
    /// The host behind the gateway.
    pub behind: Option<NodeAddress>,
    /// The SSH port of that host; 22 unless said.
    pub port: Option<Port>,
}
impl Operation for GetControlKey {
    type Kind = Read;
    type Output = ControlKey;
    const META: Meta<Read> = get("get_control_key", "/control-key").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Asks a host for its key, so that a person can compare it. It waits for the host, 8 seconds at most, and
/// changes nothing there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProbeHostKey {
    /// Where it answers SSH.
    pub address: NodeAddress,
    /// Its SSH port; 22 unless said.
    pub port: Option<Port>,
}
impl Operation for ProbeHostKey {
    type Kind = Read;
    type Output = HostKey;
    const META: Meta<Read> = get("probe_host_key", "/host-key").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Asks a host behind a gateway for its key, so that a person can compare it. It waits for both, 8 seconds at most, and
/// changes nothing there. The gateway must show the key that was compared; with a password it is entered by that one,
/// which is kept nowhere, else by the key that is made for it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ProbeBehindGateway {
    /// Where it answers SSH, as its gateway calls it.
    pub address: NodeAddress,
    /// Its SSH port; 22 unless said.
    pub port: Option<Port>,
    /// Where the gateway answers SSH.
    pub gateway_address: NodeAddress,
    /// The gateway's SSH port; 22 unless said.
    pub gateway_port: Option<Port>,
    /// The account there; root unless said.
    pub gateway_user: Option<UnixUser>,
    /// The gateway's host key that was compared, as the probe gave it.
    pub gateway_host_key: KeyText,
    /// Of that account.
    pub gateway_password: Option<Password>,
}
impl Operation for ProbeBehindGateway {
    type Kind = Write;
    type Output = HostKey;
    const META: Meta<Write> = post("probe_behind_gateway", "/host-key").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Pins the key that a linked host shows now, or its gateway, after a person has compared it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfirmNodeHostKey {
    /// Which.
    pub node: NodeId,
    /// The host key that was compared, as the probe gave it.
    pub host_key: KeyText,
    /// Whether it is that of its gateway.
    #[serde(default)]
    pub gateway: bool,
}
impl Operation for ConfirmNodeHostKey {
    type Kind = Write;
    type Output = NodeChanged;
    const META: Meta<Write> = post("confirm_node_host_key", "/nodes/{node}/host-key").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Sets a linked node up to take guests; repeating it brings a ready one up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InitializeNode {
    /// Which.
    pub node: NodeId,
}
impl Operation for InitializeNode {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("initialize_node", "/nodes/{node}/initialize").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Brings a node back to what it should be: files, units, firewall, routes, image, guests that run or rest,
/// keys in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RepairNode {
    /// Which.
    pub node: NodeId,
}
impl Operation for RepairNode {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("repair_node", "/nodes/{node}/repair").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Shows how much more than a node has may be promised to its guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetOvercommit {
    /// Of which node.
    pub node: NodeId,
}
impl Operation for GetOvercommit {
    type Kind = Read;
    type Output = NodeOvercommit;
    const META: Meta<Read> = get("get_overcommit", "/nodes/{node}/overcommit").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Sets how much more than a node has may be promised to its guests. What was promised already stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetOvercommit {
    /// Of which node.
    pub node: NodeId,
    /// Of memory.
    pub memory: Factor,
    /// Of processor time.
    pub cpu: Factor,
    /// Of storage.
    pub storage: Factor,
    /// What it was when it was looked at.
    pub version: Version,
}
impl Operation for SetOvercommit {
    type Kind = Write;
    type Output = NodeOvercommit;
    const META: Meta<Write> = put("set_overcommit", "/nodes/{node}/overcommit").needs(Role::Ops).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Shows the name that people know a node by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetNodeName {
    /// Of which node.
    pub node: NodeId,
}
impl Operation for GetNodeName {
    type Kind = Read;
    type Output = NodeNamed;
    const META: Meta<Read> = get("get_node_name", "/nodes/{node}/name").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Gives a node the name that people know it by, or takes it away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameNode {
    /// Which.
    pub node: NodeId,
    /// The name, which no other node has; none: it is known by its address.
    pub name: Option<NodeName>,
    /// The name that this one replaces.
    pub version: Version,
}
impl Operation for NameNode {
    type Kind = Write;
    type Output = NodeNamed;
    const META: Meta<Write> = put("name_node", "/nodes/{node}/name").needs(Role::Ops).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// What a node is called now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeNamed {
    /// Which.
    pub node: NodeId,
    /// Its name.
    pub name: Option<NodeName>,
    /// Its version.
    pub version: Version,
}
impl NodeNamed {
    /// With its version.
    pub fn of(node: NodeId, name: Option<NodeName>) -> Self {
        Self { node, version: Version::of(&name), name }
    }
}
impl Reply for NodeNamed {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// Takes everything of Corpus from a node without guests and forgets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnlinkNode {
    /// Which.
    pub node: NodeId,
    /// Forgets it even when it can't be reached; what was set up there stays then.
    #[serde(default)]
    pub force: bool,
}
impl Operation for UnlinkNode {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("unlink_node", "/nodes/{node}/unlink").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

crate::several!(
    /// States of nodes.
    NodeStates, NodeState, 7
);
crate::several!(
    /// Ways in which nodes answer.
    Reachabilities, Reachability, 4
);
crate::several!(
    /// Environments.
    Environments, Environment, 3
);

/// In which order nodes are listed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeSort {
    /// By address.
    #[default]
    Address,
    /// Those with the most free slots first.
    FreeSlots,
}

/// A node that is being linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeLinking {
    /// The node.
    pub node: NodeId,
    /// The job that links it.
    pub job: corpus_domain::JobId,
}
impl Reply for NodeLinking {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/nodes/{}", self.node))
    }
}

/// A node that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeChanged {
    /// The node.
    pub node: NodeId,
}
impl Reply for NodeChanged {}

/// The key by which Corpus enters hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ControlKey {
    /// The line for `authorized_keys`.
    pub line: String,
    /// The line for `authorized_keys` of the gateway's account: it lets a key in that reaches this one host only.
    pub gateway_line: Option<String>,
}
impl Reply for ControlKey {}

/// A key by which a host is recognised, in the forms that people compare.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostKey {
    /// The line of a `.pub` file, without a comment.
    pub host_key: String,
    /// Its algorithm: `ssh-ed25519`.
    pub algorithm: String,
    /// `SHA256:…`, as `ssh-keygen -l` prints it.
    pub fingerprint: String,
}
impl Reply for HostKey {}

/// How much more than a node has may be promised to its guests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeOvercommit {
    /// Of each thing.
    pub overcommit: Overcommit,
    /// Its version.
    pub version: Version,
}
impl NodeOvercommit {
    /// With its version.
    pub fn of(overcommit: Overcommit) -> Self {
        Self { overcommit, version: Version::of(&overcommit) }
    }
}
impl Reply for NodeOvercommit {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Input;

    fn form<O: serde::de::DeserializeOwned + ToSchema>(pairs: &[(&str, &str)]) -> Result<O, Vec<crate::Wrong>> {
        Input::form(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))).read()
    }

    #[test]
    fn a_form_to_link_says_all_that_is_wrong() {
        let given = [("address", "a;b"), ("port", "70000"), ("user", "a b"), ("network", "8.8.8.8/16"), ("stpe", "x")];
        let wrong = form::<LinkNode>(&given).unwrap_err();
        let fields: Vec<&str> = wrong.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(fields, ["address", "port", "user", "host_key", "network", "stpe"]);
        let right =
            [("address", "a.test"), ("host_key", "x"), ("port", ""), ("environments", "dev"), ("environments", "prod")];
        let read = form::<LinkNode>(&right).unwrap();
        assert_eq!((read.port, read.environments.len()), (None, 2));
    }

    #[test]
    fn a_factor_is_typed_as_people_say_it() {
        let node = ("node", "01890000-0000-7000-8000-000000000000");
        let version = ("version", "0123456789abcdef");
        let typed = [node, version, ("memory", "1.5"), ("cpu", "8"), ("storage", "1")];
        let read = form::<SetOvercommit>(&typed).unwrap();
        assert_eq!((read.memory.percent(), read.cpu.percent(), read.storage.percent()), (150, 800, 100));
        let wrong = form::<SetOvercommit>(&[node, version, ("memory", "x"), ("cpu", "0"), ("storage", "1.555")]);
        assert_eq!(wrong.unwrap_err().len(), 3);
        let json = serde_json::json!({ "memory": 150, "cpu": 800, "storage": 100 });
        let same: Overcommit = serde_json::from_value(json.clone()).unwrap();
        assert_eq!((same, serde_json::to_value(same).unwrap()), (Overcommit::DEFAULT, json));
    }
}
