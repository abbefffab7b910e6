//! The process with the simulated nodes.

use std::process::Stdio;

use anyhow::Context;
use corpus_simulation::{Fault, Place};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin};

use crate::Break;

/// It runs until it is dropped: then its standard input ends.
pub(crate) struct Nodes {
    pub(crate) place: Place,
    child: Child,
    input: ChildStdin,
}

impl Nodes {
    /// This program once more, with another command.
    pub(crate) async fn start(nodes: u16, guests: u8) -> anyhow::Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "a measuring program that starts itself, with constant arguments"
        )]
        let mut command = tokio::process::Command::new(std::env::current_exe()?);
        command.args(["nodes", &nodes.to_string(), &guests.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let input = child.stdin.take().context("no standard input")?;
        let output = child.stdout.take().context("no standard output")?;
        let said = BufReader::new(output).lines().next_line().await?.context("the simulation ended at once")?;
        Ok(Self { place: serde_json::from_str(&said)?, child, input })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Breaks a node, or repairs it.
    pub(crate) async fn set_fault(&mut self, node: usize, fault: Fault) -> anyhow::Result<()> {
        let line = serde_json::to_string(&Break { node, fault })?;
        Ok(self.input.write_all(format!("{line}\n").as_bytes()).await?)
    }
}
