//! One connection and one agent a host, shared by everybody who wants something of it. The hosts
//! of a pool are all nodes or all guests.
//!
//! The connection is made when it is first needed and again after it was lost. All who wait
//! for it share one attempt; a node that just failed is left alone for a moment and the
//! remembered failure is answered instead; a node that shows another host key is blocked
//! until [`Pool::repin`]. An agent that is missing on the node or of another build is
//! replaced on the way, so a new release of the controller needs no step of its own.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use corpus_domain::NodeId;
use corpus_protocol::{Answer, Event};
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::sync::mpsc;

use super::agent::{Agent, Call};
use super::backoff::Backoff;
use super::connection::{Connection, connect};
use super::credential::Credential;
use super::endpoint::{Endpoint, HostId};
use super::error::NodeError;
use super::install::{AgentBinary, install_agent};
use super::key::ControlKey;
use super::privilege::{Privilege, privilege};
use super::upload::{UploadName, Uploaded, upload};

/// The connections to all nodes, or to all guests. Clones share them.
pub struct Pool<Id = NodeId>(Arc<Inner<Id>>);

impl<Id> Clone for Pool<Id> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct Inner<Id> {
    key: ControlKey,
    agent: AgentBinary,
    still_linked: StillLinked<Id>,
    attempts: AtomicU64,
    slots: Mutex<HashMap<Id, Slot<Id>>>,
}

struct Slot<Id> {
    endpoint: Endpoint<Id>,
    state: State,
    backoff: Backoff,
}

enum State {
    Idle,
    Connecting(u64, Attempt),
    Up(Line),
    Blocked(NodeError),
}

/// Tells whether a node is linked, and stays so.
pub type StillLinked<Id = NodeId> = Arc<dyn Fn(Id) -> BoxFuture<'static, bool> + Send + Sync>;

type Attempt = Shared<BoxFuture<'static, Result<Line, NodeError>>>;

/// A node that is connected and whose agent has said hello.
#[derive(Debug, Clone)]
pub struct Line {
    /// The SSH connection.
    pub connection: Connection,
    /// How root's work is done there.
    pub privilege: Privilege,
    /// The agent.
    pub agent: Agent,
}

impl Line {
    fn is_up(&self) -> bool {
        !self.connection.is_closed() && !self.agent.is_ended()
    }
}

impl<Id> Slot<Id> {
    fn new(endpoint: Endpoint<Id>) -> Self {
        Self { endpoint, state: State::Idle, backoff: Backoff::default() }
    }
}

impl<Id: HostId> Pool<Id> {
    /// An empty pool that enters nodes with this key and gives them this agent.
    pub fn new(key: ControlKey, agent: AgentBinary) -> Self {
        Self::asking(key, agent, Arc::new(|_| Box::pin(std::future::ready(true))))
    }

    /// One that asks before it brings an agent to a node only to observe it: a server that was
    /// away for a while must not bring one to a host that was unlinked meanwhile.
    pub fn asking(key: ControlKey, agent: AgentBinary, still_linked: StillLinked<Id>) -> Self {
        Self(Arc::new(Inner { key, agent, still_linked, attempts: AtomicU64::new(0), slots: Mutex::default() }))
    }

    /// An empty pool of the same kind: its line to a node is beside the one that is there. Who waits to be written to by a
    /// node while writing to it needs two: on one line each would wait for the other.
    #[must_use]
    pub fn beside(&self) -> Self {
        let Inner { key, agent, still_linked, .. } = &*self.0;
        Self::asking(key.clone(), agent.clone(), Arc::clone(still_linked))
    }

    /// The key that the pool enters nodes with.
    pub fn key(&self) -> &ControlKey {
        &self.0.key
    }

    /// The agent that the pool gives to nodes.
    pub fn agent_binary(&self) -> &AgentBinary {
        &self.0.agent
    }

    /// Sends a request to a node's agent, connecting first if need be. The call's time limit
    /// begins when the node is connected; its token also ends the waiting for that.
    pub async fn call(
        &self,
        node: &Endpoint<Id>,
        call: Call,
        events: impl FnMut(Event) + Send,
    ) -> Result<Answer, NodeError> {
        self.line_of(node, &call).await?.agent.call(call, events).await
    }

    /// The same; what happens is told as fast as it is taken from the channel, and waits on the host till then.
    pub async fn call_to(
        &self,
        node: &Endpoint<Id>,
        call: Call,
        events: mpsc::Sender<Event>,
    ) -> Result<Answer, NodeError> {
        self.line_of(node, &call).await?.agent.call_to(call, events).await
    }

    async fn line_of(&self, node: &Endpoint<Id>, call: &Call) -> Result<Line, NodeError> {
        let cancel = call.token();
        tokio::select! {
            line = self.line_for(node, call.is_observing()) => line,
            () = cancel.cancelled() => Err(NodeError::Cancelled { host: node.host() }),
        }
    }

    /// Copies a file of the controller to [`Uploaded::path`] on the node, unless it is there already.
    pub async fn upload(
        &self,
        node: &Endpoint<Id>,
        local: &Path,
        name: &UploadName,
        mut progress: impl FnMut(u64, u64) + Send,
    ) -> Result<Uploaded, NodeError> {
        let line = self.line(node).await?;
        upload(&line.connection, line.privilege, local, name, &mut progress).await
    }

    /// The node's line, made if need be. Dropping the future does not stop the attempt.
    pub async fn line(&self, node: &Endpoint<Id>) -> Result<Line, NodeError> {
        self.line_for(node, false).await
    }

    async fn line_for(&self, node: &Endpoint<Id>, observing: bool) -> Result<Line, NodeError> {
        let attempt = {
            let mut slots = self.slots();
            let slot = slots.entry(node.id).or_insert_with(|| Slot::new(node.clone()));
            if slot.endpoint != *node {
                retire(std::mem::replace(slot, Slot::new(node.clone())).state);
            }
            match &slot.state {
                State::Up(line) if line.is_up() => return Ok(line.clone()),
                State::Blocked(error) => return Err(error.clone()),
                State::Connecting(_, attempt) => attempt.clone(),
                State::Up(_) | State::Idle => {
                    if let Some(error) = slot.backoff.holds(Instant::now()) {
                        return Err(error);
                    }
                    let (number, attempt) = self.attempt(node.clone(), observing);
                    retire(std::mem::replace(&mut slot.state, State::Connecting(number, attempt.clone())));
                    attempt
                }
            }
        };
        attempt.await
    }

    /// Whether the node is connected.
    pub fn is_up(&self, node: Id) -> bool {
        self.slots().get(&node).is_some_and(|slot| matches!(&slot.state, State::Up(line) if line.is_up()))
    }

    /// Connects to the node in the background, so that the next call finds it ready.
    pub fn warm(&self, node: &Endpoint<Id>) {
        let (pool, node) = (self.clone(), node.clone());
        tokio::spawn(async move {
            if let Err(error) = pool.line(&node).await {
                tracing::debug!(node.id = %node.id, %error, "not warmed");
            }
        });
    }

    /// Closes the node's line and forgets all about the node; its open calls fail.
    pub fn forget(&self, node: Id) {
        if let Some(slot) = self.slots().remove(&node) {
            retire(slot.state);
        }
    }

    /// Takes a newly confirmed host key (or the old one again): a block and remembered
    /// failures are lifted.
    pub fn repin(&self, node: &Endpoint<Id>) {
        if let Some(old) = self.slots().insert(node.id, Slot::new(node.clone())) {
            retire(old.state);
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Id, Slot<Id>>> {
        self.0.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempt(&self, node: Endpoint<Id>, observing: bool) -> (u64, Attempt) {
        let number = self.0.attempts.fetch_add(1, Ordering::Relaxed);
        let pool = self.clone();
        let task = tokio::spawn(async move {
            let host = node.host();
            let result = pool.open(&node, observing).await;
            pool.settle(node.id, number, result).ok_or(NodeError::Forgotten { host })?
        });
        let ended = async move {
            task.await
                .unwrap_or_else(|error| Err(NodeError::Disconnected { host: String::new(), reason: error.to_string() }))
        };
        (number, ended.boxed().shared())
    }

    async fn open(&self, node: &Endpoint<Id>, observing: bool) -> Result<Line, NodeError> {
        let began = Instant::now();
        let connection = connect(node, &Credential::Key(self.0.key.clone())).await?;
        let privilege = match connection.user() {
            "root" => Privilege::Root,
            _ => privilege(&connection).await?,
        };
        let agent = match Agent::start(&connection, privilege, self.0.agent.sum()).await {
            Err(NodeError::AgentEnded { .. }) if observing && !(self.0.still_linked)(node.id).await => {
                return Err(NodeError::Forgotten { host: node.host() });
            }
            Err(NodeError::AgentEnded { .. }) => self.bring_agent(&connection, privilege).await?,
            started => started?,
        };
        let elapsed_ms = began.elapsed().as_millis();
        tracing::debug!(node.id = %node.id, host = connection.host(), elapsed_ms, "connected");
        Ok(Line { connection, privilege, agent })
    }

    async fn bring_agent(&self, on: &Connection, by: Privilege) -> Result<Agent, NodeError> {
        install_agent(on, by, &self.0.agent).await?;
        Agent::start(on, by, self.0.agent.sum()).await
    }

    /// Records the result of an attempt, unless the node was forgotten or changed meanwhile.
    fn settle(&self, id: Id, number: u64, result: Result<Line, NodeError>) -> Option<Result<Line, NodeError>> {
        let mut slots = self.slots();
        let current = slots.get_mut(&id).filter(|slot| matches!(slot.state, State::Connecting(n, _) if n == number));
        let Some(slot) = current else {
            if let Ok(line) = result {
                retire(State::Up(line));
            }
            return None;
        };
        slot.state = match &result {
            Ok(line) => {
                slot.backoff = Backoff::default();
                State::Up(line.clone())
            }
            Err(error @ NodeError::HostKeyChanged { .. }) => State::Blocked(error.clone()),
            // That holds for who observes; a job may still have to do there.
            Err(NodeError::Forgotten { .. }) => State::Idle,
            Err(error) => {
                slot.backoff.failed(Instant::now(), error.clone());
                State::Idle
            }
        };
        Some(result)
    }
}

/// Closes a line that nobody will be given any more.
fn retire(state: State) {
    if let State::Up(line) = state {
        tokio::spawn(async move { line.connection.close().await });
    }
}
