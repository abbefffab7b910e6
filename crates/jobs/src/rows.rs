//! Jobs, steps and log lines as the pages get them.

use chrono::{DateTime, Utc};
use corpus_domain::{GuestId, JobId, JobKind, JobState, NodeId, ProjectId, StepState, UserId};
use corpus_protocol::Stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A job without its steps and log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobRow {
    /// Its id.
    pub id: JobId,
    /// What it does.
    pub kind: JobKind,
    /// The same for people, with names.
    pub title: String,
    /// Its parameters.
    pub params: Value,
    /// How far it is.
    pub state: JobState,
    /// The node it is about.
    pub node_id: Option<NodeId>,
    /// The guest it is about.
    pub guest_id: Option<GuestId>,
    /// The project whose members may see it.
    pub project_id: Option<ProjectId>,
    /// Who submitted it; none for the controller itself.
    pub created_by: Option<UserId>,
    /// When it was submitted.
    pub created_at: DateTime<Utc>,
    /// When a server first took it.
    pub started_at: Option<DateTime<Utc>>,
    /// When it was over; none while it is stuck.
    pub ended_at: Option<DateTime<Utc>>,
    /// How often it was taken by a server.
    pub generation: i64,
    /// When its cancel was asked for.
    pub cancel_requested_at: Option<DateTime<Utc>>,
    /// Who asked for it.
    pub cancel_requested_by: Option<UserId>,
    /// Why it was undone or is stuck.
    pub error: Option<String>,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// Since when.
    pub waiting_since: Option<DateTime<Utc>>,
    /// When it is tried again, when it waits for that.
    pub retry_at: Option<DateTime<Utc>>,
    /// Since when its node does not answer, while it does not.
    pub node_unreachable_since: Option<DateTime<Utc>>,
    /// The job that it waits for, when it is one.
    pub blocked_by: Option<JobId>,
    /// That job's project; none for a job of a node. It decides who may know of that job.
    #[serde(skip)]
    pub blocker_project: Option<ProjectId>,
    /// Who abandoned it.
    pub abandoned_by: Option<UserId>,
    /// Why it was abandoned.
    pub comment: Option<String>,
    /// The number of its last change.
    pub feed_seq: i64,
}

/// A step of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    /// Its place, from 0.
    pub index: i32,
    /// Its stable name.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// How far it is.
    pub state: StepState,
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended, undone or not.
    pub ended_at: Option<DateTime<Utc>>,
    /// Tries so far, of the effect or the undo.
    pub attempts: i32,
    /// Why the effect failed.
    pub error: Option<String>,
    /// Why the undo failed: what may be left.
    pub undo_error: Option<String>,
    /// How far it is, in the unit of `progress_total`.
    pub progress_done: Option<i64>,
    /// All there is to do.
    pub progress_total: Option<i64>,
    /// When it last changed, reported progress or wrote to the log.
    pub alive_at: Option<DateTime<Utc>>,
    /// The number of its last change.
    pub seq: i64,
}

/// A line of a job's log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogLine {
    /// Its number.
    pub seq: i64,
    /// When it was said.
    pub at: DateTime<Utc>,
    /// The step that said it.
    pub step: Option<i32>,
    /// Where it came from.
    pub stream: Stream,
    /// Its text.
    pub text: String,
}

/// A job with its steps.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobDetail {
    /// The job.
    pub job: JobRow,
    /// Its steps in order.
    pub steps: Vec<StepRow>,
}

/// Which jobs to list; what is none is not asked.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// In one of these states; empty: in any.
    pub states: Vec<JobState>,
    /// Of this kind.
    pub kind: Option<JobKind>,
    /// About this node.
    pub node: Option<NodeId>,
    /// About this guest.
    pub guest: Option<GuestId>,
    /// Submitted by this user.
    pub created_by: Option<UserId>,
    /// Only what this member may see; everything when absent.
    pub visible_to: Option<Visibility>,
}

/// What a member may see of jobs: those of these projects. Those of a node tell of every guest on it.
#[derive(Debug, Clone)]
pub struct Visibility {
    /// The member's projects.
    pub projects: Vec<ProjectId>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page<T> {
    /// The part.
    pub items: Vec<T>,
    /// How many there are in all.
    pub total: i64,
}
