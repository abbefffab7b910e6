//! Ids, one type per thing, so that a guest's id can't be given where a node's is asked.
//!
//! All are UUID version 7: ordered by creation, so an index on them stays compact.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id_type {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(given: &str) -> Result<Self, Self::Err> {
                given.parse().map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }
    )+};
}

id_type!(
    /// A compute node.
    NodeId,
    /// A guest.
    GuestId,
    /// A job.
    JobId,
    /// A DNS zone.
    ZoneId,
    /// A DNS name attached to a guest.
    DnsNameId,
    /// A member.
    UserId,
    /// A project.
    ProjectId,
    /// A member's SSH key.
    SshKeyId,
    /// A claim to a key that another account holds.
    KeyClaimId,
    /// A row of the audit.
    AuditId,
    /// A deployment.
    DeploymentId,
);
