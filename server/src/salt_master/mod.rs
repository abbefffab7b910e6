//! The controller's Salt master: a service of its own beside the server (`corpus-server salt-master`), several of them if wanted.
//!
//! A master gives a guest's secrets to whoever has its minion's key. So it takes no key because it came: which keys there are
//! is said by the database, where the controller keeps what guests told it over their pinned lines, and this service makes
//! the master's folder say the same, within half a second. A key that is in the folder and in no row is gone then, with all
//! that the master remembers of its minion, so that a name that is used again inherits nothing. Who asked in vain is told.
//!
//! Server and master share nothing but the database: the server tells a master's minions by rows, and hears from the master
//! by rows that it is there and knows them.
#![expect(clippy::disallowed_methods, reason = "running Salt's master is this module's purpose")]

mod tree;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use corpus_controller::store::audit::{self, Author};
use corpus_controller::store::salt_masters::{self, Minion, NewMaster};
use corpus_database::{Db, beside};
use corpus_domain::Door;
use corpus_gate::audit::Entry;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

pub use self::tree::Source;
use self::tree::Tree;
use crate::config::Settings;
use crate::database::Database;

/// Starts Salt.
const RUN: &str = include_str!("run.py");
/// What minions are told of their guests.
const PILLAR: &str = include_str!("corpus.py");
/// How often it is looked whether the database says something else than the folder.
const EVERY: Duration = Duration::from_millis(500);
/// How often the folder is made to say what the database does even so: somebody may have been at it.
const WHOLE: Duration = Duration::from_mins(1);
/// How often it says that it is there.
const SAYS_SO: Duration = Duration::from_secs(10);
/// How soon it is tried again to have states at all.
const FIRST_STATES: Duration = Duration::from_secs(10);
/// As many minions that were not taken are told of at once; the others are when they ask again.
const STRANGERS: usize = 50;
/// How long the master may take to make its key, and to end.
const STARTS: Duration = Duration::from_mins(1);
const ENDS: Duration = Duration::from_secs(10);

/// What a master is.
#[derive(Debug, Clone)]
pub struct SaltMaster {
    /// What it is called, among several.
    pub name: String,
    /// Where it listens.
    pub listen: IpAddr,
    /// Where guests reach it: a host name or an address.
    pub address: String,
    /// Where it publishes.
    pub publish_port: u16,
    /// Where it answers.
    pub request_port: u16,
    /// The states that operators write, unless they are in git.
    pub states: PathBuf,
    /// The pillar that they write, unless it is in git.
    pub pillar: PathBuf,
    /// The git repository that has both, and how often it is asked.
    pub git: Option<(Source, Duration)>,
    /// Its own folder.
    pub folder: PathBuf,
}

impl SaltMaster {
    fn minion_keys(&self) -> PathBuf {
        self.folder.join("pki/minions")
    }

    fn told(&self) -> PathBuf {
        self.folder.join("guests")
    }

    /// Where Salt reads states and pillar.
    fn roots(&self) -> (PathBuf, PathBuf) {
        if self.git.is_none() {
            return (self.states.clone(), self.pillar.clone());
        }
        let current = Tree::below(&self.folder).current();
        (current.join("states"), current.join("pillar"))
    }

    fn values(&self) -> Value {
        let (states, pillar) = self.roots();
        json!({
            "id": self.name,
            "interface": self.listen,
            "publish_port": self.publish_port,
            "ret_port": self.request_port,
            "transport": "tcp",
            "root_dir": "/",
            "pki_dir": self.folder.join("pki"),
            "cachedir": self.folder.join("cache"),
            "sock_dir": self.folder.join("run"),
            "pidfile": self.folder.join("master.pid"),
            "log_file": "/dev/null",
            "extension_modules": self.folder.join("modules"),
            "ext_pillar": [{"corpus": self.told()}],
            "file_roots": {"base": [states]},
            "pillar_roots": {"base": [pillar]},
            "auto_accept": false,
            "open_mode": false,
            "allow_minion_key_revoke": false,
            "file_recv": false,
            "peer": {},
            "peer_run": {},
            "minion_data_cache": false,
            "enable_fqdns_grains": false,
        })
    }
}

/// Runs it until it is told to end.
pub async fn run(settings: &Settings, until: CancellationToken) -> anyhow::Result<()> {
    let master = settings.salt_master.as_ref().context("the configuration has no section [salt_master]")?;
    let bundle = settings.salt_bundle.as_deref().context("salt_bundle is not set: a master is run from it")?;
    let database = Database::reach(settings).await?;
    let packages = prepare(master, bundle).await?;
    if !first_states(master, &until).await {
        database.leave().await;
        return Ok(());
    }
    // A folder of yesterday has keys of guests that are gone: Salt begins with those of now.
    let minions = salt_masters::minions(&mut *database.db.acquire().await?, &master.name).await?;
    lay_down(master, &minions).await?;
    let mut child = start(master, &packages)?;
    let served = async {
        register(master, &database.db).await?;
        serve(master, &packages, &mut child, &database.db, &until).await
    };
    let served = served.await;
    end(child).await;
    database.leave().await;
    served
}

/// Says that the master is there, from now on.
async fn register(master: &SaltMaster, db: &Db) -> anyhow::Result<()> {
    let public_key = public_key(master).await?;
    let new = NewMaster {
        name: &master.name,
        address: &master.address,
        ports: (master.publish_port, master.request_port),
        public_key: &public_key,
        follows_git: master.git.is_some(),
    };
    salt_masters::register(&mut *db.acquire().await?, &new).await?;
    tracing::info!(name = master.name, address = master.address, "the Salt master is there");
    Ok(())
}

/// What is done as long as it runs.
async fn serve(
    master: &SaltMaster,
    packages: &Path,
    child: &mut Child,
    db: &Db,
    until: &CancellationToken,
) -> anyhow::Result<()> {
    tokio::select! {
        kept = keep(master, packages, child, db, until) => kept,
        never = beside(follow_tree(master, db)) => match never {},
    }
}

/// Keeps it running until it is told to end, and the minions that it knows those that it is to know.
async fn keep(
    master: &SaltMaster,
    packages: &Path,
    child: &mut Child,
    db: &Db,
    until: &CancellationToken,
) -> anyhow::Result<()> {
    let mut following = Following::default();
    loop {
        tokio::select! {
            () = until.cancelled() => return Ok(()),
            ended = child.wait() => {
                tracing::warn!(status = %ended?, "the Salt master ended, and is started again");
                sleep(Duration::from_secs(2)).await;
                *child = start(master, packages)?;
            }
            () = sleep(EVERY) => {
                // A database that is away for a while keeps nobody from being managed: what was known stays so.
                if let Err(error) = following.follow(master, db).await {
                    tracing::warn!(error = &*error as &dyn std::error::Error, "the minions' keys could not be brought up to date");
                }
            }
        }
    }
}

/// Whether there are states to begin with: a master without any would have guests be told that all is well.
async fn first_states(master: &SaltMaster, until: &CancellationToken) -> bool {
    let Some((source, _)) = &master.git else { return true };
    let tree = Tree::below(&master.folder);
    loop {
        let followed = async {
            tree.prepare().await?;
            tree.follow(source).await
        };
        match followed.await {
            Ok(commit) => {
                tracing::info!(%commit, "the states of operators are there");
                return true;
            }
            Err(error) => {
                tracing::warn!(error = &*error as &dyn std::error::Error, "the states of operators can't be had");
            }
        }
        if tree.current().join("states").exists() {
            return true;
        }
        tokio::select! {
            () = until.cancelled() => return false,
            () = sleep(FIRST_STATES) => {}
        }
    }
}

/// Follows the repository of operators for good, and tells what of it is here.
async fn follow_tree(master: &SaltMaster, db: &Db) -> Infallible {
    let Some((source, every)) = &master.git else { return std::future::pending().await };
    let tree = Tree::below(&master.folder);
    loop {
        let followed = tree.follow(source).await;
        let (commit, problem) = match &followed {
            Ok(commit) => (Some(commit.as_str()), None),
            Err(error) => (None, Some(error.to_string())),
        };
        if let Some(problem) = &problem {
            tracing::warn!(problem, "the latest states of operators can't be had");
        }
        let told = async {
            salt_masters::has_tree(&mut *db.acquire().await?, &master.name, (commit, problem.as_deref())).await?;
            Ok::<(), sqlx::Error>(())
        };
        if let Err(error) = told.await {
            tracing::warn!(error = &error as &dyn std::error::Error, "it could not be told which states there are");
        }
        sleep(*every).await;
    }
}

/// Files and folders, and Salt unpacked.
async fn prepare(master: &SaltMaster, bundle: &Path) -> anyhow::Result<PathBuf> {
    let folder = &master.folder;
    for path in [&master.minion_keys(), &master.told(), &folder.join("modules/pillar"), &folder.join("run")] {
        tokio::fs::create_dir_all(path).await.with_context(|| format!("{} can't be made", path.display()))?;
    }
    for path in [&master.states, &master.pillar] {
        tokio::fs::create_dir_all(path).await.with_context(|| format!("{} can't be made", path.display()))?;
    }
    tokio::fs::write(folder.join("run.py"), RUN).await?;
    tokio::fs::write(folder.join("modules/pillar/corpus.py"), PILLAR).await?;
    tokio::fs::write(folder.join("values.json"), master.values().to_string()).await?;
    let packed = tokio::fs::read(bundle).await.with_context(|| format!("{} can't be read", bundle.display()))?;
    let packages = folder.join("packages").join(hex(&Sha256::digest(&packed)));
    if !packages.exists() {
        unpack(bundle, &packages).await?;
    }
    Ok(packages)
}

fn hex(digest: &[u8]) -> String {
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

async fn unpack(bundle: &Path, packages: &Path) -> anyhow::Result<()> {
    let part = packages.with_extension("part");
    let _ = tokio::fs::remove_dir_all(&part).await;
    tokio::fs::create_dir_all(&part).await?;
    let told = Command::new("tar").arg("-C").arg(&part).args(["--no-same-owner", "-xf"]).arg(bundle).output().await?;
    if !told.status.success() {
        bail!("{} can't be unpacked: {}", bundle.display(), String::from_utf8_lossy(&told.stderr).trim());
    }
    Ok(tokio::fs::rename(&part, packages).await?)
}

fn start(master: &SaltMaster, packages: &Path) -> anyhow::Result<Child> {
    let mut command = Command::new("python3");
    command.args(["-B", "-W", "ignore"]).arg(master.folder.join("run.py")).arg(packages).arg(&master.folder);
    command.stdin(Stdio::null()).kill_on_drop(true).process_group(0);
    command.spawn().context("python3 can't be started: a Salt master needs Python 3.11")
}

/// It ends what it started.
async fn end(mut child: Child) {
    let group = child.id().and_then(|id| rustix::process::Pid::from_raw(id.try_into().ok()?));
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
        if tokio::time::timeout(ENDS, child.wait()).await.is_err() {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
    let _ = child.wait().await;
}

/// The master makes its key with its first start.
async fn public_key(master: &SaltMaster) -> anyhow::Result<String> {
    let path = master.folder.join("pki").join(format!("{}.pub", master.name));
    let end = Instant::now() + STARTS;
    loop {
        match tokio::fs::read_to_string(&path).await {
            Ok(key) if key.trim_end().ends_with("-----END PUBLIC KEY-----") => return Ok(key),
            _ if Instant::now() >= end => bail!("the Salt master made no key within {} s", STARTS.as_secs()),
            _ => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// What was looked at last.
#[derive(Default)]
struct Following {
    /// The revision that the folder has, and since when.
    has: Option<(i64, Instant)>,
    said_so: Option<Instant>,
}

impl Following {
    /// The folder has the keys that the database has, and no others; who asked in vain is told, and forgotten.
    async fn follow(&mut self, master: &SaltMaster, db: &Db) -> anyhow::Result<()> {
        let mut conn = db.acquire().await?;
        if self.said_so.is_none_or(|at| at.elapsed() >= SAYS_SO) {
            salt_masters::seen(&mut conn, &master.name).await?;
            self.said_so = Some(Instant::now());
        }
        let revision = salt_masters::revision(&mut conn, &master.name).await?;
        let has = self.has.filter(|(has, at)| *has == revision && at.elapsed() < WHOLE);
        if has.is_none() {
            let minions = salt_masters::minions(&mut conn, &master.name).await?;
            lay_down(master, &minions).await?;
            let new: Vec<_> = minions.iter().filter(|minion| !minion.is_known).collect();
            let new: Vec<_> = new.into_iter().map(|minion| (minion.guest, minion.public_key.as_str())).collect();
            if !new.is_empty() {
                salt_masters::knows(&mut conn, &master.name, &new).await?;
            }
            self.has = Some((revision, Instant::now()));
        }
        drop(conn);
        let strangers = strangers(master).await?;
        if strangers.is_empty() { Ok(()) } else { tell_of(master, db, &strangers).await }
    }
}

/// Keys and pillars of these minions, and of no others.
async fn lay_down(master: &SaltMaster, minions: &[Minion]) -> anyhow::Result<()> {
    let names: BTreeSet<&str> = minions.iter().map(|minion| minion.name.as_str()).collect();
    for (folder, ending) in [(master.minion_keys(), ""), (master.told(), ".json")] {
        for gone in names_in(&folder)
            .await?
            .into_iter()
            .filter(|name| name.strip_suffix(ending).is_none_or(|name| !names.contains(name)))
        {
            tokio::fs::remove_file(folder.join(&gone)).await.or_else(absent)?;
            let remembered = master.folder.join("cache/minions").join(gone.strip_suffix(ending).unwrap_or(&gone));
            tokio::fs::remove_dir_all(remembered).await.or_else(absent)?;
        }
    }
    for minion in minions {
        written(&master.told().join(format!("{}.json", minion.name)), &told(minion)).await?;
        written(&master.minion_keys().join(minion.name.as_str()), &minion.public_key).await?;
    }
    Ok(())
}

/// Minions that the master did not take since it was looked last: Salt keeps the keys of those that nobody knows, and of those
/// whose name has another key. They are forgotten at once, so that nobody fills a disk by them.
async fn strangers(master: &SaltMaster) -> anyhow::Result<Vec<String>> {
    let mut strangers = BTreeSet::new();
    for folder in ["pki/minions_pre", "pki/minions_denied", "pki/minions_rejected"] {
        let folder = master.folder.join(folder);
        let names = match names_in(&folder).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            names => names?,
        };
        for name in names {
            tokio::fs::remove_file(folder.join(&name)).await.or_else(absent)?;
            if name.len() <= 255 && name.bytes().all(|byte| byte.is_ascii_graphic()) {
                strangers.insert(name);
            }
        }
    }
    Ok(strangers.into_iter().take(STRANGERS).collect())
}

/// Operators see who was not taken; that somebody has a guest's name and not its key is in the audit, once a day.
async fn tell_of(master: &SaltMaster, db: &Db, strangers: &[String]) -> anyhow::Result<()> {
    let mut tx = db.begin().await?;
    let named = salt_masters::note_strangers(&mut tx, &master.name, strangers).await?;
    for (guest, name) in &named {
        tracing::warn!(minion = name, "a minion has the name of a guest and another key: it was not taken");
        let entry = Entry::new("salt.refused", name).id(guest.0).detail(json!({ "master": master.name }));
        audit::write(&mut tx, Author::new(None, "salt-master", Door::Corpus), entry).await?;
    }
    Ok(tx.commit().await?)
}

/// What a guest's pillar says.
fn told(minion: &Minion) -> String {
    json!({
        "guest": minion.guest, "name": minion.name, "project": minion.project, "environment": minion.environment,
        "node": minion.node,
    })
    .to_string()
}

async fn names_in(folder: &Path) -> std::io::Result<Vec<String>> {
    let (mut entries, mut names) = (tokio::fs::read_dir(folder).await?, Vec::new());
    while let Some(entry) = entries.next_entry().await? {
        names.extend(entry.file_name().into_string());
    }
    Ok(names)
}

fn absent(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// A file that Salt may read at any moment is another one at once, never a part.
async fn written(path: &Path, text: &str) -> std::io::Result<()> {
    if tokio::fs::read_to_string(path).await.is_ok_and(|is| is == text) {
        return Ok(());
    }
    let part = path.with_file_name(format!(".{}.part", path.file_name().unwrap_or_default().display()));
    tokio::fs::write(&part, text).await?;
    tokio::fs::rename(part, path).await
}

#[cfg(test)]
mod tests;
