//! Everything that a running job writes, in one fenced statement.
//!
//! Saga events, step rows, log lines and the job's state collect in memory and are written
//! together: when an effect is about to begin, when the job ends, when 50 log lines are
//! there, or 100 ms after the first. The statement moves the job's row only if this server
//! still has the lease, and everything else hangs on that row, so a server that lost it
//! writes nothing at all and learns of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_domain::{JobId, JobState};
use corpus_protocol::Stream;
use serde_json::Value;
use sqlx::Connection;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::batch::{Batch, EventRow, Item, Line, Wait, number, to_json};
use super::handle::OnEnd;
use super::rows::StepRow;
use corpus_database::{Conn, Db, Transaction};

/// How long a log line may wait for others.
const LINE_DELAY: Duration = Duration::from_millis(100);
/// How many log lines may wait for others.
const LINES_AT_ONCE: usize = 50;
/// How many log lines are kept while the database doesn't answer; later ones are counted only.
const LINES_KEPT: usize = 5_000;
/// How much of log lines is kept then, in bytes.
const BYTES_KEPT: usize = 2 << 20;
/// How much a run keeps of what hosts write into the job's log, in bytes: a host that is taken over
/// writes as long as it is asked for something.
const OUTPUT_KEPT: usize = 16 << 20;
/// What stands at the end of that.
const CUT: &str = "the output is cut here: more of it is not kept";
/// How long the database may take to write. The line to it may be gone without a word, and what was asked on it is never
/// answered.
const WRITE_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// How exactly it is kept when a step last gave a sign of life.
const ALIVE_WITHIN: chrono::Duration = chrono::Duration::seconds(1);
/// The longest log line, in characters.
const LINE_LENGTH: usize = 4_096;

/// This server's claim on a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lease {
    pub job: JobId,
    pub owner: Uuid,
    pub generation: i64,
}

/// The lease is lost, or the run was told to halt: nothing was written, nothing may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Halted;

#[derive(Debug, Default)]
struct Pending {
    events: Vec<EventRow>,
    items: Vec<Item>,
    lines: usize,
    bytes: usize,
    left_out: usize,
    state: Option<JobState>,
    error: Option<String>,
    wait: Wait,
    timer: bool,
}

/// Collects and writes what one run of a job has to say.
#[derive(Debug)]
pub(super) struct Writer {
    db: Db,
    lease: Lease,
    rows: Mutex<BTreeMap<i32, StepRow>>,
    pending: Mutex<Pending>,
    flushing: tokio::sync::Mutex<()>,
    halt: CancellationToken,
    on_end: Option<OnEnd>,
    statements: AtomicU64,
    output: AtomicUsize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cuts what the database can't store or a reader can't use.
pub(super) fn clean(text: &str) -> String {
    text.chars().take(LINE_LENGTH).map(|c| if c == '\0' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

impl Writer {
    pub fn new(db: Db, lease: Lease, rows: Vec<StepRow>, halt: CancellationToken) -> Self {
        Self {
            db,
            lease,
            rows: Mutex::new(rows.into_iter().map(|row| (row.index, row)).collect()),
            pending: Mutex::default(),
            flushing: tokio::sync::Mutex::default(),
            halt,
            on_end: None,
            statements: AtomicU64::new(0),
            output: AtomicUsize::new(0),
        }
    }

    /// Tells the end of the job too.
    pub fn telling(mut self, on_end: Option<OnEnd>) -> Self {
        self.on_end = on_end;
        self
    }

    pub fn lease(&self) -> Lease {
        self.lease
    }

    /// How many statements were sent.
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Adds a line to the job's log.
    pub fn line(self: &Arc<Self>, step: Option<i32>, stream: Stream, text: &str) {
        let mut line = Line { at: Utc::now(), step, stream, text: clean(text) };
        if stream != Stream::Note {
            let before = self.output.fetch_add(line.text.len() + 1, Ordering::Relaxed);
            match before.saturating_add(line.text.len() + 1) {
                after if after <= OUTPUT_KEPT => {}
                _ if before > OUTPUT_KEPT => return,
                _ => (line.stream, line.text) = (Stream::Note, CUT.to_owned()),
            }
        }
        let sign = step.filter(|index| self.gives_sign(*index, line.at));
        let mut pending = locked(&self.pending);
        if pending.lines >= LINES_KEPT || pending.bytes >= BYTES_KEPT {
            pending.left_out += 1;
            return;
        }
        pending.lines += 1;
        pending.bytes += line.text.len();
        pending.items.extend(sign.map(Item::Step));
        pending.items.push(Item::Line(line));
        if pending.lines.is_multiple_of(LINES_AT_ONCE) {
            self.flush_after(Duration::ZERO);
        } else if !pending.timer {
            pending.timer = true;
            self.flush_after(LINE_DELAY);
        }
    }

    /// Whether a line of a step is to be kept as its sign of life; lines come by the hundred.
    fn gives_sign(&self, index: i32, at: DateTime<Utc>) -> bool {
        let mut rows = locked(&self.rows);
        let Some(row) = rows.get_mut(&index) else { return false };
        let due = row.alive_at.is_none_or(|last| at - last >= ALIVE_WITHIN);
        if due {
            row.alive_at = Some(at);
        }
        due
    }

    fn flush_after(self: &Arc<Self>, delay: Duration) {
        // None: the process ends, and this was called by a drop.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let writer = Arc::clone(self);
        runtime.spawn(async move {
            tokio::time::sleep(delay).await;
            // Whoever must not go on when halted flushes itself and sees it.
            let _ = writer.flush().await;
        });
    }

    /// Writes within 100 ms what was changed.
    pub fn flush_soon(self: &Arc<Self>) {
        let mut pending = locked(&self.pending);
        if !pending.timer {
            pending.timer = true;
            self.flush_after(LINE_DELAY);
        }
    }

    /// Changes a step's row.
    pub fn step(&self, index: i32, change: impl FnOnce(&mut StepRow)) {
        if let Some(row) = locked(&self.rows).get_mut(&index) {
            change(row);
            row.alive_at = Some(Utc::now());
            locked(&self.pending).items.push(Item::Step(index));
        }
    }

    /// Changes the job's state.
    pub fn state(&self, state: JobState) {
        locked(&self.pending).state = Some(state);
    }

    /// Says why the job fails.
    pub fn error(&self, error: &str) {
        locked(&self.pending).error = Some(clean(error));
    }

    /// Says what the job waits for, or that it doesn't any more.
    pub fn waiting_for(&self, what: Option<&str>) {
        locked(&self.pending).wait = what.map_or(Wait::Over, |what| Wait::For(clean(what), None));
    }

    /// Says what the job waits for, and when it is tried again.
    pub fn waiting_until(&self, what: &str, until: DateTime<Utc>) {
        locked(&self.pending).wait = Wait::For(clean(what), Some(until));
    }

    /// Adds an event of the saga.
    pub fn event(&self, node_id: u32, kind: &'static str, event: Value) {
        locked(&self.pending).events.push(EventRow { node_id, kind, event });
    }

    /// Writes all that is pending; returns when it is durable.
    pub async fn flush(&self) -> Result<(), Halted> {
        let _one_at_a_time = self.flushing.lock().await;
        let Some(batch) = self.take() else {
            // What was pending may have been lost with the lease a moment ago.
            return if self.halt.is_cancelled() { Err(Halted) } else { Ok(()) };
        };
        let mut pause = Duration::from_millis(50);
        loop {
            if self.halt.is_cancelled() {
                return Err(Halted);
            }
            match self.write(&batch).await {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    tracing::warn!(job.id = %self.lease.job, job.generation = self.lease.generation, "lost the lease of a job");
                    self.halt.cancel();
                    return Err(Halted);
                }
                Err(error) => {
                    tracing::warn!(job.id = %self.lease.job, error = &error as &dyn std::error::Error, "can't record a job, trying again");
                    tokio::select! {
                        () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(1)),
                        () = self.halt.cancelled() => return Err(Halted),
                    }
                }
            }
        }
    }

    /// A transaction in which this server has the job and keeps it; none once it lost it.
    pub async fn begin(&self) -> sqlx::Result<Option<Transaction>> {
        let Lease { job, owner, generation } = self.lease;
        let mut transaction = self.db.begin().await?;
        // Held against adoption, not against the renewal of the lease.
        let ours = sqlx::query_scalar!(
            r#"select true as "ours!" from jobs where id = $1 and owner = $2 and generation = $3 for key share"#,
            job.0,
            owner,
            generation,
        );
        Ok(ours.fetch_optional(&mut **transaction).await?.map(|_| transaction))
    }

    /// Writes what is pending once, though the run is halted. The lease decides whether it counts.
    pub async fn last_words(&self) {
        let _one_at_a_time = self.flushing.lock().await;
        if let Some(batch) = self.take()
            && let Err(error) = self.write(&batch).await
        {
            tracing::warn!(job.id = %self.lease.job, error = &error as &dyn std::error::Error, "the last of a job's log is lost");
        }
    }

    async fn write(&self, batch: &Batch) -> sqlx::Result<bool> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        let mut conn = self.db.acquire().await?;
        match tokio::time::timeout(WRITE_LIMIT, self.write_on(&mut conn, batch)).await {
            Ok(written) => written,
            Err(late) => {
                conn.give_up();
                Err(sqlx::Error::Io(late.into()))
            }
        }
    }

    async fn write_on(&self, conn: &mut Conn, batch: &Batch) -> sqlx::Result<bool> {
        let Some(on_end) = self.on_end.filter(|_| batch.state.is_some_and(JobState::is_over)) else {
            return batch.write(conn, self.lease).await;
        };
        let mut transaction = conn.begin().await?;
        if !batch.write(&mut transaction, self.lease).await? {
            transaction.rollback().await?;
            return Ok(false);
        }
        on_end(&mut transaction, self.lease.job).await?;
        transaction.commit().await?;
        Ok(true)
    }

    fn take(&self) -> Option<Batch> {
        let rows = locked(&self.rows);
        let mut pending = std::mem::take(&mut *locked(&self.pending));
        if pending.left_out > 0 {
            let text = format!("{} lines are left out here", pending.left_out);
            pending.items.push(Item::Line(Line { at: Utc::now(), step: None, stream: Stream::Note, text }));
        }
        let changes_state = pending.state.is_some() || pending.error.is_some() || pending.wait != Wait::Same;
        if pending.items.is_empty() && pending.events.is_empty() && !changes_state {
            return None;
        }
        let (lines, steps, mut count) = number(pending.items, &rows);
        count += i64::from(changes_state);
        Some(Batch {
            count,
            events: to_json(&pending.events),
            lines: to_json(&lines),
            steps: to_json(&steps),
            state: pending.state,
            error: pending.error,
            wait: pending.wait,
        })
    }
}
