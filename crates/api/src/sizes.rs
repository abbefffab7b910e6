//! The sizes of guests: what each is, and where there is room for one now.

use chrono::{DateTime, Utc};
use corpus_domain::{Backing, Bytes, CpuLimit, Driver, Environment, ImageName, MemoryLimit, SizeProfile};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};

/// Lists the sizes of guests, the smallest first, with which nodes have room for one of each now, and what guests can be
/// made with.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListSizes {}
impl Operation for ListSizes {
    type Kind = Read;
    type Output = Sizes;
    const META: Meta<Read> = get("list_sizes", "/sizes").needs(Role::Member).robots();
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// All sizes.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Sizes {
    /// From small to large.
    pub items: Vec<SizeLine>,
    /// What nodes can make, that of the most nodes first.
    pub makings: Vec<Making>,
    /// What guests can be clones of; the first unless they ask for another.
    pub images: Vec<ImageOffer>,
}
impl Reply for Sizes {}

/// An image that a guest can be a clone of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageOffer {
    /// Its name.
    pub name: ImageName,
    /// When its newest version was made; none: nodes make it themselves.
    pub made_at: Option<DateTime<Utc>>,
}

/// A size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SizeLine {
    /// Its name.
    pub size: SizeProfile,
    /// How much storage a guest of it may fill.
    pub storage: Bytes,
    /// Memory, unless another limit is chosen.
    pub memory: MemoryLimit,
    /// Processor time, unless another limit is chosen.
    pub cpu: CpuLimit,
    /// The nodes with room for one more such guest, with nothing else chosen.
    pub room: Vec<SizeRoom>,
}

/// What some nodes can make.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Making {
    /// Guests of this technology.
    pub driver: Driver,
    /// Whose files lie on this.
    pub backing: Backing,
    /// Whether they are held to the storage of their size, on each of these nodes, and can be given more.
    pub holds_size: bool,
    /// So many nodes can.
    pub nodes: u32,
    /// Of so many that take guests now.
    pub of: u32,
    /// In these environments operators don't want it.
    pub not_in: Vec<Environment>,
}

/// Which nodes have room for a guest of some size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SizeRoom {
    /// Of those that take guests of this environment.
    pub environment: Environment,
    /// So many have room.
    pub nodes: u32,
    /// Of so many that take guests now.
    pub of: u32,
    /// Those that have the most of it, at most three, by their names, or addresses where they have none.
    pub on: Vec<String>,
}
