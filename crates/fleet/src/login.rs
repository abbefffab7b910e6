//! The proof that a guest is ready: a real SSH login through its node's port.
//!
//! Tried again and again, tightly, because the guest is just starting. While it is not up, its
//! node's proxy refuses or closes connections, and those cost nothing; where packets are
//! dropped instead, the kernel would repeat its SYN only after a second, so connections are
//! given up after 100 ms at first. Only a host that has begun to speak is given more time.

use std::time::{Duration, Instant};

use corpus_domain::{NodeAddress, UnixUser};
use tokio::time::{sleep, timeout};

use super::command::{Command, must};
use super::connection::enter;
use super::credential::Credential;
use super::endpoint::host;
use super::error::NodeError;
use super::gateway::{Gateway, Stream, Way};
use super::host_key::HostKey;
use super::key::ControlKey;

const PAUSE: Duration = Duration::from_millis(20);
const FIRST_PATIENCE: Duration = Duration::from_millis(100);
const MOST_PATIENCE: Duration = Duration::from_secs(3);
const COMMAND_LIMIT: Duration = Duration::from_secs(10);
/// A wrong host key or a refused key may be the port's last owner, until the proxy is reloaded.
const DOUBT: Duration = Duration::from_secs(2);

/// Which login must work.
#[derive(Debug, Clone)]
pub struct LoginCheck {
    /// The node's address.
    pub address: NodeAddress,
    /// The node's port that leads to the guest.
    pub port: u16,
    /// The account in the guest.
    pub user: UnixUser,
    /// The guest's own host key.
    pub host_key: HostKey,
    /// What its node is reached through, if anything.
    pub gateway: Option<Box<Gateway>>,
    /// Within which time.
    pub timeout: Duration,
}

/// A login that worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Login {
    /// From the first attempt to the end of the command `true`.
    pub elapsed: Duration,
    /// How many attempts it took.
    pub attempts: u32,
}

/// Logs in with the control key and runs `true`, trying until the time is over. The error is
/// that of the last attempt that came to an end.
pub async fn check_login(check: &LoginCheck, key: &ControlKey) -> Result<Login, NodeError> {
    let began = Instant::now();
    let mut patience = FIRST_PATIENCE;
    let mut attempts = 0;
    // The way to the port may be long; it is gone once, and again when it was cut.
    let mut way = None;
    let mut last = late(check, check.timeout);
    loop {
        attempts += 1;
        let left = check.timeout.saturating_sub(began.elapsed());
        match timeout(left, attempt(check, key, patience, &mut way)).await {
            Ok(Ok(())) => return Ok(Login { elapsed: began.elapsed(), attempts }),
            Ok(Err(error)) => last = error,
            Err(_) => return Err(last),
        }
        let elapsed = began.elapsed();
        if elapsed + PAUSE >= check.timeout || (!last.is_transient() && elapsed > DOUBT) {
            return Err(last);
        }
        if matches!(last, NodeError::NoAnswer { .. }) {
            patience = (patience * 3 / 2).min(MOST_PATIENCE);
        }
        sleep(if last.is_transient() { PAUSE } else { PAUSE * 10 }).await;
    }
}

fn late(check: &LoginCheck, limit: Duration) -> NodeError {
    NodeError::NoAnswer { host: host(&check.address, check.port), doing: "waiting for the guest's SSH", limit }
}

async fn attempt(
    check: &LoginCheck,
    key: &ControlKey,
    patience: Duration,
    way: &mut Option<Way>,
) -> Result<(), NodeError> {
    let credential = Credential::Key(key.clone());
    let way = match way {
        Some(way) if way.is_open() => &*way,
        gone => gone.insert(Way::to(check.gateway.as_deref(), &credential).await?),
    };
    let mut stream = way.open(&check.address, check.port, patience).await?;
    timeout(patience, speaks(&mut stream, check)).await.map_err(|_| late(check, patience))??;
    let host = host(&check.address, check.port);
    let connection = enter(stream, &host, check.user.as_str(), &check.host_key, &credential).await?;
    must(&connection, Command::True, COMMAND_LIMIT).await?;
    connection.close().await;
    Ok(())
}

/// Waits for the first byte: an SSH server speaks first, a proxy without one behind it hangs up.
async fn speaks(stream: &mut Stream, check: &LoginCheck) -> Result<(), NodeError> {
    let host = host(&check.address, check.port);
    match stream.speaks().await {
        Ok(false) => Err(NodeError::Refused { host }),
        Ok(true) => Ok(()),
        Err(source) => Err(NodeError::connecting(&host, source)),
    }
}
