//! Images that projects make: of a guest that is as the next ones should be, or of a folder that a script in a guest filled.
//! Only guests of the same project are made of them.

use chrono::{DateTime, Utc};
use corpus_domain::{ActorName, Bytes, FilePath, GuestId, GuestName, ImageName, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::Label;

/// The most images of a project, so a page shows them all.
pub const MOST_IMAGES: u32 = 10;
/// The longest name of an image of which there are versions, in characters: nodes know each by its name and a part of its
/// SHA-256.
pub const LONGEST_NAME: usize = 27;

/// Lists the images of a project, by name: all of them, each with the versions that are kept, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListProjectImages {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for ListProjectImages {
    type Kind = Read;
    type Output = ProjectImages;
    const META: Meta<Read> = get("list_project_images", "/projects/{project}/images").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Makes an image of a guest, or a new version of one that is there: new guests of the project can be clones of it, those
/// that are there stay as they are.
///
/// The guest goes on meanwhile. What is only its own stays behind: host keys, name, whom it lets in, logs, and what projects
/// have in it. Of a folder all is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MakeImage {
    /// Whose image it is.
    pub project: ProjectName,
    /// What it is called, 27 characters at most.
    pub name: ImageName,
    /// Of which guest of the project.
    pub guest: GuestId,
    /// The folder in the guest that holds a whole system; the guest itself unless said.
    pub folder: Option<FilePath>,
    /// What is in it.
    pub comment: Option<Label>,
}
impl Operation for MakeImage {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("make_image", "/projects/{project}/images").needs(Role::Maintainer).robots();
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Removes an image of a project, unless there are guests of the project that are clones of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveImage {
    /// Whose image it is.
    pub project: ProjectName,
    /// Which.
    pub image: ImageName,
}
impl Operation for RemoveImage {
    type Kind = Write;
    type Output = ImageRemoved;
    const META: Meta<Write> = delete("remove_image", "/projects/{project}/images/{image}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// It is removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageRemoved {
    /// Which.
    pub image: ImageName,
}
impl Reply for ImageRemoved {}

/// The images of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectImages {
    /// Whose.
    pub project: ProjectName,
    /// By name.
    pub items: Vec<ProjectImage>,
    /// The guests that one can be made of, by name, 200 at most.
    pub guests: Vec<ImageGuest>,
    /// As many images it can have.
    pub most: u32,
    /// Whether the caller may make and remove one.
    pub may_change: bool,
}
impl Reply for ProjectImages {}

/// A guest that an image can be made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageGuest {
    /// Which.
    pub id: GuestId,
    /// Its name.
    pub name: GuestName,
}

/// An image of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectImage {
    /// Its name.
    pub name: ImageName,
    /// Whether a version is being made.
    pub is_being_made: bool,
    /// The newest first; none: the first one is being made.
    pub versions: Vec<ProjectImageVersion>,
}

/// A version of an image of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectImageVersion {
    /// What nodes call it, and guests that are clones of it.
    pub label: ImageName,
    /// The SHA-256 of its archive, 64 hexadecimal digits.
    pub sha256: String,
    /// The size of its archive.
    pub bytes: Bytes,
    /// How much is in its files.
    pub unpacked: Bytes,
    /// When it was made.
    pub made_at: DateTime<Utc>,
    /// Of which guest; none: it came as an archive.
    pub guest: Option<GuestName>,
    /// Of which folder of it, if not of the guest itself.
    pub folder: Option<FilePath>,
    /// By whom; none: they are gone.
    pub made_by: Option<ActorName>,
    /// What is in it.
    pub comment: Option<Label>,
    /// How many guests are clones of it.
    pub guests: u64,
}
