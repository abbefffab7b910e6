//! DNS names that lead to guests.

mod alias;
mod pointer;
mod switch;

pub use alias::{AliasTarget, AttachAlias};
pub use pointer::{NamePointer, PointGuest};
pub use switch::SwitchName;

use chrono::{DateTime, Utc};
use corpus_domain::{
    DnsName, DnsNameId, Environment, GuestId, GuestName, JobId, NameState, NodeId, ProjectName, ZoneId,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::words::{Limit, SearchText};

/// Lists DNS names.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListNames {
    /// Only of this project's guests.
    pub project: Option<ProjectName>,
    /// Only in this zone.
    pub zone: Option<ZoneId>,
    /// Only in this state.
    pub state: Option<NameState>,
    /// Only of this guest.
    pub guest: Option<GuestId>,
    /// Only those that are another name for this one.
    pub alias_of: Option<DnsNameId>,
    /// Only those that have this in them.
    pub q: Option<SearchText>,
    /// By name unless said.
    pub sort: Option<NameOrder>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListNames {
    type Kind = Read;
    type Output = NamePage;
    const META: Meta<Read> = get("list_names", "/names").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// The order of a list of DNS names.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NameOrder {
    /// By name.
    #[default]
    Name,
    /// The newest first.
    Newest,
}

/// Shows a DNS name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetName {
    /// Which.
    pub name: DnsNameId,
}
impl Operation for GetName {
    type Kind = Read;
    type Output = NameLine;
    const META: Meta<Read> = get("get_name", "/names/{name}").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// Attaches a DNS name to a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AttachName {
    /// To which guest.
    pub guest: GuestId,
    /// The name, in a zone that takes names of the guest's project.
    pub name: DnsName,
    /// Whether it is all names below this one that have none of their own, instead: `*.NAME`.
    #[serde(default)]
    pub wildcard: bool,
}
impl Operation for AttachName {
    type Kind = Write;
    type Output = NameAccepted;
    const META: Meta<Write> = post("attach_name", "/guests/{guest}/names").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Detaches a DNS name from its guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DetachName {
    /// Which.
    pub name: DnsNameId,
}
impl Operation for DetachName {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = delete("detach_name", "/names/{name}").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Name(self.name)
    }
}

/// Shows the DNS name of a node itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetNodeDnsName {
    /// Of which node.
    pub node: NodeId,
}
impl Operation for GetNodeDnsName {
    type Kind = Read;
    type Output = NodeDnsName;
    const META: Meta<Read> = get("get_node_dns_name", "/nodes/{node}/dns-name").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Gives a node a DNS name of its own, in a zone of ours, or takes it away. It leads to the node's public addresses; where
/// a reverse zone of ours holds these, they point back to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetNodeDnsName {
    /// Of which node.
    pub node: NodeId,
    /// The name; none: it has none any more.
    pub name: Option<DnsName>,
}
impl Operation for SetNodeDnsName {
    type Kind = Write;
    type Output = NodeDnsName;
    const META: Meta<Write> = put("set_node_dns_name", "/nodes/{node}/dns-name").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// The DNS name of a node itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeDnsName {
    /// The name, if it has one.
    pub name: Option<DnsName>,
}
impl Reply for NodeDnsName {}

/// A DNS name that leads to a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameLine {
    /// Its id.
    pub id: DnsNameId,
    /// The name.
    pub name: DnsName,
    /// Whether it is all names below this one that have none of their own, instead.
    pub wildcard: bool,
    /// The zone that holds it; none: one that is not ours.
    pub zone: Option<ZoneId>,
    /// That zone's name.
    pub zone_name: Option<DnsName>,
    /// What it is another name for (CNAME), and leads along with; none: it has addresses of its own.
    pub alias_of: Option<AliasTarget>,
    /// The guest it leads to.
    pub guest: GuestId,
    /// That guest's name.
    pub guest_name: GuestName,
    /// The environment whose guests share it, the one it leads to first; none when it is that guest's alone.
    pub environment: Option<Environment>,
    /// How far it is.
    pub state: NameState,
    /// Why, for a failed one.
    pub state_reason: Option<String>,
    /// When the authoritative server last answered it; for a name of a zone that is not ours, the world.
    pub answered_at: Option<DateTime<Utc>>,
    /// Since when that server answers something else, or nothing, though the name is attached.
    pub unanswered_since: Option<DateTime<Utc>>,
    /// What it answers then.
    pub unanswered_reason: Option<String>,
    /// What its site answers at the node, once it was asked.
    pub site: Option<SiteAnswer>,
    /// The address it points to.
    pub target: Option<String>,
    /// The address it points to by IPv6, where its node has one.
    pub target_ipv6: Option<String>,
    /// All addresses that it was said to lead to: those of one node, or of each that takes its visitors.
    pub addresses: Vec<String>,
    /// That its guest's address points back to it, if it is to.
    pub pointer: Option<NamePointer>,
    /// The job that is on it, while it is not settled.
    pub job: Option<JobId>,
    /// Whether its node serves a certificate of it, which is valid now.
    pub https: bool,
}
impl NameLine {
    /// As people write it: `*.NAME` of a wildcard.
    pub fn shown(&self) -> String {
        if self.wildcard { format!("*.{}", self.name) } else { self.name.to_string() }
    }

    /// Where its site is; none of a wildcard.
    pub fn url(&self) -> Option<String> {
        let scheme = if self.https { "https" } else { "http" };
        (!self.wildcard).then(|| format!("{scheme}://{}/", self.name))
    }
}
impl Reply for NameLine {}

crate::page!(
    /// A page of DNS names.
    NamePage, NameLine
);

/// What the site of a name answers at its node's proxy, asked for `/`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SiteAnswer {
    /// The status of HTTP; none when nothing usable came.
    pub status: Option<u16>,
    /// Why nothing came.
    pub problem: Option<String>,
    /// Since when it answers so.
    pub since: DateTime<Utc>,
    /// When it was last asked.
    pub checked_at: DateTime<Utc>,
}
impl SiteAnswer {
    /// Whether a visitor gets an answer: a page that is not found is one, a failure of the server is none.
    pub fn is_up(&self) -> bool {
        self.status.is_some_and(|status| status < 500)
    }
}

/// A name is being attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameAccepted {
    /// Which.
    pub name: DnsNameId,
    /// The job that attaches it.
    pub job: JobId,
}
impl Reply for NameAccepted {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/jobs/{}", self.job))
    }
}
