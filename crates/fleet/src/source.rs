//! What an agent says: its lines, its complaints, its end.

use std::sync::Arc;

use bytes::Bytes;
use corpus_protocol::{FromAgent, VERSION};
use russh::{ChannelMsg, ChannelReadHalf};

use super::error::NodeError;
use super::lines::{Lines, Tail, excerpt};

/// The agent's side of the channel.
pub(super) struct Source {
    incoming: ChannelReadHalf,
    host: Arc<str>,
    lines: Lines,
    stderr: Tail,
    end: Option<String>,
}

impl Source {
    /// Reads from this channel.
    pub(super) fn new(incoming: ChannelReadHalf, host: Arc<str>) -> Self {
        Self { incoming, host, lines: Lines::default(), stderr: Tail::default(), end: None }
    }

    /// The next line. What comes after an exit status is still read; only a closed channel ends it.
    pub(super) async fn next(&mut self) -> Result<Bytes, NodeError> {
        loop {
            if let Some(line) = self.lines.next_line().map_err(|_| self.protocol("a line without end".to_owned()))? {
                return Ok(line);
            }
            match self.incoming.wait().await {
                Some(ChannelMsg::Data { data }) => self.lines.push(&data),
                Some(ChannelMsg::ExtendedData { data, .. }) => self.stderr.push(&data),
                Some(ChannelMsg::ExitStatus { exit_status }) => self.end = Some(format!("exit status {exit_status}")),
                Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                    self.end = Some(format!("killed by {signal_name:?}"));
                }
                Some(ChannelMsg::Failure) => self.end = Some("sshd refused to start it".to_owned()),
                Some(_) => {}
                None => return Err(self.ended()),
            }
        }
    }

    /// Whether the first line is the hello of an agent of our build that runs as root.
    pub(super) fn check_hello(&mut self, line: &[u8], user: &str) -> Result<(), NodeError> {
        match serde_json::from_slice(line) {
            Ok(FromAgent::Hello { version: VERSION, root: true }) => Ok(()),
            Ok(FromAgent::Hello { version: VERSION, root: false }) => {
                Err(NodeError::NoRoot { host: self.host.to_string(), user: user.to_owned() })
            }
            Ok(FromAgent::Hello { version, .. }) => {
                Err(self.protocol(format!("it speaks version {version}, this controller {VERSION}")))
            }
            _ => Err(self.protocol(format!("{:?} instead of hello", excerpt(line)))),
        }
    }

    fn ended(&mut self) -> NodeError {
        let host = self.host.to_string();
        match self.end.take() {
            Some(reason) => NodeError::AgentEnded { host, reason, stderr: self.stderr.take() },
            None => NodeError::Disconnected { host, reason: "the line was cut".to_owned() },
        }
    }

    /// The error for a line that makes no sense, with what the agent complained.
    pub(super) fn protocol(&mut self, what: String) -> NodeError {
        NodeError::Protocol { host: self.host.to_string(), what, stderr: self.stderr.take() }
    }
}
