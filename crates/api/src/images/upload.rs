//! An image of a project that comes as an archive: too large to be a field like others, so it is taken while it comes.

use std::str::FromStr;

use corpus_domain::{Bytes, ImageName, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

use crate::operation::{BodyFile, Meta, Operation, Reply, Role, Scope, Write, put};
use crate::words::Label;

/// What an archive is sent as.
pub const ARCHIVE_TYPE: &str = "application/zstd";
/// The largest archive that is taken, in bytes.
pub const LARGEST_ARCHIVE: u64 = 10_000_000_000;

/// Makes an image of an archive that is sent, or a new version of one that is there: a tar of a whole system, compressed by
/// zstd. Its files are put into an archive anew, so nothing of how this one was made reaches a node.
///
/// The body is the archive itself, as `application/zstd`, 10 GB at most. What leads out of it is refused, as is what no
/// guest could be made of; devices and sockets are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UploadImage {
    /// Whose image it is.
    pub project: ProjectName,
    /// What it is called, 27 characters at most.
    pub image: ImageName,
    /// What is in it.
    pub comment: Option<Label>,
    /// The archive itself.
    pub archive: SentArchive,
}
impl Operation for UploadImage {
    type Kind = Write;
    type Output = ImageUploaded;
    const META: Meta<Write> = put("upload_image", "/projects/{project}/images/{image}/archive")
        .needs(Role::Maintainer)
        .robots()
        .file(BodyFile { field: "archive", media_types: &[ARCHIVE_TYPE], limit: LARGEST_ARCHIVE, streamed: true });
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// An archive that comes: a number that the door that takes it makes for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SentArchive(pub Uuid);

impl FromStr for SentArchive {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}
impl PartialSchema for SentArchive {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        let text = ObjectBuilder::new().schema_type(Type::String).format(Some(format));
        text.description(Some("a tar, compressed by zstd")).into()
    }
}
impl ToSchema for SentArchive {}

/// It is there, and new guests are made from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageUploaded {
    /// Which image.
    pub image: ImageName,
    /// What nodes call this version.
    pub label: ImageName,
    /// The SHA-256 of the archive that was made of it, 64 hexadecimal digits.
    pub sha256: String,
    /// How long that is.
    pub bytes: Bytes,
    /// How much is in its files.
    pub unpacked: Bytes,
}
impl Reply for ImageUploaded {}
