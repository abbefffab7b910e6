//! Whether a node takes more guests: one that is to be worked on, or emptied, takes no more, and goes on with those it has.

use corpus_domain::NodeId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::jobs::JobAccepted;
use crate::nodes::NodeChanged;
use crate::operation::{Meta, Operation, Role, Scope, Write, post};

/// Lets a node take no more guests. Those it has, and those that were asked for before, go on there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DrainNode {
    /// Which.
    pub node: NodeId,
}
impl Operation for DrainNode {
    type Kind = Write;
    type Output = NodeChanged;
    const META: Meta<Write> = post("drain_node", "/nodes/{node}/drain").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Lets a node take guests again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResumeNode {
    /// Which.
    pub node: NodeId,
}
impl Operation for ResumeNode {
    type Kind = Write;
    type Output = NodeChanged;
    const META: Meta<Write> = post("resume_node", "/nodes/{node}/resume").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Reboots a node: it takes no guests meanwhile, those that run are shut down before, prod last, and are back when each was
/// entered by SSH.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RebootNode {
    /// Which.
    pub node: NodeId,
}
impl Operation for RebootNode {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("reboot_node", "/nodes/{node}/reboot").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}
