//! A commit goes from one guest to another: git's own programs there, whose lines are joined here.
//!
//! They speak with each other, so that only what the other has not yet is sent. Neither guest
//! reaches the other by itself.

use corpus_domain::{CommitId, DeploymentId, ProjectName, Repository};
use russh::client::Msg;
use russh::{ChannelMsg, ChannelReadHalf, ChannelWriteHalf};

use super::command::Command;
use super::connection::Connection;
use super::error::NodeError;

/// What is said of a failure at most, in bytes.
const TOLD: usize = 2 << 10;

/// What goes to another guest: validated words only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// The project as it is called where the commit comes from.
    pub source: ProjectName,
    /// The project as it is called where the commit goes: the same, unless that is a preview of it.
    pub project: ProjectName,
    /// Which repository.
    pub repository: Repository,
    /// The commit, with all before it.
    pub commit: CommitId,
    /// The deployment for which it is brought.
    pub deployment: DeploymentId,
}

impl Carried {
    /// The words of the command where the commit comes from.
    pub(super) fn sent(&self) -> String {
        self.words(&self.source)
    }

    /// The words of the command where it goes.
    pub(super) fn taken(&self) -> String {
        self.words(&self.project)
    }

    fn words(&self, project: &ProjectName) -> String {
        let Self { repository, commit, deployment, .. } = self;
        format!("{project} {} {commit} {deployment}", repository.as_str())
    }
}

/// Brings it; done again, there is nothing to send.
pub async fn carry(from: &Connection, to: &Connection, what: &Carried) -> Result<(), NodeError> {
    let commands = [Command::SendGit(what).to_string(), Command::TakeGit(what).to_string()];
    let [send, take] = commands;
    let (here, there) = (from.channel().await?, to.channel().await?);
    here.exec(true, send.as_str()).await.map_err(|source| from.lost(&source))?;
    there.exec(true, take.as_str()).await.map_err(|source| to.lost(&source))?;
    let ((mut out, back), (mut answers, onward)) = (here.split(), there.split());
    let (first, second) = tokio::join!(pump(&mut out, &onward), pump(&mut answers, &back));
    first.check(from, send).and(second.check(to, take))
}

/// How one of the two programs ended.
#[derive(Debug, Default)]
struct Ended {
    status: Option<u32>,
    said: Vec<u8>,
}

impl Ended {
    fn check(self, on: &Connection, command: String) -> Result<(), NodeError> {
        let host = on.host().to_owned();
        let said = String::from_utf8_lossy(&self.said);
        let last = said.trim().lines().last().unwrap_or_default();
        match self.status {
            Some(0) => Ok(()),
            Some(status) => Err(NodeError::Command { host, command, reason: format!("exit status {status}: {last}") }),
            None => Err(NodeError::Disconnected { host, reason: format!("while `{command}` ran") }),
        }
    }
}

/// Moves what one program writes to the other one until it has ended.
async fn pump(from: &mut ChannelReadHalf, to: &ChannelWriteHalf<Msg>) -> Ended {
    let mut ended = Ended::default();
    // One that has ended takes no more, which the other one notices by itself.
    while let Some(message) = from.wait().await {
        match message {
            ChannelMsg::Data { data } => drop(to.data_bytes(data).await),
            ChannelMsg::ExtendedData { data, .. } => {
                let room = TOLD.saturating_sub(ended.said.len());
                ended.said.extend_from_slice(data.get(..room.min(data.len())).unwrap_or_default());
            }
            ChannelMsg::ExitStatus { exit_status } => ended.status = Some(exit_status),
            ChannelMsg::Eof | ChannelMsg::Close => drop(to.eof().await),
            _ => {}
        }
    }
    drop(to.eof().await);
    ended
}
