//! Taking connections, and ending them: who was not let in, who does nothing, who lost the right.

use std::borrow::Cow;
use std::future::pending;
use std::io::Write;
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use russh::keys::Algorithm;
use russh::server::{Config, Handle, RunningSession, run_stream};
use russh::{Disconnect, MethodKind, MethodSet, Preferred, SshId, cipher, compression};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Limits;
use super::keeper::Keeper;
use super::lobby::{Lobby, Place};
use super::recheck::{Open, recheck};
use super::seats::Seats;
use super::visit::{Visit, Visitor};
use crate::nodes::ControlKey;

/// How long pushes may still take once the server is told to end.
const GRACE: Duration = Duration::from_secs(10);
/// How often it is looked at whether a connection does anything.
const LOOK: Duration = Duration::from_secs(1);
/// What a client reads, with `ssh -v`, that finds no room to wait.
const NO_ROOM: &[u8] = b"corpus: too many try to be let in; try again in a moment\r\n";
/// How long a client for which there is no place may take to ask for something and hear why.
const TURNED_AWAY: Duration = Duration::from_secs(5);
/// How long a client may take to hear why its connection is ended.
const FAREWELL: Duration = Duration::from_millis(300);

/// What all connections share.
pub(super) struct Shared {
    pub(super) keeper: Arc<dyn Keeper>,
    pub(super) limits: Limits,
    /// What the URLs of repositories begin with.
    pub(super) url: String,
    lobby: Arc<Lobby>,
    pub(super) seats: Arc<Seats>,
    /// The connections that were let in.
    pub(super) open: Open,
    ssh: Arc<Config>,
}

/// The git server, listening.
pub struct GitServer {
    listener: TcpListener,
    shared: Arc<Shared>,
}

impl GitServer {
    /// Listens; `url` is what the URLs of repositories begin with, `ssh://git@HOST:PORT`.
    pub async fn bind(address: SocketAddr, url: &str, controller: &crate::Controller) -> std::io::Result<Self> {
        let keeper: Arc<dyn Keeper> = Arc::new(controller.clone());
        Self::with(address, url, controller.git_host_key(), keeper, Limits::default()).await
    }

    pub(super) async fn with(
        address: SocketAddr,
        url: &str,
        key: &ControlKey,
        keeper: Arc<dyn Keeper>,
        limits: Limits,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let (lobby, seats, ssh) = (Lobby::new(limits.lobby), Seats::new(limits.seating), Arc::new(config(key)));
        let (url, open) = (url.to_owned(), Open::default());
        Ok(Self { listener, shared: Arc::new(Shared { keeper, limits, url, lobby, seats, open, ssh }) })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`; what is pushed then gets a little time to end.
    pub async fn run(self, stop: CancellationToken) {
        let visits = TaskTracker::new();
        let shared = Arc::clone(&self.shared);
        // Ends with this.
        let mut beside = JoinSet::new();
        beside.spawn(async move { recheck(&shared.open, &*shared.keeper, &shared.limits).await });
        loop {
            let taken = tokio::select! {
                () = stop.cancelled() => break,
                taken = self.listener.accept() => taken,
            };
            match taken {
                Ok((stream, peer)) => self.shared.open(stream, peer, &visits, &stop),
                Err(error) => {
                    // Too many open files, mostly: others are about to be closed.
                    tracing::warn!(%error, "git: a connection could not be taken");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(self.listener);
        visits.close();
        drop(timeout(GRACE + FAREWELL * 2, visits.wait()).await);
    }
}

fn config(key: &ControlKey) -> Config {
    let mut algorithms = Preferred::DEFAULT.key.to_vec();
    // By SHA-1.
    algorithms.retain(|one| *one != Algorithm::Rsa { hash: None });
    Config {
        server_id: SshId::Standard(Cow::Borrowed("SSH-2.0-corpus")),
        methods: MethodSet::from([MethodKind::PublicKey].as_slice()),
        // Whether a key is known is told by the protocol itself, so waiting hides nothing.
        auth_rejection_time: Duration::from_millis(50),
        auth_rejection_time_initial: Some(Duration::ZERO),
        keys: vec![(*key.pair()).clone()],
        max_auth_attempts: 6,
        keepalive_interval: Some(Duration::from_secs(15)),
        keepalive_max: 3,
        inactivity_timeout: Some(Duration::from_mins(2)),
        nodelay: true,
        preferred: Preferred {
            key: Cow::Owned(algorithms),
            cipher: Cow::Borrowed(&[cipher::AES_256_GCM, cipher::CHACHA20_POLY1305, cipher::AES_256_CTR]),
            // A pack is compressed already.
            compression: Cow::Borrowed(&[compression::NONE]),
            ..Preferred::DEFAULT
        },
        ..Config::default()
    }
}

impl Shared {
    fn open(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr, visits: &TaskTracker, stop: &CancellationToken) {
        let Some(place) = self.lobby.enter(peer.ip(), Instant::now()) else {
            tracing::debug!(%peer, "git: no room to wait");
            // Before SSH's first line a server may write others (RFC 4253 section 4.2).
            let told = stream.into_std().and_then(|mut stream| stream.write(NO_ROOM));
            drop(told);
            return;
        };
        let (shared, stop) = (Arc::clone(self), stop.clone());
        visits.spawn(async move {
            if let Err(error) = shared.receive(stream, peer, place, stop).await {
                tracing::debug!(%peer, %error, "git: a connection has ended");
            }
        });
    }

    async fn receive(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        place: Place,
        stop: CancellationToken,
    ) -> Result<(), russh::Error> {
        stream.set_nodelay(true)?;
        // A second handle on the socket: by it the connection is cut whatever its task does.
        let stream = stream.into_std()?;
        let door = stream.try_clone()?;
        let stream = TcpStream::from_std(stream)?;
        let visit = Visit::new(peer);
        let visitor = Visitor { shared: Arc::clone(&self), visit: Arc::clone(&visit) };
        let opened = tokio::select! {
            opened = timeout(self.limits.entry, run_stream(Arc::clone(&self.ssh), stream, visitor)) => opened,
            () = stop.cancelled() => return Ok(()),
        };
        let ended = match opened {
            Ok(Ok(session)) => self.host(session, &visit, place, &stop).await,
            Ok(Err(error)) => {
                place.failed(Instant::now());
                Err(error)
            }
            Err(_) => {
                place.failed(Instant::now());
                Ok(())
            }
        };
        visit.over.cancel();
        // It may be closed already.
        drop(door.shutdown(Shutdown::Both));
        ended
    }

    /// Stays with the client until it leaves or must go.
    async fn host(
        &self,
        mut session: RunningSession<Visitor>,
        visit: &Visit,
        place: Place,
        stop: &CancellationToken,
    ) -> Result<(), russh::Error> {
        let entered = tokio::select! {
            ended = &mut session => Some(ended),
            () = visit.entered.cancelled() => None,
            () = sleep(self.limits.entry) => Some(Ok(())),
            () = stop.cancelled() => return Ok(()),
        };
        if let Some(ended) = entered {
            tracing::info!(peer = %visit.peer, "git: not let in");
            place.failed(Instant::now());
            return ended;
        }
        let handle = session.handle();
        // Who is turned away has their place among those who wait until they have gone.
        let place = visit.turned_away.get().is_some().then_some(place);
        let why = tokio::select! {
            ended = &mut session => return ended,
            why = turned_away(visit) => why,
            () = self.idle(visit) => "you asked for nothing for a while".to_owned(),
            why = visit.revocation.revoked() => why,
            () = stopped(visit, stop) => "the server is stopped; push again".to_owned(),
        };
        answered(visit, Instant::now() + FAREWELL).await;
        visit.over.cancel();
        farewell(&handle, &why).await;
        drop(place);
        Ok(())
    }

    /// Ends when the client has had no channel for too long.
    async fn idle(&self, visit: &Visit) {
        let mut since = Instant::now();
        while since.elapsed() < self.limits.idle {
            sleep(LOOK.min(self.limits.idle)).await;
            if visit.channels.load(Ordering::Relaxed) > 0 {
                since = Instant::now();
            }
        }
    }
}

/// Ends when the server is to stop and the client has nothing open, or has had its time.
async fn stopped(visit: &Visit, stop: &CancellationToken) {
    stop.cancelled().await;
    answered(visit, Instant::now() + GRACE).await;
}

/// Ends when there is no place for the member, and the reason was said, or not asked for.
async fn turned_away(visit: &Visit) -> String {
    let Some(why) = visit.turned_away.get() else { return pending().await };
    let until = Instant::now() + TURNED_AWAY;
    while visit.channels.load(Ordering::Relaxed) == 0 && Instant::now() < until {
        sleep(LOOK / 10).await;
    }
    answered(visit, until).await;
    why.clone()
}

/// Ends when the client has nothing open, or at a time.
async fn answered(visit: &Visit, until: Instant) {
    while visit.channels.load(Ordering::Relaxed) > 0 && Instant::now() < until {
        sleep(LOOK / 10).await;
    }
}

async fn farewell(handle: &Handle, why: &str) {
    let said = handle.disconnect(Disconnect::ByApplication, format!("corpus: {why}"), String::new());
    // A client that takes nothing hears nothing.
    drop(timeout(FAREWELL, said).await);
    sleep(FAREWELL).await;
}
