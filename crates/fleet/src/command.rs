//! Every command line that the controller ever sends to a host.
//!
//! sshd hands a command line to the account's shell, so none of it may come from a person:
//! each variant is a constant, filled only with [`Sha256`] digits and with paths that are
//! constants themselves or were checked to be of `a-z 0-9 . _ -` ([`super::upload::UploadName`],
//! and names of projects, members and robots, which can hold nothing else but a robot's one slash).
//! Everything else is said to the agent, in its protocol.

use std::time::Duration;

use russh::ChannelMsg;
use tokio::time::timeout;

use super::carry::Carried;
use super::connection::Connection;
use super::error::NodeError;
use super::privilege::Privilege;
use super::sha256::Sha256;
use super::tree::TreeWords;
use super::upload::UploadName;
use crate::git::GitRequest;

/// Where agents are kept on a node.
pub(super) const AGENT_FOLDER: &str = "/var/lib/corpus/agent";
/// The agent of a guest, where its hooks and its people find it too.
pub(super) const GUEST_AGENT: &str = "/usr/local/bin/corpus-agent";
/// Where uploads are kept on a node.
pub(super) const UPLOAD_FOLDER: &str = "/var/lib/corpus/upload";
/// Where an account that is not root puts files first, below its home.
pub(super) const CACHE_FOLDER: &str = ".cache/corpus";

/// What a command may print before it is cut off, in bytes.
const OUTPUT_LIMIT: usize = 64 << 10;

/// A path on a host that was made here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostPath<'a> {
    /// [`AGENT_FOLDER`].
    AgentFolder,
    /// The agent of this sum.
    Agent(Sha256),
    /// The same before it is complete.
    AgentPart(Sha256),
    /// The same where an account that is not root puts it first.
    AgentCached(Sha256),
    /// [`UPLOAD_FOLDER`].
    UploadFolder,
    /// An upload.
    Upload(&'a UploadName),
    /// The same before it is complete.
    UploadPart(&'a UploadName),
    /// The same where an account that is not root puts it first.
    UploadCached(&'a UploadName),
    /// The account's `authorized_keys(5)`.
    AuthorizedKeys,
    /// The same before it is complete.
    AuthorizedKeysPart,
}

impl std::fmt::Display for HostPath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AgentFolder => f.write_str(AGENT_FOLDER),
            Self::Agent(sum) => write!(f, "{AGENT_FOLDER}/corpus-agent-{sum}"),
            Self::AgentPart(sum) => write!(f, "{AGENT_FOLDER}/corpus-agent-{sum}.part"),
            Self::AgentCached(sum) => write!(f, "{CACHE_FOLDER}/corpus-agent-{sum}"),
            Self::UploadFolder => f.write_str(UPLOAD_FOLDER),
            Self::Upload(name) => write!(f, "{UPLOAD_FOLDER}/{name}"),
            Self::UploadPart(name) => write!(f, "{UPLOAD_FOLDER}/{name}.part"),
            Self::UploadCached(name) => write!(f, "{CACHE_FOLDER}/{name}.part"),
            Self::AuthorizedKeys => f.write_str(".ssh/authorized_keys"),
            Self::AuthorizedKeysPart => f.write_str(".ssh/authorized_keys.corpus"),
        }
    }
}

/// A command line.
#[derive(Debug, Clone, Copy)]
pub(super) enum Command<'a> {
    /// Nothing: a login works.
    True,
    /// The number of the account.
    UserId,
    /// Whether the account may become root.
    SudoTrue,
    /// The SHA-256 of a file.
    Sum(Privilege, HostPath<'a>),
    /// A folder exists, root's own, with these permission bits.
    Folder(Privilege, HostPath<'a>, &'static str),
    /// A copy of a file, owned by root and executable.
    InstallAgent(Privilege, HostPath<'a>, HostPath<'a>),
    /// A file takes the place of another.
    Move(Privilege, HostPath<'a>, HostPath<'a>),
    /// A file belongs to root.
    Own(Privilege, HostPath<'a>),
    /// The names in a folder, one a line.
    List(Privilege, HostPath<'a>),
    /// A file is absent.
    Remove(Privilege, HostPath<'a>),
    /// An empty folder is absent.
    RemoveFolder(Privilege, HostPath<'a>),
    /// The agent, speaking on its standard input and output.
    Serve(Privilege, Sha256),
    /// The agent, reading or writing all files of a guest.
    Tree(Privilege, Sha256, &'a TreeWords),
    /// The agent of a guest, serving a member's push or fetch.
    ServeGit(&'a GitRequest),
    /// The agent of a guest, sending a commit to another one.
    SendGit(&'a Carried),
    /// The agent of a guest, taking a commit from another one.
    TakeGit(&'a Carried),
}

impl std::fmt::Display for Command<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::True => f.write_str("true"),
            Self::UserId => f.write_str("id -u"),
            Self::SudoTrue => f.write_str("sudo -n true"),
            Self::Sum(by, path) => write!(f, "{by}sha256sum -- {path}"),
            Self::Folder(by, path, mode) => write!(f, "{by}install -d -m {mode} -- {path}"),
            Self::InstallAgent(by, from, to) => {
                write!(f, "{by}install -m 0755 -o root -g root -T -- {from} {to}")
            }
            Self::Move(by, from, to) => write!(f, "{by}mv -f -T -- {from} {to}"),
            Self::Own(by, path) => write!(f, "{by}chown root:root -- {path}"),
            Self::List(by, path) => write!(f, "{by}ls -1 -- {path}"),
            Self::Remove(by, path) => write!(f, "{by}rm -f -- {path}"),
            Self::RemoveFolder(by, path) => write!(f, "{by}rmdir -- {path}"),
            Self::Serve(by, sum) => write!(f, "{by}{} serve", HostPath::Agent(*sum)),
            Self::Tree(by, sum, words) => write!(f, "{by}{} {words}", HostPath::Agent(*sum)),
            Self::ServeGit(service) => write!(f, "{GUEST_AGENT} project serve-git {service}"),
            Self::SendGit(what) => write!(f, "{GUEST_AGENT} project send-git {}", what.sent()),
            Self::TakeGit(what) => write!(f, "{GUEST_AGENT} project take-git {}", what.taken()),
        }
    }
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct Output {
    /// Its exit status.
    pub(super) status: u32,
    /// What it wrote, cut off at 64 KiB.
    pub(super) stdout: String,
    /// What it complained, cut off at 64 KiB.
    pub(super) stderr: String,
}

/// Runs a command to its end, whatever its exit status.
pub(super) async fn run(on: &Connection, command: Command<'_>, limit: Duration) -> Result<Output, NodeError> {
    let line = command.to_string();
    let late = |_| NodeError::Command {
        host: on.host().to_owned(),
        command: line.clone(),
        reason: format!("not done within {limit:?}"),
    };
    timeout(limit, collect(on, &line)).await.map_err(late)?
}

/// Runs a command that must succeed; gives what it wrote.
pub(super) async fn must(on: &Connection, command: Command<'_>, limit: Duration) -> Result<String, NodeError> {
    let output = run(on, command, limit).await?;
    if output.status == 0 {
        return Ok(output.stdout);
    }
    let said = output.stderr.trim().lines().last().unwrap_or_default();
    let reason = format!("exit status {}: {said}", output.status);
    Err(NodeError::Command { host: on.host().to_owned(), command: command.to_string(), reason })
}

async fn collect(on: &Connection, line: &str) -> Result<Output, NodeError> {
    let mut channel = on.channel().await?;
    channel.exec(true, line).await.map_err(|source| on.lost(&source))?;
    channel.eof().await.map_err(|source| on.lost(&source))?;
    let (mut status, mut stdout, mut stderr) = (None, Vec::new(), Vec::new());
    let mut signal = None;
    while let Some(message) = channel.wait().await {
        match message {
            ChannelMsg::Data { data } => append(&mut stdout, &data),
            ChannelMsg::ExtendedData { data, .. } => append(&mut stderr, &data),
            ChannelMsg::ExitStatus { exit_status } => status = Some(exit_status),
            ChannelMsg::ExitSignal { signal_name, .. } => signal = Some(format!("killed by {signal_name:?}")),
            ChannelMsg::Failure => signal = Some("sshd refused to run it".to_owned()),
            _ => {}
        }
    }
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match (status, signal) {
        (Some(status), _) => Ok(Output { status, stdout: text(stdout), stderr: text(stderr) }),
        (None, Some(reason)) => {
            Err(NodeError::Command { host: on.host().to_owned(), command: line.to_owned(), reason })
        }
        (None, None) => {
            Err(NodeError::Disconnected { host: on.host().to_owned(), reason: format!("while `{line}` ran") })
        }
    }
}

fn append(to: &mut Vec<u8>, bytes: &[u8]) {
    let room = OUTPUT_LIMIT.saturating_sub(to.len());
    to.extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{TreeWhat, TreeWhich};

    #[test]
    fn no_command_line_holds_what_a_shell_would_read() {
        let name: UploadName = "debian-12.tar.zst".parse().unwrap();
        let sum = Sha256::of(b"");
        let by = Privilege::Sudo;
        let service = GitRequest {
            project: "shop".parse().unwrap(),
            service: corpus_domain::GitService::ReceivePack,
            repository: corpus_domain::Repository::Pillar,
            by: "mia.w_1-x".parse().unwrap(),
            deployment: corpus_domain::DeploymentId(uuid::Uuid::nil()),
        };
        let carried = Carried {
            source: "shop".parse().unwrap(),
            project: "shop--login".parse().unwrap(),
            repository: corpus_domain::Repository::Pillar,
            commit: "0123456789012345678901234567890123456789".parse().unwrap(),
            deployment: corpus_domain::DeploymentId(uuid::Uuid::nil()),
        };
        let guest: corpus_domain::GuestName = "www.example.org".parse().unwrap();
        let job = corpus_domain::JobId(uuid::Uuid::nil());
        let words = |what| TreeWords { guest: guest.clone(), job, generation: 3, what };
        let which = [TreeWhich::Snapshot(corpus_domain::SnapshotId(job.0)), TreeWhich::Own, TreeWhich::Written];
        let [reads, sums] = [TreeWhat::Read, TreeWhat::Sum].map(|what| which.map(|which| words(what(which))));
        let writes = [false, true].map(|onto| words(TreeWhat::Write { bytes: 1 << 30, onto }));
        for line in [
            Command::True.to_string(),
            Command::UserId.to_string(),
            Command::SudoTrue.to_string(),
            Command::Sum(by, HostPath::Agent(sum)).to_string(),
            Command::Folder(by, HostPath::AgentFolder, "0755").to_string(),
            Command::InstallAgent(by, HostPath::AgentCached(sum), HostPath::AgentPart(sum)).to_string(),
            Command::Move(by, HostPath::UploadCached(&name), HostPath::Upload(&name)).to_string(),
            Command::Own(by, HostPath::UploadPart(&name)).to_string(),
            Command::List(by, HostPath::AgentFolder).to_string(),
            Command::Remove(by, HostPath::AuthorizedKeysPart).to_string(),
            Command::Serve(by, sum).to_string(),
            Command::Tree(by, sum, &reads[0]).to_string(),
            Command::Tree(by, sum, &reads[1]).to_string(),
            Command::Tree(by, sum, &reads[2]).to_string(),
            Command::Tree(by, sum, &sums[1]).to_string(),
            Command::Tree(by, sum, &writes[0]).to_string(),
            Command::Tree(by, sum, &writes[1]).to_string(),
            Command::ServeGit(&service).to_string(),
            Command::SendGit(&carried).to_string(),
            Command::TakeGit(&carried).to_string(),
        ] {
            assert!(line.bytes().all(|b| b.is_ascii_alphanumeric() || b" -_./:".contains(&b)), "{line}");
        }
        assert!(Command::SendGit(&carried).to_string().contains(" send-git shop pillar "));
        assert!(Command::TakeGit(&carried).to_string().contains(" take-git shop--login pillar "));
        assert_eq!(
            Command::Serve(by, sum).to_string(),
            format!("sudo -n /var/lib/corpus/agent/corpus-agent-{sum} serve")
        );
    }
}
