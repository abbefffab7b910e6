//! What operators decide of the firewall of a node: who reaches all of its guests, and who reaches none.

use corpus_domain::{NodeAddress, NodeId, PortRange, RuleSource, Transport};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{FirewallRuleLine, RuleAccepted};
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post};
use crate::words::Label;

/// Shows the rules of a node: who may reach all of its guests, which of its ports lead to guests, and what is
/// kept out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetNodeFirewall {
    /// Which node.
    pub node: NodeId,
}
impl Operation for GetNodeFirewall {
    type Kind = Read;
    type Output = NodeFirewall;
    const META: Meta<Read> = get("get_node_firewall", "/nodes/{node}/firewall").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Lets something in to ports of all guests of a node, of those too that come later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllowToNode {
    /// To the guests of which node.
    pub node: NodeId,
    /// Who is let in: anywhere, addresses, or a named network.
    pub from: RuleSource,
    /// TCP or UDP.
    pub protocol: Transport,
    /// To which ports.
    pub ports: PortRange,
    /// What it is for.
    pub comment: Option<Label>,
}
impl Operation for AllowToNode {
    type Kind = Write;
    type Output = RuleAccepted;
    const META: Meta<Write> = post("allow_to_node", "/nodes/{node}/firewall").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Keeps addresses from all guests of a node, from its proxy and from the SSH ports, whatever projects allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockAtNode {
    /// Of which node.
    pub node: NodeId,
    /// Who is kept out: addresses, or a named network.
    pub from: RuleSource,
    /// TCP or UDP only; both, and all ports, unless said.
    pub protocol: Option<Transport>,
    /// From which ports of guests only.
    pub ports: Option<PortRange>,
    /// What it is for.
    pub comment: Option<Label>,
}
impl Operation for BlockAtNode {
    type Kind = Write;
    type Output = RuleAccepted;
    const META: Meta<Write> = post("block_at_node", "/nodes/{node}/blocks").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Keeps addresses from the guests of all nodes, from the proxies and from the SSH ports, whatever projects allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockEverywhere {
    /// Who is kept out: addresses, or a named network.
    pub from: RuleSource,
    /// TCP or UDP only; both, and all ports, unless said.
    pub protocol: Option<Transport>,
    /// From which ports of guests only.
    pub ports: Option<PortRange>,
    /// What it is for.
    pub comment: Option<Label>,
}
impl Operation for BlockEverywhere {
    type Kind = Write;
    type Output = RuleAccepted;
    const META: Meta<Write> = post("block_everywhere", "/blocks").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// The rules of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeFirewall {
    /// Which node.
    pub node: NodeId,
    /// Where it answers.
    pub address: NodeAddress,
    /// Its rules, what is kept out everywhere, and its published ports.
    pub rules: Vec<FirewallRuleLine>,
    /// How many ports of it are published: 500 of them at most are among the rules.
    pub published: u32,
    /// Who can be let in, or kept out, by name.
    pub sources: Vec<RuleSource>,
}
impl Reply for NodeFirewall {}
