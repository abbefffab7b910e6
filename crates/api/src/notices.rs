//! Notices: what concerns a member and happened while they did not look.
//!
//! What is kept of one is what happened; its words and where it leads are made of that here, once for pages,
//! programs and the command line.

use chrono::{DateTime, Utc};
use corpus_domain::{
    DeploymentId, DeploymentState, Environment, GuestName, JobId, JobKind, JobState, KeyClaimId, NoticeId, ProjectName,
    RequestId, RequestState, SourceAddress, Trigger, WebhookId, shown_actor,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post};
use crate::words::Limit;

/// Lists one's own notices, the newest first: those about what one may still see.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListNotices {
    /// Only those that are unread.
    pub unread: Option<bool>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListNotices {
    type Kind = Read;
    type Output = NoticePage;
    const META: Meta<Read> = get("list_notices", "/notices").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Marks one of one's own notices as read, and says what it leads to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadNotice {
    /// Which.
    pub notice: NoticeId,
}
impl Operation for ReadNotice {
    type Kind = Write;
    type Output = NoticeRead;
    const META: Meta<Write> = post("read_notice", "/notices/{notice}/read").needs(Role::Member).unaudited();
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Marks one's own notices as read.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MarkNoticesRead {
    /// The newest one that was seen: what came after it stays unread. Unless said, all are marked.
    pub upto: Option<NoticeId>,
}
impl Operation for MarkNoticesRead {
    type Kind = Write;
    type Output = NoticesRead;
    const META: Meta<Write> = post("mark_notices_read", "/notices/read").needs(Role::Member).unaudited();
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// What a notice is about that has a page of its own: who looks at that needs the notice no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoticeOf {
    /// A job.
    Job(JobId),
    /// A deployment.
    Deployment(DeploymentId),
    /// A request to the operators.
    Request(RequestId),
}

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Notice {
    /// Its id.
    pub id: NoticeId,
    /// What happened, in a line.
    pub title: String,
    /// Why, or what of it, if there is more to say.
    pub detail: Option<String>,
    /// The page that it is about.
    pub path: String,
    /// What happened.
    pub news: News,
    /// When.
    pub created_at: DateTime<Utc>,
    /// Whether it is unread.
    pub unread: bool,
}

crate::page!(
    /// A page of notices.
    NoticePage, Notice
);

/// What a notice tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum News {
    /// A job is over, or stuck: one that one asked for, or one of a project of one's own that failed.
    Job {
        /// Which.
        job: JobId,
        /// What it does; none: it is of a later release.
        kind: Option<JobKind>,
        /// The same for people, with names.
        title: String,
        /// How it ended.
        state: JobState,
        /// Why, or what was said of it.
        reason: Option<String>,
    },
    /// A deployment is over.
    Deployment {
        /// The project.
        project: ProjectName,
        /// Its environment.
        environment: Environment,
        /// Its number in the project.
        number: i64,
        /// The guest on which it did not go live, though it did on the environment's first one.
        guest: Option<GuestName>,
        /// How it ended.
        state: DeploymentState,
        /// What set it off.
        trigger: Trigger,
        /// Whose, for people.
        by: String,
        /// Why it failed.
        fault: Option<String>,
        /// The number of the one before, if that failed.
        failed_before: Option<i64>,
    },
    /// A key waits for one's proof.
    KeyClaim {
        /// The claim.
        claim: KeyClaimId,
        /// The key's fingerprint, `SHA256:…`.
        fingerprint: String,
    },
    /// Somebody asks the operators for something, or one's own request was decided.
    Request {
        /// Which.
        request: RequestId,
        /// What is asked for, for people.
        title: String,
        /// How far it is.
        state: RequestState,
        /// Who asked.
        asker: String,
        /// Why it was asked, or why it was decided so.
        reason: Option<String>,
    },
    /// A key that was one's own is another account's.
    KeyMoved {
        /// Its fingerprint, `SHA256:…`.
        fingerprint: String,
    },
    /// Letters were given up, for operators.
    MailGivenUp {
        /// How many.
        letters: i64,
        /// Why the last of them was not taken.
        reason: String,
    },
    /// Addresses failed too often, or nodes counted more than is usual, for operators.
    Intrusion {
        /// Addresses that failed too often in this hour, as far as they were told.
        addresses: Vec<SourceAddress>,
        /// For how many minutes they are blocked; 0: they are not.
        block_minutes: u32,
        /// Nodes whose firewall dropped more packets than is usual.
        dropping: u32,
        /// Nodes with more failed TLS handshakes than is usual.
        failing_tls: u32,
    },
    /// No backup of the controller could be taken, for operators.
    ControllerBackupFailed {
        /// Why not.
        reason: String,
    },
    /// A webhook failed for days and was switched off.
    WebhookOff {
        /// The project.
        project: ProjectName,
        /// Which.
        webhook: WebhookId,
        /// What it is called.
        name: String,
        /// Why it was not delivered, the last time.
        reason: Option<String>,
    },
}

impl News {
    /// In a line.
    pub fn title(&self) -> String {
        match self {
            Self::Job { kind, title, state: JobState::Undone, .. } => not_made(*kind, title),
            Self::Job { title, .. } => title.clone(),
            Self::Deployment { state: DeploymentState::Live, failed_before: Some(_), .. } => {
                format!("{} works again", self.place())
            }
            Self::Deployment { trigger: Trigger::Drill, number, .. } => format!("Drill #{number} of {}", self.place()),
            Self::Deployment { number, by, guest, .. } => {
                let on = guest.as_ref().map(|guest| format!(" on {guest}")).unwrap_or_default();
                format!("Deployment #{number} of {} by {}{on}", self.place(), shown_actor(by))
            }
            Self::KeyClaim { .. } => "A key waits for your signature".to_owned(),
            Self::Request { title, state: RequestState::Open, asker, .. } => format!("{asker} asks: {title}"),
            Self::Request { title, state, .. } => format!("Your request was {}: {title}", ended(*state)),
            Self::KeyMoved { .. } => "An SSH key of yours is another account's now".to_owned(),
            Self::MailGivenUp { letters: 1, .. } => "A letter could not be sent".to_owned(),
            Self::MailGivenUp { letters, .. } => format!("{letters} letters could not be sent"),
            Self::Intrusion { addresses, block_minutes, .. } => intrusion_title(addresses, *block_minutes),
            Self::ControllerBackupFailed { .. } => "No backup of Corpus could be taken".to_owned(),
            Self::WebhookOff { project, name, .. } => format!("Webhook {name} of {project} was switched off"),
        }
    }

    fn place(&self) -> String {
        match self {
            Self::Deployment { project, environment, .. } => format!("{project} {environment}"),
            _ => String::new(),
        }
    }

    /// More of it.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Job { reason, .. } | Self::Request { reason, .. } => reason.clone(),
            Self::Deployment { state: DeploymentState::Live, number, failed_before, .. } => {
                failed_before.map(|before| format!("#{number} is live, the first after #{before}, which failed"))
            }
            Self::Deployment { trigger: Trigger::Drill, state: DeploymentState::RolledBack, .. } => None,
            Self::Deployment { fault, .. } => fault.clone(),
            Self::KeyClaim { fingerprint, .. } | Self::KeyMoved { fingerprint } => Some(fingerprint.clone()),
            Self::MailGivenUp { reason, .. } | Self::ControllerBackupFailed { reason } => Some(reason.clone()),
            Self::Intrusion { dropping, failing_tls, .. } => intrusion_detail(*dropping, *failing_tls),
            Self::WebhookOff { reason, .. } => Some(format!(
                "It failed for three days{}",
                reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default()
            )),
        }
    }

    /// The page that it is about.
    pub fn path(&self) -> String {
        match self {
            Self::Job { job, .. } => format!("/jobs/{job}"),
            Self::Deployment { project, number, guest, .. } => {
                let query = guest.as_ref().map(|guest| format!("?guest={guest}")).unwrap_or_default();
                format!("/projects/{project}/deployments/{number}{query}")
            }
            Self::KeyClaim { claim, .. } => format!("/keys/claim/{claim}"),
            Self::Request { request, .. } => format!("/requests/{request}"),
            Self::KeyMoved { .. } => "/keys".to_owned(),
            Self::MailGivenUp { .. } => "/mail".to_owned(),
            Self::Intrusion { .. } => "/intrusion".to_owned(),
            Self::ControllerBackupFailed { .. } => "/controller-backups".to_owned(),
            Self::WebhookOff { project, webhook, .. } => format!("/projects/{project}/webhooks/{webhook}"),
        }
    }
}

/// Who failed too often, and what was done about it.
fn intrusion_title(addresses: &[SourceAddress], block_minutes: u32) -> String {
    let blocked = if block_minutes > 0 { ": blocked for a while" } else { "" };
    match addresses {
        [] => "Nodes count more signs of intrusion than is usual".to_owned(),
        [one] => format!("{one} failed to log in too often{blocked}"),
        [first, rest @ ..] => format!("{first} and {} more failed to log in too often{blocked}", rest.len()),
    }
}

/// What else was counted.
fn intrusion_detail(dropping: u32, failing_tls: u32) -> Option<String> {
    let nodes = |count: u32, what: &str| {
        let nodes = if count == 1 { "node" } else { "nodes" };
        (count > 0).then(|| format!("{what} at {count} {nodes}"))
    };
    let said = [nodes(dropping, "many dropped packets"), nodes(failing_tls, "many failed TLS handshakes")];
    let said: Vec<String> = said.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// What became of a request, in a sentence.
const fn ended(state: RequestState) -> &'static str {
    match state {
        RequestState::Open => "made",
        RequestState::Approved => "approved",
        RequestState::Refused => "refused",
        RequestState::Withdrawn => "withdrawn",
        RequestState::Lapsed => "not decided in time",
    }
}

/// Of what was to be made nothing is left: its name says more than its job.
fn not_made(kind: Option<JobKind>, title: &str) -> String {
    let made = |verb, word| title.strip_prefix(verb).map(|thing| format!("{thing} was not {word}"));
    let told = match kind {
        Some(JobKind::GuestCreate) => made("Create guest ", "created"),
        Some(JobKind::NodeLink) => made("Link node ", "linked"),
        _ => None,
    };
    told.unwrap_or_else(|| title.to_owned())
}

/// A notice was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NoticeRead {
    /// Which.
    pub notice: NoticeId,
    /// The page that it is about.
    pub path: String,
}
impl Reply for NoticeRead {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(self.path.clone())
    }
}

/// Notices were marked as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NoticesRead {
    /// How many were unread.
    pub marked: u64,
}
impl Reply for NoticesRead {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some("/notices".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(kind: JobKind, title: &str, state: JobState) -> News {
        let job = JobId(uuid::Uuid::nil());
        News::Job { job, kind: Some(kind), title: title.into(), state, reason: Some("the disk is full".into()) }
    }

    #[test]
    fn a_line_names_the_thing() {
        let undone = job(JobKind::GuestCreate, "Create guest www on node-1", JobState::Undone);
        assert_eq!(undone.title(), "www on node-1 was not created");
        assert_eq!(undone.detail().as_deref(), Some("the disk is full"));
        assert_eq!(job(JobKind::GuestStop, "Stop guest www", JobState::Undone).title(), "Stop guest www");
        let deployed = |state, trigger, failed_before| News::Deployment {
            project: "shop".parse().unwrap(),
            environment: Environment::Prod,
            number: 7,
            guest: None,
            state,
            trigger,
            by: "mia".into(),
            fault: Some("exit status 1".into()),
            failed_before,
        };
        let failed = deployed(DeploymentState::RolledBack, Trigger::Push, None);
        assert_eq!(failed.title(), "Deployment #7 of shop prod by mia");
        assert_eq!(
            (failed.detail().as_deref(), failed.path().as_str()),
            (Some("exit status 1"), "/projects/shop/deployments/7")
        );
        let again = deployed(DeploymentState::Live, Trigger::Push, Some(6));
        assert_eq!(again.title(), "shop prod works again");
        assert_eq!(again.detail().as_deref(), Some("#7 is live, the first after #6, which failed"));
        assert_eq!(deployed(DeploymentState::RolledBack, Trigger::Drill, None).detail(), None);
    }
}
