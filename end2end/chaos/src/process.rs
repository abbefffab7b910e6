//! Programs that the matrix runs: always an argv, with a time limit.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// A program that is not started yet.
#[expect(clippy::disallowed_methods, reason = "the matrix plays the world around Corpus, which is made of processes")]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.kill_on_drop(true).stdin(Stdio::null());
    command
}

/// Runs it to its end; gives what it wrote.
pub async fn run(mut command: Command, limit: Duration) -> Result<String> {
    let name = format!("{command:?}");
    let output = tokio::time::timeout(limit, command.output()).await.with_context(|| format!("no end of {name}"))??;
    if !output.status.success() {
        bail!("{name}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
