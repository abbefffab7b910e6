//! A private PostgreSQL for who has none: made and run from the installed binaries.
//!
//! It lives below the data folder and listens on a Unix socket only, in a folder that nobody
//! else may enter. It outlives a killed server: the next start finds it running and uses it,
//! or clears a stale pid file and starts it again. As root it runs as the user `postgres`
//! (or `nobody`), since PostgreSQL refuses root.
#![expect(clippy::disallowed_methods, reason = "starting the private PostgreSQL is this module's purpose")]

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, PgConnection};
use thiserror::Error;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// A private PostgreSQL can't be had.
#[derive(Debug, Error)]
pub enum PostgresError {
    /// No binaries.
    #[error(
        "no PostgreSQL binaries found in /usr/lib/postgresql/*/bin or PATH: install the package postgresql, or set database_url"
    )]
    NoBinaries,
    /// The user it would run as can't reach the data folder.
    #[error(
        "the user {user} can't pass the folder {folder} (mode {mode:03o}), so the private PostgreSQL can't live in {place}: choose another data_folder such as /var/lib/corpus, or run `chmod o+x {folder}`, or set database_url"
    )]
    Unreachable {
        /// Who.
        user: String,
        /// The closed folder.
        folder: PathBuf,
        /// Its mode.
        mode: u32,
        /// Where the database should live.
        place: PathBuf,
    },
    /// A Unix socket's path has 107 bytes at most (`sun_path` in `unix(7)`).
    #[error("data_folder {0} is too long for a Unix socket below it: 80 characters at most")]
    TooLong(PathBuf),
    /// Root, and no user to run as.
    #[error("the server is root, PostgreSQL refuses root, and there is neither a user postgres nor nobody")]
    NoUser,
    /// A file operation failed.
    #[error("the private PostgreSQL could not be prepared: {what}")]
    Files {
        /// What was being done.
        what: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It ended or did not answer.
    #[error("the private PostgreSQL did not start; the end of its log:\n{0}")]
    NotStarted(String),
    /// A tool failed.
    #[error("{tool} failed: {output}")]
    Tool {
        /// Which.
        tool: &'static str,
        /// What it said.
        output: String,
    },
}

type Result<T> = std::result::Result<T, PostgresError>;

fn files(what: impl Into<String>) -> impl FnOnce(io::Error) -> PostgresError {
    let what = what.into();
    move |source| PostgresError::Files { what, source }
}

/// The running private PostgreSQL.
#[derive(Debug, Clone)]
pub struct Private {
    binaries: PathBuf,
    folder: PathBuf,
    user: Option<User>,
    found_running: bool,
}

/// Whom it runs as when the server is root.
#[derive(Debug, Clone)]
struct User {
    name: String,
    uid: u32,
    gid: u32,
}

impl User {
    /// A line of `passwd(5)`.
    fn of_line(line: &str) -> Option<Self> {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        let mut ids = fields.skip(1);
        Some(Self { name, uid: ids.next()?.parse().ok()?, gid: ids.next()?.parse().ok()? })
    }
}

impl Private {
    /// Starts it below the data folder, or finds it running there; returns when it answers.
    pub async fn start(data_folder: &Path) -> Result<Self> {
        let data_folder = std::path::absolute(data_folder).map_err(files("resolving data_folder"))?;
        let folder = data_folder.join("postgres");
        if folder.as_os_str().len() > 90 {
            return Err(PostgresError::TooLong(data_folder));
        }
        let binaries = find_binaries().ok_or(PostgresError::NoBinaries)?;
        let user = user(&data_folder, &folder)?;
        let mut this = Self { binaries, folder, user, found_running: false };
        this.prepare().await?;
        if this.answers().await {
            tracing::info!(folder = %this.folder.display(), "the private PostgreSQL is already running");
            this.found_running = true;
        } else if this.is_alive()? {
            this.wait(None).await?;
        } else {
            this.run().await?;
        }
        this.ensure_database().await?;
        Ok(this)
    }

    /// Whether it was running before: someone else may be using it.
    pub const fn was_running(&self) -> bool {
        self.found_running
    }

    /// How to connect to it.
    pub fn options(&self) -> PgConnectOptions {
        self.options_of("corpus")
    }

    /// Where its sockets are: `host` of an address.
    pub fn socket_folder(&self) -> PathBuf {
        self.sockets()
    }

    fn options_of(&self, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass().socket(self.sockets()).username("corpus").database(database)
    }

    /// Stops it; open connections are closed.
    pub async fn stop(&self) -> Result<()> {
        let data = self.data();
        let args = ["stop", "-D"].map(OsStr::new);
        let rest = ["-m", "fast", "-w", "-t", "20"].map(OsStr::new);
        self.tool("pg_ctl", args.into_iter().chain([data.as_os_str()]).chain(rest)).await
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn sockets(&self) -> PathBuf {
        self.folder.join("run")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Makes folders, cluster and configuration; what is there already stays.
    async fn prepare(&self) -> Result<()> {
        for folder in [self.folder.clone(), self.sockets()] {
            std::fs::create_dir_all(&folder).map_err(files(format!("making {}", folder.display())))?;
            let private = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(&folder, private).map_err(files("setting the mode of a folder"))?;
            self.give(&folder)?;
        }
        if let Some(user) = &self.user {
            passable(&self.folder, user)?;
        }
        if !self.data().join("PG_VERSION").exists() {
            self.init().await?;
        }
        let text = format!(
            "listen_addresses = ''\nunix_socket_directories = '{}'\nunix_socket_permissions = 0700\n\
             max_connections = 50\nshared_buffers = 32MB\nlogging_collector = off\n",
            self.sockets().display().to_string().replace('\'', "''"),
        );
        let path = self.data().join("corpus.conf");
        std::fs::write(&path, text).map_err(files("writing corpus.conf"))?;
        self.give(&path)
    }

    async fn init(&self) -> Result<()> {
        let data = self.data();
        let args = ["-U", "corpus", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-D"].map(OsStr::new);
        self.tool("initdb", args.into_iter().chain([data.as_os_str()])).await?;
        let path = data.join("postgresql.conf");
        let mut text = std::fs::read_to_string(&path).map_err(files("reading postgresql.conf"))?;
        text.push_str("include 'corpus.conf'\n");
        std::fs::write(&path, text).map_err(files("writing postgresql.conf"))
    }

    /// Starts the postmaster in a process group of its own, so that Ctrl-C in a terminal reaches the server only.
    async fn run(&self) -> Result<()> {
        let log = std::fs::File::create(self.log()).map_err(files("making the log"))?;
        self.give(&self.log())?;
        let data = self.data();
        let mut child = self
            .command("postgres", [OsStr::new("-D"), data.as_os_str()])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(files("sharing the log"))?)
            .stderr(log)
            .spawn()
            .map_err(files("starting postgres"))?;
        self.wait(Some(&mut child)).await?;
        tokio::spawn(async move { child.wait().await });
        Ok(())
    }

    /// Waits until it answers: after a crash it replays its journal first.
    async fn wait(&self, mut child: Option<&mut Child>) -> Result<()> {
        let limit = Instant::now() + Duration::from_mins(1);
        while Instant::now() < limit {
            if self.answers().await {
                return Ok(());
            }
            if let Some(child) = &mut child
                && child.try_wait().map_err(files("watching postgres"))?.is_some()
            {
                break;
            }
            sleep(Duration::from_millis(50)).await;
        }
        Err(PostgresError::NotStarted(self.end_of_log()))
    }

    async fn answers(&self) -> bool {
        let options = self.options_of("postgres");
        let connecting = PgConnection::connect_with(&options);
        matches!(tokio::time::timeout(Duration::from_secs(5), connecting).await, Ok(Ok(_)))
    }

    async fn ensure_database(&self) -> Result<()> {
        let failed = |error: sqlx::Error| PostgresError::Tool { tool: "create database", output: error.to_string() };
        let mut connection = PgConnection::connect_with(&self.options_of("postgres")).await.map_err(failed)?;
        match sqlx::query("create database corpus").execute(&mut connection).await {
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42P04") => Ok(()),
            done => done.map(drop).map_err(failed),
        }
    }

    /// Whether a postmaster of it lives. Removes the pid file of one that is gone: PostgreSQL does
    /// so itself unless the number now belongs to some other process, as after a reboot.
    fn is_alive(&self) -> Result<bool> {
        let path = self.data().join("postmaster.pid");
        let Ok(text) = std::fs::read_to_string(&path) else { return Ok(false) };
        let pid = text.lines().next().unwrap_or_default().trim();
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        if name.trim() == "postgres" {
            return Ok(true);
        }
        tracing::warn!(pid, "removing the pid file of a PostgreSQL that is gone");
        std::fs::remove_file(&path).map_err(files("removing a stale postmaster.pid"))?;
        Ok(false)
    }

    fn give(&self, path: &Path) -> Result<()> {
        let Some(user) = &self.user else { return Ok(()) };
        chown(path, Some(user.uid), Some(user.gid)).map_err(files(format!(
            "giving {} to {}",
            path.display(),
            user.name
        )))
    }

    fn command<'a>(&self, tool: &str, args: impl IntoIterator<Item = &'a OsStr>) -> Command {
        let binary = self.binaries.join(tool);
        let mut command = match &self.user {
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid));
                command.arg("--clear-groups").arg("--").arg(binary);
                command
            }
            None => Command::new(binary),
        };
        command.args(args).current_dir("/").env_remove("DATABASE_URL");
        command
    }

    /// Runs a tool to its end. Its output goes to the log file: a pipe would stay open in a process it leaves behind.
    async fn tool<'a>(&self, tool: &'static str, args: impl IntoIterator<Item = &'a OsStr>) -> Result<()> {
        let log =
            std::fs::File::options().create(true).append(true).open(self.log()).map_err(files("opening the log"))?;
        let status = self
            .command(tool, args)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(files("sharing the log"))?)
            .stderr(log)
            .status()
            .await
            .map_err(files(format!("starting {tool}")))?;
        if status.success() { Ok(()) } else { Err(PostgresError::Tool { tool, output: self.end_of_log() }) }
    }

    fn end_of_log(&self) -> String {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines.get(lines.len().saturating_sub(10)..).unwrap_or_default().join("\n")
    }
}

/// The folder with the binaries of a server.
fn find_binaries() -> Option<PathBuf> {
    find_folder(&["initdb", "postgres", "pg_ctl"])
}

/// A tool that speaks to a server.
pub fn client_tool(name: &str) -> Option<PathBuf> {
    find_folder(&[name]).map(|folder| folder.join(name))
}

/// The folder with all these tools, of the highest version, else one of PATH.
fn find_folder(tools: &[&str]) -> Option<PathBuf> {
    let complete = |folder: &Path| tools.iter().all(|tool| folder.join(tool).exists());
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let highest = versions
        .filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            let folder = entry.path().join("bin");
            complete(&folder).then_some((version, folder))
        })
        .max();
    let path = std::env::var_os("PATH").unwrap_or_default();
    highest.map(|(_, folder)| folder).or_else(|| std::env::split_paths(&path).find(|folder| complete(folder)))
}

/// Whom to run as: nobody else unless the server is root. Then whoever has the data folder, so that a command of root's
/// takes nothing away from the service; in a folder of root's the user that Debian has for PostgreSQL.
fn user(data_folder: &Path, database: &Path) -> Result<Option<User>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let text = std::fs::read_to_string("/etc/passwd").map_err(files("reading /etc/passwd"))?;
    let users: Vec<User> = text.lines().filter_map(User::of_line).collect();
    let owners = [database, data_folder].into_iter().filter_map(|path| std::fs::metadata(path).ok());
    let mut of_owners = owners.filter_map(|meta| users.iter().find(|user| user.uid == meta.uid() && meta.uid() != 0));
    let mut of_names =
        ["postgres", "nobody"].into_iter().filter_map(|name| users.iter().find(|user| user.name == name));
    of_owners.next().or_else(|| of_names.next()).cloned().map(Some).ok_or(PostgresError::NoUser)
}

/// Checks that the user can pass every folder above the database.
fn passable(place: &Path, user: &User) -> Result<()> {
    for folder in place.ancestors().skip(1) {
        let meta = std::fs::metadata(folder).map_err(files(format!("looking at {}", folder.display())))?;
        let bit = match meta {
            ref meta if meta.uid() == user.uid => 0o100,
            ref meta if meta.gid() == user.gid => 0o010,
            _ => 0o001,
        };
        if meta.mode() & bit == 0 {
            let (folder, mode) = (folder.to_owned(), meta.mode() & 0o777);
            return Err(PostgresError::Unreachable { user: user.name.clone(), folder, mode, place: place.to_owned() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the database's user can pass also when the tests run as root.
    fn place() -> tempfile::TempDir {
        let dir = tempfile::Builder::new().prefix("corpus-pg").tempdir_in("/var/tmp").unwrap();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        dir
    }

    #[tokio::test]
    async fn starts_is_found_again_survives_a_crash_and_stops() {
        let dir = place();
        let first = Private::start(dir.path()).await.unwrap();
        let pid_file = first.data().join("postmaster.pid");
        let pid = |path: &Path| std::fs::read_to_string(path).unwrap().lines().next().unwrap().to_owned();
        let before = pid(&pid_file);
        let mut connection = PgConnection::connect_with(&first.options()).await.unwrap();
        sqlx::query("create table kept (n int)").execute(&mut connection).await.unwrap();

        let second = Private::start(dir.path()).await.unwrap();
        assert_eq!(pid(&pid_file), before, "a running one is used again");
        assert!(second.was_running() && !first.was_running());

        second.stop().await.unwrap();
        std::fs::write(&pid_file, format!("{}\n{}\n", std::process::id(), second.data().display())).unwrap();
        let third = Private::start(dir.path()).await.unwrap();
        let mut connection = PgConnection::connect_with(&third.options()).await.unwrap();
        sqlx::query("select n from kept").fetch_all(&mut connection).await.unwrap();
        third.stop().await.unwrap();
        assert!(!third.answers().await);
    }

    #[test]
    fn root_leaves_it_to_whoever_has_the_folder() {
        let root = rustix::process::geteuid().is_root();
        let dir = place();
        let database = dir.path().join("postgres");
        let whom = || user(dir.path(), &database).unwrap().map(|user| user.name);
        assert_eq!(whom(), root.then(|| "postgres".to_owned()));
        if root {
            chown(dir.path(), Some(65534), Some(65534)).unwrap();
        }
        assert_eq!(whom(), root.then(|| "nobody".to_owned()));
        // What is there already stays whose it is.
        std::fs::create_dir(&database).unwrap();
        if root {
            chown(&database, Some(1), Some(1)).unwrap();
        }
        assert_eq!(whom(), root.then(|| "daemon".to_owned()));
    }

    #[test]
    fn a_closed_folder_is_named() {
        let dir = place();
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let user = User { name: "nobody".to_owned(), uid: 65534, gid: 65534 };
        let error = passable(&dir.path().join("postgres"), &user).unwrap_err().to_string();
        assert!(error.contains(&format!("chmod o+x {}", dir.path().display())), "{error}");
    }
}
