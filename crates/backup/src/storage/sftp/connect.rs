//! From the name of an SFTP server to a session there: the host key is one of those that the operators gave, or nothing
//! is said to the host at all.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use russh::client::{self, Config, Handle};
use russh::keys::key::PrivateKeyWithHashAlg;
use russh::keys::ssh_key::HashAlg;
use russh::keys::{Algorithm, PublicKey, PublicKeyOrCertificate};
use russh::{Preferred, cipher};
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::rawsession::Limits;
use russh_sftp::extensions;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::super::{Result, SftpAccess, StorageError};
use crate::place::SftpPlace;

/// How long TCP may take to connect.
const TCP_LIMIT: Duration = Duration::from_secs(10);
/// How long agreeing on keys, logging in and starting SFTP may take, each.
const LIMIT: Duration = Duration::from_secs(20);
/// Silence after which a keepalive is sent; three without an answer end the line.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Silence after which a line is given up whatever the keepalives say.
const INACTIVITY: Duration = Duration::from_mins(2);
/// How long one answer of SFTP may take: what was sent before it has to get through a slow line first.
const ANSWER_S: u64 = 120;

/// A session, and what the server can do in it.
pub(super) struct Session {
    pub sftp: RawSftpSession,
    /// Held, or the line would end.
    line: Handle<Checked>,
    /// Whether it can be asked to put a file onto its disk.
    pub fsync: bool,
    /// Whether it can be asked for its room.
    pub statvfs: bool,
}

impl Session {
    pub fn is_closed(&self) -> bool {
        self.line.is_closed()
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

/// Why a session ended or did not begin.
#[derive(Debug)]
pub(super) enum Ended {
    /// The host showed a key that is none of the given ones.
    HostKey(String),
    /// Anything else.
    Ssh(russh::Error),
}

impl From<russh::Error> for Ended {
    fn from(source: russh::Error) -> Self {
        Self::Ssh(source)
    }
}

/// Checks the host key; nothing else of what a host may send unasked is of interest.
pub(super) struct Checked(Vec<PublicKey>);

impl client::Handler for Checked {
    type Error = Ended;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> std::result::Result<bool, Ended> {
        let key = shown.public_key();
        let known = |one: &PublicKey| one.key_data() == key.key_data();
        if shown.certificate().is_none() && self.0.iter().any(known) {
            return Ok(true);
        }
        Err(Ended::HostKey(format!("{} {}", key.algorithm(), key.fingerprint(HashAlg::Sha256))))
    }
}

/// Connects, checks the host key, logs in and starts SFTP.
pub(super) async fn connect(place: &SftpPlace, access: &SftpAccess) -> Result<Session> {
    let server = place.server();
    let unreachable = |why: String| StorageError::Unreachable { server: server.clone(), why };
    let stream = timeout(TCP_LIMIT, TcpStream::connect((place.host.as_str(), place.port))).await;
    let stream = stream.map_err(|_| unreachable("nobody answers".to_owned()))?;
    let stream = stream.map_err(|error| unreachable(error.to_string()))?;
    stream.set_nodelay(true).map_err(|error| unreachable(error.to_string()))?;
    let config = Arc::new(config(&access.host_keys));
    let handshake = timeout(LIMIT, client::connect_stream(config, stream, Checked(access.host_keys.clone()))).await;
    let shaken = handshake.map_err(|_| unreachable("it did not agree on keys in time".to_owned()))?;
    let mut line = shaken.map_err(|ended| match ended {
        Ended::HostKey(seen) => StorageError::HostKey { server: server.clone(), seen },
        Ended::Ssh(error) => unreachable(error.to_string()),
    })?;
    in_time(&server, "logging in", log_in(&mut line, place, access)).await?;
    in_time(&server, "starting SFTP", start(line, &server)).await
}

async fn in_time<T>(server: &str, what: &str, work: impl Future<Output = Result<T>>) -> Result<T> {
    let late = |_| StorageError::Unreachable { server: server.to_owned(), why: format!("{what} took too long") };
    timeout(LIMIT, work).await.map_err(late)?
}

async fn log_in(line: &mut Handle<Checked>, place: &SftpPlace, access: &SftpAccess) -> Result<()> {
    let server = place.server();
    let lost = |error: russh::Error| StorageError::Unreachable { server: server.clone(), why: error.to_string() };
    // Servers that take no SHA-1 any more say which they take.
    let hash = line.best_supported_rsa_hash().await.map_err(lost)?.flatten();
    let pair = PrivateKeyWithHashAlg::new(access.key.clone(), hash.or(Some(HashAlg::Sha256)));
    let entered = line.authenticate_publickey(place.user.as_str(), pair).await.map_err(lost)?;
    if entered.success() {
        return Ok(());
    }
    let bare = PublicKey::new(access.key.public_key().key_data().clone(), "");
    let line = bare.to_openssh().unwrap_or_default();
    Err(StorageError::NotLetIn { server, user: place.user.clone(), line })
}

async fn start(line: Handle<Checked>, server: &str) -> Result<Session> {
    let failed = |why: String| StorageError::Unreachable { server: server.to_owned(), why };
    let channel = line.channel_open_session().await.map_err(|error| failed(error.to_string()))?;
    let asked = channel.request_subsystem(true, "sftp").await;
    asked.map_err(|error| failed(format!("it has no SFTP for this account: {error}")))?;
    let config = russh_sftp::client::Config { request_timeout_secs: ANSWER_S, ..Default::default() };
    let mut sftp = RawSftpSession::new_with_config(channel.into_stream(), config);
    let said = |error: russh_sftp::client::error::Error| failed(format!("it speaks no SFTP: {error}"));
    let version = sftp.init().await.map_err(said)?;
    let has = |name: &str, number: &str| version.extensions.get(name).is_some_and(|given| given == number);
    if has(extensions::LIMITS, "1") {
        let limits = sftp.limits().await.map_err(said)?;
        sftp.set_limits(Limits::from(limits));
    }
    let (fsync, statvfs) = (has(extensions::FSYNC, "1"), has(extensions::STATVFS, "2"));
    Ok(Session { sftp, line, fsync, statvfs })
}

fn config(host_keys: &[PublicKey]) -> Config {
    Config {
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: 3,
        inactivity_timeout: Some(INACTIVITY),
        nodelay: true,
        preferred: Preferred {
            key: Cow::Owned(host_key_order(host_keys)),
            cipher: Cow::Borrowed(&[
                cipher::AES_256_GCM,
                cipher::CHACHA20_POLY1305,
                cipher::AES_256_CTR,
                cipher::AES_128_CTR,
            ]),
            compression: Cow::Borrowed(&[russh::compression::NONE]),
            ..Preferred::DEFAULT
        },
        ..Config::default()
    }
}

/// The algorithms of the given keys first, so that a host with several keys shows one of those.
fn host_key_order(host_keys: &[PublicKey]) -> Vec<Algorithm> {
    let mut order = Preferred::DEFAULT.key.to_vec();
    let same = |one: &Algorithm, other: &Algorithm| {
        one == other || (matches!(one, Algorithm::Rsa { .. }) && matches!(other, Algorithm::Rsa { .. }))
    };
    order.sort_by_key(|one| !host_keys.iter().any(|key| same(one, &key.algorithm())));
    order.retain(|one| *one != Algorithm::Rsa { hash: None });
    order
}
