//! Hosts behind a bastion: the way to them is a channel of the SSH of another host, their gateway.
//!
//! The problem: a host that answers only inside of a network must be reached as if it answered here, through
//! a machine that is not ours to trust. What this module guarantees, and no other has to know:
//! - The SSH of the host runs from here to the host. The gateway carries its bytes and can't read them; the
//!   host key is checked as on a direct way, so a gateway that was taken over can cut the line, no more.
//! - A gateway is entered as a host is: its own key is pinned, and checked before anything is said to it. It
//!   never hears the password of the host.
//! - It is entered with a key that is made for the one node behind it ([`ControlKey::for_gateway`]), and that
//!   the gateway lets do no more than reach that node.
//! - What is wrong with the gateway is said of the gateway ([`GATEWAY`]), within the limits of a direct way.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use corpus_domain::{NodeAddress, UnixUser};
use russh::client::Msg;
use russh::{Channel, ChannelOpenFailure, ChannelStream};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf, ReadHalf, split};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::connect::open_tcp;
use super::connection::{Connection, TCP_LIMIT, enter};
use super::credential::Credential;
use super::endpoint::host;
use super::error::NodeError;
use super::host_key::HostKey;

/// What the host of an error begins with when it is a gateway.
pub const GATEWAY: &str = "gateway ";

/// What waits to be sent through a gateway at most, in bytes: the windows of thirty channels of OpenSSH. Where more
/// waits, whoever is at the other end says that it takes what it does not take.
const MOST_QUEUED: usize = 64 << 20;

/// A host that a node, and the guests on it, are reached through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Where its sshd answers.
    pub address: NodeAddress,
    /// On which TCP port.
    pub port: u16,
    /// The account there, which needs no rights but to forward.
    pub user: UnixUser,
    /// The host key that a person confirmed.
    pub pinned_host_key: HostKey,
    /// The `address:port` of the node behind it: the key for the gateway is made from it.
    pub serves: String,
}

impl Gateway {
    /// `gateway address:port`, for messages.
    pub fn host(&self) -> String {
        format!("{GATEWAY}{}", host(&self.address, self.port))
    }

    /// The controller's key that was made for it. A password is for the host alone.
    pub fn credential(&self, of_host: &Credential) -> Result<Credential, NodeError> {
        let made = match of_host {
            Credential::Key(key) => key.for_gateway(&self.serves).ok(),
            Credential::Password(_) => None,
        };
        made.map(Credential::Key).ok_or_else(|| self.refused("a password of the host", "enter it with a key"))
    }

    fn refused(&self, method: &'static str, advice: &'static str) -> NodeError {
        NodeError::Auth { host: self.host(), user: self.user.to_string(), method, advice }
    }

    /// A gateway wants another line than hosts do.
    fn advised(&self, error: NodeError, credential: &Credential) -> NodeError {
        match (error, credential) {
            (NodeError::Auth { .. }, Credential::Key(_)) => self.refused(
                "the key that was made for it",
                "add its line, which the form to link shows, to that account's ~/.ssh/authorized_keys",
            ),
            (error, _) => error,
        }
    }
}

/// The way to a host: from here, or through a gateway that was entered. It lasts as long as what was opened.
#[derive(Debug, Clone, Default)]
pub struct Way(Option<Connection>);

impl Way {
    /// Through a gateway.
    pub async fn through(gateway: &Gateway, credential: &Credential) -> Result<Self, NodeError> {
        let named = gateway.host();
        let stream = open_tcp(&gateway.address, gateway.port, &named, TCP_LIMIT).await?;
        let (user, key) = (gateway.user.as_str(), &gateway.pinned_host_key);
        let entered = enter(Stream::Direct(stream), &named, user, key, credential).await;
        entered.map(|connection| Self(Some(connection))).map_err(|error| gateway.advised(error, credential))
    }

    /// The one to a host that has this gateway, or none.
    pub(super) async fn to(gateway: Option<&Gateway>, credential: &Credential) -> Result<Self, NodeError> {
        match gateway {
            None => Ok(Self::default()),
            Some(gateway) => Self::through(gateway, &gateway.credential(credential)?).await,
        }
    }

    /// The connection to the gateway, if there is one on the way.
    pub const fn gateway(&self) -> Option<&Connection> {
        self.0.as_ref()
    }

    /// Whether it can be gone still.
    pub(super) fn is_open(&self) -> bool {
        self.0.as_ref().is_none_or(|gateway| !gateway.is_closed())
    }

    /// Reaches a host: what TCP is on a direct way.
    pub(super) async fn open(&self, address: &NodeAddress, port: u16, limit: Duration) -> Result<Stream, NodeError> {
        let named = host(address, port);
        let Some(gateway) = &self.0 else {
            return open_tcp(address, port, &named, limit).await.map(Stream::Direct);
        };
        let opened = timeout(limit, gateway.forward(address, port)).await;
        let opened = opened.map_err(|_| NodeError::NoAnswer {
            host: format!("{named} through {}", gateway.host()),
            doing: "connecting",
            limit,
        })?;
        let channel = opened.map_err(|error| match error {
            russh::Error::ChannelOpenFailure(ChannelOpenFailure::ConnectFailed) => {
                NodeError::BehindGateway { host: named.clone(), gateway: gateway.host().to_owned() }
            }
            russh::Error::ChannelOpenFailure(_) => {
                NodeError::NotForwarded { host: gateway.host().to_owned(), to: named.clone() }
            }
            other => gateway.lost(&other),
        })?;
        Ok(Stream::Through(Box::new(Tunnel::new(channel, gateway.clone()))))
    }
}

/// What a host's SSH runs over.
pub(super) enum Stream {
    /// TCP from here.
    Direct(TcpStream),
    /// A channel of its gateway's SSH.
    Through(Box<Tunnel>),
}

/// A channel of a gateway. What is written waits in a queue of its own: the SSH that runs over it writes before it
/// reads on, and would else wait for the gateway's, which delivers before it sends on. The windows of that SSH
/// bound the queue, and [`MOST_QUEUED`] does where they lie.
pub(super) struct Tunnel {
    from: BufReader<ReadHalf<ChannelStream<Msg>>>,
    to: Option<mpsc::UnboundedSender<Vec<u8>>>,
    queued: Arc<AtomicUsize>,
    /// Held, or it would end.
    _gateway: Connection,
}

impl Tunnel {
    fn new(channel: Channel<Msg>, gateway: Connection) -> Self {
        let (from, mut towards) = split(channel.into_stream());
        let (to, mut queue) = mpsc::unbounded_channel::<Vec<u8>>();
        let queued = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&queued);
        tokio::spawn(async move {
            while let Some(bytes) = queue.recv().await {
                left.fetch_sub(bytes.len(), Ordering::Relaxed);
                if towards.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            // A gateway that is gone has nothing to be told.
            towards.shutdown().await.unwrap_or_default();
        });
        Self { from: BufReader::new(from), to: Some(to), queued, _gateway: gateway }
    }

    fn queue(&self, bytes: &[u8]) -> io::Result<usize> {
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        if self.queued.fetch_add(bytes.len(), Ordering::Relaxed) > MOST_QUEUED {
            return Err(gone());
        }
        let to = self.to.as_ref().ok_or_else(gone)?;
        to.send(bytes.to_vec()).map(|()| bytes.len()).map_err(|_| gone())
    }
}

impl Stream {
    /// Waits for the first byte, and leaves it; tells whether there is one.
    pub(super) async fn speaks(&mut self) -> io::Result<bool> {
        match self {
            Self::Direct(stream) => stream.peek(&mut [0_u8; 1]).await.map(|length| length > 0),
            Self::Through(tunnel) => tunnel.from.fill_buf().await.map(|bytes| !bytes.is_empty()),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_read(cx, into),
            Self::Through(tunnel) => Pin::new(&mut tunnel.from).poll_read(cx, into),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Through(tunnel) => Poll::Ready(tunnel.queue(bytes)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_flush(cx),
            Self::Through(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Direct(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Through(tunnel) => {
                tunnel.to = None;
                Poll::Ready(Ok(()))
            }
        }
    }
}
