//! Ids, one type per thing, so that a guest's id can't be given where a node's is asked.
//!
//! All are UUID version 7: ordered by creation, so an index on them stays compact.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{schema::schema, text::Invalid};

macro_rules! id_type {
    ($($(#[$($doc:tt)*])* $name:ident),+ $(,)?) => {$(
        $(#[$($doc)*])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "Uuid")]
        pub struct $name(pub Uuid);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = Invalid;
            fn from_str(given: &str) -> Result<Self, Self::Err> {
                given.parse().map(Self).map_err(|_| Invalid::new("id", given, "a UUID, as Corpus shows it"))
            }
        }

        impl TryFrom<String> for $name {
            type Error = Invalid;
            fn try_from(given: String) -> Result<Self, Self::Error> {
                given.parse()
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        schema!($name, id($crate::schema::doc_text!($([$($doc)*])*)));
    )+};
}

id_type!(
    /// The id of a compute node.
    NodeId,
    /// The id of a guest.
    GuestId,
    /// The id of a job.
    JobId,
    /// The id of a DNS zone.
    ZoneId,
    /// The id of a DNS name attached to a guest.
    DnsNameId,
    /// The id of a claim of a DNS name from elsewhere.
    NameClaimId,
    /// The id of a member.
    UserId,
    /// The id of a project.
    ProjectId,
    /// The id of a member's SSH key.
    SshKeyId,
    /// The id of a claim to a key that another account holds.
    KeyClaimId,
    /// The id of a member's API token.
    TokenId,
    /// The id of a row of the audit.
    AuditId,
    /// The id of a deployment.
    DeploymentId,
    /// The id of a saved view.
    ViewId,
    /// The id of a notice to a member.
    NoticeId,
    /// The id of a change that can be undone.
    UndoId,
    /// The id of a webhook.
    WebhookId,
    /// The id of a delivery of a webhook.
    WebhookDeliveryId,
    /// The id of a request to the operators.
    RequestId,
    /// The id of a rule that decides about requests.
    RequestRuleId,
    /// The id of a certificate.
    CertificateId,
    /// The id of a rule of the firewall, or of a published port.
    FirewallRuleId,
    /// The id of a named network.
    NamedNetworkId,
    /// The id of a block of an address.
    BlockId,
    /// The id of a backup of the controller.
    ControllerBackupId,
    /// The id of a snapshot of a guest.
    SnapshotId,
    /// The id of a backup of a guest.
    BackupId,
);
