//! The life of one connection: who is not authenticated in time, does nothing, or loses the right
//! to be here is told so and disconnected, whatever its tasks do.

use std::future::pending;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use russh::Disconnect;
use russh::server::{Handle, RunningSession, run_stream};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::admission::Pending;
use crate::server::{SHUTDOWN_GRACE, Shared};
use crate::session::{Session, SessionHandler};

/// How often it is looked at whether a connection does anything.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often it is looked at whether the last channel has ended.
const CHANNEL_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a client that is rejected may take to ask for something and hear why.
const REJECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may take to hear why its connection is ended.
pub(crate) const FAREWELL_TIMEOUT: Duration = Duration::from_millis(300);

/// Serves a connection that was admitted, to its end.
pub(crate) async fn run(
    shared: Arc<Shared>,
    stream: TcpStream,
    peer: SocketAddr,
    admitted: Pending,
    stop: CancellationToken,
) -> Result<(), russh::Error> {
    stream.set_nodelay(true)?;
    // A second handle on the socket: by it the connection is cut whatever its task does.
    let stream = stream.into_std()?;
    let socket = stream.try_clone()?;
    let stream = TcpStream::from_std(stream)?;
    let session = Session::new(peer);
    let handler = SessionHandler { shared: Arc::clone(&shared), session: Arc::clone(&session) };
    let handshake = timeout(shared.limits.authentication, run_stream(Arc::clone(&shared.ssh), stream, handler));
    let opened = tokio::select! {
        opened = handshake => opened,
        () = stop.cancelled() => return Ok(()),
    };
    let ended = match opened {
        Ok(Ok(running)) => supervise(&shared, running, &session, admitted, &stop).await,
        Ok(Err(error)) => {
            admitted.failed(Instant::now());
            Err(error)
        }
        Err(_) => {
            admitted.failed(Instant::now());
            Ok(())
        }
    };
    session.closed.cancel();
    // It may be closed already.
    drop(socket.shutdown(Shutdown::Both));
    ended
}

/// Stays with the client until it leaves or must go.
async fn supervise(
    shared: &Shared,
    mut running: RunningSession<SessionHandler>,
    session: &Session,
    admitted: Pending,
    stop: &CancellationToken,
) -> Result<(), russh::Error> {
    let failed = tokio::select! {
        ended = &mut running => Some(ended),
        () = session.authenticated.cancelled() => None,
        () = sleep(shared.limits.authentication) => Some(Ok(())),
        () = stop.cancelled() => return Ok(()),
    };
    if let Some(ended) = failed {
        tracing::info!(peer = %session.peer, "git: not authenticated");
        admitted.failed(Instant::now());
        return ended;
    }
    let handle = running.handle();
    // Who is rejected keeps their place among those who wait until they have gone.
    let admitted = session.rejection.get().is_some().then_some(admitted);
    let reason = tokio::select! {
        ended = &mut running => return ended,
        reason = rejected(session) => reason,
        () = idle(session, shared.limits.idle) => "you asked for nothing for a while".to_owned(),
        reason = session.revocation.revoked() => reason,
        () = stopped(session, stop) => "the server is stopped; push again".to_owned(),
    };
    channels_closed(session, Instant::now() + FAREWELL_TIMEOUT).await;
    session.closed.cancel();
    disconnect(&handle, &reason).await;
    drop(admitted);
    Ok(())
}

/// Ends when the client has had no channel for so long.
async fn idle(session: &Session, limit: Duration) {
    let mut since = Instant::now();
    while since.elapsed() < limit {
        sleep(IDLE_POLL_INTERVAL.min(limit)).await;
        if session.channels.load(Ordering::Relaxed) > 0 {
            since = Instant::now();
        }
    }
}

/// Ends when the server is to stop and the client has nothing open, or has had its time.
async fn stopped(session: &Session, stop: &CancellationToken) {
    stop.cancelled().await;
    channels_closed(session, Instant::now() + SHUTDOWN_GRACE).await;
}

/// Ends when the client is rejected, and the reason was said, or not asked for.
async fn rejected(session: &Session) -> String {
    let Some(reason) = session.rejection.get() else { return pending().await };
    let until = Instant::now() + REJECTION_TIMEOUT;
    while session.channels.load(Ordering::Relaxed) == 0 && Instant::now() < until {
        sleep(CHANNEL_POLL_INTERVAL).await;
    }
    channels_closed(session, until).await;
    reason.clone()
}

/// Ends when the client has nothing open, or at a time.
async fn channels_closed(session: &Session, until: Instant) {
    while session.channels.load(Ordering::Relaxed) > 0 && Instant::now() < until {
        sleep(CHANNEL_POLL_INTERVAL).await;
    }
}

async fn disconnect(handle: &Handle, reason: &str) {
    let said = handle.disconnect(Disconnect::ByApplication, format!("corpus: {reason}"), String::new());
    // A client that takes nothing hears nothing.
    drop(timeout(FAREWELL_TIMEOUT, said).await);
    sleep(FAREWELL_TIMEOUT).await;
}
