//! Jobs: what Corpus does that takes longer than a question.

use chrono::{DateTime, Utc};
use corpus_domain::{ActorName, Environment, GuestId, JobId, JobKind, JobState, NodeId, ProjectName, StepState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post};
use crate::stream::{Followed, Stream};
use crate::words::{After, Comment, Limit, LineLimit, SearchText, Wait};

/// Lists jobs.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListJobs {
    /// Only in one of these states.
    #[serde(default)]
    pub state: JobStates,
    /// Only of this kind.
    pub kind: Option<JobKind>,
    /// Only about this node.
    pub node: Option<NodeId>,
    /// Only about this guest.
    pub guest: Option<GuestId>,
    /// Only about this project.
    pub project: Option<ProjectName>,
    /// Only about this environment.
    pub environment: Option<Environment>,
    /// Only those that this member, or robot, asked for.
    pub by: Option<ActorName>,
    /// Only those with these words, or words that begin so, in their title, which names what they are about.
    pub q: Option<SearchText>,
    /// Only these.
    #[serde(default)]
    pub job: JobIds,
    /// The newest first unless said.
    pub sort: Option<JobOrder>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListJobs {
    type Kind = Read;
    type Output = JobPage;
    const META: Meta<Read> = get("list_jobs", "/jobs").needs(Role::Member).robots();
    fn scope(&self) -> Scope {
        Scope::Visible
    }
}

/// The order of a list of jobs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobOrder {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first.
    Oldest,
    /// Those that took the longest first, of those that ran and are over.
    Longest,
}

/// Shows a job with its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetJob {
    /// Which.
    pub job: JobId,
    /// Answers when the job is over, or so many seconds later.
    pub wait: Option<Wait>,
}
impl Operation for GetJob {
    type Kind = Read;
    type Output = Job;
    const META: Meta<Read> = get("get_job", "/jobs/{job}").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Job(self.job)
    }
}

/// Reads the log of a job, the oldest line first. With `before` it is the last lines before that one, else the
/// first ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadJobLog {
    /// Of which job.
    pub job: JobId,
    /// Only what comes after this line.
    pub after: Option<After>,
    /// Only what comes before this line.
    pub before: Option<After>,
    /// 5,000 unless said.
    pub limit: Option<LineLimit>,
}
impl Operation for ReadJobLog {
    type Kind = Read;
    type Output = JobLog;
    const META: Meta<Read> = get("read_job_log", "/jobs/{job}/log").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Job(self.job)
    }
}

/// Follows a job: its steps, its log and its state, as they change, until it is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FollowJob {
    /// Which.
    pub job: JobId,
    /// Only what changed after this number; `Last-Event-ID` says the same.
    pub after: Option<After>,
}
impl Stream for FollowJob {
    type Item = JobEvent;
    const META: Meta<Read> = get("follow_job", "/jobs/{job}/events").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Job(self.job)
    }
}

/// Asks a job to stop; what it did is undone. For who may start such a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelJob {
    /// Which.
    pub job: JobId,
}
impl Operation for CancelJob {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("cancel_job", "/jobs/{job}/cancel").needs(Role::Developer).robots();
    fn scope(&self) -> Scope {
        Scope::JobDecision(self.job)
    }
}

/// Runs the undo of a stuck job again. For who may start such a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetryJob {
    /// Which.
    pub job: JobId,
}
impl Operation for RetryJob {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("retry_job", "/jobs/{job}/retry").needs(Role::Developer);
    fn scope(&self) -> Scope {
        Scope::JobDecision(self.job)
    }
}

/// Gives a stuck job up. What it left must be looked after by hand. For who may start such a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AbandonJob {
    /// Which.
    pub job: JobId,
    /// What was done about what is left.
    pub comment: Comment,
}
impl Operation for AbandonJob {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = post("abandon_job", "/jobs/{job}/abandon").needs(Role::Developer);
    fn scope(&self) -> Scope {
        Scope::JobDecision(self.job)
    }
}

crate::several!(
    /// States of jobs.
    JobStates, JobState, 10
);
crate::several!(
    /// Jobs by their ids.
    JobIds, JobId, 50
);

/// A job does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobAccepted {
    /// Which.
    pub job: JobId,
}
impl Reply for JobAccepted {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/jobs/{}", self.job))
    }
}

/// That a job made nothing is dismissed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobDismissed {
    /// Which.
    pub job: JobId,
}
impl Reply for JobDismissed {}

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobLine {
    /// Its id.
    pub id: JobId,
    /// What it does.
    pub kind: JobKind,
    /// The same for people, with names.
    pub title: String,
    /// How far it is.
    pub state: JobState,
    /// The node it is about.
    pub node: Option<NodeId>,
    /// The guest it is about.
    pub guest: Option<GuestId>,
    /// The project it is about.
    pub project: Option<ProjectName>,
    /// Who asked for it; none for Corpus itself.
    pub by: Option<ActorName>,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it was over; none while it is stuck.
    pub ended_at: Option<DateTime<Utc>>,
    /// When its cancel was asked for.
    pub cancel_requested_at: Option<DateTime<Utc>>,
    /// By whom.
    pub cancelled_by: Option<ActorName>,
    /// Why it was undone or is stuck.
    pub error: Option<String>,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// Since when.
    pub waiting_since: Option<DateTime<Utc>>,
    /// The job that it waits for, when it is one.
    pub blocked_by: Option<JobId>,
    /// When it is tried again, when it waits for that.
    pub retry_at: Option<DateTime<Utc>>,
    /// Since when its node does not answer, while it does not.
    pub node_unreachable_since: Option<DateTime<Utc>>,
}

impl JobLine {
    /// Why it was undone or is stuck, where that is not its cancel: a step may fail by itself before the cancel
    /// reaches it.
    pub fn fault(&self) -> Option<&str> {
        self.error.as_deref().filter(|error| *error != Self::CANCELLED)
    }

    /// Why it was undone, where that is its cancel.
    pub const CANCELLED: &str = "cancelled";

    /// Whether it was undone since somebody cancelled it.
    pub fn was_cancelled(&self) -> bool {
        self.state == JobState::Undone && self.cancel_requested_at.is_some() && self.fault().is_none()
    }
}

crate::page!(
    /// A page of jobs.
    JobPage, JobLine
);

/// A job with its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    /// What lists show of it.
    pub line: JobLine,
    /// Who asked for its cancel.
    pub cancel_requested_by: Option<ActorName>,
    /// Who gave it up.
    pub abandoned_by: Option<ActorName>,
    /// Why it was given up.
    pub comment: Option<String>,
    /// How many jobs are before it, while it waits for its turn.
    pub position: Option<i64>,
    /// Whether who asks may decide about it: cancel it, try its undo again, give it up.
    pub may_decide: bool,
    /// Whether it runs and is past the point from which it can't be cancelled any more.
    pub past_cancel: bool,
    /// What was asked for with it, as the operation's fields without secrets, to ask again; for who may decide
    /// about it, where it makes a guest, an environment or a name, or links a node.
    #[schema(value_type = Option<Object>)]
    pub asked: Option<Value>,
    /// When somebody dismissed that it made nothing.
    pub dismissed_at: Option<DateTime<Utc>>,
    /// How often it was taken up by a server.
    pub taken: i64,
    /// The number of its last change, to follow it after.
    pub last_event: i64,
    /// Its steps, in order.
    pub steps: Vec<JobStep>,
}
impl Reply for Job {}

/// A step of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobStep {
    /// Its place, from 0.
    pub index: i32,
    /// Its name, stable.
    pub name: String,
    /// What it does, for people.
    pub title: String,
    /// How far it is.
    pub state: StepState,
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended, undone or not.
    pub ended_at: Option<DateTime<Utc>>,
    /// Tries so far, of it or of its undo.
    pub attempts: i32,
    /// Why it failed.
    pub error: Option<String>,
    /// Why its undo failed: what may be left.
    pub undo_error: Option<String>,
    /// How far it is, in the unit of `progress_total`.
    pub progress_done: Option<i64>,
    /// All there is to do.
    pub progress_total: Option<i64>,
    /// When it last changed, reported progress or wrote to the log.
    pub alive_at: Option<DateTime<Utc>>,
}

/// A part of a job's log.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobLog {
    /// The lines.
    pub lines: Vec<JobLogLine>,
}
impl Reply for JobLog {}

/// A line of a job's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobLogLine {
    /// Its number.
    pub number: i64,
    /// When it was said.
    pub at: DateTime<Utc>,
    /// The place of the step that said it.
    pub step: Option<i32>,
    /// Where it came from: `out`, `err` or `note`.
    pub stream: String,
    /// Its text.
    pub text: String,
}

/// A change of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobEvent {
    /// Its number.
    pub number: i64,
    /// What changed.
    pub change: JobChange,
}
impl Followed for JobEvent {
    fn number(&self) -> i64 {
        self.number
    }
}

/// What changed of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JobChange {
    /// The log has a new line.
    Log(JobLogLine),
    /// A step is now like this.
    Step(JobStep),
    /// The job is now like this.
    State(Box<JobLine>),
}
