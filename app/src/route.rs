//! Which page a path names. A path that names none is the 404 page.

use std::str::FromStr;

use corpus_api::words::Number;
use corpus_domain::{DeploymentId, Environment, GuestId, JobId, KeyClaimId, NodeId, ProjectName, ZoneId};

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the page of its path")]
pub enum Route {
    Login,
    Overview,
    Nodes,
    LinkNode,
    Node(NodeId),
    UnlinkNode(NodeId),
    Guests,
    RequestGuest,
    Guest(GuestId),
    DestroyGuest(GuestId),
    Projects,
    NewProject,
    Project(ProjectName),
    RemoveProject(ProjectName),
    ProjectEnvironment(ProjectName, Environment),
    RemoveEnvironment(ProjectName, Environment),
    RemoveEnvironmentGuest(ProjectName, Environment, GuestId),
    Drill(ProjectName, Environment),
    Restore(ProjectName, Environment, DeploymentId),
    Deployments,
    Deployment(ProjectName, Number),
    Dns,
    Zone(ZoneId),
    Jobs,
    Job(JobId),
    Keys,
    Tokens,
    Device,
    ClaimKey(KeyClaimId),
    Mail,
    Audit,
    Search,
    Api,
    ApiOperation(String),
    Unknown,
}

impl Route {
    /// The page of a path.
    #[expect(clippy::match_same_arms, reason = "a table, a line a path")]
    pub fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match parts.as_slice() {
            [] => Self::Overview,
            ["login"] => Self::Login,
            ["nodes"] => Self::Nodes,
            ["nodes", "link"] => Self::LinkNode,
            ["nodes", id] => with(id, Self::Node),
            ["nodes", id, "unlink"] => with(id, Self::UnlinkNode),
            ["guests"] => Self::Guests,
            ["guests", "new"] => Self::RequestGuest,
            ["guests", id] => with(id, Self::Guest),
            // What is only posted to shows its page when it is visited.
            ["nodes", id, "initialize" | "repair" | "host-key" | "probe" | "overcommit"] => with(id, Self::Node),
            ["guests", id, "start" | "stop" | "restart" | "enlarge" | "limits" | "host-key" | "names" | "delete"]
            | ["guests", id, "password", "reveal"] => with(id, Self::Guest),
            ["dns" | "names" | "zones"] | ["names", _] | ["names" | "zones", _, "delete"] => Self::Dns,
            ["zones", id] | ["zones", id, "access"] => with(id, Self::Zone),
            ["jobs", id, "cancel" | "retry" | "abandon"] => with(id, Self::Job),
            ["keys", "claim", id] => with(id, Self::ClaimKey),
            ["keys", _, "delete"] => Self::Keys,
            ["device"] | ["device-logins", _, "approve" | "refuse"] => Self::Device,
            ["tokens"] | ["tokens", _, "delete"] => Self::Tokens,
            ["guests", id, "destroy"] => with(id, Self::DestroyGuest),
            ["projects", rest @ ..] => Self::of_project(rest).unwrap_or(Self::Unknown),
            ["deployments"] => Self::Deployments,
            ["dns", "zones", id] => with(id, Self::Zone),
            ["jobs"] => Self::Jobs,
            ["jobs", id] => with(id, Self::Job),
            ["keys"] => Self::Keys,
            ["mail"] | ["me", "mail"] => Self::Mail,
            ["audit"] => Self::Audit,
            ["search"] => Self::Search,
            ["api"] => Self::Api,
            ["api", id] => Self::ApiOperation((*id).to_owned()),
            _ => Self::Unknown,
        }
    }

    /// The page of what follows `/projects`; what is only posted to shows its page.
    fn of_project(parts: &[&str]) -> Option<Self> {
        let (name, rest) = match parts {
            [] => return Some(Self::Projects),
            ["new"] => return Some(Self::NewProject),
            [name, rest @ ..] => (name.parse().ok()?, rest),
        };
        Some(match rest {
            [] | ["members" | "environments" | "prod-entry"] | ["members", _] | ["members", _, "delete"] => {
                Self::Project(name)
            }
            ["remove" | "delete"] => Self::RemoveProject(name),
            ["deployments", number] => Self::Deployment(name, number.parse().ok()?),
            [environment]
            | ["environments", environment]
            | ["environments", environment, "settings" | "deployments"] => {
                Self::ProjectEnvironment(name, environment.parse().ok()?)
            }
            [environment, "remove"] | ["environments", environment, "delete"] => {
                Self::RemoveEnvironment(name, environment.parse().ok()?)
            }
            [environment, "guests", guest, "remove"] | ["environments", environment, "guests", guest, "delete"] => {
                Self::RemoveEnvironmentGuest(name, environment.parse().ok()?, guest.parse().ok()?)
            }
            [environment, "drill"] | ["environments", environment, "drill"] => {
                Self::Drill(name, environment.parse().ok()?)
            }
            [environment, "restore", archive] => Self::Restore(name, environment.parse().ok()?, archive.parse().ok()?),
            _ => return None,
        })
    }

    /// The path of the navigation that this page is under.
    pub const fn section(&self) -> &'static str {
        match self {
            Self::Login | Self::Search | Self::Unknown => "",
            Self::Overview => "/",
            Self::Nodes | Self::LinkNode | Self::Node(_) | Self::UnlinkNode(_) => "/nodes",
            Self::Guests | Self::RequestGuest | Self::Guest(_) | Self::DestroyGuest(_) => "/guests",
            Self::Projects
            | Self::NewProject
            | Self::Project(_)
            | Self::RemoveProject(_)
            | Self::ProjectEnvironment(..)
            | Self::RemoveEnvironment(..)
            | Self::RemoveEnvironmentGuest(..)
            | Self::Drill(..)
            | Self::Restore(..) => "/projects",
            Self::Deployments | Self::Deployment(..) => "/deployments",
            Self::Dns | Self::Zone(_) => "/dns",
            Self::Jobs | Self::Job(_) => "/jobs",
            Self::Keys | Self::ClaimKey(_) => "/keys",
            Self::Tokens | Self::Device => "/tokens",
            Self::Mail => "/mail",
            Self::Audit => "/audit",
            Self::Api | Self::ApiOperation(_) => "/api",
        }
    }
}

fn with<Id: FromStr>(id: &str, route: fn(Id) -> Route) -> Route {
    id.parse().map_or(Route::Unknown, route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(Route::of("/"), Route::Overview);
        assert_eq!(Route::of("/nodes/link"), Route::LinkNode);
        assert_eq!(Route::of("/nodes/no-id"), Route::Unknown);
        assert!(matches!(Route::of("/guests/0199d3c0-0000-7000-8000-000000000001/destroy"), Route::DestroyGuest(_)));
        assert_eq!(Route::of("/guests/0199d3c0-0000-7000-8000-000000000001/nothing"), Route::Unknown);
    }

    #[test]
    fn paths_of_projects() {
        let name = || "atlas".parse().expect("a name");
        assert_eq!(Route::of("/projects/new"), Route::NewProject);
        assert_eq!(Route::of("/projects/atlas/members"), Route::Project(name()));
        assert_eq!(Route::of("/projects/atlas/prod"), Route::ProjectEnvironment(name(), Environment::Prod));
        let number = |text: &str| text.parse().expect("a number");
        assert_eq!(Route::of("/projects/atlas/deployments/12"), Route::Deployment(name(), number("12")));
        assert_eq!(
            Route::of("/projects/atlas/environments/prod/settings"),
            Route::ProjectEnvironment(name(), Environment::Prod)
        );
        let guest = "0199d3c0-0000-7000-8000-000000000001";
        let leaves = Route::of(&format!("/projects/atlas/prod/guests/{guest}/remove"));
        assert_eq!(leaves, Route::RemoveEnvironmentGuest(name(), Environment::Prod, guest.parse().expect("an id")));
        assert_eq!(leaves.section(), "/projects");
        for nothing in [
            "/projects/-x",
            "/projects/atlas/qa",
            "/projects/atlas/deployments/0",
            "/projects/atlas/prod/restore/1",
            "/projects/atlas/prod/guests/1/remove",
        ] {
            assert_eq!(Route::of(nothing), Route::Unknown, "{nothing}");
        }
        assert_eq!(Route::of("/projects/atlas/deployments/12").section(), "/deployments");
    }
}
