//! A container's folder: made whole, removed whole.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use corpus_domain::GuestName;
use corpus_protocol::GuestPlan;

use super::state;
use crate::backings::{self, Store};
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::snapshots;
use crate::task::Task;

/// Makes the guest's folder under a hidden name and renames it when it is whole.
pub fn make(task: &Task<'_>, plan: &GuestPlan, config: &str) -> Result<(), Failure> {
    let image = task.host.image(&plan.image);
    if !image.join("rootfs").is_dir() {
        return Err(Failure::Missing(format!("there is no image {} on the node", plan.image)));
    }
    let backing = backings::of(plan.backing)?;
    let hidden = hidden(task.host, "new", &plan.name);
    remove_released(task, &hidden)?;
    // LXC wants to pass through it, nobody wants to read in it.
    fs::DirBuilder::new().recursive(true).mode(0o711).create(&hidden).at("make", &hidden)?;
    let store = Store { folder: hidden, image, ids: plan.ids, is_begun: state::is_begun };
    backing.make(task, &store, plan.size)?;
    let hidden = store.folder;
    files::write(&hidden.join("config"), config, 0o644)?;
    let folder = task.host.lxc_guest(&plan.name);
    fs::rename(&hidden, &folder).at("make", &folder)
}

/// Removes the guest's folder and what an earlier cut left of it. Tells whether there was any.
pub fn remove(task: &Task<'_>, name: &GuestName) -> Result<bool, Failure> {
    let host = task.host;
    let (folder, gone) = (host.lxc_guest(name), hidden(host, "gone", name));
    let mut found = remove_released(task, &gone)?;
    if folder.exists() {
        fs::rename(&folder, &gone).at("remove", &folder)?;
        found |= remove_released(task, &gone)?;
    }
    Ok(remove_begun(task, name)? || found)
}

/// Removes what was begun to be made under this name.
pub fn remove_begun(task: &Task<'_>, name: &GuestName) -> Result<bool, Failure> {
    remove_released(task, &hidden(task.host, "new", name))
}

/// A loop device that still holds the guest's disk would keep its room on the node's.
fn remove_released(task: &Task<'_>, folder: &Path) -> Result<bool, Failure> {
    backings::release(task, folder)?;
    snapshots::remove(task, folder)?;
    files::remove_tree(task, folder)
}

/// All folders, those of guests on their way in or out too.
pub fn all(host: &Host) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(host.lxc()).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Names of the folders that could be guests.
pub fn names(host: &Host) -> Vec<GuestName> {
    let entries = fs::read_dir(host.lxc()).into_iter().flatten().flatten();
    let mut names: Vec<GuestName> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    names.sort_unstable();
    names
}

/// Names of the folders that LXC takes for containers, whoever made them.
pub fn containers(host: &Host) -> Vec<String> {
    let entries = fs::read_dir(host.lxc()).into_iter().flatten().flatten();
    let containers = entries.filter(|entry| entry.path().join("config").is_file());
    let mut names: Vec<String> = containers.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // LXC's own tools don't list hidden folders; ours are guests on their way in or out.
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    names
}

fn hidden(host: &Host, what: &str, name: &GuestName) -> PathBuf {
    host.lxc().join(format!(".corpus-{what}-{name}"))
}

#[cfg(test)]
mod tests {
    use corpus_domain::Backing;

    use super::super::config::render;
    use super::super::config::tests::plan;
    use super::*;
    use crate::task::test::with_task;

    #[test]
    fn made_whole_and_removed_whole() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        // Only root may give files away.
        let ids = plan(Backing::Overlayfs).ids.filter(|_| rustix::process::geteuid().is_root());
        let plan = GuestPlan { ids, ..plan(Backing::Overlayfs) };
        let config = render(&host, &plan).unwrap();
        let missing = with_task(&host, |task| make(task, &plan, &config)).unwrap_err();
        assert!(matches!(missing, Failure::Missing(_)), "{missing}");
        fs::create_dir_all(host.image(&plan.image).join("rootfs")).unwrap();
        with_task(&host, |task| make(task, &plan, &config)).unwrap();
        assert_eq!(names(&host), std::slice::from_ref(&plan.name));
        assert!(host.lxc_guest(&plan.name).join("delta0").is_dir());
        let remove = || with_task(&host, |task| remove(task, &plan.name)).unwrap();
        assert!(remove() && !remove());
        assert_eq!(fs::read_dir(host.lxc()).unwrap().count(), 0);
    }
}
