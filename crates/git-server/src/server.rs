//! Listening: connections are taken, admitted or not, and given their time to end when the server stops.

use std::borrow::Cow;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corpus_fleet::ControlKey;
use russh::keys::Algorithm;
use russh::server::Config;
use russh::{MethodKind, MethodSet, Preferred, SshId, cipher, compression};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Admission;
use crate::backend::Backend;
use crate::connection::{self, FAREWELL_TIMEOUT};
use crate::limits::Limits;
use crate::quota::Quotas;
use crate::recheck::{Sessions, recheck};

/// How long pushes may still take once the server is told to end.
pub(crate) const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// What a client reads, with `ssh -v`, that is not admitted.
const NOT_ADMITTED: &[u8] = b"corpus: too many try to be let in; try again in a moment\r\n";

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) limits: Limits,
    /// What the URLs of repositories begin with.
    pub(crate) url: String,
    admission: Arc<Admission>,
    pub(crate) quotas: Arc<Quotas>,
    /// The connections that were authenticated.
    pub(crate) sessions: Sessions,
    pub(crate) ssh: Arc<Config>,
}

/// The git server, listening.
pub struct GitServer {
    listener: TcpListener,
    shared: Arc<Shared>,
}

impl GitServer {
    /// Listens with this host key; `url` is what the URLs of repositories begin with, `ssh://git@HOST:PORT`.
    pub async fn bind(
        address: SocketAddr,
        url: &str,
        host_key: &ControlKey,
        backend: Arc<dyn Backend>,
        limits: Limits,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let shared = Shared {
            backend,
            limits,
            url: url.to_owned(),
            admission: Admission::new(limits.admission),
            quotas: Quotas::new(limits.quota),
            sessions: Sessions::default(),
            ssh: Arc::new(config(host_key)),
        };
        Ok(Self { listener, shared: Arc::new(shared) })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop`; what is pushed then gets a little time to end.
    pub async fn run(self, stop: CancellationToken) {
        let connections = TaskTracker::new();
        let shared = Arc::clone(&self.shared);
        // Ends with this.
        let mut beside = JoinSet::new();
        beside.spawn(async move { recheck(&shared.sessions, &*shared.backend, &shared.limits).await });
        loop {
            let taken = tokio::select! {
                () = stop.cancelled() => break,
                taken = self.listener.accept() => taken,
            };
            match taken {
                Ok((stream, peer)) => self.shared.open(stream, peer, &connections, &stop),
                Err(error) => {
                    // Too many open files, mostly: others are about to be closed.
                    tracing::warn!(%error, "git: a connection could not be taken");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(self.listener);
        connections.close();
        drop(timeout(SHUTDOWN_GRACE + FAREWELL_TIMEOUT * 2, connections.wait()).await);
    }
}

impl Shared {
    fn open(
        self: &Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        connections: &TaskTracker,
        stop: &CancellationToken,
    ) {
        let Some(pending) = self.admission.admit(peer.ip(), Instant::now()) else {
            tracing::debug!(%peer, "git: not admitted");
            // Before SSH's first line a server may write others (RFC 4253 section 4.2).
            let told = stream.into_std().and_then(|mut stream| stream.write(NOT_ADMITTED));
            drop(told);
            return;
        };
        let (shared, stop) = (Arc::clone(self), stop.clone());
        connections.spawn(async move {
            if let Err(error) = connection::run(shared, stream, peer, pending, stop).await {
                tracing::debug!(%peer, %error, "git: a connection has ended");
            }
        });
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
