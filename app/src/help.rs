//! What to read about a page: the section of the documentation that its "Help" opens.

use crate::route::Route;

/// A section of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Help {
    /// The name of the document.
    pub document: &'static str,
    /// The anchor.
    pub section: &'static str,
}

impl Help {
    /// Its address.
    pub fn path(&self) -> String {
        format!("/docs/{}#{}", self.document, self.section)
    }
}

impl Route {
    /// What to read about this page.
    pub const fn help(&self) -> Help {
        let (document, section) = match self {
            // Who is not signed in sees no Help.
            Self::Login | Self::Overview | Self::Search | Self::Docs | Self::Document(_) | Self::Unknown => {
                ("first-steps", "find-your-way")
            }
            Self::Nodes | Self::Node(_) | Self::UnlinkNode(_) => ("operating", "compute-nodes"),
            Self::GuestFirewall(_) => ("firewall", "let-somebody-in"),
            Self::EnvironmentFirewall(..) => ("firewall", "rules-of-an-environment"),
            Self::Traffic(..) => ("traffic", "what-is-counted"),
            Self::NodeFirewall(_) | Self::Networks => ("firewall", "what-operators-decide"),
            Self::Intrusion => ("intrusion", "who-is-kept-out"),
            Self::GuestMail(_) => ("mail", "of-one-guest"),
            Self::GuestStates(_) => ("states", "modes"),
            Self::States | Self::ProjectStates(_) => ("states", "those-of-many-guests"),
            Self::SaltMasters => ("states", "the-controllers-master"),
            Self::Baseline | Self::NodeBaseline(_) => ("states", "states-of-nodes"),
            Self::GuestUsers(_) => ("first-steps", "users-of-guests"),
            Self::GuestSnapshots(_) => ("snapshots", "take-one"),
            Self::GuestBackups(_) => ("backups", "take-one"),
            Self::ProjectBackups(_) => ("backups", "have-it-as-another-guest"),
            Self::ProjectImages(_) => ("images", "images-of-a-project"),
            Self::BackupFiles(..) => ("backups", "fetch-a-file"),
            Self::EnvironmentMail(..) => ("mail", "switch-it-on"),
            Self::EnvironmentBackups(..) => ("backups", "bring-an-environment-back"),
            Self::EmptyNode(_) => ("moving", "empty-a-node"),
            Self::EvenNodes => ("moving", "even-out-nodes"),
            Self::MoveGuest(_) => ("moving", "move-a-guest"),
            Self::LinkNode => ("operating", "a-host-to-be-linked"),
            Self::Guests | Self::RequestGuest => ("first-steps", "request-a-guest"),
            Self::Guest(_) | Self::DestroyGuest(_) | Self::GuestChoice => ("first-steps", "work-on-the-guest"),
            Self::Projects | Self::NewProject | Self::Project(_) | Self::RemoveProject(_) => {
                ("first-steps", "have-a-project")
            }
            Self::Robots(_) | Self::Robot(..) => ("ci", "robots"),
            Self::Webhooks(_) => ("webhooks", "add-one"),
            Self::Webhook(..) => ("webhooks", "what-arrives"),
            Self::ProjectEnvironment(..) => ("deploying", "configuration-and-pillar"),
            Self::RemoveEnvironment(..) => ("first-steps", "set-up-an-environment"),
            Self::RemoveEnvironmentGuest(..) => ("deploying", "several-guests"),
            Self::Drill(..) | Self::Restore(..) => ("deploying", "rollback"),
            Self::Deployments => ("deploying", "first-push"),
            Self::Deployment(..) => ("deploying", "phases-and-recipes"),
            Self::Dns => ("dns", "names"),
            Self::Zone(_) => ("dns", "zones"),
            Self::NameClaim(_) => ("dns", "names-from-elsewhere"),
            Self::Name(_) => ("dns", "https"),
            Self::Certificates => ("dns", "certificates-for-operators"),
            Self::Jobs | Self::Job(_) | Self::NotCreated => ("first-steps", "follow-a-job"),
            Self::Keys => ("first-steps", "add-your-ssh-key"),
            Self::ClaimKey(_) => ("operating", "passwords-and-keys"),
            Self::Tokens | Self::Device => ("api", "tokens"),
            Self::Notices => ("first-steps", "read-your-notices"),
            Self::Mail => ("first-steps", "choose-your-mail"),
            Self::Requests | Self::OneRequest(_) => ("requests", "ask-for-what-you-may-not-do"),
            Self::RequestRules => ("requests", "rules"),
            Self::Quotas => ("operating", "quotas"),
            Self::Audit => ("operating", "the-audit"),
            Self::ControllerBackups => ("operating", "back-up"),
            Self::Images => ("images", "versions"),
            Self::Hooks | Self::Hook(..) => ("hooks", "where-a-hook-lies"),
            Self::Api | Self::ApiOperation(_) => ("api", "requests-and-answers"),
        };
        Help { document, section }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A path of every page.
    pub const ROUTES: [&str; 79] = [
        "/",
        "/not-created",
        "/login",
        "/nodes",
        "/nodes/link",
        "/nodes/balance",
        "/nodes/0199d3c0-0000-7000-8000-000000000001",
        "/nodes/0199d3c0-0000-7000-8000-000000000001/unlink",
        "/nodes/0199d3c0-0000-7000-8000-000000000001/empty",
        "/nodes/0199d3c0-0000-7000-8000-000000000001/firewall",
        "/networks",
        "/intrusion",
        "/guests",
        "/guests/new",
        "/guests/choice",
        "/guests/0199d3c0-0000-7000-8000-000000000001",
        "/guests/0199d3c0-0000-7000-8000-000000000001/move",
        "/guests/0199d3c0-0000-7000-8000-000000000001/destroy",
        "/guests/0199d3c0-0000-7000-8000-000000000001/firewall",
        "/guests/0199d3c0-0000-7000-8000-000000000001/snapshots",
        "/guests/0199d3c0-0000-7000-8000-000000000001/backups",
        "/guests/0199d3c0-0000-7000-8000-000000000001/mail",
        "/guests/0199d3c0-0000-7000-8000-000000000001/states",
        "/states",
        "/salt-masters",
        "/baseline",
        "/nodes/0199d3c0-0000-7000-8000-000000000001/baseline",
        "/projects/atlas/states",
        "/projects/atlas/users",
        "/projects",
        "/projects/new",
        "/projects/atlas",
        "/projects/atlas/backups",
        "/projects/atlas/images",
        "/projects/atlas/backups/0199d3c0-0000-7000-8000-000000000001/files",
        "/projects/atlas/remove",
        "/projects/atlas/robots",
        "/projects/atlas/robots/ci",
        "/projects/atlas/webhooks",
        "/projects/atlas/webhooks/0199d3c0-0000-7000-8000-000000000001",
        "/projects/atlas/dev",
        "/projects/atlas/dev/remove",
        "/projects/atlas/dev/guests/0199d3c0-0000-7000-8000-000000000001/remove",
        "/projects/atlas/dev/firewall",
        "/projects/atlas/dev/traffic",
        "/projects/atlas/dev/mail",
        "/projects/atlas/dev/backups",
        "/projects/atlas/dev/drill",
        "/projects/atlas/dev/restore/0199d3c0-0000-7000-8000-000000000001",
        "/requests",
        "/requests/rules",
        "/requests/0199d3c0-0000-7000-8000-000000000001",
        "/quotas",
        "/deployments",
        "/projects/atlas/deployments/1",
        "/dns",
        "/dns/zones/0199d3c0-0000-7000-8000-000000000001",
        "/names/0199d3c0-0000-7000-8000-000000000001",
        "/name-claims/0199d3c0-0000-7000-8000-000000000001",
        "/certificates",
        "/jobs",
        "/jobs/0199d3c0-0000-7000-8000-000000000001",
        "/keys",
        "/keys/claim/0199d3c0-0000-7000-8000-000000000001",
        "/tokens",
        "/device",
        "/notices",
        "/mail",
        "/audit",
        "/controller-backups",
        "/images",
        "/hooks",
        "/hooks/guest/guest.ping.after/10-monitoring",
        "/search",
        "/api",
        "/api/list_jobs",
        "/docs",
        "/docs/api",
        "/nowhere",
    ];

    /// The name of a page in the code.
    fn name(of: &str) -> String {
        of.split(['(', ',']).next().unwrap().trim().to_owned()
    }

    #[test]
    fn no_page_is_forgotten() {
        let source = include_str!("route.rs");
        let body = source.split_once("pub enum Route {").unwrap().1.split_once("\n}").unwrap().0;
        let there_are: BTreeSet<String> = body.lines().map(name).filter(|name| !name.is_empty()).collect();
        let asked: BTreeSet<String> = ROUTES.iter().map(|path| name(&format!("{:?}", Route::of(path)))).collect();
        assert_eq!(asked, there_are);
    }
}
