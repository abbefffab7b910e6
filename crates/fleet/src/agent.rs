//! The client of one agent process: many requests at once over one channel.
//!
//! Guarantees: ids rise; each call gets exactly one end; a call that is dropped, cancelled or
//! late sends `cancel`, so that nothing goes on running on the host unwatched; an agent that
//! does not end a cancelled request hangs and would hang the next caller too, so its line is
//! given up; when the line ends, every open call ends with it at once. Nothing piles up here: an
//! agent is read as fast as the callers take what it says, and one that takes no requests is
//! given up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use corpus_protocol::{Answer, Event, FromAgent, JobRef, MAX_LINE, Reply, Request, ToAgent};
use russh::ChannelWriteHalf;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::command::Command;
use super::connection::Connection;
use super::error::NodeError;
use super::input;
use super::pace::Pace;
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
/// Events that wait for a caller; the agent is read no further meanwhile. Each is a line, and what
/// is behind them waits on the host.
const EVENTS_KEPT: usize = 16;
/// A caller that takes nothing for so long holds up the others on the line, and gets no more. Longer
/// than a deployment that is followed waits for more storage.
const UNHEARD_LIMIT: Duration = Duration::from_mins(1);
/// Requests that wait for the host to take them; it takes them at once, unless it is made to hang.
const REQUESTS_KEPT: usize = 1_024;

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

/// Who hears what happens while a request runs; what is not taken yet stays with the host.
trait Listener: Send {
    fn hear(&mut self, event: Event) -> impl Future<Output = ()> + Send;
}

impl<F: FnMut(Event) + Send> Listener for F {
    async fn hear(&mut self, event: Event) {
        self(event);
    }
}

/// Hands events on to a task that takes its time.
struct To(mpsc::Sender<Event>);

impl Listener for To {
    async fn hear(&mut self, event: Event) {
        // Nobody listens any more: the caller ends the call.
        drop(self.0.send(event).await);
    }
}

/// A running agent on a node. Its process ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Agent(Arc<Line>);

#[derive(Debug)]
struct Line {
    host: Arc<str>,
    out: mpsc::Sender<Bytes>,
    calls: Arc<Calls>,
}

#[derive(Debug, Default)]
struct Calls(Mutex<Open>);

#[derive(Debug, Default)]
struct Open {
    last_id: u64,
    waiting: HashMap<u64, mpsc::Sender<News>>,
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
            // One who has not taken the last ones yet sees that nothing comes after them.
            drop(call.try_send(News::Ended(error.clone())));
        }
    }

    /// Brings a line to its call. Lines for calls that were dropped are of no interest.
    async fn deliver(&self, line: &[u8]) -> Result<(), String> {
        let (id, news) = match input::read(line)? {
            FromAgent::Hello { .. } => return Err("a second hello".to_owned()),
            FromAgent::Event { id, event } => (id, News::Event(event)),
            FromAgent::Result { id, result } => (id, News::Result(result)),
        };
        let Some(call) = self.call(id, matches!(news, News::Event(_)))? else { return Ok(()) };
        if timeout(UNHEARD_LIMIT, call.send(news)).await.is_ok() {
            return Ok(());
        }
        // It ends for its caller, who cancels it.
        if let Some(waiting) = self.lock().waiting.get_mut(&id) {
            *waiting = mpsc::channel(1).0;
        }
        Ok(())
    }

    /// Who waits for this request, and goes on to do so.
    fn call(&self, id: u64, goes_on: bool) -> Result<Option<mpsc::Sender<News>>, String> {
        let mut open = self.lock();
        if id > open.last_id {
            return Err(format!("an answer to request {id}, which was never sent"));
        }
        Ok(if goes_on { open.waiting.get(&id).cloned() } else { open.waiting.remove(&id) })
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

        let (out, queue) = mpsc::channel(REQUESTS_KEPT);
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
    pub async fn call(&self, call: Call, events: impl FnMut(Event) + Send) -> Result<Answer, NodeError> {
        self.listening(call, events).await
    }

    /// The same; what happens is told as fast as it is taken from the channel, and waits on the host till then.
    pub async fn call_to(&self, call: Call, events: mpsc::Sender<Event>) -> Result<Answer, NodeError> {
        self.listening(call, To(events)).await
    }

    async fn listening(&self, call: Call, mut events: impl Listener) -> Result<Answer, NodeError> {
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
        let (news, incoming) = mpsc::channel(EVENTS_KEPT);
        let mut open = self.0.calls.lock();
        if let Some(error) = &open.ended {
            return Err(error.clone());
        }
        let id = open.last_id + 1;
        let line = encode(&ToAgent::Request { id, job: call.job, request: call.request }, &self.0.host)?;
        open.last_id = id;
        // Still under the lock, so that ids rise on the line too.
        let sent = self.0.out.try_send(line);
        if matches!(sent, Err(TrySendError::Full(_))) {
            drop(open);
            let error = self.0.hangs("it takes no more requests");
            self.0.calls.end(&error);
            return Err(error);
        }
        open.waiting.insert(id, news);
        drop(open);
        Ok(Running { id, line: Arc::clone(&self.0), incoming })
    }
}

impl Line {
    fn hangs(&self, how: &str) -> NodeError {
        tracing::warn!(host = &*self.host, how, "the agent hangs; its line is given up");
        NodeError::AgentEnded { host: self.host.to_string(), reason: how.to_owned(), stderr: Vec::new() }
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
    incoming: mpsc::Receiver<News>,
}

impl Running {
    async fn end(&mut self, events: &mut impl Listener) -> Result<Answer, NodeError> {
        loop {
            match self.incoming.recv().await {
                Some(News::Event(event)) => events.hear(event).await,
                Some(News::Result(result)) => return result.map_err(NodeError::Remote),
                Some(News::Ended(error)) => return Err(error),
                None => return Err(self.cut()),
            }
        }
    }

    /// Why nothing comes any more: the line has ended, or this call held it up.
    fn cut(&self) -> NodeError {
        let reason = || format!("nobody took what it said for {UNHEARD_LIMIT:?}");
        let unheard = || NodeError::Disconnected { host: self.line.host.to_string(), reason: reason() };
        self.line.calls.lock().ended.clone().unwrap_or_else(unheard)
    }

    fn cancel(&self) {
        if let Ok(line) = encode(&ToAgent::Cancel { id: self.id }, &self.line.host) {
            // One that takes no more is given up when it has not ended in time.
            drop(self.line.out.try_send(line));
        }
    }
}

impl Drop for Running {
    /// Cancels what has not ended, and sees to it that it ends.
    fn drop(&mut self) {
        let (news, end) = mpsc::channel(EVENTS_KEPT);
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

async fn end_or_give_up(line: Arc<Line>, mut end: mpsc::Receiver<News>) {
    let ended = async { while let Some(News::Event(_)) = end.recv().await {} };
    if timeout(HUNG_LIMIT, ended).await.is_err() {
        line.calls.end(&line.hangs("it did not end a cancelled request"));
    }
}

async fn write(to: ChannelWriteHalf<russh::client::Msg>, mut queue: mpsc::Receiver<Bytes>) {
    while let Some(line) = queue.recv().await {
        if to.data_bytes(line).await.is_err() {
            return;
        }
    }
    drop(to.eof().await);
    drop(to.close().await);
}

async fn deliver_all(source: &mut Source, calls: &Calls) -> NodeError {
    let mut pace = Pace::default();
    loop {
        match source.next().await {
            Ok(line) => {
                pace.take(line.len()).await;
                if let Err(what) = calls.deliver(&line).await {
                    return source.protocol(what);
                }
            }
            Err(error) => return error,
        }
    }
}
