//! The directory of certificates of a lane, and the controller that issues by it.
//!
//! Only the jobs that are about it know it: with a directory each name that is attached is followed by a job of its own,
//! which would run into the cells of others. Theirs have certificates of the internal authority.

use anyhow::Result;
use corpus_acme::pebble_server::PebbleServer;
use corpus_controller::Controller;

use crate::setting::{DirectoryAddress, Setting};

/// The proxy's port on a node, which the directory asks whether a name is ours.
const HTTP_PORT: u16 = 80;

/// A real one, which asks the lab's DNS server and the nodes.
pub struct Directory {
    server: PebbleServer,
    pub setting: Setting,
    pub controller: Controller,
}

impl Directory {
    /// Starts one, for a lane of this setting.
    pub async fn open(setting: &Setting) -> Result<Self> {
        let dns = setting.authority.parse()?;
        let server = tokio::task::spawn_blocking(move || PebbleServer::of_world(dns, HTTP_PORT)).await?;
        let url = server.settings().directory.to_string();
        let address = DirectoryAddress { url, root: server.root() };
        let setting = Setting { directory: Some(address), ..setting.clone() };
        let controller = setting.open().await?;
        Ok(Self { server, setting, controller })
    }

    /// The last that it has said, for who looks why a job failed.
    pub fn said(&self) -> String {
        let log = self.server.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default();
        format!("    {}\n", last.join("\n    "))
    }
}
