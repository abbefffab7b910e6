//! Reads every linked node again and again, so that pages never have to wait for one.
//!
//! Each node has a task of its own: a dead one delays no other. What is seen goes, in order,
//! to one channel of [`Observation`]s, and the newest of each node is kept for whoever asks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use corpus_domain::{NodeId, Reachability};
use corpus_protocol::{Answer, Reading, Request};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::agent::Call;
use super::endpoint::NodeEndpoint;
use super::error::NodeError;
use super::hysteresis::{Hysteresis, Sign};
use super::pool::Pool;

/// How long one reading may take, with connecting.
const READ_LIMIT: Duration = Duration::from_secs(3);
/// Between readings of a node that misses them, or has just begun to answer again.
const RETRY: Duration = Duration::from_secs(1);

/// What became of one reading of one node.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The node.
    pub node: NodeId,
    /// When the answer was there, or was given up.
    pub at: DateTime<Utc>,
    /// How long it took.
    pub elapsed: Duration,
    /// What was read, or why not.
    pub outcome: Result<Box<Reading>, NodeError>,
    /// What is believed of the node now.
    pub reachability: Reachability,
    /// Whether that is another belief than before.
    pub changed: bool,
}

/// The newest that is known of a node.
#[derive(Debug, Clone, Default)]
pub struct Health {
    /// The last reading that succeeded, and when.
    pub reading: Option<(DateTime<Utc>, Box<Reading>)>,
    /// The last failure, if the last reading failed.
    pub error: Option<NodeError>,
    /// What is believed of it; `None` before the first observation.
    pub reachability: Option<Reachability>,
}

/// Reads nodes until it is dropped.
pub struct Supervisor {
    pool: Pool,
    interval: Duration,
    out: mpsc::Sender<Observation>,
    watched: Mutex<HashMap<NodeId, Watched>>,
    health: Arc<Mutex<HashMap<NodeId, Health>>>,
}

struct Watched {
    endpoint: NodeEndpoint,
    task: AbortHandle,
}

impl Supervisor {
    /// Reads each watched node every `interval` (5 s is the design's) and sends what it sees to `out`.
    /// Readings wait when `out` is full: none is lost.
    pub fn new(pool: Pool, interval: Duration, out: mpsc::Sender<Observation>) -> Self {
        Self { pool, interval, out, watched: Mutex::default(), health: Arc::default() }
    }

    /// Begins to read a node, or goes on with its new endpoint. Repeating it changes nothing.
    pub fn watch(&self, node: &NodeEndpoint) {
        let mut watched = lock(&self.watched);
        if watched.get(&node.id).is_some_and(|old| old.endpoint == *node && !old.task.is_finished()) {
            return;
        }
        let round = Round {
            pool: self.pool.clone(),
            node: node.clone(),
            interval: self.interval,
            out: self.out.clone(),
            health: Arc::clone(&self.health),
        };
        let task = tokio::spawn(round.go_on()).abort_handle();
        if let Some(old) = watched.insert(node.id, Watched { endpoint: node.clone(), task }) {
            old.task.abort();
        }
    }

    /// Stops reading a node and forgets what was read.
    pub fn unwatch(&self, node: NodeId) {
        if let Some(old) = lock(&self.watched).remove(&node) {
            old.task.abort();
        }
        lock(&self.health).remove(&node);
    }

    /// The newest that is known of a node.
    pub fn health(&self, node: NodeId) -> Health {
        lock(&self.health).get(&node).cloned().unwrap_or_default()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        for (_, watched) in lock(&self.watched).drain() {
            watched.task.abort();
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Round {
    pool: Pool,
    node: NodeEndpoint,
    interval: Duration,
    out: mpsc::Sender<Observation>,
    health: Arc<Mutex<HashMap<NodeId, Health>>>,
}

impl Round {
    async fn go_on(self) {
        let mut hysteresis = Hysteresis::default();
        loop {
            let seen = self.observe(&mut hysteresis).await;
            let calm = seen.outcome.is_ok() && seen.reachability == Reachability::Reachable;
            let pause = if calm { self.interval } else { self.interval.min(RETRY) };
            self.keep(&seen);
            if self.out.send(seen).await.is_err() {
                return;
            }
            sleep(pause).await;
        }
    }

    async fn observe(&self, hysteresis: &mut Hysteresis) -> Observation {
        let began = Instant::now();
        let outcome = self.read().await;
        let sign = match &outcome {
            Ok(_) => Sign::Answered,
            Err(NodeError::HostKeyChanged { .. }) => Sign::HostKeyChanged,
            Err(_) => Sign::Missed,
        };
        let changed = hysteresis.observe(sign);
        Observation {
            node: self.node.id,
            at: Utc::now(),
            elapsed: began.elapsed(),
            outcome,
            reachability: hysteresis.state(),
            changed,
        }
    }

    async fn read(&self) -> Result<Box<Reading>, NodeError> {
        let host = || self.node.host();
        let call = Call::new(Request::Read, READ_LIMIT).observing();
        match timeout(READ_LIMIT, self.pool.call(&self.node, call, drop)).await {
            Ok(Ok(Answer::Reading(reading))) => Ok(reading),
            Ok(Ok(_)) => {
                let what = "another answer than a reading".to_owned();
                Err(NodeError::Protocol { host: host(), what, stderr: Vec::new() })
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(NodeError::NoAnswer { host: host(), doing: "reading its state", limit: READ_LIMIT }),
        }
    }

    fn keep(&self, seen: &Observation) {
        let mut all = lock(&self.health);
        let health = all.entry(seen.node).or_default();
        health.reachability = Some(seen.reachability);
        health.error = seen.outcome.as_ref().err().cloned();
        if let Ok(reading) = &seen.outcome {
            health.reading = Some((seen.at, reading.clone()));
        }
    }
}
