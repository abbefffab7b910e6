//! All files of a guest, from its node or to it, on a channel of their own.
//!
//! What is said there is told in `corpus_protocol::tree`; here are only the two ends of the channel. Nothing piles up: what
//! comes is read as fast as it is taken, and what goes waits until the host has room for it.

use std::fmt;

use bytes::Bytes;
use corpus_domain::{GuestName, JobId, SnapshotId};
use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};

use super::command::Command;
use super::endpoint::{Endpoint, HostId};
use super::error::NodeError;
use super::pool::Pool;

/// What is kept of what the program complains, in bytes.
const TOLD: usize = 2 << 10;

/// What is asked of a node's agent: validated words and numbers only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeWords {
    /// Of which guest.
    pub guest: GuestName,
    /// For which job.
    pub job: JobId,
    /// The generation of its lease: what a later one overtakes ends.
    pub generation: i64,
    /// What is done.
    pub what: TreeWhat,
}

/// What is done with the files of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeWhat {
    /// They are told.
    Read(TreeWhich),
    /// What they come to is told.
    Sum(TreeWhich),
    /// Files are taken that are to be the guest's.
    Write {
        /// How much that is about, in bytes.
        bytes: u64,
        /// Whether they come onto what was written for the job before, instead of the image.
        onto: bool,
    },
}

/// Which files of a guest are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeWhich {
    /// Those of a snapshot.
    Snapshot(SnapshotId),
    /// Its own, as they are while it is stopped.
    Own,
    /// Those that were written for the job and are not the guest's yet.
    Written,
}

impl fmt::Display for TreeWhich {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snapshot(id) => write!(f, "{id}"),
            Self::Own => f.write_str("own"),
            Self::Written => f.write_str("written"),
        }
    }
}

impl fmt::Display for TreeWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { guest, job, generation, what } = self;
        let word = match what {
            TreeWhat::Read(_) => "read-tree",
            TreeWhat::Sum(_) => "sum-tree",
            TreeWhat::Write { .. } => "write-tree",
        };
        write!(f, "{word} {guest} {job} {generation} ")?;
        match what {
            TreeWhat::Read(which) | TreeWhat::Sum(which) => write!(f, "{which}"),
            TreeWhat::Write { bytes, onto } => write!(f, "{bytes}{}", if *onto { " onto" } else { "" }),
        }
    }
}

/// What goes to the program. When it is dropped the program's input ends, and with it the program: the connection goes on
/// for others, and one that nobody talks to any more would hold what it works on.
pub struct TreeInput(Option<ChannelWriteHalf<Msg>>);

impl Drop for TreeInput {
    fn drop(&mut self) {
        if let (Some(to), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { to.close().await });
        }
    }
}

impl TreeInput {
    /// Sends it, once there is room. A program that has ended takes nothing: what it wrote says why.
    pub async fn send(&self, bytes: Bytes) -> Result<(), russh::Error> {
        match &self.0 {
            Some(to) => to.data_bytes(bytes).await,
            None => Err(russh::Error::SendError),
        }
    }

    /// There is no more.
    pub async fn end(&self) {
        if let Some(to) = &self.0 {
            drop(to.eof().await);
        }
    }
}

/// What comes from the program.
pub struct TreeOutput {
    host: String,
    command: String,
    from: ChannelReadHalf,
    status: Option<u32>,
    said: Vec<u8>,
}

impl TreeOutput {
    /// What it wrote next; nothing when it has ended well.
    pub async fn next(&mut self) -> Result<Option<Bytes>, NodeError> {
        while let Some(message) = self.from.wait().await {
            match message {
                ChannelMsg::Data { data } => return Ok(Some(data)),
                ChannelMsg::ExtendedData { data, .. } => {
                    let room = TOLD.saturating_sub(self.said.len());
                    self.said.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
                }
                ChannelMsg::ExitStatus { exit_status } => self.status = Some(exit_status),
                _ => {}
            }
        }
        let (host, command) = (self.host.clone(), self.command.clone());
        let said = String::from_utf8_lossy(&self.said);
        let last = said.trim().lines().last().unwrap_or_default();
        match self.status {
            Some(0) => Ok(None),
            Some(status) => Err(NodeError::Command { host, command, reason: format!("exit status {status}: {last}") }),
            None => Err(NodeError::Disconnected { host, reason: format!("while `{command}` ran") }),
        }
    }
}

impl<Id: HostId> Pool<Id> {
    /// Starts the program on the node. It ends when both of its ends are dropped.
    pub async fn tree(&self, node: &Endpoint<Id>, words: &TreeWords) -> Result<(TreeInput, TreeOutput), NodeError> {
        let line = self.line(node).await?;
        let on = &line.connection;
        let command = Command::Tree(line.privilege, self.agent_binary().sum(), words).to_string();
        let channel = on.channel().await?;
        channel.exec(true, command).await.map_err(|source| on.lost(&source))?;
        let (from, to) = channel.split();
        let command = words.to_string();
        let output = TreeOutput { host: on.host().to_owned(), command, from, status: None, said: Vec::new() };
        Ok((TreeInput(Some(to)), output))
    }
}
