//! The client of one agent process: many requests at once over one channel.
//!
//! Guarantees: ids rise; each call gets exactly one end; a call that is dropped, cancelled or
//! late sends `cancel`, so that nothing goes on running on the host unwatched; an agent that
//! does not end a cancelled request hangs and would hang the next caller too, so its line is
//! given up; when the line ends, every open call ends with it at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use corpus_protocol::{Answer, Event, FromAgent, JobRef, MAX_LINE, Reply, Request, ToAgent};
use russh::ChannelWriteHalf;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::command::Command;
use super::connection::Connection;
use super::error::NodeError;
use super::lines::excerpt;
use super::privilege::Privilege;
use super::sha256::Sha256;
use super::source::Source;

/// How long an agent may take to say hello.
const HELLO_LIMIT: Duration = Duration::from_secs(10);
/// How long the result of a cancelled request is waited for.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);
/// An agent that has not ended a cancelled request by then hangs: killing what it ran takes 4 s
/// at most.
const HUNG_LIMIT: Duration = Duration::from_secs(10);

/// A request with its circumstances.
#[derive(Debug, Clone)]
pub struct Call {
    job: Option<JobRef>,
    request: Request,
    limit: Duration,
    cancel: CancellationToken,
    observing: bool,
}

impl Call {
    /// A request that may take `limit` on the host.
    pub fn new(request: Request, limit: Duration) -> Self {
        Self { job: None, request, limit, cancel: CancellationToken::new(), observing: false }
    }

    /// On behalf of a job, so that the host can refuse it when the job's lease was lost.
    #[must_use]
    pub fn of_job(self, job: JobRef) -> Self {
        Self { job: Some(job), ..self }
    }

    /// Cancelled on the host when the token is.
    #[must_use]
    pub fn cancelled_by(self, cancel: CancellationToken) -> Self {
        Self { cancel, ..self }
    }

    /// By one who only looks: no agent is brought to the node for it, unless the pool is told
    /// that the node is still linked ([`super::Pool::asking`]).
    #[must_use]
    pub fn observing(self) -> Self {
        Self { observing: true, ..self }
    }

    pub(super) fn is_observing(&self) -> bool {
        self.observing
    }

    pub(super) fn token(&self) -> CancellationToken {
        self.cancel.clone()
    }
}

/// A running agent on a node. Its process ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Agent(Arc<Line>);

#[derive(Debug)]
struct Line {
    host: Arc<str>,
    out: mpsc::UnboundedSender<Bytes>,
    calls: Arc<Calls>,
}

#[derive(Debug, Default)]
struct Calls(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    last_id: u64,
    waiting: HashMap<u64, mpsc::UnboundedSender<News>>,
    ended: Option<NodeError>,
}

#[derive(Debug)]
enum News {
    Event(Event),
    Result(Reply),
    Ended(NodeError),
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, error: &NodeError) {
        let mut open = self.lock();
        open.ended.get_or_insert_with(|| error.clone());
        for (_, call) in open.waiting.drain() {
            drop(call.send(News::Ended(error.clone())));
        }
    }

    /// Brings a line to its call. Lines for calls that were dropped are of no interest.
    fn deliver(&self, line: &[u8]) -> Result<(), String> {
        let message = serde_json::from_slice(line).map_err(|error| format!("{error} in {:?}", excerpt(line)))?;
        let mut open = self.lock();
        let (id, news) = match message {
            FromAgent::Hello { .. } => return Err("a second hello".to_owned()),
            FromAgent::Event { id, event } => (id, News::Event(event)),
            FromAgent::Result { id, result } => (id, News::Result(result)),
        };
        if id > open.last_id {
            return Err(format!("an answer to request {id}, which was never sent"));
        }
        let call = match news {
            News::Event(_) => open.waiting.get(&id).cloned(),
            _ => open.waiting.remove(&id),
        };
        if let Some(call) = call {
            drop(call.send(news));
        }
        Ok(())
    }
}

impl Agent {
    /// Starts the agent of this sum and waits for its hello.
    pub(super) async fn start(on: &Connection, by: Privilege, sum: Sha256) -> Result<Self, NodeError> {
        let command = Command::Serve(by, sum).to_string();
        let channel = on.channel().await?;
        channel.exec(true, command).await.map_err(|source| on.lost(&source))?;
        let (incoming, outgoing) = channel.split();
        let mut source = Source::new(incoming, on.host().into());
        let late = |_| NodeError::NoAnswer {
            host: on.host().to_owned(),
            doing: "waiting for the agent's hello",
            limit: HELLO_LIMIT,
        };
        let first = timeout(HELLO_LIMIT, source.next()).await.map_err(late)??;
        source.check_hello(&first, on.user())?;

        let (out, queue) = mpsc::unbounded_channel();
        let calls = Arc::new(Calls::default());
        let writer = tokio::spawn(write(outgoing, queue)).abort_handle();
        let read_calls = Arc::clone(&calls);
        tokio::spawn(async move {
            let error = deliver_all(&mut source, &read_calls).await;
            read_calls.end(&error);
            writer.abort();
        });
        Ok(Self(Arc::new(Line { host: on.host().into(), out, calls })))
    }

    /// Whether the agent has ended.
    pub fn is_ended(&self) -> bool {
        self.0.calls.lock().ended.is_some()
    }

    /// Sends a request and waits for its result; `events` sees what happens meanwhile.
    /// Dropping the future cancels the request on the host. After the time limit or the token the
    /// result is waited for up to 5 s more: a request that succeeded after all is a success.
    pub async fn call(&self, call: Call, mut events: impl FnMut(Event) + Send) -> Result<Answer, NodeError> {
        let (limit, cancel) = (call.limit, call.token());
        let mut running = self.send(call)?;
        let host = || self.0.host.to_string();
        let why = tokio::select! {
            biased;
            end = running.end(&mut events) => return end,
            () = cancel.cancelled() => NodeError::Cancelled { host: host() },
            () = sleep(limit) => NodeError::TimedOut { host: host(), limit },
        };
        running.cancel();
        match timeout(CANCEL_LIMIT.min(limit), running.end(&mut events)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(NodeError::Remote(error))) if error.kind != corpus_protocol::ErrorKind::Cancelled => {
                Err(NodeError::Remote(error))
            }
            _ => Err(why),
        }
    }

    fn send(&self, call: Call) -> Result<Running, NodeError> {
        let (news, incoming) = mpsc::unbounded_channel();
        let mut open = self.0.calls.lock();
        if let Some(error) = &open.ended {
            return Err(error.clone());
        }
        let id = open.last_id + 1;
        let line = encode(&ToAgent::Request { id, job: call.job, request: call.request }, &self.0.host)?;
        open.last_id = id;
        open.waiting.insert(id, news);
        // Still under the lock, so that ids rise on the line too.
        drop(self.0.out.send(line));
        drop(open);
        Ok(Running { id, line: Arc::clone(&self.0), incoming })
    }
}

fn encode(message: &ToAgent, host: &str) -> Result<Bytes, NodeError> {
    let too_long = |size| NodeError::TooLong { host: host.to_owned(), size };
    let mut line = serde_json::to_vec(message).map_err(|_| too_long(0))?;
    if line.len() >= MAX_LINE {
        return Err(too_long(line.len()));
    }
    line.push(b'\n');
    Ok(line.into())
}

/// A request on its way; cancels itself when dropped before its end.
struct Running {
    id: u64,
    line: Arc<Line>,
    incoming: mpsc::UnboundedReceiver<News>,
}

impl Running {
    async fn end(&mut self, events: &mut (impl FnMut(Event) + Send)) -> Result<Answer, NodeError> {
        loop {
            match self.incoming.recv().await {
                Some(News::Event(event)) => events(event),
                Some(News::Result(result)) => return result.map_err(NodeError::Remote),
                Some(News::Ended(error)) => return Err(error),
                None => return Err(NodeError::Cancelled { host: self.line.host.to_string() }),
            }
        }
    }

    fn cancel(&self) {
        if let Ok(line) = encode(&ToAgent::Cancel { id: self.id }, &self.line.host) {
            drop(self.line.out.send(line));
        }
    }
}

impl Drop for Running {
    /// Cancels what has not ended, and sees to it that it ends.
    fn drop(&mut self) {
        let (news, end) = mpsc::unbounded_channel();
        match self.line.calls.lock().waiting.get_mut(&self.id) {
            Some(waiting) => *waiting = news,
            None => return,
        }
        self.cancel();
        // None: the process ends, and the line with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(end_or_give_up(Arc::clone(&self.line), end));
        }
    }
}

async fn end_or_give_up(line: Arc<Line>, mut end: mpsc::UnboundedReceiver<News>) {
    let ended = async { while let Some(News::Event(_)) = end.recv().await {} };
    if timeout(HUNG_LIMIT, ended).await.is_err() {
        tracing::warn!(host = &*line.host, "the agent hangs; its line is given up");
        let reason = "it did not end a cancelled request".to_owned();
        line.calls.end(&NodeError::AgentEnded { host: line.host.to_string(), reason, stderr: Vec::new() });
    }
}

async fn write(to: ChannelWriteHalf<russh::client::Msg>, mut queue: mpsc::UnboundedReceiver<Bytes>) {
    while let Some(line) = queue.recv().await {
        if to.data_bytes(line).await.is_err() {
            return;
        }
    }
    drop(to.eof().await);
    drop(to.close().await);
}

async fn deliver_all(source: &mut Source, calls: &Calls) -> NodeError {
    loop {
        match source.next().await {
            Ok(line) => {
                if let Err(what) = calls.deliver(&line) {
                    return source.protocol(what);
                }
            }
            Err(error) => return error,
        }
    }
}
