//! Archives: a copy of code and pillar as they were before a deployment.
//!
//! `archives/<deployment>/` holds `project`, `pillar`, `data` (what the archive recipe put
//! aside), and, when the deployment failed, `project.failed`. An archive counts once its
//! `meta.json` is there, which is written last and only when the copies are on the disk; the
//! deployment changes nothing before that. Copies share no file with the original, for a
//! program that writes into a file of the tree would change the archive too.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_domain::{Bytes, DeploymentId};
use corpus_protocol::{ArchiveEntry, Live, Millis};
use serde::{Deserialize, Serialize};

use crate::failure::{At, Failure};
use crate::files;
use crate::project::layout::Layout;
use crate::project::saved;
use crate::runner::Argv;
use crate::task::Task;

/// Left free besides the copy, for journal, report and git.
pub const MARGIN: u64 = 8 << 20;
const LIMIT: Duration = Duration::from_mins(30);

/// What is known of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// What was live then.
    pub live: Option<Live>,
    /// When it was made.
    pub at_ms: Millis,
    /// What its copies take on the disk.
    pub bytes: u64,
}

/// The paths of an archive.
pub struct Archive(PathBuf);

impl Archive {
    /// That of a deployment.
    pub fn of(layout: &Layout, id: DeploymentId) -> Self {
        Self(layout.archive(id))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The copy of the project's tree.
    pub fn tree(&self) -> PathBuf {
        self.0.join("project")
    }

    /// The copy of the pillar.
    pub fn pillar(&self) -> PathBuf {
        self.0.join("pillar")
    }

    /// The tree that failed.
    pub fn failed(&self) -> PathBuf {
        self.0.join("project.failed")
    }

    /// What the archive recipe puts aside.
    pub fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    fn meta_path(&self) -> PathBuf {
        self.0.join("meta.json")
    }

    /// What is known of it; none when it is not whole.
    pub fn meta(&self) -> Result<Option<Meta>, Failure> {
        saved::read(&self.meta_path())
    }

    /// Makes it.
    pub fn make(&self, layout: &Layout, task: &Task<'_>, live: Option<Live>) -> Result<Meta, Failure> {
        files::remove_folder(&self.0)?;
        for folder in [self.0.clone(), self.data()] {
            fs::create_dir_all(&folder).at("make", &folder)?;
            fs::set_permissions(&folder, Permissions::from_mode(0o700)).at("change the mode of", &folder)?;
        }
        copy(task, &layout.tree(), &self.tree())?;
        copy(task, &layout.pillar(), &self.pillar())?;
        let meta = Meta { live, at_ms: saved::now(), bytes: size(&self.0) };
        File::open(&self.0).and_then(|folder| Ok(rustix::fs::syncfs(folder)?)).at("write", &self.0)?;
        saved::write(&self.meta_path(), &meta)?;
        Ok(meta)
    }

    fn entry(&self, id: DeploymentId) -> Result<Option<ArchiveEntry>, Failure> {
        let Some(meta) = self.meta()? else { return Ok(None) };
        let commit = meta.live.and_then(|live| live.commit);
        let has_failed_tree = self.failed().exists();
        Ok(Some(ArchiveEntry { id, commit, at_ms: meta.at_ms, bytes: meta.bytes, has_failed_tree }))
    }
}

/// A copy of a tree with owners, modes, times and links as they are. The project runs meanwhile:
/// that a file went away is no failure.
pub fn copy(task: &Task<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
    files::remove_folder(to)?;
    let cp = Argv::new("cp").args(["-a", "--reflink=auto", "-T", "--"]).arg(from).arg(to).limit(LIMIT);
    match cp.run(task) {
        Err(Failure::Command { tail, .. }) if to.is_dir() && tail.iter().all(|line| went_away(line)) => Ok(()),
        other => other.map(drop),
    }
}

fn went_away(line: &str) -> bool {
    line.starts_with("cp: cannot ") && line.ends_with(": No such file or directory")
}

/// What a tree takes on the disk; links are not followed.
pub fn size(tree: &Path) -> u64 {
    let mut bytes: u64 = 0;
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(about.blocks().saturating_mul(512));
            if about.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    bytes
}

/// The archives, newest first.
pub fn list(layout: &Layout) -> Result<Vec<ArchiveEntry>, Failure> {
    let mut entries = Vec::new();
    for id in ids(&layout.archives()) {
        entries.extend(Archive::of(layout, id).entry(id)?);
    }
    entries.sort_by_key(|entry| std::cmp::Reverse((entry.at_ms, entry.id)));
    Ok(entries)
}

/// The deployments that have a folder in here.
pub fn ids(folder: &Path) -> Vec<DeploymentId> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Keeps the newest archives and removes the others, and what is none; never those that are in `use_now`.
pub fn rotate(layout: &Layout, kept: usize, use_now: &[DeploymentId]) -> Result<Vec<DeploymentId>, Failure> {
    let list = list(layout)?;
    let keep: Vec<DeploymentId> = list.iter().take(kept).map(|entry| entry.id).collect();
    let mut removed = ids(&layout.archives());
    removed.retain(|id| !use_now.contains(id) && !keep.contains(id));
    for id in &removed {
        files::remove_folder(&layout.archive(*id))?;
    }
    Ok(removed)
}

/// What another copy of the trees and a margin take.
fn needed(layout: &Layout) -> u64 {
    size(&layout.tree()).saturating_add(size(&layout.pillar())).saturating_add(MARGIN)
}

/// What a deployment takes: the copy, and what the trees may become.
pub fn wanted(layout: &Layout) -> Bytes {
    Bytes(needed(layout).saturating_mul(2))
}

/// There is room for another copy of the trees, even if old archives must go for it.
pub fn ensure_room(layout: &Layout, kept: usize, use_now: &[DeploymentId], task: &Task<'_>) -> Result<(), Failure> {
    let (home, wanted) = (layout.home(), wanted(layout));
    let Err(short) = files::require_room(&home, wanted) else { return Ok(()) };
    task.note(format!("{short}; old archives go first"));
    let mut kept = kept.min(list(layout)?.len());
    while kept > 0 && files::require_room(&home, wanted).is_err() {
        kept -= 1;
        let gone = rotate(layout, kept, use_now)?;
        task.note(format!("{} archives were removed, {kept} are left", gone.len()));
    }
    files::require_room(&home, Bytes(needed(layout)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::task::test::with_task;

    fn id() -> DeploymentId {
        DeploymentId::from(uuid::Uuid::now_v7())
    }

    #[test]
    fn the_newest_stay_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        for path in [layout.tree(), layout.pillar()] {
            fs::create_dir_all(path).unwrap();
        }
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("x"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, layout.tree().join("out")).unwrap();
        let all: Vec<DeploymentId> = (0..4).map(|_| id()).collect();
        with_task(&Host::default(), |task| {
            for id in &all {
                Archive::of(&layout, *id).make(&layout, task, None).unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        fs::create_dir(layout.archive(id())).unwrap();
        assert!(fs::symlink_metadata(Archive::of(&layout, all[3]).tree().join("out")).unwrap().is_symlink());
        assert_eq!(rotate(&layout, 2, &all[..1]).unwrap().len(), 2);
        let left: Vec<DeploymentId> = list(&layout).unwrap().into_iter().map(|entry| entry.id).collect();
        assert_eq!(left, [all[3], all[2], all[0]]);
        assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "x");
    }

    #[test]
    fn too_little_room_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        fs::create_dir_all(layout.tree()).unwrap();
        let file = File::create(layout.tree().join("sparse")).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(size(&layout.tree()) < 1 << 20);
        with_task(&Host::default(), |task| ensure_room(&layout, 5, &[id()], task)).unwrap();
    }
}
