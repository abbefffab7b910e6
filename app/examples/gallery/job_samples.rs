//! Sample values of jobs in every state, and of the log of one.

use chrono::Duration;
use corpus_controller::jobs::{JobDetail, JobRow, LogLine, StepRow};
use corpus_domain::{GuestId, JobId, JobKind, JobState, NodeId, ProjectId, StepState};
use corpus_protocol::Stream;

use super::{before, id};

fn job(number: u128, title: &str, kind: JobKind, state: JobState) -> JobRow {
    let waits = state == JobState::Waiting;
    JobRow {
        id: JobId(id(40 + number)),
        kind,
        title: title.into(),
        params: serde_json::json!({}),
        state,
        node_id: Some(NodeId(id(11))),
        guest_id: Some(GuestId(id(20))),
        project_id: Some(ProjectId(id(5))),
        created_by: None,
        created_at: before(200),
        started_at: (!waits).then(|| before(190)),
        ended_at: matches!(state, JobState::Done | JobState::Undone).then(|| before(188)),
        generation: 1,
        cancel_requested_at: None,
        cancel_requested_by: None,
        error: matches!(state, JobState::Undone | JobState::Stuck)
            .then(|| "node-07.lyon.example.net did not answer for 60 s".into()),
        waiting_for: waits.then(|| "Create guest new.carto.example.net to finish".into()),
        waiting_since: waits.then(|| before(14)),
        retry_at: None,
        node_unreachable_since: None,
        blocked_by: waits.then(|| JobId(id(40))),
        blocker_project: waits.then(|| ProjectId(id(5))),
        abandoned_by: None,
        comment: None,
        feed_seq: 12,
    }
}

/// One that a node keeps waiting.
fn retried() -> JobRow {
    JobRow {
        waiting_for: Some("node node-07.lyon.example.net to answer (attempt 3 of 20)".into()),
        waiting_since: Some(before(14)),
        retry_at: Some(before(-6)),
        node_unreachable_since: Some(before(240)),
        ..job(5, "Create guest far.carto.example.net", JobKind::GuestCreate, JobState::Running)
    }
}

pub fn jobs() -> Vec<JobRow> {
    vec![
        job(0, "Create guest new.carto.example.net", JobKind::GuestCreate, JobState::Running),
        job(1, "Attach beta.atlas.example.net", JobKind::NameAttach, JobState::Waiting),
        job(2, "Destroy guest tiles.carto.example.net", JobKind::GuestDestroy, JobState::Stuck),
        job(3, "Initialize node-01.paris.example.net", JobKind::NodeInitialize, JobState::Done),
        job(4, "Create guest bad.carto.example.net", JobKind::GuestCreate, JobState::Undone),
        retried(),
    ]
}

pub fn job_details() -> Vec<JobDetail> {
    let steps = [
        ("ids", "Choose ids"),
        ("allocate", "Allocate address and port"),
        ("spawn", "Spawn the container"),
        ("keys", "Bring the SSH keys"),
        ("ping", "Log in by SSH"),
    ];
    let states = |state| match state {
        JobState::Running => {
            [StepState::Done, StepState::Done, StepState::Running, StepState::Pending, StepState::Pending]
        }
        JobState::Stuck => {
            [StepState::Undone, StepState::UndoFailed, StepState::Failed, StepState::Pending, StepState::Pending]
        }
        JobState::Undone => {
            [StepState::Undone, StepState::Undone, StepState::Failed, StepState::Pending, StepState::Pending]
        }
        JobState::Waiting => [StepState::Pending; 5],
        _ => [StepState::Done; 5],
    };
    let step = |index: usize, state: StepState| {
        let (name, title) = steps.get(index).copied().unwrap_or_default();
        StepRow {
            index: i32::try_from(index).unwrap_or(0),
            name: name.into(),
            title: title.into(),
            state,
            started_at: (state != StepState::Pending).then(|| before(5)),
            ended_at: (!matches!(state, StepState::Pending | StepState::Running))
                .then(|| before(5) + Duration::milliseconds(140)),
            attempts: if state == StepState::Running { 2 } else { 1 },
            error: (state == StepState::Failed).then(|| "node-07.lyon.example.net did not answer for 60 s".into()),
            undo_error: (state == StepState::UndoFailed)
                .then(|| "the route of port 40012 may be left on node-07.lyon.example.net".into()),
            progress_done: (state == StepState::Running).then_some(3),
            progress_total: Some(4),
            alive_at: Some(before(if state == StepState::Running { 75 } else { 5 })),
            seq: 1,
        }
    };
    jobs()
        .into_iter()
        .map(|job| JobDetail {
            steps: states(job.state).into_iter().enumerate().map(|(index, state)| step(index, state)).collect(),
            job,
        })
        .collect()
}

pub fn log() -> Vec<LogLine> {
    let line =
        |seq, stream, text: &str| LogLine { seq, at: before(20 - seq), step: Some(0), stream, text: text.into() };
    vec![
        line(1, Stream::Note, "10.5.0.15, port 40015"),
        line(2, Stream::Out, "Creating container new.carto.example.net"),
        line(3, Stream::Out, "mount -t overlay  lowerdir=/var/lib/corpus/images/debian-12/rootfs"),
        line(
            4,
            Stream::Err,
            "lxc-start: tools/lxc_start.c: 298 The container failed to start <script>alert(1)</script>",
        ),
        line(5, Stream::Note, "trying again in 0.2 s"),
    ]
}
