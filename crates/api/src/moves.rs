//! What comes of moving a guest to another node, said before it is moved; and moves that would even out nodes.

use std::net::Ipv4Addr;

use chrono::{DateTime, Utc};
use corpus_domain::{
    Bytes, DnsName, Environment, GuestId, GuestName, GuestState, NodeAddress, NodeId, NodeName, ProjectName,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};

/// Says what would come of moving a guest, as things are now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewMove {
    /// Which.
    pub guest: GuestId,
    /// Where it would go; any node that can make it unless said.
    pub node: Option<NodeId>,
}
impl Operation for PreviewMove {
    type Kind = Read;
    type Output = MovePreview;
    const META: Meta<Read> = get("preview_move", "/guests/{guest}/move").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// What would come of moving a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MovePreview {
    /// For how long it would answer nothing, if it runs; none while no guest was moved that tells.
    pub downtime: Option<Downtime>,
    /// What its address points back to, if it does.
    pub pointer: Option<MovedPointer>,
}
impl Reply for MovePreview {}

/// For how long a guest that runs is expected to answer nothing while it is moved: the median of the last moves, 20 at most,
/// of the last 90 days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Downtime {
    /// From when it is told to stop until it is logged in to at the other node, in milliseconds.
    pub downtime_ms: u64,
    /// Of how many moves.
    pub of: u32,
    /// Of which moves.
    pub moves_of: MovesOf,
}

/// The moves by which it is said how long a guest will answer nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MovesOf {
    /// Of this guest.
    Guest,
    /// Of guests whose files are on the same backing, since this one was not moved yet.
    Backing,
    /// Of all guests, since none of those was moved yet.
    All,
}

/// What the last move of a guest that ran was like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastMove {
    /// When it was over.
    pub at: DateTime<Utc>,
    /// The node that it left, if that is linked still.
    pub from: Option<NodeAddress>,
    /// What was brought while it stood still.
    pub bytes: Bytes,
    /// For how long it answered nothing, in milliseconds.
    pub downtime_ms: u64,
}

/// What becomes of the name that the address of a guest points back to, by its reverse record (PTR).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MovedPointer {
    /// The address that it has.
    #[schema(value_type = String, format = "ipv4")]
    pub address: Ipv4Addr,
    /// The name. The address that it gets points to it, too.
    pub name: DnsName,
    /// Nodes with addresses that no reverse zone of ours holds, 100 at most: at these its address would point to no name.
    pub lost_at: Vec<NodeAddress>,
}

/// Proposes moves that would even out what nodes have promised to their guests. None is made: each is asked for by itself.
///
/// Looked at are nodes that take guests and answer, of each environment the 20 fullest and the 20 emptiest. A move is proposed
/// where one has promised 20 points more of what it can promise than another one: of memory first, then of storage and of
/// processor time. Guests that are privileged, have snapshots (which a move would lose), have a job or are to leave their node
/// anyhow are left where they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProposeMoves {}
impl Operation for ProposeMoves {
    type Kind = Read;
    type Output = ProposedMoves;
    const META: Meta<Read> = get("propose_moves", "/move-proposals").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Moves that would even out nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProposedMoves {
    /// The moves, 10 at most, in the order in which to make them: each is told as if those before it were made.
    pub items: Vec<ProposedMove>,
    /// Whether nodes are even as they are: of no environment has one promised 20 points more than another one.
    pub even: bool,
}
impl Reply for ProposedMoves {}

/// A move that would even out two nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProposedMove {
    /// The guest that would be moved.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// What it does.
    pub state: GuestState,
    /// What it evens out.
    pub evens: Promise,
    /// The node that it would leave.
    pub from: ProposedNode,
    /// The node that it would go to.
    pub to: ProposedNode,
    /// For how long it would answer nothing, if it runs; none while no guest was moved that tells.
    pub downtime: Option<Downtime>,
}

/// A node at one end of a move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProposedNode {
    /// Which.
    pub node: NodeId,
    /// Where it answers.
    pub address: NodeAddress,
    /// What people call it, if it was given a name.
    pub name: Option<NodeName>,
    /// What it has promised before the move.
    pub before: Promised,
    /// What it has promised after it.
    pub after: Promised,
}
impl ProposedNode {
    /// What it is called: its name, else its address.
    pub fn title(&self) -> String {
        self.name.as_ref().map_or_else(|| self.address.to_string(), ToString::to_string)
    }
}

/// What a node has promised, in percent of what it can promise by its overcommit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Promised {
    /// Memory.
    pub memory: u32,
    /// Storage.
    pub storage: u32,
    /// Processor time.
    pub cpu: u32,
}

/// What nodes promise to guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// Memory.
    Memory,
    /// Storage.
    Storage,
    /// Processor time.
    Cpu,
}
impl Promise {
    /// All, those that are evened out first before the others.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Storage, Self::Cpu];
}
