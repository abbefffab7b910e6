//! Signs of intrusion, as nodes count them at their own edge, and addresses that are kept out of all nodes for a while.

use chrono::{DateTime, Utc};
use corpus_domain::{ActorName, BlockId, GuestId, GuestName, NodeAddress, NodeId, ProjectName, SourceAddress};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::{BlockMinutes, Label, Limit};

/// Lists what nodes counted in the last hour and day, where most was counted first, and who failed most of late.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListIntrusionSigns {}
impl Operation for ListIntrusionSigns {
    type Kind = Read;
    type Output = IntrusionSigns;
    const META: Meta<Read> = get("list_intrusion_signs", "/intrusion").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Lists the addresses that are kept out of all nodes, the newest first.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListBlockedAddresses {
    /// Those of the last thirty days that are kept out no more, instead.
    pub ended: Option<bool>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListBlockedAddresses {
    type Kind = Read;
    type Output = BlockedAddressPage;
    const META: Meta<Read> = get("list_blocked_addresses", "/blocked-addresses").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Keeps an address out of all nodes and their guests for a while. Refused for what Corpus is made of, for guests, for
/// named networks, and for what is never to be blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockAddress {
    /// Which; of an IPv6 address its whole network of 64 bits.
    pub address: SourceAddress,
    /// For how long.
    pub minutes: BlockMinutes,
    /// Why.
    pub reason: Label,
}
impl Operation for BlockAddress {
    type Kind = Write;
    type Output = AddressBlocked;
    const META: Meta<Write> = post("block_address", "/blocked-addresses").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Lets a blocked address in again. What it did until now counts no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LiftBlock {
    /// Which block.
    pub block: BlockId,
}
impl Operation for LiftBlock {
    type Kind = Write;
    type Output = AddressBlocked;
    const META: Meta<Write> = delete("lift_block", "/blocked-addresses/{block}").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// What nodes counted, and when one is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IntrusionSigns {
    /// By node, those with most in the last day first, 200 at most.
    pub nodes: Vec<NodeSigns>,
    /// By guest, those with most in the last day first, 200 at most; none without any.
    pub guests: Vec<GuestSignsLine>,
    /// Who was refused most within the time that counts, 200 at most.
    pub addresses: Vec<FailingAddress>,
    /// How many are kept out now.
    pub blocked: u32,
    /// When something is done about it.
    pub rules: IntrusionRules,
}
impl Reply for IntrusionSigns {}

/// When an address is blocked, and operators are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IntrusionRules {
    /// So many refused SSH sessions of one address are too many; 0: nobody is told.
    pub failures: u32,
    /// Within so many minutes.
    pub window_minutes: u32,
    /// For so many minutes it is blocked then; 0: it is not.
    pub block_minutes: u32,
    /// More dropped packets of one node in an hour are told; 0: they are not.
    pub dropped_packets: u64,
    /// More failed TLS handshakes of one node in an hour are told; 0: they are not.
    pub tls_errors: u64,
}

/// How many of something.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignCount {
    /// In this hour of the clock and the one before.
    pub hour: u64,
    /// In this hour of the clock and the 24 before.
    pub day: u64,
}

/// What was counted for a guest.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestSigns {
    /// SSH sessions at its port that look refused.
    pub refused_ssh: SignCount,
    /// Packets that were kept from it.
    pub dropped_packets: SignCount,
}

/// What a node counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeSigns {
    /// Which.
    pub node: NodeId,
    /// Where it is.
    pub address: NodeAddress,
    /// For all of its guests.
    pub guests: GuestSigns,
    /// TLS handshakes with its proxy that failed.
    pub tls_errors: SignCount,
    /// When it was last read; none: not yet.
    pub read_at: Option<DateTime<Utc>>,
}

/// What was counted for a guest, and which it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GuestSignsLine {
    /// Which.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// How many.
    pub signs: GuestSigns,
}

/// An address that was refused of late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FailingAddress {
    /// Which.
    pub address: SourceAddress,
    /// How many sessions look refused, at guests that let nobody in from there meanwhile.
    pub refused: u32,
    /// At how many guests.
    pub guests: u32,
    /// When it was last so.
    pub last_at: DateTime<Utc>,
}

/// A block of an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockedAddress {
    /// Its id.
    pub id: BlockId,
    /// Which address.
    pub address: SourceAddress,
    /// Why.
    pub why: String,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Until when.
    pub until: DateTime<Utc>,
    /// Who blocked it; none: Corpus by itself, or somebody who is gone.
    pub by: Option<ActorName>,
    /// When it ended, before its time too.
    pub ended_at: Option<DateTime<Utc>>,
    /// Who lifted it.
    pub lifted_by: Option<ActorName>,
}

crate::page!(
    /// A page of blocked addresses.
    BlockedAddressPage, BlockedAddress
);

/// An address was blocked, or is let in again. Nodes that answer have it within a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddressBlocked {
    /// The block.
    pub block: BlockId,
}
impl Reply for AddressBlocked {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some("/intrusion".to_owned())
    }
}
