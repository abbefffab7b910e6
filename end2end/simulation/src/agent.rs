//! The simulated agent: the real protocol on a channel, answered from memory.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use corpus_protocol::{ErrorKind, Event, FromAgent, JobRef, Reply, Request, ToAgent, VERSION};
use futures::StreamExt;
use futures::future::Either;
use futures::stream::FuturesUnordered;
use russh::server::Msg;
use russh::{Channel, ChannelMsg, ChannelWriteHalf};
use tokio_util::sync::CancellationToken;

use crate::fault::Fault;
use crate::host::refused;
use crate::node::Node;
use crate::traffic;

/// Says hello and answers requests until the line ends.
pub(crate) async fn serve(channel: Channel<Msg>, node: &Arc<Node>) {
    node.wait_until_it_speaks().await;
    let (mut incoming, outgoing) = channel.split();
    if send(&outgoing, &FromAgent::Hello { version: VERSION, root: true }).await.is_err() {
        return;
    }
    let mut text = Vec::new();
    let mut running = HashMap::new();
    let mut work = FuturesUnordered::new();
    loop {
        tokio::select! {
            message = incoming.wait() => match message {
                Some(ChannelMsg::Data { data }) => {
                    text.extend_from_slice(&data);
                    while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                        let line: Vec<u8> = text.drain(..=end).collect();
                        match serde_json::from_slice(&line) {
                            Ok(ToAgent::Request { id, job, request }) => {
                                let cancel = CancellationToken::new();
                                let follows = matches!(request, Request::FollowAccess { .. });
                                running.insert(id, (cancel.clone(), follows));
                                if follows {
                                    work.push(Either::Left(visited(id, request.clone(), node)));
                                }
                                work.push(Either::Right(one(id, job, request, cancel, node)));
                            }
                            Ok(ToAgent::Cancel { id }) => {
                                if let Some((cancel, _)) = running.get(&id) {
                                    cancel.cancel();
                                }
                            }
                            // Like the agent: nothing after it can be trusted.
                            Err(_) => return,
                        }
                    }
                }
                Some(ChannelMsg::Eof | ChannelMsg::Close) | None => break,
                Some(_) => {}
            },
            Some((id, said)) = work.next() => {
                if !matches!(said, Said::Event(_)) {
                    running.remove(&id);
                }
                if !say(&outgoing, id, said).await {
                    return;
                }
            }
        }
    }
    // What runs goes on to its end, though nobody listens any more, but for what only tells.
    running.values().filter(|(_, follows)| *follows).for_each(|(cancel, _)| cancel.cancel());
    while work.next().await.is_some() {}
}

/// What comes of a request.
enum Said {
    Event(Event),
    Result(Reply),
    Rubbish,
    Cut,
}

/// What who follows names is told as soon as it asks; nothing more comes until it leaves.
async fn visited(id: u64, request: Request, node: &Arc<Node>) -> (u64, Said) {
    let lines = match request {
        Request::FollowAccess { mut names, addresses, .. } => {
            let visited = node.host().visited();
            names.retain(|name| visited.contains(name));
            traffic::lines(&names, addresses, Utc::now())
        }
        _ => Vec::new(),
    };
    node.wait_until_it_speaks().await;
    (id, Said::Event(Event::Access { lines, left_out: 0 }))
}

async fn one(
    id: u64,
    job: Option<JobRef>,
    request: Request,
    cancel: CancellationToken,
    node: &Arc<Node>,
) -> (u64, Said) {
    let changes = !matches!(
        request,
        Request::Read
            | Request::Facts
            | Request::ListImages
            | Request::ReadBoot
            | Request::CheckNode { .. }
            | Request::ReadTraffic { .. }
            | Request::FollowAccess { .. }
    );
    let mut pause = node.pace.next(changes);
    if let Request::FollowAccess { limit_s, .. } = request {
        pause = Duration::from_secs(limit_s.into());
    }
    match node.fault() {
        Fault::Silent => node.wait_until_it_speaks().await,
        Fault::Slow(ms) => pause += Duration::from_millis(ms),
        Fault::Reset => return (id, Said::Cut),
        Fault::Rubbish => return (id, Said::Rubbish),
        Fault::None => {}
    }
    // A later generation may come while this one works.
    if let Err(fenced) = node.host().admit(job) {
        return (id, Said::Result(Err(fenced)));
    }
    if cancel.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
        return (id, Said::Result(Err(refused(ErrorKind::Cancelled, "cancelled".to_owned()))));
    }
    (id, Said::Result(node.answer(&request, job).await))
}

/// Tells whether the line goes on.
async fn say(to: &ChannelWriteHalf<Msg>, id: u64, said: Said) -> bool {
    match said {
        Said::Event(event) => send(to, &FromAgent::Event { id, event }).await.is_ok(),
        Said::Result(result) => send(to, &FromAgent::Result { id, result }).await.is_ok(),
        Said::Rubbish => to.data_bytes(b"}{ 1,2,3 \xff\n".to_vec()).await.is_ok(),
        Said::Cut => {
            let _ = to.close().await;
            false
        }
    }
}

async fn send(to: &ChannelWriteHalf<Msg>, message: &FromAgent) -> Result<(), russh::Error> {
    let mut line = serde_json::to_vec(message).map_err(|error| russh::Error::IO(error.into()))?;
    line.push(b'\n');
    to.data_bytes(line).await
}
