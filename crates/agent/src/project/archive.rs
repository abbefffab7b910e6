//! Archives: a copy of code and pillar as they were before a deployment.
//!
//! `archives/<deployment>/` holds `project`, `pillar`, `data` (what the archive recipe put
//! aside), and, when the deployment failed, `project.failed`. An archive counts once its
//! `meta.json` is there, which is written last and only when the copies are on the disk; the
//! deployment changes nothing before that, and of what goes it goes first. Copies share no file
//! with the original, for a program that writes into a file of the tree would change the archive
//! too. Which ones are kept is decided by [`rotation`].

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
use crate::project::rotation::{self, Going, Known, Retention};
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
    /// Whether it counts by itself, whatever it holds ([`rotation`]).
    #[serde(default)]
    pub counts_alone: bool,
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
        let meta = Meta { live, at_ms: saved::now(), bytes: size(&self.0), counts_alone: false };
        File::open(&self.0).and_then(|folder| Ok(rustix::fs::syncfs(folder)?)).at("write", &self.0)?;
        saved::write(&self.meta_path(), &meta)?;
        Ok(meta)
    }

    /// From now on it counts by itself, whatever it holds.
    pub fn count_alone(&self) -> Result<(), Failure> {
        match self.meta()? {
            Some(meta) if !meta.counts_alone => saved::write(&self.meta_path(), &Meta { counts_alone: true, ..meta }),
            _ => Ok(()),
        }
    }

    /// It is no archive any more, as far as anybody can tell, before the first of its copies goes.
    pub fn forget(&self) -> Result<(), Failure> {
        if files::remove(&self.meta_path())? { files::sync_folder(&self.0) } else { Ok(()) }
    }

    /// Removes what a plan says; what is gone already is no failure.
    fn remove(&self, going: &Going) -> Result<(), Failure> {
        if going.copies {
            self.forget()?;
            for path in [self.tree(), self.pillar(), self.data(), self.0.join("pillar.failed")] {
                files::remove_folder(&path)?;
            }
        }
        if going.failed_tree {
            files::remove_folder(&self.failed())?;
        }
        if going.is_all {
            files::remove_folder(&self.0)?;
        }
        Ok(())
    }

    fn entry(&self, id: DeploymentId) -> Result<Option<ArchiveEntry>, Failure> {
        let Some(Meta { live, at_ms, bytes, .. }) = self.meta()? else { return Ok(None) };
        let has_failed_tree = self.failed().exists();
        let release = live.as_ref().map(|live| live.deployment);
        let (commit, pillar) = live.map(|live| (live.commit, live.pillar)).unwrap_or_default();
        Ok(Some(ArchiveEntry { id, release, commit, pillar, at_ms, bytes, has_failed_tree }))
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

/// The newest archive of a release that is not the one that is live: where one goes back to unless told otherwise.
pub fn previous(layout: &Layout) -> Result<Option<ArchiveEntry>, Failure> {
    let live: Option<Live> = saved::read(&layout.live())?;
    let is_live = |entry: &ArchiveEntry| live.as_ref().is_some_and(|live| live.release().is_same(&entry.release()));
    Ok(list(layout)?.into_iter().find(|entry| entry.commit.is_some() && !is_live(entry)))
}

/// Removes what a rule does not keep.
pub fn sweep(layout: &Layout, rule: &Retention<'_>) -> Result<(), Failure> {
    let mut known = Vec::new();
    for id in ids(&layout.archives()) {
        let archive = Archive::of(layout, id);
        known.push(Known { id, meta: archive.meta()?, has_failed_tree: archive.failed().exists() });
    }
    rotation::plan(&known, rule).iter().try_for_each(|going| Archive::of(layout, going.id).remove(going))
}

/// What another copy of the trees and a margin take.
fn needed(layout: &Layout) -> u64 {
    size(&layout.tree()).saturating_add(size(&layout.pillar())).saturating_add(MARGIN)
}

/// What a deployment takes: the copy, and what the trees may become.
pub fn wanted(layout: &Layout) -> Bytes {
    Bytes(needed(layout).saturating_mul(2))
}

/// There is room for another copy of the trees, even if old archives must go for it: first what nobody would go
/// back to, then one release after the other.
pub fn ensure_room(layout: &Layout, rule: &Retention<'_>, task: &Task<'_>) -> Result<(), Failure> {
    let (home, wanted) = (layout.home(), wanted(layout));
    let Err(short) = files::require_room(&home, wanted) else { return Ok(()) };
    task.note(format!("{short}; old archives go first"));
    let mut there = list(layout)?.len();
    for kept in (0..=rule.kept.min(there)).rev() {
        sweep(layout, &Retention { kept, failed_tree: None, ..*rule })?;
        let left = list(layout)?.len();
        if left < there {
            task.note(format!("{} archives were removed, {left} are left", there - left));
        }
        there = left;
        if files::require_room(&home, wanted).is_ok() {
            break;
        }
    }
    files::require_room(&home, Bytes(needed(layout)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::project::rotation::FailedTree;
    use crate::task::test::with_task;

    fn id() -> DeploymentId {
        DeploymentId::from(uuid::Uuid::now_v7())
    }

    fn release(number: u128) -> Live {
        let deployment = DeploymentId(uuid::Uuid::from_u128(number));
        Live { deployment, commit: format!("{number:0>40}").parse().ok(), pillar: None, since_ms: 0 }
    }

    /// Archives of these releases, one after the other.
    fn made(layout: &Layout, held: &[u128]) -> Vec<DeploymentId> {
        held.iter()
            .map(|number| {
                let id = id();
                let make = |task: &Task<'_>| Archive::of(layout, id).make(layout, task, Some(release(*number)));
                with_task(&Host::default(), make).unwrap();
                std::thread::sleep(Duration::from_millis(2));
                id
            })
            .collect()
    }

    fn left(layout: &Layout) -> Vec<DeploymentId> {
        list(layout).unwrap().into_iter().map(|entry| entry.id).collect()
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
        let all = made(&layout, &[1, 2, 3, 4]);
        fs::create_dir(layout.archive(id())).unwrap();
        assert!(fs::symlink_metadata(Archive::of(&layout, all[3]).tree().join("out")).unwrap().is_symlink());
        let live = release(5);
        let rule = Retention { kept: 2, live: Some(&live), in_use: &all[..1], failed_tree: None };
        sweep(&layout, &rule).unwrap();
        assert_eq!(left(&layout), [all[3], all[2], all[0]]);
        assert_eq!(ids(&layout.archives()).len(), 3);
        assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "x");
    }

    #[test]
    fn of_failures_the_last_tree_stays_and_the_way_back_is_the_release_before() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        for path in [layout.tree(), layout.pillar()] {
            fs::create_dir_all(path).unwrap();
        }
        let live = release(3);
        saved::write(&layout.live(), &live).unwrap();
        let all = made(&layout, &[1, 2, 3, 3, 3]);
        for failed in &all[2..] {
            fs::create_dir(Archive::of(&layout, *failed).failed()).unwrap();
        }
        let last = Archive::of(&layout, all[4]);
        assert_eq!(previous(&layout).unwrap().unwrap().id, all[1]);
        let rule = Retention { kept: 2, live: Some(&live), in_use: &[], failed_tree: Some(FailedTree::Newest) };
        // Cut off after the first thing that went.
        last.forget().unwrap();
        for _ in 0..2 {
            sweep(&layout, &rule).unwrap();
            assert_eq!(left(&layout), [all[1], all[0]]);
            let names: Vec<_> = fs::read_dir(last.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!((ids(&layout.archives()).len(), names), (3, vec!["project.failed".into()]));
        }
        Archive::of(&layout, all[0]).count_alone().unwrap();
        sweep(&layout, &Retention { kept: 1, failed_tree: None, ..rule }).unwrap();
        assert_eq!((left(&layout), ids(&layout.archives()).len()), (vec![all[1]], 1));
    }

    /// As an agent wrote it that knew nothing of what counts alone.
    #[test]
    fn an_older_agents_archive_says_what_it_holds() {
        let text = r#"{"live": {"deployment": "0199d3c0-0000-7000-8000-000000000001",
            "commit": "3f1c0d9a7be2465188c3e0a4d96f7b2e5a10c4d8", "pillar": null, "since_ms": 1}, "at_ms": 2, "bytes": 3}"#;
        let meta: Meta = serde_json::from_str(text).unwrap();
        assert!(!meta.counts_alone && meta.live.unwrap().commit.is_some());
    }

    #[test]
    fn too_little_room_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        fs::create_dir_all(layout.tree()).unwrap();
        let file = File::create(layout.tree().join("sparse")).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(size(&layout.tree()) < 1 << 20);
        let rule = Retention { kept: 5, live: None, in_use: &[id()], failed_tree: None };
        with_task(&Host::default(), |task| ensure_room(&layout, &rule, task)).unwrap();
    }
}
