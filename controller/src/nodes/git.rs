//! The guest's side of a push or fetch: git's own program there, run by our agent.

use russh::Channel;
use russh::client::Msg;

use super::command::Command;
use super::connection::Connection;
use super::error::NodeError;
use crate::git::Service;

/// A channel to the program: git's protocol on its standard input and output.
pub type GitChannel = Channel<Msg>;

/// Starts the program on the guest. What came of it is told on the channel.
pub async fn serve_git(on: &Connection, service: &Service) -> Result<GitChannel, NodeError> {
    let channel = on.channel().await?;
    let command = Command::ServeGit(service).to_string();
    channel.exec(true, command).await.map_err(|source| on.lost(&source))?;
    Ok(channel)
}
