//! What operators want of every node, beside what makes it one: packages, their own accounts, SSH, time, mail.

use chrono::{DateTime, Utc};
use corpus_domain::{NodeId, StatesEvery};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::guests::StatesRun;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post, put};
use crate::words::Text;

/// Shows what operators want of every node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetBaseline {}
impl Operation for GetBaseline {
    type Kind = Read;
    type Output = Baseline;
    const META: Meta<Read> = get("get_baseline", "/baseline").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Sets what operators want of every node. It is on a node when it was applied there, by hand or by schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetBaseline {
    /// Packages that are installed, one a line.
    pub packages: Option<Text>,
    /// Accounts that may do all that root may, one key a line: the account's name, and the line of a `.pub` file.
    pub operators: Option<Text>,
    /// Whether a password opens a node by SSH.
    #[serde(default)]
    pub password_login: bool,
    /// What nodes have the time from, one a line; nothing: what they have it from now.
    pub time_servers: Option<Text>,
    /// Who gets root's mail; nothing: who gets it now.
    pub root_mail: Option<Text>,
    /// How often it is seen to on each node without anybody asking for it.
    pub every: StatesEvery,
    /// Whether that only tries it: what is not so is told, and stays.
    #[serde(default)]
    pub test: bool,
    /// What was set when that was decided.
    pub version: Version,
}
impl Operation for SetBaseline {
    type Kind = Write;
    type Output = Baseline;
    const META: Meta<Write> = put("set_baseline", "/baseline").needs(Role::Ops).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// What operators want of every node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Baseline {
    /// Packages, one a line.
    pub packages: String,
    /// Accounts, one key a line.
    pub operators: String,
    /// Whether a password opens a node by SSH.
    pub password_login: bool,
    /// What nodes have the time from, one a line.
    pub time_servers: String,
    /// Who gets root's mail.
    pub root_mail: String,
    /// How often it is seen to on each node.
    pub every: StatesEvery,
    /// Whether that only tries it.
    pub test: bool,
    /// What is set.
    pub version: Version,
}
impl Reply for Baseline {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// Shows what the baseline came to on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetNodeBaseline {
    /// On which node.
    pub node: NodeId,
}
impl Operation for GetNodeBaseline {
    type Kind = Read;
    type Output = NodeBaseline;
    const META: Meta<Read> = get("get_node_baseline", "/nodes/{node}/baseline").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Has a node be as operators want every one, or tries what that would change. Its `/srv/salt` is applied beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApplyNodeBaseline {
    /// Which node.
    pub node: NodeId,
    /// Whether it is only tried.
    #[serde(default)]
    pub test: bool,
}
impl Operation for ApplyNodeBaseline {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("apply_node_baseline", "/nodes/{node}/baseline").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// What the baseline came to on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeBaseline {
    /// Which node.
    pub node: NodeId,
    /// What it is called.
    pub title: String,
    /// What it came to last; none: it was not seen to yet.
    pub last: Option<StatesRun>,
    /// Whether it was set anew since.
    pub is_old: bool,
    /// When it was set last, if ever.
    pub set_at: Option<DateTime<Utc>>,
}
impl Reply for NodeBaseline {}
