//! The server that is measured: the program beside this one, with settings of its own on the filled database.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use corpus_scale::readers::Reader;
use reqwest::header::{ACCEPT_ENCODING, COOKIE};
use reqwest::{Client, Response, redirect};
use tempfile::TempDir;
use tokio::process::{Child, ChildStderr};

/// How long it may take to start, and to answer.
const START: Duration = Duration::from_mins(1);
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);
const FILES: [(&str, &str); 3] =
    [("site/pkg/corpus.css", "body{}"), ("site/hash.txt", "js: 0123456789\nwasm: abcdef0123\n"), ("agent", "no agent")];

/// Where servers keep what they keep, one after the other: the same seal key, the same database.
pub(crate) struct Place {
    folder: TempDir,
    database: String,
}

/// A server; it runs until it is stopped or dropped.
pub(crate) struct Running {
    pub(crate) url: String,
    client: Client,
    child: Child,
    log: PathBuf,
}

impl Place {
    pub(crate) fn new(database: &str) -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        std::fs::create_dir_all(folder.path().join("site/pkg"))?;
        for (name, text) in FILES {
            std::fs::write(folder.path().join(name), text)?;
        }
        Ok(Self { folder, database: database.to_owned() })
    }

    /// Starts one that logs as it is shipped, into a file.
    pub(crate) async fn start(&self) -> anyhow::Result<Running> {
        let log = File::create(self.at("log"))?;
        self.spawn("", Stdio::from(log)).await
    }

    /// Starts one with a log of its own, which is to be read.
    pub(crate) async fn start_logging(&self, filter: &str) -> anyhow::Result<(Running, ChildStderr)> {
        let mut running = self.spawn(&format!("[log]\nformat = 'json'\nfilter = '{filter}'\n"), Stdio::piped()).await?;
        let said = running.child.stderr.take().context("no standard error")?;
        Ok((running, said))
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    async fn spawn(&self, more: &str, log: Stdio) -> anyhow::Result<Running> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let text = format!(
            "listen = '127.0.0.1:{port}'\ndatabase_url = '{}'\nsite_folder = '{}'\ndata_folder = '{}'\nagent_binary = '{}'\n\
             [api]\nrequests_per_minute = 1000000\n{more}",
            self.database,
            self.at("site").display(),
            self.at("data").display(),
            self.at("agent").display(),
        );
        std::fs::write(self.at("corpus.toml"), text)?;
        #[expect(clippy::disallowed_methods, reason = "a measuring program that starts what it measures")]
        let mut command = tokio::process::Command::new(program()?);
        command.arg("--config").arg(self.at("corpus.toml")).env_clear().stdin(Stdio::null()).stdout(Stdio::null());
        let child =
            command.stderr(log).kill_on_drop(true).spawn().context("corpus-server is not beside this program")?;
        let mut running =
            Running { url: format!("http://127.0.0.1:{port}"), client: client()?, child, log: self.at("log") };
        running.ready().await?;
        Ok(running)
    }
}

impl Running {
    async fn ready(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        while !self.client.get(format!("{}/readyz", self.url)).send().await.is_ok_and(|answer| answer.status() == 200) {
            if let Some(status) = self.child.try_wait()? {
                let log = std::fs::read_to_string(&self.log).unwrap_or_default();
                anyhow::bail!("the server ended at once, {status}: {log}");
            }
            anyhow::ensure!(began.elapsed() < START, "the server was not ready within {START:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Asks for an address, uncompressed.
    pub(crate) async fn get(&self, path: &str, reader: &Reader) -> reqwest::Result<Response> {
        self.client.get(format!("{}{path}", self.url)).header(COOKIE, &reader.cookie).send().await
    }

    /// Asks for an address as browsers do.
    pub(crate) async fn get_compressed(&self, path: &str, reader: &Reader) -> reqwest::Result<Response> {
        let asking = self.client.get(format!("{}{path}", self.url)).header(COOKIE, &reader.cookie);
        asking.header(ACCEPT_ENCODING, "br, gzip").send().await
    }

    /// Asks for an address under an id that the server's log has.
    pub(crate) async fn get_as(&self, id: &str, path: &str, cookie: &str) -> reqwest::Result<Response> {
        self.client.get(format!("{}{path}", self.url)).header(COOKIE, cookie).header("x-request-id", id).send().await
    }

    /// Ends it; nothing of it is needed any more.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }
}

/// Somebody with a connection that stays.
pub(crate) fn client() -> reqwest::Result<Client> {
    // It is asked for though nothing here speaks TLS; only the first call installs it.
    rustls::crypto::ring::default_provider().install_default().ok();
    Client::builder().redirect(redirect::Policy::none()).pool_max_idle_per_host(1).timeout(ANSWER_TIMEOUT).build()
}

fn program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.with_file_name("corpus-server"))
}
