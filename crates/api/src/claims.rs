//! DNS names from elsewhere: of zones that others hold.
//!
//! A name of a zone of ours is given by Corpus. One of another zone is its owner's, so it takes two things that only who
//! may write there can do: the name leads to the guest's node, and the proof of this project stands beside it. Until the
//! world answers both, a claim is a wish that keeps nobody from anything.

use chrono::{DateTime, Utc};
use corpus_domain::{DnsName, GuestId, GuestName, NameClaimId, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::Limit;

/// Lists claims of names from elsewhere, the newest first.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListNameClaims {
    /// Only of this project.
    pub project: Option<ProjectName>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListNameClaims {
    type Kind = Read;
    type Output = NameClaimPage;
    const META: Meta<Read> = get("list_name_claims", "/name-claims").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// Shows a claim: which records to make, and what the world answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetNameClaim {
    /// Which.
    pub claim: NameClaimId,
}
impl Operation for GetNameClaim {
    type Kind = Read;
    type Output = NameClaim;
    const META: Meta<Read> = get("get_name_claim", "/name-claims/{claim}").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::NameClaim(self.claim)
    }
}

/// Claims a name of a zone that others hold, for a guest. It is attached once the world answers that it leads to the
/// guest's node, and the proof of the project; after seven days without both the claim lapses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClaimName {
    /// For which guest.
    pub guest: GuestId,
    /// The name, in no zone of ours.
    pub name: DnsName,
}
impl Operation for ClaimName {
    type Kind = Write;
    type Output = NameClaimed;
    const META: Meta<Write> = post("claim_name", "/guests/{guest}/name-claims").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Has the world asked about a claim within seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AskNameClaim {
    /// Which.
    pub claim: NameClaimId,
}
impl Operation for AskNameClaim {
    type Kind = Write;
    type Output = NameClaimed;
    const META: Meta<Write> = post("ask_name_claim", "/name-claims/{claim}/ask").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::NameClaim(self.claim)
    }
}

/// Withdraws a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WithdrawNameClaim {
    /// Which.
    pub claim: NameClaimId,
}
impl Operation for WithdrawNameClaim {
    type Kind = Write;
    type Output = NameClaimWithdrawn;
    const META: Meta<Write> = delete("withdraw_name_claim", "/name-claims/{claim}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::NameClaim(self.claim)
    }
}

/// A claim of a name from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameClaim {
    /// Its id.
    pub id: NameClaimId,
    /// The name.
    pub name: DnsName,
    /// The guest that it is to lead to.
    pub guest: GuestId,
    /// That guest's name.
    pub guest_name: GuestName,
    /// The address for its A record, or AAAA; a CNAME to a name that leads there does as well.
    pub target: Option<String>,
    /// The address for an AAAA record beside it, where the guest's node has one.
    pub target_ipv6: Option<String>,
    /// The name of the TXT record with the proof.
    pub proof_name: String,
    /// What is to stand in it.
    pub proof: String,
    /// Whether the name leads to the guest's node.
    pub leads: bool,
    /// Whether the proof stands there.
    pub proven: bool,
    /// The addresses that the world answered.
    pub answered: Vec<String>,
    /// Why the world gave no answer, or why it is not attached though both are so.
    pub problem: Option<String>,
    /// When the world was last asked.
    pub asked_at: Option<DateTime<Utc>>,
    /// When it lapses.
    pub expires_at: DateTime<Utc>,
}
impl Reply for NameClaim {}

crate::page!(
    /// A page of claims.
    NameClaimPage, NameClaim
);

/// A name is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameClaimed {
    /// Which claim.
    pub claim: NameClaimId,
}
impl Reply for NameClaimed {
    const STATUS: u16 = 201;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/name-claims/{}", self.claim))
    }
}

/// A claim was withdrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NameClaimWithdrawn {
    /// Which.
    pub claim: NameClaimId,
}
impl Reply for NameClaimWithdrawn {}
