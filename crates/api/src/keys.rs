//! Members' own SSH keys, and keys that another account holds.

use chrono::{DateTime, Utc};
use corpus_domain::{KeyClaimId, SshKeyId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{Grant, Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::{KeyText, Limit, SignatureText};

/// Lists one's own SSH keys, the oldest first.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListMyKeys {
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListMyKeys {
    type Kind = Read;
    type Output = KeyPage;
    const META: Meta<Read> = get("list_my_keys", "/keys").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Adds an SSH key. One that another account holds is not added, but may be claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddKey {
    /// The public key, as the line of a `.pub` file.
    pub line: KeyText,
}
impl Operation for AddKey {
    type Kind = Write;
    type Output = KeyAdded;
    const META: Meta<Write> = post("add_key", "/keys").needs(Role::Member).token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Removes one of one's own SSH keys; it is taken from every guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveKey {
    /// Which.
    pub key: SshKeyId,
}
impl Operation for RemoveKey {
    type Kind = Write;
    type Output = KeyRemoved;
    const META: Meta<Write> = delete("remove_key", "/keys/{key}").needs(Role::Member).token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Shows what to sign to claim a key that another account holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetKeyClaim {
    /// Which of one's own claims.
    pub claim: KeyClaimId,
}
impl Operation for GetKeyClaim {
    type Kind = Read;
    type Output = KeyClaim;
    const META: Meta<Read> = get("get_key_claim", "/keys/claim/{claim}").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Takes a key over by a signature that only its owner can make. Whoever held it is told by mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProveKey {
    /// Which of one's own claims; it is good for one proof.
    pub claim: KeyClaimId,
    /// What `ssh-keygen -Y sign` printed.
    pub signature: SignatureText,
}
impl Operation for ProveKey {
    type Kind = Write;
    type Output = KeyProved;
    const META: Meta<Write> = post("prove_key", "/keys/claim/{claim}").needs(Role::Member).token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// An SSH key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnKey {
    /// Its id.
    pub id: SshKeyId,
    /// Its algorithm: `ssh-ed25519`.
    pub algorithm: String,
    /// Its size in bits.
    pub bits: u32,
    /// Its fingerprint, `SHA256:…`.
    pub fingerprint: String,
    /// Its comment.
    pub comment: String,
    /// When it was added.
    pub created_at: DateTime<Utc>,
    /// When git was last used with it, to the minute; who enters guests with it is not seen here.
    pub last_used_at: Option<DateTime<Utc>>,
}

crate::page!(
    /// A page of SSH keys.
    KeyPage, OwnKey
);

/// What became of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum KeyAdded {
    /// It is one's own now.
    Added {
        /// Its id.
        key: SshKeyId,
    },
    /// Another account holds it, and one may prove to have it.
    Claim {
        /// The claim that was begun.
        claim: KeyClaimId,
    },
}
impl Reply for KeyAdded {
    const STATUS: u16 = 201;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(match self {
            Self::Added { .. } => "/keys".to_owned(),
            Self::Claim { claim } => format!("/keys/claim/{claim}"),
        })
    }
}

/// A key was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyRemoved {
    /// Which.
    pub key: SshKeyId,
}
impl Reply for KeyRemoved {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some("/keys".to_owned())
    }
}

/// What to sign for a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyClaim {
    /// Its id.
    pub id: KeyClaimId,
    /// The key's fingerprint, `SHA256:…`.
    pub fingerprint: String,
    /// The text to be signed, one line without its end.
    pub text: String,
    /// The namespace of the signature, for `ssh-keygen -n`.
    pub namespace: String,
    /// Until when it can be proved.
    pub expires_at: DateTime<Utc>,
}
impl Reply for KeyClaim {}

/// A key was taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyProved {
    /// Its id, as one's own.
    pub key: SshKeyId,
}
impl Reply for KeyProved {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some("/keys".to_owned())
    }
}
