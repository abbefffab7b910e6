//! What goes wrong with a place, in words for who operates it.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

/// A place can't be used, or what was asked of it failed.
#[derive(Debug, Clone, Error)]
pub enum StorageError {
    /// A folder or file of this machine.
    #[error("{doing} {path} failed: {source}")]
    Folder {
        /// What was being done.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// Why not.
        source: Arc<std::io::Error>,
    },
    /// Nothing is known of how it is opened.
    #[error("the configuration has no section [{0}], which says how such a place is opened")]
    NotConfigured(&'static str),
    /// It is an address, say.
    #[error("s3.bucket_in_host: {0} of s3.endpoint is no name that a bucket could stand before")]
    NoBucketInHost(String),
    /// Nobody answers.
    #[error("{server} can't be reached: {why}")]
    Unreachable {
        /// Which server.
        server: String,
        /// Why not.
        why: String,
    },
    /// Another host may be in its place.
    #[error(
        "{server} shows the host key {seen}, which is none of sftp.host_keys: somebody may be between. If the server was \
         given a new key, put that there"
    )]
    HostKey {
        /// Which server.
        server: String,
        /// What it showed.
        seen: String,
    },
    /// It does not know us.
    #[error(
        "{server} does not let {user} in with the key of sftp.key_file: add to that account's authorized_keys {line}"
    )]
    NotLetIn {
        /// Which server.
        server: String,
        /// The account.
        user: String,
        /// The public key.
        line: String,
    },
    /// The line broke.
    #[error("the line to {server} broke while {doing} {path}")]
    Lost {
        /// Which server.
        server: String,
        /// What was being done.
        doing: &'static str,
        /// With what.
        path: String,
    },
    /// The server did not do it.
    #[error("{doing} {path} failed: {server} says {why}")]
    Refused {
        /// Which server.
        server: String,
        /// What was being done.
        doing: &'static str,
        /// With what.
        path: String,
        /// What it says.
        why: String,
    },
    /// A file is shorter than it has to be.
    #[error("{path} ends before it should")]
    Short {
        /// Which file.
        path: String,
    },
    /// Somebody else has made the repository meanwhile.
    #[error("somebody else has made the repository meanwhile")]
    Taken,
    /// This machine.
    #[error("no thread can be had for lines to servers: {0}")]
    Runtime(String),
}
