//! The connections of browsers: how many there may be, and how long each may make us wait.
//!
//! Whoever opens connections and says nothing, says it a byte at a time, or does not read what it
//! asked for, holds a place and a file of the server. So the head of a request comes within
//! [`Times::head`], which is also how long a connection may rest; an answer is taken at some
//! speed ([`stream`]); one address has a part of the [`places`] only, and what finds none is told
//! so with 503 and closed. Only HTTP/1.1 is spoken: other versions are for the proxy before it.

mod files;
mod places;
mod stream;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

pub use files::raise;
pub use places::{Places, limits};
use stream::Watched;

use crate::shares::{Full, Share};

/// How long the other end may take.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// For the head of a request, from the end of the one before.
    pub head: Duration,
    /// For reading some of an answer.
    pub step: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { head: Duration::from_secs(30), step: Duration::from_secs(30) }
    }
}

/// The largest head of a request.
const LARGEST_HEAD: usize = 32 * 1024;
/// How many header lines a request has at most.
const MOST_HEADERS: usize = 64;
/// Connections that are told at the same time that there is no place.
const REFUSED_AT_ONCE: usize = 64;
/// How long being told may take.
const REFUSED_WITHIN: Duration = Duration::from_secs(2);
/// The pause when a connection can't be taken: no file is free, or no memory.
const PAUSE: Duration = Duration::from_millis(200);

const NO_PLACE: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\n\
    retry-after: 5\r\nconnection: close\r\n";
const ALL_TAKEN: &str = "Corpus has no free connection now. Try again in a few seconds.\n";
const YOURS_TAKEN: &str = "Too many connections come from your address. Close some, or try again in a few seconds.\n";

/// Serves until `end`, then until the requests that are there are answered.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    (places, times): (Places, Times),
    end: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    let refusing = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
    let mut end = std::pin::pin!(end);
    loop {
        let (stream, peer) = tokio::select! {
            () = &mut end => break,
            taken = take(&listener) => taken,
        };
        match places.take(peer.ip()) {
            Ok(place) => drop(tokio::spawn(answer((stream, peer), router.clone(), times, graceful.watcher(), place))),
            // Whoever comes while so many are being told is not told.
            Err(full) => drop(refusing.clone().try_acquire_owned().map(|permit| {
                tokio::spawn(async move {
                    timeout(REFUSED_WITHIN, refuse(stream, full)).await.ok();
                    drop(permit);
                })
            })),
        }
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Takes the next connection. What went wrong with that connection alone is its own matter;
/// anything else is said, and waited out.
async fn take(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    use std::io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    loop {
        match listener.accept().await {
            Ok(taken) => return taken,
            Err(error) if matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset) => {}
            Err(error) => {
                tracing::error!(%error, "no connection can be taken now");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Answers the requests of one connection.
async fn answer(
    (stream, peer): (TcpStream, SocketAddr),
    router: Router,
    times: Times,
    watcher: Watcher,
    place: Share<IpAddr>,
) {
    stream.set_nodelay(true).ok();
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answering = router.clone().oneshot(request);
        async move { answering.await.map_err(|never: Infallible| match never {}) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.head)
        .max_buf_size(LARGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(Watched::new(stream, times.step)), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, %peer, "a connection ended early");
    }
    drop(place);
}

/// Says that there is no place. What the other end has sent is read, so that it reads the answer
/// before it learns that the connection is closed.
async fn refuse(mut stream: TcpStream, full: Full) -> std::io::Result<()> {
    let why = if full == Full::OfOne { YOURS_TAKEN } else { ALL_TAKEN };
    let answer = format!("{NO_PLACE}content-length: {}\r\n\r\n{why}", why.len());
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    let mut rest = [0; 4096];
    for _ in 0..16 {
        if stream.read(&mut rest).await? == 0 {
            break;
        }
    }
    Ok(())
}
