//! A server process as the conductor sees it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::process::command;
use crate::worker::Order;

/// A running server.
pub struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    pub log: PathBuf,
}

impl Server {
    /// Starts one, and waits until it takes jobs.
    pub async fn start(order: &Order, log: &Path) -> Result<Self> {
        let mut program = command(std::env::current_exe()?);
        program.arg("worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(fs::File::create(log)?);
        let mut child = program.spawn()?;
        let mut input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?).lines();
        input.write_all(format!("{}\n", serde_json::to_string(order)?).as_bytes()).await?;
        let mut server = Self { child, input: Some(input), output, log: log.to_owned() };
        server.hear("ready", Duration::from_secs(30)).await?;
        Ok(server)
    }

    /// Waits until it says this word.
    pub async fn hear(&mut self, word: &str, limit: Duration) -> Result<()> {
        match timeout(limit, self.output.next_line()).await {
            Ok(Ok(Some(line))) if line == word => Ok(()),
            Ok(Ok(other)) => bail!("the server said {other:?} instead of {word}; see {}", self.log.display()),
            Ok(Err(error)) => Err(error).context("the server can't be heard"),
            Err(_) => bail!("the server did not say {word} within {limit:?}; see {}", self.log.display()),
        }
    }

    /// Lets it go on at its point.
    pub async fn go(&mut self) -> Result<()> {
        let input = self.input.as_mut().context("it was told to leave")?;
        Ok(input.write_all(b"go\n").await?)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        Ok(kill_process(pid.context("it has ended")?, signal)?)
    }

    /// Kills it, and waits until it is gone.
    pub async fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Asks it to leave; kills it when it doesn't.
    pub async fn leave(&mut self) -> Result<()> {
        self.input = None;
        match timeout(Duration::from_secs(5), self.child.wait()).await {
            Ok(ended) => ended.map(drop).context("the server"),
            Err(_) => self.kill().await,
        }
    }
}
