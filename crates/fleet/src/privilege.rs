//! Whether an account can do root's work, and how.

use std::time::Duration;

use super::command::{Command, run};
use super::connection::Connection;
use super::error::NodeError;

const LIMIT: Duration = Duration::from_secs(10);

/// How root's work is done. Displayed, it is what stands before a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privilege {
    /// The account is root.
    Root,
    /// The account has `sudo` without a password.
    Sudo,
}

impl std::fmt::Display for Privilege {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Root => "",
            Self::Sudo => "sudo -n ",
        })
    }
}

/// Finds out how root's work can be done; [`NodeError::NoRoot`] when it can't.
pub async fn privilege(on: &Connection) -> Result<Privilege, NodeError> {
    let id = run(on, Command::UserId, LIMIT).await?;
    if id.status == 0 && id.stdout.trim() == "0" {
        return Ok(Privilege::Root);
    }
    if run(on, Command::SudoTrue, LIMIT).await?.status == 0 {
        return Ok(Privilege::Sudo);
    }
    Err(NodeError::NoRoot { host: on.host().to_owned(), user: on.user().to_owned() })
}
