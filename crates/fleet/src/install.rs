//! Our agent on a host: a file whose name holds its SHA-256, checked on the host itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::command::{Command, HostPath, must, run};
use super::connection::Connection;
use super::error::NodeError;
use super::privilege::Privilege;
use super::sha256::Sha256;
use super::upload::{folder_of_cache, send};

const LIMIT: Duration = Duration::from_secs(30);

/// The agent's binary on the controller, and its sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentBinary {
    path: PathBuf,
    sum: Sha256,
}

/// What an installation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Installed {
    /// Whether the agent had to be copied.
    pub copied: bool,
    /// How many agents of other versions were removed.
    pub removed: u32,
}

impl AgentBinary {
    /// Reads the binary of the setting `agent_binary` once, for its sum.
    pub async fn load(path: &Path) -> Result<Self, NodeError> {
        let local = |source| NodeError::Local { path: path.display().to_string(), source: Arc::new(source) };
        Ok(Self { path: path.to_owned(), sum: Sha256::of_file(path).await.map_err(local)? })
    }

    /// Its SHA-256.
    pub fn sum(&self) -> Sha256 {
        self.sum
    }

    /// Where it is on a node.
    pub fn path_on_node(&self) -> String {
        HostPath::Agent(self.sum).to_string()
    }
}

/// The agent is on the host, is what we have, and is the only version there.
pub async fn install_agent(on: &Connection, by: Privilege, agent: &AgentBinary) -> Result<Installed, NodeError> {
    let copied = !has(on, by, HostPath::Agent(agent.sum), agent.sum).await?;
    if copied {
        copy(on, by, agent).await?;
    }
    Ok(Installed { copied, removed: remove_others(on, by, Some(agent.sum)).await? })
}

/// No agent of any version is left on the host, by its own word.
pub async fn remove_agent(on: &Connection, by: Privilege) -> Result<(), NodeError> {
    if remove_others(on, by, None).await? > 0 && remove_others(on, by, None).await? > 0 {
        return Err(NodeError::Damaged { host: on.host().to_owned(), path: HostPath::AgentFolder.to_string() });
    }
    // What someone else has put there stays, and the folder with it.
    run(on, Command::RemoveFolder(by, HostPath::AgentFolder), LIMIT).await.map(|_| ())
}

/// Whether a file on the host has this sum.
pub(super) async fn has(on: &Connection, by: Privilege, path: HostPath<'_>, sum: Sha256) -> Result<bool, NodeError> {
    let output = run(on, Command::Sum(by, path), LIMIT).await?;
    Ok(output.status == 0 && Sha256::from_sha256sum(&output.stdout) == Some(sum))
}

async fn copy(on: &Connection, by: Privilege, agent: &AgentBinary) -> Result<(), NodeError> {
    let (cached, part, place) =
        (HostPath::AgentCached(agent.sum), HostPath::AgentPart(agent.sum), HostPath::Agent(agent.sum));
    must(on, Command::Folder(by, HostPath::AgentFolder, "0755"), LIMIT).await?;
    let sftp = on.sftp().await?;
    folder_of_cache(on, &sftp).await?;
    send(on, &sftp, &agent.path, cached, &mut |_, _| ()).await?;
    must(on, Command::InstallAgent(by, cached, part), LIMIT).await?;
    must(on, Command::Remove(Privilege::Root, cached), LIMIT).await?;
    if !has(on, by, part, agent.sum).await? {
        must(on, Command::Remove(by, part), LIMIT).await?;
        return Err(NodeError::Damaged { host: on.host().to_owned(), path: part.to_string() });
    }
    must(on, Command::Move(by, part, place), LIMIT).await.map(|_| ())
}

async fn remove_others(on: &Connection, by: Privilege, keep: Option<Sha256>) -> Result<u32, NodeError> {
    let listed = run(on, Command::List(by, HostPath::AgentFolder), LIMIT).await?;
    let mut removed = 0;
    for path in listed.stdout.lines().filter_map(ours).filter(|(sum, _)| Some(*sum) != keep).map(|(_, path)| path) {
        must(on, Command::Remove(by, path), LIMIT).await?;
        removed += 1;
    }
    Ok(removed)
}

/// The agent that a file name stands for; names of any other shape are not ours to touch.
fn ours(name: &str) -> Option<(Sha256, HostPath<'static>)> {
    let digits = name.strip_prefix("corpus-agent-")?;
    if let Some(digits) = digits.strip_suffix(".part") {
        let sum = digits.parse().ok()?;
        return Some((sum, HostPath::AgentPart(sum)));
    }
    let sum = digits.parse().ok()?;
    Some((sum, HostPath::Agent(sum)))
}
