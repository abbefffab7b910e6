//! What a robot proves itself with: tokens for the API, deploy keys for git.

use chrono::{DateTime, Utc};
use corpus_domain::{ProjectName, RobotName, SshKeyId, TokenId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Grant, Meta, Operation, Reply, Role, Scope, Write, delete, post};
use crate::tokens::NewToken;
use crate::words::{Day, Days, KeyText, Label};

/// Makes a token of a robot. Its text is in the answer, and nowhere afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateRobotToken {
    /// Of which project.
    pub project: ProjectName,
    /// Whose.
    pub robot: RobotName,
    /// What it is for; other tokens of the robot have other names.
    pub name: Label,
    /// What it is good for; `all` is for members.
    pub scope: Grant,
    /// For how many days it is good; either this is given or `until`.
    pub days: Option<Days>,
    /// The last day on which it is good, by UTC, within a year.
    pub until: Option<Day>,
}
impl Operation for CreateRobotToken {
    type Kind = Write;
    type Output = NewToken;
    const META: Meta<Write> = post("create_robot_token", "/projects/{project}/robots/{robot}/tokens")
        .needs(Role::Maintainer)
        .token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Revokes a token of a robot, at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RevokeRobotToken {
    /// Of which project.
    pub project: ProjectName,
    /// Whose.
    pub robot: RobotName,
    /// Which.
    pub token: TokenId,
}
impl Operation for RevokeRobotToken {
    type Kind = Write;
    type Output = RobotTokenRevoked;
    const META: Meta<Write> = delete("revoke_robot_token", "/projects/{project}/robots/{robot}/tokens/{token}")
        .needs(Role::Maintainer)
        .token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Adds a deploy key to a robot: with it git fetches, and pushes if it is good for deploying. It enters no guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AddRobotKey {
    /// Of which project.
    pub project: ProjectName,
    /// Whose.
    pub robot: RobotName,
    /// The public key, as the line of a `.pub` file; no account has it yet.
    pub line: KeyText,
    /// `read` to fetch, `deploy` to push as well.
    pub scope: Grant,
    /// The last day on which it is good, by UTC; without end unless said.
    pub until: Option<Day>,
}
impl Operation for AddRobotKey {
    type Kind = Write;
    type Output = RobotKeyAdded;
    const META: Meta<Write> =
        post("add_robot_key", "/projects/{project}/robots/{robot}/keys").needs(Role::Maintainer).token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Removes a deploy key of a robot, at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveRobotKey {
    /// Of which project.
    pub project: ProjectName,
    /// Whose.
    pub robot: RobotName,
    /// Which.
    pub key: SshKeyId,
}
impl Operation for RemoveRobotKey {
    type Kind = Write;
    type Output = RobotKeyRemoved;
    const META: Meta<Write> = delete("remove_robot_key", "/projects/{project}/robots/{robot}/keys/{key}")
        .needs(Role::Maintainer)
        .token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// A robot's SSH key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeployKey {
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
    /// `read` to fetch, `deploy` to push as well.
    pub scope: Grant,
    /// When it was added.
    pub created_at: DateTime<Utc>,
    /// Until when it is good; without end when there is none.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A token of a robot was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RobotTokenRevoked {
    /// Of which project.
    pub project: ProjectName,
    /// Whose.
    pub robot: RobotName,
    /// Which.
    pub token: TokenId,
}
impl Reply for RobotTokenRevoked {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}/robots/{}", self.project, self.robot))
    }
}

/// A deploy key was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RobotKeyAdded {
    /// Of which project.
    pub project: ProjectName,
    /// Whose.
    pub robot: RobotName,
    /// Its id.
    pub key: SshKeyId,
}
impl Reply for RobotKeyAdded {
    const STATUS: u16 = 201;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}/robots/{}", self.project, self.robot))
    }
}

/// A deploy key was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RobotKeyRemoved {
    /// Of which project.
    pub project: ProjectName,
    /// Whose.
    pub robot: RobotName,
    /// Which.
    pub key: SshKeyId,
}
impl Reply for RobotKeyRemoved {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}/robots/{}", self.project, self.robot))
    }
}
