//! Sample values of jobs in every state, and of the log of one.

use chrono::Duration;
use corpus_api::jobs::{Job, JobLine, JobLogLine, JobStep};
use corpus_app::pages::job::Log;
use corpus_domain::{GuestId, JobId, JobKind, JobState, NodeId, StepState};

use super::{before, id};

fn job(number: u128, title: &str, kind: JobKind, state: JobState) -> JobLine {
    let waits = state == JobState::Waiting;
    JobLine {
        id: JobId(id(40 + number)),
        kind,
        title: title.into(),
        state,
        node: Some(NodeId(id(11))),
        guest: Some(GuestId(id(20))),
        project: "carto".parse().ok(),
        by: "dev.lead".parse().ok(),
        created_at: before(200),
        started_at: (!waits).then(|| before(190)),
        ended_at: matches!(state, JobState::Done | JobState::Undone).then(|| before(188)),
        cancelled_by: None,
        cancel_requested_at: None,
        error: matches!(state, JobState::Undone | JobState::Stuck)
            .then(|| "node-07.lyon.example.net did not answer for 60 s".into()),
        waiting_for: waits.then(|| "Create guest new.carto.example.net to finish".into()),
        waiting_since: waits.then(|| before(14)),
        retry_at: None,
        node_unreachable_since: None,
        blocked_by: waits.then(|| JobId(id(40))),
    }
}

/// One that a node keeps waiting.
fn retried() -> JobLine {
    JobLine {
        waiting_for: Some("node node-07.lyon.example.net to answer (attempt 3 of 20)".into()),
        waiting_since: Some(before(14)),
        retry_at: Some(before(-6)),
        node_unreachable_since: Some(before(240)),
        ..job(5, "Create guest far.carto.example.net", JobKind::GuestCreate, JobState::Running)
    }
}

pub fn jobs() -> Vec<JobLine> {
    vec![
        job(0, "Create guest new.carto.example.net", JobKind::GuestCreate, JobState::Running),
        job(1, "Attach beta.atlas.example.net", JobKind::NameAttach, JobState::Waiting),
        job(2, "Destroy guest tiles.carto.example.net", JobKind::GuestDestroy, JobState::Stuck),
        job(3, "Initialize node-01.paris.example.net", JobKind::NodeInitialize, JobState::Done),
        job(4, "Create guest bad.carto.example.net", JobKind::GuestCreate, JobState::Undone),
        retried(),
    ]
}

pub fn job_details() -> Vec<Job> {
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
        JobStep {
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
        }
    };
    jobs()
        .into_iter()
        .map(|line| Job {
            steps: states(line.state).into_iter().enumerate().map(|(index, state)| step(index, state)).collect(),
            cancel_requested_by: None,
            abandoned_by: None,
            comment: None,
            position: None,
            may_decide: true,
            past_cancel: false,
            asked: None,
            dismissed_at: None,
            taken: 1,
            last_event: 12,
            line,
        })
        .collect()
}

pub fn log() -> Log {
    let line = |number, stream: &str, text: &str| JobLogLine {
        number,
        at: before(20 - number),
        step: Some(0),
        stream: stream.into(),
        text: text.into(),
    };
    let lines = vec![
        line(1, "note", "10.5.0.15, port 40015"),
        line(2, "out", "Creating container new.carto.example.net"),
        line(3, "out", "mount -t overlay  lowerdir=/var/lib/corpus/images/debian-12/rootfs"),
        line(4, "err", "lxc-start: tools/lxc_start.c: 298 The container failed to start <script>alert(1)</script>"),
        line(5, "note", "trying again in 0.2 s"),
    ];
    Log { lines, has_earlier: true, is_earlier: false }
}
