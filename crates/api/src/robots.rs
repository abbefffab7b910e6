//! Robots of a project: accounts for programs, which maintainers make, bound and end. [`keys`] is what they hold.
//!
//! A robot is no member: it signs in nowhere, enters no guest and owns nothing. What it may is its role, in the
//! environments that it is for, by a token for the API or a deploy key for git; and of the operations only those that
//! say so.

pub mod keys;

use chrono::{DateTime, Utc};
use corpus_domain::{ActorName, Environment, ProjectName, ProjectRole, RobotName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use crate::nodes::Environments;
use crate::operation::{Grant, Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::tokens::Token;
use crate::words::{Day, Limit};
use crate::{Cursor, Version};
use keys::DeployKey;

/// Lists the robots of a project, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListRobots {
    /// Of which project.
    pub project: ProjectName,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListRobots {
    type Kind = Read;
    type Output = RobotPage;
    const META: Meta<Read> = get("list_robots", "/projects/{project}/robots").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Shows a robot with its tokens and deploy keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetRobot {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub robot: RobotName,
}
impl Operation for GetRobot {
    type Kind = Read;
    type Output = Robot;
    const META: Meta<Read> = get("get_robot", "/projects/{project}/robots/{robot}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Makes a robot. It can do nothing before it is given a token or a deploy key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateRobot {
    /// Of which project.
    pub project: ProjectName,
    /// Its name in the project.
    pub robot: RobotName,
    /// What it may, in its environments.
    pub role: ProjectRole,
    /// The environments that it is for, one at least; it sees nothing of others.
    pub environments: Environments,
    /// The last day on which it may, by UTC; without end unless said.
    pub until: Option<Day>,
}
impl Operation for CreateRobot {
    type Kind = Write;
    type Output = RobotCreated;
    const META: Meta<Write> =
        post("create_robot", "/projects/{project}/robots").needs(Role::Maintainer).token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Sets what a robot is bounded to; what it does at this moment is held to it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangeRobot {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub robot: RobotName,
    /// What it may, in its environments.
    pub role: ProjectRole,
    /// The environments that it is for, one at least; it sees nothing of others.
    pub environments: Environments,
    /// The last day on which it may, by UTC; without end unless said.
    pub until: Option<Day>,
    /// The version that was read.
    pub version: Version,
}
impl Operation for ChangeRobot {
    type Kind = Write;
    type Output = Robot;
    const META: Meta<Write> = put("change_robot", "/projects/{project}/robots/{robot}")
        .needs(Role::Maintainer)
        .token(Grant::All)
        .if_match("version");
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Ends a robot, at once: its tokens and keys are gone, and what it has open is cut. What it did stays on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndRobot {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub robot: RobotName,
}
impl Operation for EndRobot {
    type Kind = Write;
    type Output = RobotEnded;
    const META: Meta<Write> =
        delete("end_robot", "/projects/{project}/robots/{robot}").needs(Role::Maintainer).token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// A robot in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RobotLine {
    /// Its name in the project.
    pub robot: RobotName,
    /// What it may, in its environments.
    pub role: ProjectRole,
    /// The environments that it is for.
    pub environments: Vec<Environment>,
    /// Until when it may; without end when there is none.
    pub expires_at: Option<DateTime<Utc>>,
    /// Who made it, as long as they are known here.
    pub created_by: Option<ActorName>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// How many tokens of it are good now.
    pub tokens: i64,
    /// How many deploy keys of it are good now.
    pub keys: i64,
    /// When a token or a key of it was last used, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

crate::page!(
    /// A page of robots.
    RobotPage, RobotLine
);

/// A robot with what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Robot {
    /// The robot.
    pub line: RobotLine,
    /// What it is called where it did something.
    pub login: ActorName,
    /// Its tokens that are not revoked, the newest first.
    pub tokens: Vec<Token>,
    /// Its deploy keys, the oldest first.
    pub keys: Vec<DeployKey>,
    /// The version of its bounds, to set them.
    pub version: Version,
}
impl Reply for Robot {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

impl RobotLine {
    /// The version of its bounds.
    pub fn version(&self) -> Version {
        Version::of(&(self.role, &self.environments, self.expires_at))
    }
}

/// A robot was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RobotCreated {
    /// Of which project.
    pub project: ProjectName,
    /// Its name.
    pub robot: RobotName,
}
impl Reply for RobotCreated {
    const STATUS: u16 = 201;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}/robots/{}", self.project, self.robot))
    }
}

/// A robot was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RobotEnded {
    /// Of which project.
    pub project: ProjectName,
    /// Its name.
    pub robot: RobotName,
}
impl Reply for RobotEnded {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}/robots", self.project))
    }
}
