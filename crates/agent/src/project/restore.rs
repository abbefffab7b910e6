//! Code and pillar come back as an archive has them.
//!
//! The copy is made beside the tree and swapped in by two renames, so a restore that is cut off
//! anywhere can be repeated: as long as the place of the failed tree is empty the tree is the
//! failed one, and when it is taken only the second rename can be missing.

use std::fs;
use std::path::{Path, PathBuf};

use corpus_domain::DeploymentId;

use crate::failure::{At, Failure};
use crate::files;
use crate::project::archive::{Archive, copy};
use crate::project::layout::Layout;
use crate::task::Task;

/// Both trees are as they were before the deployment; the failed code is kept in its archive.
pub fn roll_back(layout: &Layout, id: DeploymentId, task: &Task<'_>) -> Result<(), Failure> {
    let archive = Archive::of(layout, id);
    swap(task, &archive.tree(), &layout.tree(), &archive.failed(), id)?;
    // The pillar that failed is in git, and full of secrets.
    let failed = archive.folder().join("pillar.failed");
    files::remove_folder(&failed)?;
    swap(task, &archive.pillar(), &layout.pillar(), &failed, id)?;
    files::remove_folder(&failed).map(drop)
}

/// Both trees are as another archive has them; what was there is in this deployment's archive.
pub fn bring_back(layout: &Layout, id: DeploymentId, from: DeploymentId, task: &Task<'_>) -> Result<(), Failure> {
    let archive = Archive::of(layout, from);
    for (kept, tree) in [(archive.tree(), layout.tree()), (archive.pillar(), layout.pillar())] {
        let old = beside(&tree, id, "old");
        files::remove_folder(&old)?;
        swap(task, &kept, &tree, &old, id)?;
        files::remove_folder(&old)?;
    }
    Ok(())
}

fn swap(task: &Task<'_>, kept: &Path, tree: &Path, aside: &Path, id: DeploymentId) -> Result<(), Failure> {
    let ready = beside(tree, id, "ready");
    if !aside.exists() {
        if !ready.exists() {
            let copying = beside(tree, id, "copying");
            if let Err(failure) = copy(task, kept, &copying) {
                files::remove_folder(&copying)?;
                make_do(task, kept, &copying, failure)?;
            }
            fs::rename(&copying, &ready).at("rename", &copying)?;
        }
        rename(task, tree, aside)?;
    }
    if !tree.exists() {
        rename(task, &ready, tree)?;
    }
    Ok(())
}

/// When there is no room for a copy, the kept one itself comes back.
fn make_do(task: &Task<'_>, kept: &Path, to: &Path, failure: Failure) -> Result<(), Failure> {
    if failure.kind() != corpus_protocol::ErrorKind::NoSpace {
        return Err(failure);
    }
    task.note("there is no room for a copy of the archive: the archive itself comes back");
    rename(task, kept, to)
}

/// Renames; where the file system can't rename a folder (an overlay's lower one), it is copied.
fn rename(task: &Task<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
            let beside = to.with_extension("moving");
            copy(task, from, &beside)?;
            fs::rename(&beside, to).at("rename", &beside)?;
            files::remove_folder(from).map(drop)
        }
        other => other.at("rename", from),
    }
}

fn beside(tree: &Path, id: DeploymentId, what: &str) -> PathBuf {
    let name = tree.file_name().unwrap_or_default().to_string_lossy();
    tree.with_file_name(format!(".{name}.{id}.{what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Host;
    use crate::task::test::with_task;

    /// Cut off after each step, then repeated.
    #[test]
    fn a_restore_can_be_repeated_from_anywhere() {
        for step in 0..4 {
            let folder = tempfile::tempdir().unwrap();
            let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
            let id = DeploymentId::from(uuid::Uuid::now_v7());
            let archive = Archive::of(&layout, id);
            for (path, text) in
                [(layout.tree(), "bad"), (layout.pillar(), "bad"), (archive.tree(), "good"), (archive.pillar(), "good")]
            {
                fs::create_dir_all(&path).unwrap();
                fs::write(path.join("file"), text).unwrap();
            }
            let ready = beside(&layout.tree(), id, "ready");
            let good = || {
                fs::create_dir(&ready).unwrap();
                fs::write(ready.join("file"), "good").unwrap();
            };
            match step {
                1 => good(),
                2 => {
                    good();
                    fs::rename(layout.tree(), archive.failed()).unwrap();
                }
                3 => {
                    fs::rename(layout.tree(), archive.failed()).unwrap();
                    good();
                    fs::rename(&ready, layout.tree()).unwrap();
                }
                _ => {}
            }
            with_task(&Host::default(), |task| roll_back(&layout, id, task)).unwrap();
            let read = |path: PathBuf| fs::read_to_string(path.join("file")).unwrap();
            let trees = [read(layout.tree()), read(layout.pillar()), read(archive.failed()), read(archive.tree())];
            assert_eq!(trees, ["good", "good", "bad", "good"], "{step}");
            assert_eq!(fs::read_dir(layout.home()).unwrap().count(), 3, "{step}");
        }
    }
}
