//! Which page a path names. A path that names none is the 404 page.

use std::str::FromStr;

use corpus_domain::{DeploymentId, Environment, GuestId, JobId, KeyClaimId, NodeId, ProjectName, ZoneId};

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the page of its path")]
pub enum Place {
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
    Deployment(ProjectName, i64),
    Dns,
    Zone(ZoneId),
    Jobs,
    Job(JobId),
    Keys,
    ClaimKey(KeyClaimId),
    Mail,
    Audit,
    Unknown,
}

impl Place {
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
            ["nodes", id, "initialize" | "host-key" | "overcommit"] => with(id, Self::Node),
            ["guests", id, "start" | "stop" | "restart" | "enlarge" | "limits" | "reveal" | "names"]
            | ["guests", id, "names", _, "detach"] => with(id, Self::Guest),
            ["dns", "zones", _, "remove"] => Self::Dns,
            ["jobs", id, "cancel" | "retry" | "abandon"] => with(id, Self::Job),
            ["keys", "claim", id] => with(id, Self::ClaimKey),
            ["keys", _, "remove"] => Self::Keys,
            ["guests", id, "destroy"] => with(id, Self::DestroyGuest),
            ["projects", rest @ ..] => Self::of_project(rest).unwrap_or(Self::Unknown),
            ["deployments"] => Self::Deployments,
            ["dns"] => Self::Dns,
            ["dns", "zones", id] => with(id, Self::Zone),
            ["jobs"] => Self::Jobs,
            ["jobs", id] => with(id, Self::Job),
            ["keys"] => Self::Keys,
            ["mail"] => Self::Mail,
            ["audit"] => Self::Audit,
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
            [] | ["members" | "environments" | "prod-entry"] | ["members", _, "remove"] => Self::Project(name),
            ["remove"] => Self::RemoveProject(name),
            ["deployments", number] | ["deployments", number, "again" | "restore"] => {
                Self::Deployment(name, number.parse().ok().filter(|number| *number > 0)?)
            }
            [environment] | [environment, "settings" | "deploy"] => {
                Self::ProjectEnvironment(name, environment.parse().ok()?)
            }
            [environment, "remove"] => Self::RemoveEnvironment(name, environment.parse().ok()?),
            [environment, "guests", guest, "remove"] => {
                Self::RemoveEnvironmentGuest(name, environment.parse().ok()?, guest.parse().ok()?)
            }
            [environment, "drill"] => Self::Drill(name, environment.parse().ok()?),
            [environment, "restore", archive] => Self::Restore(name, environment.parse().ok()?, archive.parse().ok()?),
            _ => return None,
        })
    }

    /// The path of the navigation that this page is under.
    pub const fn section(&self) -> &'static str {
        match self {
            Self::Login | Self::Unknown => "",
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
            Self::Mail => "/mail",
            Self::Audit => "/audit",
        }
    }
}

fn with<Id: FromStr>(id: &str, place: fn(Id) -> Place) -> Place {
    id.parse().map_or(Place::Unknown, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        assert_eq!(Place::of("/"), Place::Overview);
        assert_eq!(Place::of("/nodes/link"), Place::LinkNode);
        assert_eq!(Place::of("/nodes/no-id"), Place::Unknown);
        assert!(matches!(Place::of("/guests/0199d3c0-0000-7000-8000-000000000001/destroy"), Place::DestroyGuest(_)));
        assert_eq!(Place::of("/guests/0199d3c0-0000-7000-8000-000000000001/nothing"), Place::Unknown);
    }

    #[test]
    fn paths_of_projects() {
        let name = || "atlas".parse().expect("a name");
        assert_eq!(Place::of("/projects/new"), Place::NewProject);
        assert_eq!(Place::of("/projects/atlas/members"), Place::Project(name()));
        assert_eq!(Place::of("/projects/atlas/prod"), Place::ProjectEnvironment(name(), Environment::Prod));
        assert_eq!(Place::of("/projects/atlas/deployments/12"), Place::Deployment(name(), 12));
        let guest = "0199d3c0-0000-7000-8000-000000000001";
        let leaves = Place::of(&format!("/projects/atlas/prod/guests/{guest}/remove"));
        assert_eq!(leaves, Place::RemoveEnvironmentGuest(name(), Environment::Prod, guest.parse().expect("an id")));
        assert_eq!(leaves.section(), "/projects");
        for nothing in [
            "/projects/-x",
            "/projects/atlas/qa",
            "/projects/atlas/deployments/0",
            "/projects/atlas/prod/restore/1",
            "/projects/atlas/prod/guests/1/remove",
        ] {
            assert_eq!(Place::of(nothing), Place::Unknown, "{nothing}");
        }
        assert_eq!(Place::of("/projects/atlas/deployments/12").section(), "/deployments");
    }
}
