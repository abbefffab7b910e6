//! Previews: a branch `preview/NAME` of a project, deployed for a while on a guest and under a name of its own.
//!
//! A preview is a project, called `PROJECT--NAME`, with the environment dev alone; who is what in it is what they are in
//! the project that it is of, and what it takes is taken of that one's quota. Whoever may push to dev of the project may
//! make previews of it, as many as its rules say.

use chrono::{DateTime, Utc};
use corpus_domain::{
    ActorName, CommitId, DeploymentId, DnsName, Environment, JobId, PreviewName, ProjectName, SizeProfile,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::jobs::JobAccepted;
use crate::operation::{Grant, Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::projects::ProjectLine;
use crate::words::{PreviewCount, PreviewDays};

/// Shows whether a project has previews, and how many at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetPreviewRules {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for GetPreviewRules {
    type Kind = Read;
    type Output = PreviewRules;
    const META: Meta<Read> = get("get_preview_rules", "/projects/{project}/preview-rules").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Sets how many previews a project may have, and what they are like. Those that are there stay as they are, also where
/// that is more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetPreviewRules {
    /// Of which project.
    pub project: ProjectName,
    /// How many at once; with 0 no branch gets a preview.
    pub most: PreviewCount,
    /// Their names are below this one: `NAME.DOMAIN`. Needed unless there are none.
    pub domain: Option<DnsName>,
    /// How large their guests are.
    pub size: SizeProfile,
    /// For how many days one stays after a push, unless it is kept longer.
    pub days: PreviewDays,
    /// What was set when that was decided.
    pub version: Version,
}
impl Operation for SetPreviewRules {
    type Kind = Write;
    type Output = PreviewRules;
    const META: Meta<Write> =
        put("set_preview_rules", "/projects/{project}/preview-rules").needs(Role::Maintainer).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Lists the previews of a project by name, all of them: it has 20 at most.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListPreviews {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for ListPreviews {
    type Kind = Read;
    type Output = Previews;
    const META: Meta<Read> = get("list_previews", "/projects/{project}/previews").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), Environment::Dev)
    }
}

/// Makes a preview of a commit that was pushed to dev, or brings the one of that name to it. A push of the branch
/// `preview/NAME` to dev does the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MakePreview {
    /// Of which project.
    pub project: ProjectName,
    /// Its name.
    pub preview: PreviewName,
    /// The commit, which is in the repository of dev.
    pub commit: CommitId,
}
impl Operation for MakePreview {
    type Kind = Write;
    type Output = PreviewAccepted;
    const META: Meta<Write> =
        post("make_preview", "/projects/{project}/previews").needs(Role::Developer).token(Grant::Deploy).robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), Environment::Dev)
    }
}

/// Keeps a preview longer: for as many days from now as the project's rules say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeepPreview {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub preview: PreviewName,
}
impl Operation for KeepPreview {
    type Kind = Write;
    type Output = PreviewKept;
    const META: Meta<Write> = post("keep_preview", "/projects/{project}/previews/{preview}/keep")
        .needs(Role::Developer)
        .token(Grant::Deploy)
        .robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), Environment::Dev)
    }
}

/// Destroys a preview with all that belongs to it, as if its branch had been deleted. The branch stays where it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemovePreview {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub preview: PreviewName,
}
impl Operation for RemovePreview {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = delete("remove_preview", "/projects/{project}/previews/{preview}")
        .needs(Role::Developer)
        .token(Grant::Deploy)
        .robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), Environment::Dev)
    }
}

/// How many previews a project may have, and what they are like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewRules {
    /// How many at once.
    pub most: PreviewCount,
    /// What their names are below.
    pub domain: Option<DnsName>,
    /// How large their guests are.
    pub size: SizeProfile,
    /// For how many days one stays after a push.
    pub days: PreviewDays,
    /// What this is a version of, to change it.
    pub version: Version,
}
impl PreviewRules {
    /// These rules.
    pub fn of(most: PreviewCount, domain: Option<DnsName>, size: SizeProfile, days: PreviewDays) -> Self {
        let version = Version::of(&(most, &domain, size, days));
        Self { most, domain, size, days, version }
    }
}
impl Reply for PreviewRules {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// The previews of a project.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Previews {
    /// By name.
    pub items: Vec<PreviewLine>,
    /// Whether who asks may keep them longer and destroy them.
    pub may_change: bool,
}
impl Reply for Previews {}

/// A preview in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewLine {
    /// Its name.
    pub preview: PreviewName,
    /// Its branch.
    pub branch: String,
    /// The project that it is, with what is live there and its newest deployment.
    pub project: ProjectLine,
    /// Its DNS name; none when it could not be attached.
    pub name: Option<DnsName>,
    /// Who pushed it first, while their account is known.
    pub by: Option<ActorName>,
    /// When it is destroyed.
    pub expires_at: DateTime<Utc>,
    /// The job that destroys it.
    pub leaving: Option<JobId>,
}

/// A preview is made, or brought to a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewAccepted {
    /// The project that it is.
    pub project: ProjectName,
    /// The name that it gets.
    pub name: DnsName,
    /// The deployment that brings the commit there.
    pub deployment: DeploymentId,
    /// The job that sees it to its end; those that make the guest come before it.
    pub job: JobId,
    /// When it is destroyed, unless it is kept or pushed again.
    pub expires_at: DateTime<Utc>,
}
impl Reply for PreviewAccepted {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}", self.project))
    }
}

/// A preview is kept longer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewKept {
    /// Of which project.
    pub project: ProjectName,
    /// When it is destroyed now.
    pub expires_at: DateTime<Utc>,
}
impl Reply for PreviewKept {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}", self.project))
    }
}

/// Of which project a preview is one, and until when, for the page of the project that it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PreviewOf {
    /// The project.
    pub project: ProjectName,
    /// Its name there.
    pub preview: PreviewName,
    /// When it is destroyed.
    pub expires_at: DateTime<Utc>,
}
