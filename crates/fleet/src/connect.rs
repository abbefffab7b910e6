//! From an address to an SSH session whose host key was checked, before any authentication.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use corpus_domain::NodeAddress;
use russh::client::{self, Config, Handle};
use russh::keys::{Algorithm, PublicKeyOrCertificate};
use russh::{Preferred, cipher};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::error::NodeError;
use super::gateway::Stream;
use super::host_key::{HostKey, SeenHostKey};

/// Silence after which a keepalive is sent; three without an answer end the line.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// Silence after which a line is given up whatever the keepalives say.
const INACTIVITY: Duration = Duration::from_mins(1);

/// Which host key is good.
#[derive(Debug, Clone)]
pub(super) enum Trust {
    /// This one only.
    Pinned(HostKey),
    /// None: we only want to see it.
    Probe,
}

/// Why a session ended or did not begin.
#[derive(Debug)]
pub(super) enum Ended {
    /// The host showed a key that is not trusted.
    HostKey(Box<SeenHostKey>),
    /// Anything else.
    Ssh(russh::Error),
}

impl From<russh::Error> for Ended {
    fn from(source: russh::Error) -> Self {
        Self::Ssh(source)
    }
}

/// Checks the host key; nothing else of what a host may send unasked is of interest.
pub(super) struct Gate(Trust);

impl client::Handler for Gate {
    type Error = Ended;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Ended> {
        let key = shown.public_key();
        match &self.0 {
            Trust::Pinned(pinned) if shown.certificate().is_none() && pinned.is(&key) => Ok(true),
            _ => Err(Ended::HostKey(Box::new(SeenHostKey::of(&key)))),
        }
    }
}

/// Opens TCP to the first address that answers; `host` is what it is called in messages. What was
/// not delivered when it is closed never is: else the kernel would go on sending a request of a lost
/// line, and once the network is healed the host would do it again, maybe after a later job undid it.
pub(super) async fn open_tcp(
    address: &NodeAddress,
    port: u16,
    host: &str,
    limit: Duration,
) -> Result<TcpStream, NodeError> {
    let late = |_| NodeError::NoAnswer { host: host.to_owned(), doing: "connecting", limit };
    let stream = timeout(limit, dial(address, port, host)).await.map_err(late)??;
    let set = stream.set_nodelay(true).and_then(|()| stream.set_zero_linger());
    set.map_err(|source| NodeError::connecting(host, source))?;
    Ok(stream)
}

async fn dial(address: &NodeAddress, port: u16, host: &str) -> Result<TcpStream, NodeError> {
    let connected = match address {
        NodeAddress::Ip(ip) => TcpStream::connect((*ip, port)).await,
        NodeAddress::Name(name) => {
            let addresses: Vec<_> = lookup_host((name.as_str(), port))
                .await
                .map_err(|source| NodeError::Resolve { host: host.to_owned(), source: Arc::new(source) })?
                .collect();
            TcpStream::connect(addresses.as_slice()).await
        }
    };
    connected.map_err(|source| NodeError::connecting(host, source))
}

/// Key exchange and host key check; no authentication yet.
pub(super) async fn handshake(stream: Stream, trust: Trust) -> Result<Handle<Gate>, Ended> {
    let config = Arc::new(config(&trust));
    client::connect_stream(config, stream, Gate(trust)).await
}

fn config(trust: &Trust) -> Config {
    Config {
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: 3,
        inactivity_timeout: Some(INACTIVITY),
        nodelay: true,
        preferred: Preferred {
            key: Cow::Owned(host_key_order(trust)),
            // AES-GCM first: with the processor's own AES it is the fastest for images.
            cipher: Cow::Borrowed(&[
                cipher::AES_256_GCM,
                cipher::CHACHA20_POLY1305,
                cipher::AES_256_CTR,
                cipher::AES_128_CTR,
            ]),
            compression: Cow::Borrowed(&[russh::compression::NONE]),
            // The key exchange keeps the library's order: ML-KEM or plain curve25519, never
            // sntrup761, which costs 200 ms a connection on small machines.
            ..Preferred::DEFAULT
        },
        ..Config::default()
    }
}

/// The pinned key's algorithm first, so that a host with several keys shows that one. All
/// others are still offered: a host that lost the pinned key shows another, and is refused.
fn host_key_order(trust: &Trust) -> Vec<Algorithm> {
    let mut order = Preferred::DEFAULT.key.to_vec();
    if let Trust::Pinned(pinned) = trust {
        let wanted = pinned.algorithm();
        order.sort_by_key(|one| !same_key_type(one, &wanted));
    }
    order.retain(|one| *one != Algorithm::Rsa { hash: None });
    order
}

fn same_key_type(one: &Algorithm, other: &Algorithm) -> bool {
    one == other || (matches!(one, Algorithm::Rsa { .. }) && matches!(other, Algorithm::Rsa { .. }))
}
