//! Images that guests are clones of: which there are, in which versions, and where these are. [`made`] are those of projects,
//! [`upload`] is how one comes as an archive.

pub mod made;
pub mod upload;

use chrono::{DateTime, Utc};
use corpus_domain::{Bytes, ImageName, NodeId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post};

/// As many versions of each are listed.
pub const LISTED_VERSIONS: u32 = 10;

/// Lists the images that guests can be clones of, each with its last versions, 10 at most.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListImages {}
impl Operation for ListImages {
    type Kind = Read;
    type Output = Images;
    const META: Meta<Read> = get("list_images", "/images").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Brings the newest versions of its images to a node, and removes those that nobody needs. That is done by itself
/// too, a minute after a version was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BringImages {
    /// Which.
    pub node: NodeId,
}
impl Operation for BringImages {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("bring_images", "/nodes/{node}/images").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Node(self.node)
    }
}

/// The images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Images {
    /// The folder of the controller that archives are looked for in.
    pub folder: String,
    /// How many nodes take guests.
    pub nodes: u64,
    /// As the configuration names them; the first is what guests are clones of unless they ask for another.
    pub items: Vec<Image>,
}
impl Reply for Images {}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Image {
    /// Its name.
    pub name: ImageName,
    /// Why what lies under its name in the folder can't be used, if so; new guests are made from what there was before.
    pub problem: Option<String>,
    /// Its last versions, the newest first. New guests are made from the first; none: there was no archive of it yet.
    pub versions: Vec<ImageVersion>,
}

/// A version of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageVersion {
    /// What nodes call it, and guests that are clones of it.
    pub label: ImageName,
    /// The SHA-256 of its archive, 64 hexadecimal digits.
    pub sha256: String,
    /// The size of its archive.
    pub bytes: Bytes,
    /// When its archive was made.
    pub made_at: DateTime<Utc>,
    /// When Corpus found it.
    pub found_at: DateTime<Utc>,
    /// How many guests are clones of it.
    pub guests: u64,
    /// How many nodes have it, by their last readings.
    pub nodes: u64,
}
