//! What comes of moving a guest to another node, said before it is moved.

use std::net::Ipv4Addr;

use chrono::{DateTime, Utc};
use corpus_domain::{Bytes, DnsName, GuestId, NodeAddress, NodeId};
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
