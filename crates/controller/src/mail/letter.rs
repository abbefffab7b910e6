//! What letters are about. It is kept as data until it is sent: [`words`](super::words) makes text of it.
//!
//! A new kind of letter is a variant here, a kind of choice in [`MailKind`] (or none, if nobody may choose not to be
//! told), its words, and a function in `events` that decides who is told.

use chrono::{DateTime, Utc};
use corpus_domain::{
    CommitId, DeploymentState, DnsName, DnsNameId, Environment, Grant, GuestId, GuestName, JobId, MailKind,
    NodeAddress, NodeId, ProjectName, RequestId, RequestState,
};
use serde::{Deserialize, Serialize};

/// What a letter is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Letter {
    /// An environment can be pushed to.
    PlatformReady(PlatformLetter),
    /// A deployment failed.
    Failed(DeploymentLetter),
    /// The first deployment that went live after one that failed.
    Recovered(DeploymentLetter),
    /// Another account has proved to have a key that was the addressee's.
    KeyMoved(KeyLetter),
    /// A guest can be entered.
    GuestReady(GuestLetter),
    /// A node takes guests.
    NodeReady(NodeLetter),
    /// A node does not answer, for a while now.
    NodeAway(AwayLetter),
    /// A node that did not answer does again, for a while now.
    NodeBack(AwayLetter),
    /// A job was undone since it failed.
    JobFailed(JobLetter),
    /// A job goes on no more.
    JobStuck(JobLetter),
    /// A token is near its end.
    TokenEnds(TokenLetter),
    /// A certificate is near its end, and no other has taken its place.
    CertificateEnds(CertificateLetter),
    /// A certificate can't be had, for a day now.
    CertificateFails(CertificateLetter),
    /// Nobody should rely on the backups of a guest.
    BackupsNeedy(BackupLetter),
    /// A claim of a name from elsewhere has lapsed.
    ClaimLapsed(ClaimLetter),
    /// Somebody asks the operators for something.
    RequestMade(RequestLetter),
    /// What was asked of the operators is decided.
    RequestDecided(RequestLetter),
}

impl Letter {
    /// The choice that it falls under; none: it is told always.
    pub const fn kind(&self) -> Option<MailKind> {
        Some(match self {
            Self::KeyMoved(_) => return None,
            Self::PlatformReady(_) => MailKind::EnvironmentReady,
            Self::Failed(_) | Self::Recovered(_) => MailKind::Deployment,
            Self::GuestReady(_) => MailKind::GuestReady,
            Self::NodeReady(_) => MailKind::NodeReady,
            Self::NodeAway(_) | Self::NodeBack(_) => MailKind::NodeUnreachable,
            Self::JobFailed(_) => MailKind::JobFailed,
            Self::JobStuck(_) => MailKind::JobStuck,
            Self::TokenEnds(_)
            | Self::CertificateEnds(_)
            | Self::CertificateFails(_)
            | Self::BackupsNeedy(_)
            | Self::ClaimLapsed(_) => MailKind::Expiry,
            Self::RequestMade(_) | Self::RequestDecided(_) => MailKind::Request,
        })
    }

    /// Whether it waits for nothing else: somebody must look now.
    pub fn is_urgent(&self) -> bool {
        match self {
            Self::KeyMoved(_) => true,
            Self::Failed(letter) => letter.state == DeploymentState::Broken,
            Self::JobStuck(letter) => letter.stalled.is_none(),
            Self::NodeAway(letter) => letter.is_host_key,
            _ => false,
        }
    }
}

/// A request to the operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestLetter {
    /// Its id.
    pub request: RequestId,
    /// What is asked for, for people.
    pub title: String,
    /// Who asked, by login name.
    pub asker: String,
    /// How far it is.
    pub state: RequestState,
    /// Why it was asked, or why it was decided so.
    pub reason: Option<String>,
}

/// A key that is another account's now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLetter {
    /// `SHA256:…`
    pub fingerprint: String,
    /// The word that `ssh-keygen -l` prints in brackets.
    pub algorithm: String,
}

/// A platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformLetter {
    /// The project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The guest that it stands on.
    pub guest: String,
    /// Who asked for it, by login name.
    pub by: Option<String>,
    /// The names that lead there.
    pub hosts: Vec<String>,
    /// The command that enters the guest.
    pub ssh: Option<String>,
    /// Where code is pushed to.
    pub git_url: Option<String>,
    /// Where the pillar is pushed to.
    pub pillar_url: Option<String>,
}

/// A deployment that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeploymentLetter {
    /// The project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The deployment's number in its project.
    pub number: i64,
    /// The guest on which it did not go live, though it did on the environment's first one.
    #[serde(default)]
    pub guest: Option<GuestName>,
    /// How it ended.
    pub state: DeploymentState,
    /// Who, for people.
    pub by: String,
    /// The commit that was to go live.
    pub commit: Option<CommitId>,
    /// The first line of its message.
    pub subject: Option<String>,
    /// Where it failed: phase and recipe.
    pub place: Option<String>,
    /// Why it failed.
    pub fault: Option<String>,
    /// The line of the log to read first.
    pub line: Option<String>,
    /// What is live now: the commit, and the number of the deployment that brought it.
    pub live: Option<(Option<CommitId>, Option<i64>)>,
    /// The number of the deployment that failed before, if this is the first success after it.
    pub failed_before: Option<i64>,
}

/// A guest that is ready. Which names lead there and what stands on it is read when the letter is written, since
/// that follows a moment later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestLetter {
    /// Its id.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The command that enters it.
    pub ssh: Option<String>,
    /// What URLs of repositories begin with, if there are any.
    pub git: Option<String>,
    /// The names that lead there.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Whether code can be pushed to it.
    #[serde(default)]
    pub pushed_to: bool,
}

impl GuestLetter {
    /// Where code is pushed to.
    pub fn git_url(&self) -> Option<String> {
        let begin = self.git.as_ref().filter(|_| self.pushed_to)?;
        Some(format!("{begin}/{}/{}", self.project, self.environment))
    }
}

/// A node that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLetter {
    /// Its id.
    pub node: NodeId,
    /// Where it is.
    pub address: NodeAddress,
    /// The environments that it takes guests of.
    pub environments: Vec<Environment>,
    /// How many more guests of size `small` fit.
    pub slots: u32,
    /// What may be promised still, for people.
    pub room: Option<String>,
}

/// A node that went, or came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwayLetter {
    /// Its id.
    pub node: NodeId,
    /// Where it is.
    pub address: NodeAddress,
    /// Since when it is so.
    pub since: DateTime<Utc>,
    /// Why it does not answer.
    pub reason: Option<String>,
    /// Whether it answers, with another host key.
    pub is_host_key: bool,
    /// How many guests are on it.
    pub guests: u32,
}

/// A job that failed, or is stuck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLetter {
    /// Which.
    pub job: JobId,
    /// What it does, for people.
    pub title: String,
    /// Why, or what it waits for.
    pub reason: Option<String>,
    /// Since when nothing was heard of it, if it waits or runs still.
    pub stalled: Option<DateTime<Utc>>,
}

/// A certificate of a name that needs somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateLetter {
    /// The name's id.
    pub id: DnsNameId,
    /// The name: `shop.example.org`, `*.shop.example.org`.
    pub name: String,
    /// When the one that is served ends; none: there is none.
    pub ends_at: Option<DateTime<Utc>>,
    /// Whether somebody brought it, so that nobody renews it by itself.
    pub is_brought: bool,
    /// Why there is no other.
    pub problem: Option<String>,
}

/// Backups of a guest on which nobody should rely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupLetter {
    /// The guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// What is wrong.
    pub need: BackupNeed,
    /// The moment that the latest one is of; none: there is none.
    pub last_at: Option<DateTime<Utc>>,
    /// Why, as far as that is known.
    pub problem: Option<String>,
}

/// What is wrong with backups that are taken by schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackupNeed {
    /// There should be a newer one.
    Late,
    /// What the project dumps is not in the latest.
    Undumped,
    /// None was tried for long, or the tries failed.
    Unproven,
}

/// A claim of a name from elsewhere that has lapsed: what it takes was not all seen in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimLetter {
    /// The name.
    pub name: DnsName,
    /// The guest that it was to lead to.
    pub guest: GuestId,
    /// That guest's name.
    pub guest_name: GuestName,
    /// Where the world said last that it leads to.
    pub answered: Vec<String>,
    /// Whether that was the guest's node.
    pub leads: bool,
    /// Whether the proof stood there.
    pub proven: bool,
    /// Why the world could not be asked, or why it was not attached though all was as it should be.
    pub problem: Option<String>,
}

/// A token that is near its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenLetter {
    /// What its owner calls it.
    pub name: String,
    /// What it is good for.
    pub scope: Grant,
    /// When it ends.
    pub ends_at: DateTime<Utc>,
    /// When it was last used.
    pub used_at: Option<DateTime<Utc>>,
}
