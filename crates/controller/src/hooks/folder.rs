//! What is in the folder of hooks. It is read at each use, so a hook that is put there counts at once.
//!
//! `HOST/SUBJECT.STAGE.SIDE/NN-name`: where it runs, on what it hangs, and its place among others. Beside it may
//! stand `NN-name.toml`, how it is run, and `NN-name.undo`, what undoes it. Whatever else is there, or may be
//! written by others than root and the server's user, is a [`Problem`], which is shown and never run.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_domain::{Environment, HookFailure, HookHost, HookName, HookSide, HookStage, ProjectName};
use serde::Deserialize;

use super::stages::Stage;

/// How long a hook may take unless said.
const USUAL_LIMIT: u64 = 60;
/// The longest that can be said.
const LONGEST: u64 = 3600;
/// The most entries that are read in the whole folder.
const MOST: usize = 1000;
/// The largest file that is brought to a node or guest.
pub const LARGEST: u64 = 256 << 10;

/// A hook.
#[derive(Debug, Clone)]
pub struct Hook {
    /// Where it runs.
    pub host: HookHost,
    /// The stage that it hangs on.
    pub stage: &'static Stage,
    /// On which side.
    pub side: HookSide,
    /// The name of its file.
    pub name: HookName,
    /// Its file.
    pub path: PathBuf,
    /// What undoes it.
    pub undo: Option<PathBuf>,
    /// How long it and its undo may take, each.
    pub limit: Duration,
    /// What its failure does.
    pub on_failure: HookFailure,
    /// Only for these projects; all when there are none.
    pub projects: Vec<ProjectName>,
    /// Only for these environments; all when there are none.
    pub environments: Vec<Environment>,
}

impl Hook {
    /// Its path below the folder, which is what it is called.
    pub fn id(&self) -> String {
        format!("{}/{}.{}/{}", self.host, self.stage.name, self.side, self.name)
    }

    /// Whether it is one for Salt.
    pub fn is_salt(&self) -> bool {
        Path::new(self.name.as_str()).extension().is_some_and(|extension| extension == "sls")
    }

    /// Whether it is meant for what a job is about.
    pub fn is_for(&self, project: Option<&ProjectName>, environment: Option<Environment>) -> bool {
        (self.projects.is_empty() || project.is_some_and(|project| self.projects.contains(project)))
            && (self.environments.is_empty() || environment.is_some_and(|one| self.environments.contains(&one)))
    }
}

/// Something in the folder that is not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Its path.
    pub path: PathBuf,
    /// What is wrong with it, and what to do.
    pub reason: String,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// The hooks, in the order in which they run within a stage.
    pub hooks: Vec<Hook>,
    /// What is not run.
    pub problems: Vec<Problem>,
}

/// How a hook is run, as its `.toml` says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    timeout: Option<u64>,
    on_failure: Option<HookFailure>,
    #[serde(default)]
    projects: Vec<ProjectName>,
    #[serde(default)]
    environments: Vec<Environment>,
}

/// Reads the whole folder. One that is not there has no hooks.
pub fn read(folder: &Path) -> Found {
    let mut reader = Reader::default();
    if reader.is_there(folder) {
        for host in reader.entries(folder) {
            match host.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()) {
                Some(word) => reader.host(word, &host),
                None => reader.problem(&host, "is none of the folders controller, node and guest"),
            }
        }
    }
    reader.found
}

/// Reads what hangs on one side of a stage.
pub fn of_stage(folder: &Path, stage: &'static Stage, side: HookSide) -> Found {
    let mut reader = Reader::default();
    if reader.is_there(folder) {
        for host in HookHost::ALL {
            let above = folder.join(host.as_str());
            let own = above.join(format!("{}.{side}", stage.name));
            if reader.is_there(&above) && reader.is_there(&own) {
                reader.side(*host, stage, side, &own);
            }
        }
    }
    reader.found
}

#[derive(Default)]
struct Reader {
    found: Found,
    seen: usize,
}

impl Reader {
    fn problem(&mut self, path: &Path, reason: impl Into<String>) {
        self.found.problems.push(Problem { path: path.to_owned(), reason: reason.into() });
    }

    /// Whether a folder is there and only those who may write into it who may run anything as root.
    fn is_there(&mut self, folder: &Path) -> bool {
        match is_ours(folder, true) {
            Ok(()) => true,
            Err(None) => false,
            Err(Some(reason)) => {
                self.problem(folder, reason);
                false
            }
        }
    }

    fn entries(&mut self, folder: &Path) -> Vec<PathBuf> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()),
            Err(error) => {
                self.problem(folder, format!("can't be read: {error}"));
                return Vec::new();
            }
        };
        let hidden = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let mut entries: Vec<PathBuf> =
            entries.filter(|path| !hidden(path)).take(MOST.saturating_sub(self.seen) + 1).collect();
        self.seen += entries.len();
        if self.seen > MOST {
            self.problem(folder, format!("more than {MOST} files are in the folder of hooks; the rest is not read"));
        }
        entries.sort();
        entries
    }

    fn host(&mut self, host: HookHost, folder: &Path) {
        if !self.is_there(folder) {
            return;
        }
        for path in self.entries(folder) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let named =
                name.rsplit_once('.').and_then(|(stage, side)| Some((Stage::named(stage)?, side.parse().ok()?)));
            match named.filter(|_| name.parse::<HookStage>().is_ok()) {
                Some((stage, side)) if self.is_there(&path) => self.side(host, stage, side, &path),
                Some(_) => {}
                None => self.problem(&path, "is named for no stage; such a folder is called guest.spawn.before"),
            }
        }
    }

    fn side(&mut self, host: HookHost, stage: &'static Stage, side: HookSide, folder: &Path) {
        let entries = self.entries(folder);
        if let Some(why) = stage.refusal(host, side).filter(|_| !entries.is_empty()) {
            self.problem(folder, format!("no hook runs here: {why}"));
            return;
        }
        let beside = |path: &Path, more: &str| {
            let name = path.file_name()?.to_str()?;
            entries
                .iter()
                .find(|other| other.file_name().and_then(|other| other.to_str()) == Some(&format!("{name}{more}")))
        };
        for path in &entries {
            let text = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Ok(name) = text.parse::<HookName>() else {
                let of = [".toml", ".undo"].iter().find_map(|more| text.strip_suffix(more));
                let is_beside =
                    of.is_some_and(|of| of.parse::<HookName>().is_ok() && entries.contains(&folder.join(of)));
                if !is_beside {
                    self.problem(path, "is neither a hook (10-name, 10-name.sls) nor the .toml or .undo of one");
                }
                continue;
            };
            let (configuration, undo) = (beside(path, ".toml").cloned(), beside(path, ".undo").cloned());
            let hook = Hook {
                host,
                stage,
                side,
                name,
                path: path.clone(),
                undo,
                limit: Duration::from_secs(USUAL_LIMIT),
                on_failure: if stage.only_warns(side).is_some() { HookFailure::Warn } else { HookFailure::Fail },
                projects: Vec::new(),
                environments: Vec::new(),
            };
            match checked(hook, configuration.as_deref()) {
                Ok(hook) => self.found.hooks.push(hook),
                Err((path, reason)) => self.problem(&path, reason),
            }
        }
    }
}

fn checked(hook: Hook, configuration: Option<&Path>) -> Result<Hook, (PathBuf, String)> {
    for path in std::iter::once(&hook.path).chain(&hook.undo) {
        file(&hook, path).map_err(|reason| (path.clone(), reason))?;
    }
    let Some(path) = configuration else { return Ok(hook) };
    configured(hook, path).map_err(|reason| (path.to_owned(), reason))
}

fn file(hook: &Hook, path: &Path) -> Result<(), String> {
    let there = || "is not there any more".to_owned();
    is_ours(path, false).map_err(|reason| reason.unwrap_or_else(there))?;
    let found = fs::metadata(path).map_err(|error| format!("can't be read: {error}"))?;
    if hook.is_salt() && hook.host != HookHost::Guest {
        return Err(
            "a .sls runs on guests only: Salt is brought there with Corpus' own bundle (salt_bundle), and to no \
                    controller or node; an executable can call a salt-call that you installed there"
                .to_owned(),
        );
    }
    if !hook.is_salt() && found.mode() & 0o100 == 0 {
        return Err("is not executable: chmod u+x".to_owned());
    }
    if hook.host != HookHost::Controller && found.size() > LARGEST {
        return Err(format!("is larger than {} KiB, which is the most that is brought to a host", LARGEST >> 10));
    }
    Ok(())
}

fn configured(hook: Hook, path: &Path) -> Result<Hook, String> {
    is_ours(path, false).map_err(|reason| reason.unwrap_or_else(|| "is not there any more".to_owned()))?;
    let text = fs::read_to_string(path).map_err(|error| format!("can't be read: {error}"))?;
    let said: Configuration = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    let limit = said.timeout.unwrap_or(USUAL_LIMIT);
    if !(1..=LONGEST).contains(&limit) {
        return Err(format!("timeout: a hook may take 1 to {LONGEST} seconds"));
    }
    if said.on_failure == Some(HookFailure::Fail)
        && let Some(why) = hook.stage.only_warns(hook.side)
    {
        return Err(format!("on_failure: here a hook can only warn: {why}"));
    }
    let (projects, environments) = (said.projects, said.environments);
    if hook.stage.name.starts_with("node.") && !(projects.is_empty() && environments.is_empty()) {
        return Err("projects, environments: a job of a node is about none".to_owned());
    }
    let on_failure = said.on_failure.unwrap_or(hook.on_failure);
    Ok(Hook { limit: Duration::from_secs(limit), on_failure, projects, environments, ..hook })
}

/// Whether only root and the server's user can change what is there. The error has no reason when nothing is there.
fn is_ours(path: &Path, is_folder: bool) -> Result<(), Option<String>> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(None),
        Err(error) => return Err(Some(format!("can't be read: {error}"))),
    };
    if is_folder != found.is_dir() || !(found.is_dir() || found.is_file()) {
        let what = if is_folder { "folder" } else { "file" };
        return Err(Some(format!("is no plain {what}; links are not followed")));
    }
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != 0 && found.uid() != own {
        return Err(Some(format!("belongs to user {}, not to root or the server's user", found.uid())));
    }
    if found.mode() & 0o022 != 0 {
        return Err(Some("can be written by others: chmod go-w".to_owned()));
    }
    Ok(())
}
