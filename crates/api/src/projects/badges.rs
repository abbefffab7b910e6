//! Badges: how an environment stands, as a picture for a README, which is fetched without login by who has its address.

use chrono::{DateTime, Utc};
use corpus_domain::{Environment, ProjectName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};

/// Shows the addresses of the badges of a project, if it has some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetBadges {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for GetBadges {
    type Kind = Read;
    type Output = Badges;
    const META: Meta<Read> = get("get_badges", "/projects/{project}/badges").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Gives the badges of a project addresses that nobody has yet; by those of before nothing is fetched any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RenewBadges {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for RenewBadges {
    type Kind = Write;
    type Output = BadgesChanged;
    const META: Meta<Write> = post("renew_badges", "/projects/{project}/badges").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Takes the badges of a project away: nothing is fetched by their addresses any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveBadges {
    /// Of which project.
    pub project: ProjectName,
}
impl Operation for RemoveBadges {
    type Kind = Write;
    type Output = BadgesChanged;
    const META: Meta<Write> = delete("remove_badges", "/projects/{project}/badges").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// The badges of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Badges {
    /// When their addresses were made; none: it has no badges.
    pub made_at: Option<DateTime<Utc>>,
    /// One for each environment.
    pub badges: Vec<Badge>,
}
impl Reply for Badges {}

/// A badge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Badge {
    /// Of which environment.
    pub environment: Environment,
    /// Its address.
    pub url: String,
}

/// Badges were changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BadgesChanged {
    /// Of which project.
    pub project: ProjectName,
}
impl Reply for BadgesChanged {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}", self.project))
    }
}
