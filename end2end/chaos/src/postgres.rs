//! A PostgreSQL of a lane's own, to be crashed at will.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::{Connection, PgConnection};
use tokio::process::Child;
use tokio::time::sleep;

use crate::process::{command, run};

/// It runs as nobody, since it refuses to run as root.
const AS_NOBODY: [&str; 3] = ["--reuid=nobody", "--regid=nogroup", "--clear-groups"];

/// The server and its data.
pub struct Postgres {
    folder: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Postgres {
    /// A new one in this folder, running, with an empty database `corpus`.
    pub async fn create(folder: &Path, port: u16) -> Result<Self> {
        fs::create_dir_all(folder)?;
        std::os::unix::fs::chown(folder, Some(65534), Some(65534))?;
        let mut initdb = command("setpriv");
        initdb.args(AS_NOBODY).arg(tool("initdb")?).arg("-D").arg(folder.join("data"));
        initdb.args(["-U", "corpus", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]).current_dir("/");
        run(initdb, Duration::from_mins(1)).await?;
        let settings = format!(
            "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{}'\nmax_connections = 100\n\
             shared_buffers = 32MB\nfsync = off\nfull_page_writes = off\n",
            folder.display()
        );
        let configuration = folder.join("data/postgresql.conf");
        fs::write(&configuration, fs::read_to_string(&configuration)? + &settings)?;
        let mut postgres = Self { folder: folder.to_owned(), port, server: None };
        postgres.start().await?;
        let mut admin = PgConnection::connect(&postgres.url("postgres")).await?;
        sqlx::query("create database corpus").execute(&mut admin).await?;
        Ok(postgres)
    }

    /// How to reach a database of it.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://corpus@127.0.0.1:{}/{database}", self.port)
    }

    /// Starts it, and waits until it answers.
    pub async fn start(&mut self) -> Result<()> {
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log"))?;
        let mut server = command("setpriv");
        server.args(AS_NOBODY).arg(tool("postgres")?).arg("-D").arg(self.folder.join("data"));
        server.stdout(Stdio::null()).stderr(log).current_dir("/");
        self.server = Some(server.spawn()?);
        for _ in 0..400 {
            if PgConnection::connect(&self.url("postgres")).await.is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(25)).await;
        }
        bail!("PostgreSQL does not start: see {}", self.folder.join("log").display())
    }

    /// Starts it if it does not run.
    pub async fn ensure(&mut self) -> Result<()> {
        if self.server.is_some() { Ok(()) } else { self.start().await }
    }

    /// Ends it as a crash would: no goodbye to anybody, recovery at the next start.
    pub async fn crash(&mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        if let Some(pid) = server.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
            kill_process(pid, Signal::QUIT)?;
        }
        tokio::time::timeout(Duration::from_secs(20), server.wait()).await.context("PostgreSQL does not end")??;
        Ok(())
    }
}

fn tool(name: &str) -> Result<PathBuf> {
    let mut versions: Vec<_> = fs::read_dir("/usr/lib/postgresql")?.flatten().map(|entry| entry.path()).collect();
    versions.sort();
    Ok(versions.pop().context("PostgreSQL is not installed")?.join("bin").join(name))
}
