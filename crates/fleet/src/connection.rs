//! One authenticated SSH connection to a host: channels for commands and for SFTP.

use std::sync::Arc;
use std::time::Duration;

use corpus_domain::NodeAddress;
use russh::client::{AuthResult, Handle, KeyboardInteractiveAuthResponse, Msg};
use russh::keys::key::PrivateKeyWithHashAlg;
use russh::{Channel, Disconnect, MethodKind, MethodSet};
use russh_sftp::client::SftpSession;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;

use super::connect::{Ended, Gate, Trust, handshake};
use super::credential::Credential;
use super::endpoint::Endpoint;
use super::error::NodeError;
use super::gateway::{Stream, Way};
use super::host_key::HostKey;
use super::key::ControlKey;

/// How long TCP may take to connect, or a gateway in its place.
pub(super) const TCP_LIMIT: Duration = Duration::from_secs(5);
/// How long key exchange may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// How long a host may think about a login: PAM waits about 3 s after a wrong password.
const AUTH_LIMIT: Duration = Duration::from_secs(15);
/// How long the end of a line that was cut may take to be known here.
const CUT_LIMIT: Duration = Duration::from_millis(100);
/// How long a host may take to open a channel.
const CHANNEL_LIMIT: Duration = Duration::from_secs(10);

/// An open, authenticated connection. It ends when the last clone is dropped.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle<Gate>>,
    host: Arc<str>,
    user: Arc<str>,
}

/// Connects to a host, through its gateway if it has one, checks its host key and logs in.
pub async fn connect<Id: Sync>(node: &Endpoint<Id>, credential: &Credential) -> Result<Connection, NodeError> {
    let way = Box::pin(Way::to(node.gateway.as_deref(), credential)).await?;
    connect_by(&way, node, credential).await
}

/// The same on a way that is open already.
pub async fn connect_by<Id: Sync>(
    way: &Way,
    node: &Endpoint<Id>,
    credential: &Credential,
) -> Result<Connection, NodeError> {
    let stream = way.open(&node.address, node.port, TCP_LIMIT).await?;
    enter(stream, &node.host(), node.user.as_str(), &node.pinned_host_key, credential).await
}

/// The part of [`connect`] after TCP.
pub(super) async fn enter(
    stream: Stream,
    host: &str,
    user: &str,
    pinned: &HostKey,
    credential: &Credential,
) -> Result<Connection, NodeError> {
    let late = |doing, limit| move |_| NodeError::NoAnswer { host: host.to_owned(), doing, limit };
    let mut handle = timeout(HANDSHAKE_LIMIT, handshake(stream, Trust::Pinned(pinned.clone())))
        .await
        .map_err(late("agreeing on keys", HANDSHAKE_LIMIT))?
        .map_err(|ended| refused(host, pinned, ended))?;
    timeout(AUTH_LIMIT, log_in(&mut handle, host, user, credential))
        .await
        .map_err(late("logging in", AUTH_LIMIT))??;
    Ok(Connection { handle: Arc::new(handle), host: host.into(), user: user.into() })
}

fn refused(host: &str, pinned: &HostKey, ended: Ended) -> NodeError {
    let host = host.to_owned();
    match ended {
        Ended::HostKey(seen) => NodeError::HostKeyChanged { host, expected: pinned.title(), seen },
        Ended::Ssh(source) => NodeError::Handshake { host, source: source.into() },
    }
}

async fn log_in(handle: &mut Handle<Gate>, host: &str, user: &str, with: &Credential) -> Result<(), NodeError> {
    let entered = match with {
        Credential::Key(key) => by_key(handle, user, key).await,
        Credential::Password(password) => by_password(handle, user, password).await,
    };
    let (method, advice) = match with {
        Credential::Key(_) => {
            ("the control key", "add the controller's public key to that account's ~/.ssh/authorized_keys")
        }
        Credential::Password(_) => {
            ("the password", "check account and password, and whether sshd allows passwords for it")
        }
    };
    match entered {
        Ok(true) => Ok(()),
        Ok(false) => Err(NodeError::Auth { host: host.to_owned(), user: user.to_owned(), method, advice }),
        Err(source) => Err(NodeError::lost(host, &source)),
    }
}

async fn by_key(handle: &mut Handle<Gate>, user: &str, key: &ControlKey) -> Result<bool, russh::Error> {
    let pair = PrivateKeyWithHashAlg::new(key.pair(), None);
    let answer = handle.authenticate_publickey(user, pair).await?;
    let_in(handle, &answer).await
}

/// Whether the host lets us in. To russh a line that is cut while the host decides is a refusal
/// that leaves nothing to try; taken for one, a job would give up where it has to try again.
async fn let_in(handle: &mut Handle<Gate>, answer: &AuthResult) -> Result<bool, russh::Error> {
    match answer {
        AuthResult::Success => Ok(true),
        AuthResult::Failure { remaining_methods, .. }
            if remaining_methods.is_empty() && timeout(CUT_LIMIT, handle).await.is_ok() =>
        {
            Err(russh::Error::Disconnect)
        }
        AuthResult::Failure { .. } => Ok(false),
    }
}

/// Asks first which ways there are, so that a wrong password counts as one failed login only.
async fn by_password(handle: &mut Handle<Gate>, user: &str, given: &SecretString) -> Result<bool, russh::Error> {
    let answer = handle.authenticate_none(user).await?;
    if let_in(handle, &answer).await? {
        return Ok(true);
    }
    let AuthResult::Failure { remaining_methods: ways, .. } = answer else { return Ok(true) };
    if has(&ways, MethodKind::Password) {
        let answer = handle.authenticate_password(user, given.expose_secret()).await?;
        return let_in(handle, &answer).await;
    }
    if has(&ways, MethodKind::KeyboardInteractive) { by_questions(handle, user, given).await } else { Ok(false) }
}

fn has(ways: &MethodSet, way: MethodKind) -> bool {
    ways.contains(&way)
}

/// Answers the one hidden question with the password. A second one is about something we don't have.
async fn by_questions(handle: &mut Handle<Gate>, user: &str, given: &SecretString) -> Result<bool, russh::Error> {
    let mut answers = vec![given.expose_secret().to_owned()];
    let mut reply = handle.authenticate_keyboard_interactive_start(user, None).await?;
    for _ in 0..4 {
        let prompts = match reply {
            KeyboardInteractiveAuthResponse::Success => return Ok(true),
            KeyboardInteractiveAuthResponse::Failure { .. } => return Ok(false),
            KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } => prompts,
        };
        let said = if prompts.is_empty() { Vec::new() } else { std::mem::take(&mut answers) };
        if said.len() != prompts.len() || prompts.iter().any(|prompt| prompt.echo) {
            return Ok(false);
        }
        reply = handle.authenticate_keyboard_interactive_respond(said).await?;
    }
    Ok(false)
}

impl Connection {
    /// `address:port`, for messages.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The account we are logged in as.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }

    /// Says goodbye; what still runs on the connection ends.
    pub async fn close(&self) {
        if let Err(error) = self.handle.disconnect(Disconnect::ByApplication, "done", "").await {
            tracing::debug!(host = &*self.host, %error, "the connection was closed already");
        }
    }

    pub(super) fn lost(&self, source: &russh::Error) -> NodeError {
        NodeError::lost(&self.host, source)
    }

    pub(super) async fn channel(&self) -> Result<Channel<Msg>, NodeError> {
        let late =
            |_| NodeError::NoAnswer { host: self.host.to_string(), doing: "opening a channel", limit: CHANNEL_LIMIT };
        timeout(CHANNEL_LIMIT, self.handle.channel_open_session())
            .await
            .map_err(late)?
            .map_err(|source| self.lost(&source))
    }

    /// A channel that leads on to another host, if this one forwards to it.
    pub(super) async fn forward(&self, address: &NodeAddress, port: u16) -> Result<Channel<Msg>, russh::Error> {
        self.handle.channel_open_direct_tcpip(address.to_string(), port.into(), "127.0.0.1", 0).await
    }

    /// An SFTP session on a channel of its own.
    pub(super) async fn sftp(&self) -> Result<SftpSession, NodeError> {
        let channel = self.channel().await?;
        channel.request_subsystem(true, "sftp").await.map_err(|source| self.lost(&source))?;
        let config = russh_sftp::client::Config {
            max_concurrent_writes: 64,
            max_write_packet_len: 32_768 + 4_096,
            request_timeout_secs: 30,
            ..russh_sftp::client::Config::default()
        };
        SftpSession::new_with_config(channel.into_stream(), config)
            .await
            .map_err(|source| self.sftp_failed("starting on", "the subsystem sftp", source))
    }

    pub(super) fn sftp_failed(
        &self,
        doing: &'static str,
        path: &str,
        source: russh_sftp::client::error::Error,
    ) -> NodeError {
        if self.is_closed() {
            return NodeError::Disconnected { host: self.host.to_string(), reason: format!("while {doing} {path}") };
        }
        NodeError::Sftp { host: self.host.to_string(), doing, path: path.to_owned(), source }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({}@{})", self.user, self.host)
    }
}
