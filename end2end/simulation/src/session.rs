//! One SSH connection to a simulated node or guest: whoever comes is root.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use russh::keys::PrivateKey;
use russh::server::{self, Auth, ChannelOpenHandle, Config, Msg, Session as Ssh, VerifiedPublicKey};
use russh::{Channel, ChannelId, Preferred, kex};
use tokio::net::TcpStream;

use crate::agent;
use crate::node::Node;
use crate::sftp::Files;

/// The settings of an SSH server with this host key.
pub(crate) fn config(key: PrivateKey) -> Arc<Config> {
    Arc::new(Config {
        keys: vec![key],
        nodelay: true,
        preferred: Preferred {
            // What OpenSSH of Debian 12 and the controller agree on.
            kex: Cow::Borrowed(&[kex::CURVE25519, kex::EXTENSION_SUPPORT_AS_SERVER]),
            ..Preferred::DEFAULT
        },
        ..Config::default()
    })
}

/// Serves the connection to its end.
pub(crate) async fn run(stream: TcpStream, config: Arc<Config>, node: Arc<Node>) {
    let address = node.address;
    let _ = stream.set_nodelay(true);
    let session = Session { node, channels: HashMap::new() };
    let ended = match server::run_stream(config, stream, session).await {
        Ok(running) => running.await,
        Err(error) => Err(error),
    };
    if let Err(error) = ended {
        tracing::debug!(%address, %error, "a connection ended");
    }
}

struct Session {
    node: Arc<Node>,
    channels: HashMap<ChannelId, Channel<Msg>>,
}

impl server::Handler for Session {
    type Error = russh::Error;

    async fn auth_publickey(&mut self, _: &str, _: VerifiedPublicKey<'_>) -> Result<Auth, russh::Error> {
        Ok(Auth::Accept)
    }

    async fn auth_password(&mut self, _: &str, _: &str) -> Result<Auth, russh::Error> {
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Ssh,
    ) -> Result<(), russh::Error> {
        self.channels.insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(&mut self, id: ChannelId, line: &[u8], ssh: &mut Ssh) -> Result<(), russh::Error> {
        let Some(channel) = self.channels.remove(&id) else { return ssh.channel_failure(id) };
        ssh.channel_success(id)?;
        let (line, node) = (String::from_utf8_lossy(line).into_owned(), Arc::clone(&self.node));
        tokio::spawn(async move {
            if line.ends_with(" serve") {
                agent::serve(channel, &node).await;
            } else if let Err(error) = answer(&channel, &line, &node).await {
                tracing::debug!(address = %node.address, line, %error, "a command was not answered");
            }
        });
        Ok(())
    }

    async fn subsystem_request(&mut self, id: ChannelId, name: &str, ssh: &mut Ssh) -> Result<(), russh::Error> {
        match self.channels.remove(&id) {
            Some(channel) if name == "sftp" => {
                ssh.channel_success(id)?;
                russh_sftp::server::run(channel.into_stream(), Files::new(Arc::clone(&self.node))).await;
                Ok(())
            }
            _ => ssh.channel_failure(id),
        }
    }
}

/// The constant commands of the controller. Each file that it asks the sum of is there and whole,
/// so nothing has to be copied.
async fn answer(channel: &Channel<Msg>, line: &str, node: &Node) -> Result<(), russh::Error> {
    node.wait_until_it_speaks().await;
    let output = match line.split_once(" -- ") {
        Some(("sha256sum", path)) => {
            let sum = path.rsplit('-').next().unwrap_or_default().trim_end_matches(".part");
            format!("{sum}  {path}\n")
        }
        _ if line == "id -u" => "0\n".to_owned(),
        _ => String::new(),
    };
    if !output.is_empty() {
        channel.data_bytes(output.into_bytes()).await?;
    }
    channel.exit_status(0).await?;
    channel.eof().await?;
    channel.close().await
}
