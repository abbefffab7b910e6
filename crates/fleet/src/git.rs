//! The guest's side of a push or fetch: git's own program there, run by our agent.

use std::fmt;

use corpus_domain::{ActorName, DeploymentId, GitService, ProjectName, Repository};
use russh::Channel;
use russh::client::Msg;

use super::command::Command;
use super::connection::Connection;
use super::error::NodeError;

/// A push or fetch for a guest: validated words only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitRequest {
    /// The project.
    pub project: ProjectName,
    /// Which way.
    pub service: GitService,
    /// Which repository.
    pub repository: Repository,
    /// Who; a robot as `project/name`, which a shell leaves as it is.
    pub by: ActorName,
    /// The id that the deployment gets if the push deploys.
    pub deployment: DeploymentId,
}

impl fmt::Display for GitRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { project, service, repository, by, deployment } = self;
        write!(f, "{project} {service} {repository} --by {by} --deployment {deployment}")
    }
}

/// The program: git's protocol on its standard input and output. Its connection ends with it.
pub struct GitProgram {
    /// The channel; taken once.
    pub channel: Channel<Msg>,
    /// Ends the connection when it is dropped, and with it the program.
    pub line: GitLine,
}

/// The connection of one program.
pub struct GitLine(Option<Connection>);

impl Drop for GitLine {
    fn drop(&mut self) {
        if let (Some(connection), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { connection.close().await });
        }
    }
}

/// Starts the program on the guest, on a connection of its own. What came of it is told on the channel.
pub async fn serve_git(on: Connection, request: &GitRequest) -> Result<GitProgram, NodeError> {
    let channel = on.channel().await?;
    let command = Command::ServeGit(request).to_string();
    channel.exec(true, command).await.map_err(|source| on.lost(&source))?;
    Ok(GitProgram { channel, line: GitLine(Some(on)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words() {
        let request = GitRequest {
            project: "shop".parse().unwrap(),
            service: GitService::ReceivePack,
            repository: Repository::Project,
            by: "mia".parse().unwrap(),
            deployment: DeploymentId(uuid::Uuid::nil()),
        };
        let words = "shop receive-pack project --by mia --deployment 00000000-0000-0000-0000-000000000000";
        assert_eq!(request.to_string(), words);
    }
}
