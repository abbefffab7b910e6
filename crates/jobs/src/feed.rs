//! Following a job: its log, its steps and its state in one sequence, resumable by number.
//!
//! A step and the state are told as they are now, with the number of their last change, so a
//! reader that comes back gets each at most once more and never an outdated one.

use std::collections::VecDeque;
use std::time::Duration;

use corpus_domain::JobId;
use futures::stream::{self, Stream, StreamExt};
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::error::JobsError;
use super::handle::Jobs;
use super::listen::Notice;
use super::rows::{JobRow, LogLine, StepRow};

/// How many log lines are read at once.
const CHUNK: i64 = 500;
/// How long to trust that no notice means no change.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);

/// One change of a job.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobUpdate {
    /// Its number: the event id to resume after.
    pub seq: i64,
    /// What changed.
    pub change: Change,
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Change {
    /// The log has a new line.
    Log(LogLine),
    /// A step is now like this.
    Step(StepRow),
    /// The job is now like this (state, what it waits for, error).
    State(Box<JobRow>),
}

struct Reader {
    jobs: Jobs,
    id: JobId,
    after: i64,
    notices: broadcast::Receiver<Notice>,
    ready: VecDeque<JobUpdate>,
    over: bool,
}

impl Jobs {
    /// The changes of a job after number `after` (0: all of it), then those that come, until
    /// the job is over. A job that was tried again when stuck can be followed again.
    pub fn follow(&self, id: JobId, after: i64) -> impl Stream<Item = Result<JobUpdate, JobsError>> + Send + use<> {
        let reader =
            Reader { jobs: self.clone(), id, after, notices: self.notices(), ready: VecDeque::new(), over: false };
        stream::try_unfold(reader, |mut reader| async move { Ok(reader.next().await?.map(|update| (update, reader))) })
    }

    /// Waits until the job is over or stuck, at most so long.
    pub async fn wait(&self, id: JobId, at_most: Duration) -> Result<(), JobsError> {
        let rests = async {
            let row = self.row(id).await?;
            let changes = self.follow(id, row.feed_seq);
            futures::pin_mut!(changes);
            if row.state.is_over() {
                return Ok(());
            }
            while let Some(update) = changes.next().await {
                if matches!(update?.change, Change::State(job) if job.state.is_over()) {
                    break;
                }
            }
            Ok(())
        };
        // What is not over by then is answered as it is.
        tokio::time::timeout(at_most, rests).await.unwrap_or(Ok(()))
    }
}

impl Reader {
    async fn next(&mut self) -> Result<Option<JobUpdate>, JobsError> {
        loop {
            if let Some(update) = self.ready.pop_front() {
                return Ok(Some(update));
            }
            if self.over {
                return Ok(None);
            }
            if !self.read().await? && !self.over {
                self.wait().await;
            }
        }
    }

    /// Reads what is new; tells whether there was anything.
    async fn read(&mut self) -> Result<bool, JobsError> {
        let mut conn = self.jobs.db().acquire().await?;
        let (job, state_seq) = Jobs::row_with_state_seq(&mut conn, self.id).await?;
        drop(conn);
        if job.feed_seq <= self.after {
            self.over = job.state.is_over();
            return Ok(false);
        }
        let lines = self.jobs.log(self.id, self.after, CHUNK).await?;
        let whole = i64::try_from(lines.len()).unwrap_or(CHUNK) < CHUNK;
        let until = if whole { job.feed_seq } else { lines.last().map_or(job.feed_seq, |line| line.seq) };
        let steps = self.jobs.steps_after(self.id, self.after, until).await?;
        let mut updates: Vec<JobUpdate> = Vec::new();
        updates.extend(
            lines
                .into_iter()
                .filter(|line| line.seq <= until)
                .map(|line| JobUpdate { seq: line.seq, change: Change::Log(line) }),
        );
        updates.extend(steps.into_iter().map(|step| JobUpdate { seq: step.seq, change: Change::Step(step) }));
        if state_seq > self.after && state_seq <= until {
            updates.push(JobUpdate { seq: state_seq, change: Change::State(Box::new(job)) });
        }
        updates.sort_by_key(|update| update.seq);
        self.ready = updates.into();
        self.after = until;
        Ok(true)
    }

    async fn wait(&mut self) {
        let mine = async {
            loop {
                match self.notices.recv().await {
                    Ok(Notice::Feed(id)) if id == self.id => return,
                    Ok(Notice::Look) | Err(RecvError::Lagged(_)) => return,
                    Ok(_) => {}
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        // Elapsed: look anyway.
        let _ = tokio::time::timeout(LOOK_ANYWAY, mine).await;
    }
}
