//! The guest's side of a push or fetch: git's own program there, run by our agent.

use russh::Channel;
use russh::client::Msg;

use super::command::Command;
use super::connection::Connection;
use super::error::NodeError;
use crate::git::Service;

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
pub async fn serve_git(on: Connection, service: &Service) -> Result<GitProgram, NodeError> {
    let channel = on.channel().await?;
    let command = Command::ServeGit(service).to_string();
    channel.exec(true, command).await.map_err(|source| on.lost(&source))?;
    Ok(GitProgram { channel, line: GitLine(Some(on)) })
}
