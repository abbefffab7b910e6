//! The name that the address of a guest points back to.

use chrono::{DateTime, Utc};
use corpus_domain::{DnsNameId, GuestId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Role, Scope, Write, put};

/// Has the reverse record (PTR) of a guest's address say one of its DNS names, or none any more. Where no reverse zone of
/// ours holds the address, or somebody else's record is there, none is written, and the name says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PointGuest {
    /// Which guest.
    pub guest: GuestId,
    /// One of its names, which is attached, in a zone that takes names of its project, and no wildcard; none: its address
    /// points to no name any more.
    pub name: Option<DnsNameId>,
}
impl Operation for PointGuest {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = put("point_guest", "/guests/{guest}/pointer").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// That the address of a name's guest points back to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NamePointer {
    /// The guest's address.
    pub address: String,
    /// Whether the record was written.
    pub stands: bool,
    /// Why it was not.
    pub problem: Option<String>,
    /// When it was last written, or could not be; none while the job is on it.
    pub since: Option<DateTime<Utc>>,
}
