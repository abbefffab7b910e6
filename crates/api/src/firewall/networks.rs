//! Networks that operators gave a name, for rules of firewalls.

use chrono::{DateTime, Utc};
use corpus_domain::{Ipv4Network, JobId, NamedNetworkId, NetworkName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::FirewallRuleLine;
use crate::Version;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::words::Label;

/// Lists the named networks, by name, and what is kept out of all nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListNetworks {}
impl Operation for ListNetworks {
    type Kind = Read;
    type Output = Networks;
    const META: Meta<Read> = get("list_networks", "/networks").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Reads a named network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetNetwork {
    /// Which.
    pub network: NamedNetworkId,
}
impl Operation for GetNetwork {
    type Kind = Read;
    type Output = NamedNetwork;
    const META: Meta<Read> = get("get_network", "/networks/{network}").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Gives some networks a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateNetwork {
    /// The name.
    pub name: NetworkName,
    /// Which addresses.
    pub networks: NetworkList,
    /// What it is.
    pub comment: Option<Label>,
}
impl Operation for CreateNetwork {
    type Kind = Write;
    type Output = NetworkChanged;
    const META: Meta<Write> = post("create_network", "/networks").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Says which addresses a named network is. The nodes where rules name it are told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetNetwork {
    /// Which.
    pub network: NamedNetworkId,
    /// Which addresses.
    pub networks: NetworkList,
    /// What it is.
    pub comment: Option<Label>,
    /// What was so when that was decided.
    pub version: Version,
}
impl Operation for SetNetwork {
    type Kind = Write;
    type Output = NetworkChanged;
    const META: Meta<Write> = put("set_network", "/networks/{network}").needs(Role::Ops).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Takes the name from some networks. Refused while a rule names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveNetwork {
    /// Which.
    pub network: NamedNetworkId,
}
impl Operation for RemoveNetwork {
    type Kind = Write;
    type Output = NetworkChanged;
    const META: Meta<Write> = delete("remove_network", "/networks/{network}").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

crate::several!(
    /// Networks of a name.
    NetworkList, Ipv4Network, 64
);

/// Some networks that have a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamedNetwork {
    /// Its id.
    pub id: NamedNetworkId,
    /// Its name.
    pub name: NetworkName,
    /// Which addresses.
    pub networks: Vec<Ipv4Network>,
    /// What it is.
    pub comment: Option<String>,
    /// How many rules name it.
    pub rules: u32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// What this is a version of, to change it.
    pub version: Version,
}

impl Reply for NamedNetwork {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// The named networks, and what is kept out everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Networks {
    /// By name, 500 at most.
    pub items: Vec<NamedNetwork>,
    /// What is kept out of all nodes.
    pub blocks: Vec<FirewallRuleLine>,
}
impl Reply for Networks {}

/// A named network was made or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NetworkChanged {
    /// Which.
    pub network: NamedNetworkId,
    /// The job that tells the nodes, where a rule names it.
    pub job: Option<JobId>,
}
impl Reply for NetworkChanged {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(self.job.map_or_else(|| "/networks".to_owned(), |job| format!("/jobs/{job}")))
    }
}
