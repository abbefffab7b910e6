//! What letters say: each by itself, and each as a line among others.
//!
//! All kinds are rendered here and nowhere else. A letter has links to the pages and no secret.

mod backup;
mod certificate;
mod claim;
mod deployment;
mod guest;
mod job;
mod node;
mod own;
mod request;
mod text;

use url::Url;

use super::letter::Letter;

pub use text::Mail;
pub(super) use text::{Text, one_line, page};

/// A letter as a line among others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What happened.
    pub text: String,
    /// The page that it is about, from the root.
    pub path: String,
}

impl Letter {
    /// The letter for people, with links to the pages at `pages`.
    pub fn mail(&self, pages: &Url) -> Mail {
        match self {
            Self::PlatformReady(letter) => deployment::platform_ready(letter, pages),
            Self::Failed(letter) => deployment::failed(letter, pages),
            Self::Recovered(letter) => deployment::recovered(letter, pages),
            Self::KeyMoved(letter) => own::key_moved(letter, pages),
            Self::GuestReady(letter) => guest::guest_ready(letter, pages),
            Self::NodeReady(letter) => node::node_ready(letter, pages),
            Self::NodeAway(letter) => node::node_away(letter, pages),
            Self::NodeBack(letter) => node::node_back(letter, pages),
            Self::JobFailed(letter) => job::job_failed(letter, pages),
            Self::JobStuck(letter) => job::job_stuck(letter, pages),
            Self::TokenEnds(letter) => own::token_ends(letter, pages),
            Self::CertificateEnds(letter) => certificate::ends(letter, pages),
            Self::CertificateFails(letter) => certificate::fails(letter, pages),
            Self::BackupsNeedy(letter) => backup::needy(letter, pages),
            Self::ClaimLapsed(letter) => claim::lapsed(letter, pages),
            Self::RequestMade(letter) => request::made(letter, pages),
            Self::RequestDecided(letter) => request::decided(letter, pages),
        }
    }

    /// The same as a line among others.
    pub fn line(&self) -> Line {
        let (text, path) = match self {
            Self::PlatformReady(letter) => deployment::platform_line(letter),
            Self::Failed(letter) => deployment::failed_line(letter),
            Self::Recovered(letter) => deployment::recovered_line(letter),
            Self::KeyMoved(letter) => own::key_line(letter),
            Self::GuestReady(letter) => guest::guest_line(letter),
            Self::NodeReady(letter) => node::ready_line(letter),
            Self::NodeAway(letter) => node::away_line(letter),
            Self::NodeBack(letter) => node::back_line(letter),
            Self::JobFailed(letter) | Self::JobStuck(letter) => job::job_line(letter),
            Self::TokenEnds(letter) => own::token_line(letter),
            Self::CertificateEnds(letter) => certificate::ends_line(letter),
            Self::CertificateFails(letter) => certificate::fails_line(letter),
            Self::BackupsNeedy(letter) => backup::needy_line(letter),
            Self::ClaimLapsed(letter) => claim::lapsed_line(letter),
            Self::RequestMade(letter) => request::made_line(letter),
            Self::RequestDecided(letter) => request::decided_line(letter),
        };
        Line { text, path }
    }

    /// What happened so many times, and the page that has them all.
    pub fn heading(&self, count: i64) -> (String, &'static str) {
        let (one, many, path) = match self {
            Self::PlatformReady(_) => ("environment is ready", "environments are ready", "projects"),
            Self::Failed(_) => ("deployment failed", "deployments failed", "deployments"),
            Self::Recovered(_) => ("environment works again", "environments work again", "deployments"),
            Self::KeyMoved(_) => {
                ("SSH key of yours is another account's now", "SSH keys of yours are another account's now", "keys")
            }
            Self::GuestReady(_) => ("guest is ready", "guests are ready", "guests"),
            Self::NodeReady(_) => ("node is ready", "nodes are ready", "nodes"),
            Self::NodeAway(_) => ("node does not answer", "nodes do not answer", "nodes"),
            Self::NodeBack(_) => ("node answers again", "nodes answer again", "nodes"),
            Self::JobFailed(_) => ("job failed", "jobs failed", "jobs"),
            Self::JobStuck(_) => ("job is stuck", "jobs are stuck", "jobs"),
            Self::RequestMade(_) => ("request waits for operators", "requests wait for operators", "requests"),
            Self::RequestDecided(_) => ("request of yours is decided", "requests of yours are decided", "requests"),
            Self::CertificateEnds(_) => ("certificate ends soon", "certificates end soon", "names"),
            Self::CertificateFails(_) => ("certificate can't be had", "certificates can't be had", "names"),
            Self::BackupsNeedy(_) => ("guest has no good backup", "guests have no good backup", "guests"),
            Self::ClaimLapsed(_) => ("claim of a name has lapsed", "claims of names have lapsed", "dns"),
            Self::TokenEnds(_) => ("token of yours ends soon", "tokens of yours end soon", "tokens"),
        };
        (format!("{count} {}", if count == 1 { one } else { many }), path)
    }
}
