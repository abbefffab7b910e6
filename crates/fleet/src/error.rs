//! What can go wrong between the controller and a node.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use corpus_protocol::{ErrorKind, RequestError};
use thiserror::Error;

use super::host_key::SeenHostKey;

/// A failure at a node. Cheap to clone, since all callers that wait for one connection share it.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The name has no address.
    #[error("{host}: the name does not resolve to an address; check it, or give an IP address")]
    Resolve {
        /// `address:port`.
        host: String,
        /// What the resolver said.
        #[source]
        source: Arc<io::Error>,
    },
    /// Nothing listens on the port.
    #[error("{host}: the connection was refused; check that sshd runs there and that the port is right")]
    Refused {
        /// `address:port`.
        host: String,
    },
    /// The network says that there is no way, or the connection broke while it was made.
    #[error("{host}: can't be reached over the network; check the address and the way to it")]
    Unreachable {
        /// `address:port`.
        host: String,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The host did not answer in time.
    #[error(
        "{host}: no answer within {limit:?} while {doing}; check that the host is up and that no firewall drops this"
    )]
    NoAnswer {
        /// `address:port`.
        host: String,
        /// What was waited for: "connecting".
        doing: &'static str,
        /// For how long.
        limit: Duration,
    },
    /// The gateway of the host did not get through to it.
    #[error("{host}: can't be reached from {gateway}; check that the host is up and that sshd runs there")]
    BehindGateway {
        /// `address:port`.
        host: String,
        /// `gateway address:port`.
        gateway: String,
    },
    /// The gateway does not want to lead to the host.
    #[error(
        "{host}: it does not forward to {to}; check AllowTcpForwarding in its sshd_config, and permitopen in \
         ~/.ssh/authorized_keys there"
    )]
    NotForwarded {
        /// `gateway address:port`.
        host: String,
        /// `address:port` of the host behind it.
        to: String,
    },
    /// What answers does not speak SSH as we do.
    #[error("{host}: the SSH handshake failed; check that the port is that of an OpenSSH server")]
    Handshake {
        /// `address:port`.
        host: String,
        /// What was wrong.
        #[source]
        source: Arc<russh::Error>,
    },
    /// The host shows another key than the pinned one.
    #[error(
        "{host}: the host key has changed: {expected} was confirmed, {} {} is shown now. Nothing was sent to it. \
         If the host was installed again, confirm its new key; if not, someone may be in between",
        seen.algorithm, seen.fingerprint
    )]
    HostKeyChanged {
        /// `address:port`.
        host: String,
        /// The pinned key: algorithm and fingerprint.
        expected: String,
        /// The key that is shown now.
        seen: Box<SeenHostKey>,
    },
    /// The host does not let us in.
    #[error("{host}: {user} was not let in by {method}; {advice}")]
    Auth {
        /// `address:port`.
        host: String,
        /// The account.
        user: String,
        /// "the control key", "the password".
        method: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// The account can't become root.
    #[error(
        "{host}: {user} is neither root nor may it run `sudo -n`; link with root, or give {user} sudo without a password"
    )]
    NoRoot {
        /// `address:port`.
        host: String,
        /// The account.
        user: String,
    },
    /// The line was cut; what ran on it is in an unknown state.
    #[error("{host}: the connection was lost ({reason}); it is made again at the next try")]
    Disconnected {
        /// `address:port`.
        host: String,
        /// What is known about it.
        reason: String,
    },
    /// The agent process ended or could not be started.
    #[error("{host}: the agent ended: {reason}{}", tail(stderr))]
    AgentEnded {
        /// `address:port`.
        host: String,
        /// Exit status or signal.
        reason: String,
        /// The last lines it wrote to its standard error.
        stderr: Vec<String>,
    },
    /// What came from the agent is not what it should say.
    #[error("{host}: the agent does not speak as expected: {what}{}", tail(stderr))]
    Protocol {
        /// `address:port`.
        host: String,
        /// What came, shortened.
        what: String,
        /// The last lines it wrote to its standard error.
        stderr: Vec<String>,
    },
    /// A command of ours on the host failed.
    #[error("{host}: `{command}` failed: {reason}")]
    Command {
        /// `address:port`.
        host: String,
        /// The command line.
        command: String,
        /// Exit status and what it said.
        reason: String,
    },
    /// Reading or writing a file on the host failed.
    #[error("{host}: {doing} {path} over SFTP failed")]
    Sftp {
        /// `address:port`.
        host: String,
        /// "writing".
        doing: &'static str,
        /// The path on the host.
        path: String,
        /// What the host said.
        #[source]
        source: russh_sftp::client::error::Error,
    },
    /// A file that was copied is not what was sent.
    #[error("{host}: {path} is not what was sent; check its disk")]
    Damaged {
        /// `address:port`.
        host: String,
        /// The path on the host.
        path: String,
    },
    /// A file on the controller's side can't be read.
    #[error("{path} can't be read on the controller; check the setting that names it")]
    Local {
        /// The path.
        path: String,
        /// Why.
        #[source]
        source: Arc<io::Error>,
    },
    /// The agent carried the request out and it failed.
    #[error("{0}")]
    Remote(RequestError),
    /// The request took longer than it may; it was cancelled on the host.
    #[error("{host}: the request was not done within {limit:?} and was cancelled")]
    TimedOut {
        /// `address:port`.
        host: String,
        /// The time limit.
        limit: Duration,
    },
    /// The request was cancelled by the caller's token.
    #[error("{host}: the request was cancelled")]
    Cancelled {
        /// `address:port`.
        host: String,
    },
    /// The request is too large to be sent.
    #[error("{host}: the request of {size} bytes is larger than the agent accepts")]
    TooLong {
        /// `address:port`.
        host: String,
        /// Its size.
        size: usize,
    },
    /// The node was forgotten while it was waited for.
    #[error("{host}: the node is not linked any more")]
    Forgotten {
        /// `address:port`.
        host: String,
    },
}

fn tail(stderr: &[String]) -> String {
    if stderr.is_empty() { String::new() } else { format!("; it said: {}", stderr.join(" | ")) }
}

impl NodeError {
    /// Whether the same may succeed later without anybody doing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Resolve { .. }
            | Self::Refused { .. }
            | Self::Unreachable { .. }
            | Self::NoAnswer { .. }
            | Self::BehindGateway { .. }
            | Self::Handshake { .. }
            | Self::Disconnected { .. }
            | Self::AgentEnded { .. }
            // Whoever works on the node asks the rows again, and learns there that it is gone.
            | Self::Forgotten { .. }
            | Self::Damaged { .. } => true,
            Self::Remote(error) => error.kind == ErrorKind::Busy,
            Self::Sftp { source, .. } => !matches!(source, russh_sftp::client::error::Error::Status(_)),
            Self::HostKeyChanged { .. }
            | Self::Auth { .. }
            | Self::NotForwarded { .. }
            | Self::NoRoot { .. }
            | Self::Protocol { .. }
            | Self::Command { .. }
            | Self::Local { .. }
            | Self::TimedOut { .. }
            | Self::Cancelled { .. }
            | Self::TooLong { .. } => false,
        }
    }

    /// Whether a request may have been carried out, so that it must be sent again or undone.
    pub fn is_in_doubt(&self) -> bool {
        matches!(
            self,
            Self::Disconnected { .. } | Self::AgentEnded { .. } | Self::TimedOut { .. } | Self::Protocol { .. }
        )
    }

    pub(super) fn connecting(host: &str, source: io::Error) -> Self {
        let host = host.to_owned();
        match source.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused { host },
            _ => Self::Unreachable { host, source: Arc::new(source) },
        }
    }

    pub(super) fn lost(host: &str, source: &russh::Error) -> Self {
        Self::Disconnected { host: host.to_owned(), reason: source.to_string() }
    }
}
