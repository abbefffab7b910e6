//! What comes of moving a guest to another node, said before it is moved.

use std::net::Ipv4Addr;

use corpus_domain::{DnsName, GuestId, NodeAddress, NodeId};
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
    /// What its address points back to, if it does.
    pub pointer: Option<MovedPointer>,
}
impl Reply for MovePreview {}

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
