//! Emptying a node: its guests leave it one after the other, by a move while it answers, and from their latest backups when
//! it is lost; and what a lost node has of them when it comes back.

use chrono::{DateTime, Utc};
use corpus_domain::{
    BackupId, Bytes, DnsName, Environment, GuestId, GuestName, GuestState, JobId, Leaving, NodeAddress, NodeId,
    ProjectName,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::moves::Downtime;
use crate::nodes::NodeChanged;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::Limit;

/// Has all guests leave a node, which takes no more of them. A few at a time go, each by a job of its own; asked again,
/// those that could not leave are tried again.
///
/// By `backup` only when the node does not answer: each guest goes on elsewhere as its latest backup has it, and one that
/// has none stays. What it wrote since is lost, or lies on the node still.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EmptyNode {
    /// Which.
    pub node: NodeId,
    /// How they leave.
    pub how: Leaving,
    /// By `backup`: that somebody made sure that the node is off, or cut off for good. A guest that runs there as well would
    /// be there twice.
    #[serde(default)]
    pub off: bool,
}
impl Operation for EmptyNode {
    type Kind = Write;
    type Output = NodeChanged;
    const META: Meta<Write> = post("empty_node", "/nodes/{node}/empty").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Has the guests stay that were to leave a node and have not begun to. The node takes no more until it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeepGuests {
    /// On which node.
    pub node: NodeId,
}
impl Operation for KeepGuests {
    type Kind = Write;
    type Output = NodeChanged;
    const META: Meta<Write> = post("keep_guests", "/nodes/{node}/keep").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Lists the guests of a node with what each would leave by, those first that could not leave, then those that are to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListLeaving {
    /// Of which node.
    pub node: NodeId,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListLeaving {
    type Kind = Read;
    type Output = LeavingGuests;
    const META: Meta<Read> = get("list_leaving", "/nodes/{node}/leaving").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Lists what a node still has of guests that were brought elsewhere while it was lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListLeftBehind {
    /// Of which node.
    pub node: NodeId,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListLeftBehind {
    type Kind = Read;
    type Output = AllLeftBehind;
    const META: Meta<Read> = get("list_left_behind", "/nodes/{node}/left-behind").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Removes from a node what it still has of a guest that was brought elsewhere, as soon as the node answers. There is no way
/// back: what the guest wrote between its backup and the loss of the node lies there alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveLeftBehind {
    /// From which node.
    pub node: NodeId,
    /// Of which guest.
    pub guest: GuestId,
}
impl Operation for RemoveLeftBehind {
    type Kind = Write;
    type Output = NodeChanged;
    const META: Meta<Write> = delete("remove_left_behind", "/nodes/{node}/left-behind/{guest}").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// Guests of a node, and how it is emptied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeavingGuests {
    /// Those of the page.
    pub items: Vec<LeavingGuest>,
    /// How many the node has.
    pub guests: u64,
    /// How many of them have a backup.
    pub backed_up: u64,
    /// The moment that the oldest of their latest backups is of.
    pub oldest_backup: Option<DateTime<Utc>>,
    /// How many are to leave and have not begun to.
    pub waiting: u64,
    /// How many are on their way.
    pub going: u64,
    /// How many could not leave.
    pub failed: u64,
    /// How many of them have an address that points back to a name.
    pub pointed: u64,
    /// Nodes with addresses that no reverse zone of ours holds, 100 at most: the address of a guest that goes to one of these
    /// points to no name there.
    pub lost_at: Vec<NodeAddress>,
    /// Where the next page begins.
    pub next: Option<Cursor>,
}
impl Reply for LeavingGuests {}

/// A guest of a node that may be emptied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeavingGuest {
    /// Its id.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// What it does, as far as is known.
    pub state: GuestState,
    /// What it is promised of storage.
    pub storage: Bytes,
    /// The name that its address points back to, if it does.
    pub pointer: Option<DnsName>,
    /// For how long it would answer nothing while it is moved, if it runs; none while no guest was moved that tells.
    pub downtime: Option<Downtime>,
    /// Its latest backup, if it has one.
    pub backup: Option<LatestBackup>,
    /// How it leaves, if it is to.
    pub leaves: Option<Leaves>,
}

/// The latest backup of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatestBackup {
    /// Its id.
    pub id: BackupId,
    /// The moment that it is of.
    pub taken_at: DateTime<Utc>,
    /// How much there is in it.
    pub bytes: Bytes,
}

/// How a guest leaves a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Leaves {
    /// By what.
    pub how: Leaving,
    /// When that was asked for.
    pub asked_at: DateTime<Utc>,
    /// The job that does it, once one does.
    pub job: Option<JobId>,
    /// Why it could not, for a person.
    pub problem: Option<String>,
}

/// What a node has of guests that were brought elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AllLeftBehind {
    /// By name.
    pub items: Vec<LeftBehind>,
    /// Where the next page begins.
    pub next: Option<Cursor>,
}
impl Reply for AllLeftBehind {}

/// What a node has of a guest that was brought elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeftBehind {
    /// Of which guest.
    pub guest: GuestId,
    /// What it is called.
    pub name: GuestName,
    /// When it went on elsewhere.
    pub left_at: DateTime<Utc>,
    /// The moment that the backup is of by which it went on.
    pub backup_of: Option<DateTime<Utc>>,
    /// When the node told that it does not run there and does not start by itself; none until it did.
    pub stopped_at: Option<DateTime<Utc>>,
    /// Whether it is to be removed.
    pub removing: bool,
}
