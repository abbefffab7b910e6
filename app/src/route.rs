//! Which page a path names. A path that names none is the 404 page.

use std::str::FromStr;

use corpus_api::words::Number;
use corpus_domain::{
    BackupId, DeploymentId, DnsNameId, Environment, GuestId, HookHost, HookName, HookStage, JobId, KeyClaimId,
    NameClaimId, NodeId, ProjectName, RequestId, RobotName, WebhookId, ZoneId,
};

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the page of its path")]
pub enum Route {
    Login,
    Overview,
    NotCreated,
    Nodes,
    LinkNode,
    EvenNodes,
    Node(NodeId),
    UnlinkNode(NodeId),
    EmptyNode(NodeId),
    NodeFirewall(NodeId),
    NodeBaseline(NodeId),
    Baseline,
    SaltMasters,
    Networks,
    Intrusion,
    Guests,
    GuestChoice,
    RequestGuest,
    Guest(GuestId),
    MoveGuest(GuestId),
    DestroyGuest(GuestId),
    GuestFirewall(GuestId),
    GuestMail(GuestId),
    GuestStates(GuestId),
    States,
    GuestSnapshots(GuestId),
    GuestBackups(GuestId),
    Projects,
    NewProject,
    Project(ProjectName),
    Robots(ProjectName),
    Robot(ProjectName, RobotName),
    RemoveProject(ProjectName),
    Webhooks(ProjectName),
    ProjectBackups(ProjectName),
    ProjectImages(ProjectName),
    ProjectStates(ProjectName),
    GuestUsers(ProjectName),
    BackupFiles(ProjectName, BackupId),
    Webhook(ProjectName, WebhookId),
    ProjectEnvironment(ProjectName, Environment),
    RemoveEnvironment(ProjectName, Environment),
    RemoveEnvironmentGuest(ProjectName, Environment, GuestId),
    EnvironmentFirewall(ProjectName, Environment),
    Traffic(ProjectName, Environment),
    EnvironmentMail(ProjectName, Environment),
    EnvironmentBackups(ProjectName, Environment),
    Drill(ProjectName, Environment),
    Restore(ProjectName, Environment, DeploymentId),
    Requests,
    RequestRules,
    OneRequest(RequestId),
    Quotas,
    Deployments,
    Deployment(ProjectName, Number),
    Dns,
    Zone(ZoneId),
    Name(DnsNameId),
    NameClaim(NameClaimId),
    Certificates,
    Jobs,
    Job(JobId),
    Keys,
    Tokens,
    Device,
    ClaimKey(KeyClaimId),
    Notices,
    Mail,
    Audit,
    ControllerBackups,
    Images,
    Hooks,
    Hook(HookHost, HookStage, HookName),
    Search,
    Api,
    ApiOperation(String),
    Docs,
    Document(String),
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
            ["not-created"] => Self::NotCreated,
            ["nodes"] => Self::Nodes,
            ["nodes", "link"] => Self::LinkNode,
            ["nodes", "balance"] => Self::EvenNodes,
            ["nodes", id] => with(id, Self::Node),
            ["nodes", id, "unlink"] => with(id, Self::UnlinkNode),
            ["nodes", id, "empty" | "keep"] | ["nodes", id, "left-behind", _, "delete"] => with(id, Self::EmptyNode),
            ["nodes", id, "baseline"] => with(id, Self::NodeBaseline),
            ["baseline"] => Self::Baseline,
            ["salt-masters"] => Self::SaltMasters,
            ["states"] => Self::States,
            ["nodes", id, "firewall" | "blocks"] => with(id, Self::NodeFirewall),
            ["networks" | "blocks"] | ["networks", _] | ["networks", _, "delete"] => Self::Networks,
            ["intrusion" | "blocked-addresses"] | ["blocked-addresses", _, "delete"] => Self::Intrusion,
            ["guests"] => Self::Guests,
            ["guests", "new"] => Self::RequestGuest,
            ["guests", "choice"] => Self::GuestChoice,
            ["guests", id] => with(id, Self::Guest),
            ["guests", id, "firewall" | "ports"] => with(id, Self::GuestFirewall),
            ["guests", id, "mail"] => with(id, Self::GuestMail),
            ["guests", id, "states" | "mode"] => with(id, Self::GuestStates),
            ["guests", id, "snapshots"]
            | ["guests", id, "snapshots", "schedule"]
            | ["guests", id, "snapshots", _, "restore" | "delete"] => with(id, Self::GuestSnapshots),
            ["guests", id, "backups"]
            | ["guests", id, "backups", "schedule"]
            | ["guests", id, "backups", _, "restore" | "delete" | "prove"] => with(id, Self::GuestBackups),
            ["firewall-rules" | "published-ports", _, "delete"] => Self::Guests,
            // What is only posted to shows its page when it is visited.
            [
                "nodes",
                id,
                "initialize" | "repair" | "drain" | "resume" | "reboot" | "images" | "host-key" | "probe"
                | "overcommit" | "name" | "dns-name",
            ] => with(id, Self::Node),
            [
                "guests",
                id,
                "start" | "stop" | "restart" | "enlarge" | "limits" | "settings" | "host-key" | "names" | "name-claims"
                | "pointer" | "delete",
            ]
            | ["guests", id, "password", "reveal"] => with(id, Self::Guest),
            ["dns" | "names" | "zones"] | ["names" | "zones", _, "delete"] => Self::Dns,
            ["names", id]
            | ["names", id, "certificate" | "https" | "aliases"]
            | ["names", id, "certificate", "delete" | "renew"] => with(id, Self::Name),
            ["certificates"] => Self::Certificates,
            ["zones", id] | ["zones", id, "access" | "ttl"] => with(id, Self::Zone),
            ["name-claims", id] | ["name-claims", id, "ask" | "delete"] => with(id, Self::NameClaim),
            ["name-claims"] => Self::Dns,
            ["jobs", id, "cancel" | "retry" | "abandon" | "dismiss"] => with(id, Self::Job),
            ["keys", "claim", id] => with(id, Self::ClaimKey),
            ["keys", _, "delete"] => Self::Keys,
            ["device"] | ["device-logins", _, "approve" | "refuse"] => Self::Device,
            ["tokens"] | ["tokens", _, "delete"] => Self::Tokens,
            ["guests", id, "move"] => with(id, Self::MoveGuest),
            ["guests", id, "destroy"] => with(id, Self::DestroyGuest),
            ["projects", rest @ ..] => Self::of_project(rest).unwrap_or(Self::Unknown),
            ["deployments"] => Self::Deployments,
            ["dns", "zones", id] => with(id, Self::Zone),
            ["jobs"] => Self::Jobs,
            ["jobs", id] => with(id, Self::Job),
            ["keys"] => Self::Keys,
            ["me", "first-steps", "dismiss"] => Self::Overview,
            ["notices"] | ["notices", "read"] | ["notices", _, "read"] => Self::Notices,
            ["mail"] | ["me", "mail"] => Self::Mail,
            ["requests"] | ["requests", "projects" | "nodes" | "initializations" | "guests" | "names"] => {
                Self::Requests
            }
            ["requests", "rules"] | ["request-rules"] | ["request-rules", _, "delete"] => Self::RequestRules,
            ["requests", id] | ["requests", id, "approve" | "refuse" | "withdraw"] => with(id, Self::OneRequest),
            ["quotas" | "quota-policy" | "lxc-lines"] | ["backings" | "lxc-lines", _] | ["lxc-lines", _, "delete"] => {
                Self::Quotas
            }
            ["audit"] => Self::Audit,
            ["controller-backups"] => Self::ControllerBackups,
            ["images"] => Self::Images,
            ["hooks"] => Self::Hooks,
            ["hooks", host, stage, name] => Self::of_hook(host, stage, name).unwrap_or(Self::Unknown),
            ["search"] => Self::Search,
            ["api"] => Self::Api,
            ["api", id] => Self::ApiOperation((*id).to_owned()),
            ["docs"] => Self::Docs,
            ["docs", name] => Self::Document((*name).to_owned()),
            _ => Self::Unknown,
        }
    }

    fn of_hook(host: &str, stage: &str, name: &str) -> Option<Self> {
        Some(Self::Hook(host.parse().ok()?, stage.parse().ok()?, name.parse().ok()?))
    }

    /// The page of what follows `/projects`; what is only posted to shows its page.
    fn of_project(parts: &[&str]) -> Option<Self> {
        let (name, rest) = match parts {
            [] => return Some(Self::Projects),
            ["new"] => return Some(Self::NewProject),
            [name, rest @ ..] => (name.parse().ok()?, rest),
        };
        Some(match rest {
            []
            | ["members" | "environments" | "prod-entry" | "quota" | "previews" | "preview-rules"]
            | ["members", _]
            | ["members", _, "delete"]
            | ["previews", _, "keep" | "delete"] => Self::Project(name),
            ["robots"] => Self::Robots(name),
            ["robots", robot]
            | ["robots", robot, "delete" | "tokens" | "keys"]
            | ["robots", robot, "tokens" | "keys", _, "delete"] => Self::Robot(name, robot.parse().ok()?),
            ["remove" | "delete" | "destroy"] => Self::RemoveProject(name),
            ["webhooks"] | ["webhooks", _, "delete"] => Self::Webhooks(name),
            ["backups"] | ["backups", "check"] | ["backups", "key", "reveal"] | ["backups", _, "delete"] => {
                Self::ProjectBackups(name)
            }
            ["images"] | ["images", _, "delete"] => Self::ProjectImages(name),
            ["states"] | ["states", "schedule"] => Self::ProjectStates(name),
            ["users"] | ["users", _, "delete"] => Self::GuestUsers(name),
            ["backups", id, "files" | "fetch"] => Self::BackupFiles(name, id.parse().ok()?),
            ["webhooks", id] | ["webhooks", id, "test" | "resume"] | ["webhooks", id, "deliveries", _, "resend"] => {
                Self::Webhook(name, id.parse().ok()?)
            }
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
            [environment, "firewall"] | ["environments", environment, "firewall"] => {
                Self::EnvironmentFirewall(name, environment.parse().ok()?)
            }
            [environment, "traffic"] | ["environments", environment, "traffic"] => {
                Self::Traffic(name, environment.parse().ok()?)
            }
            [environment, "mail"] | ["environments", environment, "mail"] => {
                Self::EnvironmentMail(name, environment.parse().ok()?)
            }
            [environment, "backups"]
            | ["environments", environment, "backups"]
            | ["environments", environment, "backups", "restore"] => {
                Self::EnvironmentBackups(name, environment.parse().ok()?)
            }
            [environment, "drill"] | ["environments", environment, "drill"] => {
                Self::Drill(name, environment.parse().ok()?)
            }
            [environment, "restore", archive] => Self::Restore(name, environment.parse().ok()?, archive.parse().ok()?),
            _ => return None,
        })
    }

    /// The one path of the page, as its links have it; none of what is none. Other paths show it too, some with
    /// words in them that name nothing.
    pub fn path(&self) -> Option<String> {
        Some(match self {
            Self::Login => "/login".to_owned(),
            Self::Nodes => "/nodes".to_owned(),
            Self::LinkNode => "/nodes/link".to_owned(),
            Self::EvenNodes => "/nodes/balance".to_owned(),
            Self::Node(id) => format!("/nodes/{id}"),
            Self::UnlinkNode(id) => format!("/nodes/{id}/unlink"),
            Self::EmptyNode(id) => format!("/nodes/{id}/empty"),
            Self::NodeFirewall(id) => format!("/nodes/{id}/firewall"),
            Self::Networks => "/networks".to_owned(),
            Self::Intrusion => "/intrusion".to_owned(),
            Self::Guests => "/guests".to_owned(),
            Self::GuestChoice => "/guests/choice".to_owned(),
            Self::RequestGuest => "/guests/new".to_owned(),
            Self::Guest(id) => format!("/guests/{id}"),
            Self::MoveGuest(id) => format!("/guests/{id}/move"),
            Self::DestroyGuest(id) => format!("/guests/{id}/destroy"),
            Self::GuestFirewall(id) => format!("/guests/{id}/firewall"),
            Self::GuestMail(id) => format!("/guests/{id}/mail"),
            Self::GuestStates(id) => format!("/guests/{id}/states"),
            Self::States => "/states".to_owned(),
            Self::NodeBaseline(id) => format!("/nodes/{id}/baseline"),
            Self::Baseline => "/baseline".to_owned(),
            Self::SaltMasters => "/salt-masters".to_owned(),
            Self::ProjectStates(name) => format!("/projects/{name}/states"),
            Self::GuestUsers(name) => format!("/projects/{name}/users"),
            Self::GuestSnapshots(id) => format!("/guests/{id}/snapshots"),
            Self::GuestBackups(id) => format!("/guests/{id}/backups"),
            Self::Overview => "/".to_owned(),
            Self::NotCreated => "/not-created".to_owned(),
            Self::Projects => "/projects".to_owned(),
            Self::NewProject => "/projects/new".to_owned(),
            Self::Project(name) => format!("/projects/{name}"),
            Self::Robots(name) => format!("/projects/{name}/robots"),
            Self::Robot(name, robot) => format!("/projects/{name}/robots/{robot}"),
            Self::RemoveProject(name) => format!("/projects/{name}/remove"),
            Self::Webhooks(name) => format!("/projects/{name}/webhooks"),
            Self::ProjectBackups(name) => format!("/projects/{name}/backups"),
            Self::ProjectImages(name) => format!("/projects/{name}/images"),
            Self::BackupFiles(name, id) => format!("/projects/{name}/backups/{id}/files"),
            Self::Webhook(name, id) => format!("/projects/{name}/webhooks/{id}"),
            Self::ProjectEnvironment(name, environment) => format!("/projects/{name}/{environment}"),
            Self::RemoveEnvironment(name, environment) => format!("/projects/{name}/{environment}/remove"),
            Self::RemoveEnvironmentGuest(name, environment, guest) => {
                format!("/projects/{name}/{environment}/guests/{guest}/remove")
            }
            Self::EnvironmentFirewall(name, environment) => format!("/projects/{name}/{environment}/firewall"),
            Self::Traffic(name, environment) => format!("/projects/{name}/{environment}/traffic"),
            Self::EnvironmentMail(name, environment) => format!("/projects/{name}/{environment}/mail"),
            Self::EnvironmentBackups(name, environment) => format!("/projects/{name}/{environment}/backups"),
            Self::Drill(name, environment) => format!("/projects/{name}/{environment}/drill"),
            Self::Restore(name, environment, archive) => format!("/projects/{name}/{environment}/restore/{archive}"),
            Self::Deployments => "/deployments".to_owned(),
            Self::Deployment(name, number) => format!("/projects/{name}/deployments/{number}"),
            Self::Dns => "/dns".to_owned(),
            Self::Zone(id) => format!("/dns/zones/{id}"),
            Self::Name(id) => format!("/names/{id}"),
            Self::NameClaim(id) => format!("/name-claims/{id}"),
            Self::Certificates => "/certificates".to_owned(),
            Self::Jobs => "/jobs".to_owned(),
            Self::Job(id) => format!("/jobs/{id}"),
            Self::Keys => "/keys".to_owned(),
            Self::Tokens => "/tokens".to_owned(),
            Self::Device => "/device".to_owned(),
            Self::ClaimKey(id) => format!("/keys/claim/{id}"),
            Self::Notices => "/notices".to_owned(),
            Self::Mail => "/mail".to_owned(),
            Self::Requests => "/requests".to_owned(),
            Self::RequestRules => "/requests/rules".to_owned(),
            Self::OneRequest(id) => format!("/requests/{id}"),
            Self::Quotas => "/quotas".to_owned(),
            Self::Audit => "/audit".to_owned(),
            Self::ControllerBackups => "/controller-backups".to_owned(),
            Self::Images => "/images".to_owned(),
            Self::Hooks => "/hooks".to_owned(),
            Self::Hook(host, stage, name) => format!("/hooks/{host}/{stage}/{name}"),
            Self::Search => "/search".to_owned(),
            Self::Api => "/api".to_owned(),
            Self::ApiOperation(id) => format!("/api/{id}"),
            Self::Docs => "/docs".to_owned(),
            Self::Document(name) => format!("/docs/{name}"),
            Self::Unknown => return None,
        })
    }

    /// The path of the navigation that this page is under.
    pub const fn section(&self) -> &'static str {
        match self {
            Self::Login | Self::Search | Self::Unknown => "",
            Self::Overview | Self::NotCreated => "/",
            Self::Nodes
            | Self::LinkNode
            | Self::EvenNodes
            | Self::Node(_)
            | Self::UnlinkNode(_)
            | Self::EmptyNode(_)
            | Self::NodeFirewall(_)
            | Self::NodeBaseline(_) => "/nodes",
            Self::Baseline => "/baseline",
            Self::SaltMasters => "/salt-masters",
            Self::Networks => "/networks",
            Self::Intrusion => "/intrusion",
            Self::Guests
            | Self::GuestChoice
            | Self::RequestGuest
            | Self::Guest(_)
            | Self::MoveGuest(_)
            | Self::DestroyGuest(_)
            | Self::GuestFirewall(_)
            | Self::GuestMail(_)
            | Self::GuestStates(_)
            | Self::States
            | Self::GuestSnapshots(_)
            | Self::GuestBackups(_) => "/guests",
            Self::Projects
            | Self::NewProject
            | Self::Project(_)
            | Self::Robots(_)
            | Self::Robot(..)
            | Self::RemoveProject(_)
            | Self::Webhooks(_)
            | Self::ProjectBackups(_)
            | Self::ProjectImages(_)
            | Self::ProjectStates(_)
            | Self::GuestUsers(_)
            | Self::BackupFiles(..)
            | Self::Webhook(..)
            | Self::ProjectEnvironment(..)
            | Self::RemoveEnvironment(..)
            | Self::RemoveEnvironmentGuest(..)
            | Self::EnvironmentFirewall(..)
            | Self::Traffic(..)
            | Self::EnvironmentMail(..)
            | Self::EnvironmentBackups(..)
            | Self::Drill(..)
            | Self::Restore(..) => "/projects",
            Self::Deployments | Self::Deployment(..) => "/deployments",
            Self::Dns | Self::Zone(_) | Self::Name(_) | Self::NameClaim(_) => "/dns",
            Self::Certificates => "/certificates",
            Self::Jobs | Self::Job(_) => "/jobs",
            Self::Keys | Self::ClaimKey(_) => "/keys",
            Self::Tokens | Self::Device => "/tokens",
            Self::Notices => "/notices",
            Self::Mail => "/mail",
            Self::Requests | Self::RequestRules | Self::OneRequest(_) => "/requests",
            Self::Quotas => "/quotas",
            Self::Audit => "/audit",
            Self::ControllerBackups => "/controller-backups",
            Self::Images => "/images",
            Self::Hooks | Self::Hook(..) => "/hooks",
            Self::Api | Self::ApiOperation(_) => "/api",
            Self::Docs | Self::Document(_) => "/docs",
        }
    }
}

fn with<Id: FromStr>(id: &str, route: fn(Id) -> Route) -> Route {
    id.parse().map_or(Route::Unknown, route)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::help::tests::ROUTES;

    #[test]
    fn paths() {
        assert_eq!(Route::of("/"), Route::Overview);
        assert_eq!(Route::of("/nodes/link"), Route::LinkNode);
        assert_eq!(Route::of("/nodes/no-id"), Route::Unknown);
        assert!(matches!(Route::of("/guests/0199d3c0-0000-7000-8000-000000000001/destroy"), Route::DestroyGuest(_)));
        assert_eq!(Route::of("/guests/0199d3c0-0000-7000-8000-000000000001/nothing"), Route::Unknown);
    }

    #[test]
    fn a_page_has_one_path_and_others_that_show_it() {
        const ID: &str = "0199d3c0-0000-7000-8000-00000000000a";
        for path in ROUTES.into_iter().filter(|path| *path != "/nowhere") {
            assert_eq!(Route::of(path).path().as_deref(), Some(path));
        }
        let others = "/tokens/words/delete /keys/words/delete /notices/words/read /names/words /names/words/delete \
            /zones/words/delete /device-logins/words/approve /projects/atlas/members/words /projects/atlas/members \
            /zones/ID //guests /guests/ /jobs/ID/cancel /projects/atlas/deployments/012 /me/mail /none";
        for path in others.split_whitespace().map(|path| path.replace("ID", ID)) {
            assert_ne!(Route::of(&path).path().as_ref(), Some(&path));
        }
        let as_others_write_it = ID.replace('-', "").to_uppercase();
        assert_eq!(Route::of(&format!("/jobs/{as_others_write_it}")).path(), Some(format!("/jobs/{ID}")));
    }

    #[test]
    fn paths_of_projects() {
        let name = || "atlas".parse().expect("a name");
        assert_eq!(Route::of("/projects/new"), Route::NewProject);
        assert_eq!(Route::of("/projects/atlas/members"), Route::Project(name()));
        let robot = "ci".parse().expect("a name");
        assert_eq!(Route::of("/projects/atlas/robots/ci/tokens"), Route::Robot(name(), robot));
        assert_eq!(Route::of("/projects/atlas/robots"), Route::Robots(name()));
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
            "/projects/atlas/robots/-x",
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
