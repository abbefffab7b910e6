//! A container's folder: made whole, opened, removed whole.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_domain::{Backing, GuestName, IdRange};
use corpus_protocol::GuestPlan;
use rustix::fs::{IFlags, Mode, OFlags};
use rustix::io::Errno;

use super::config::{Made, UPPER, upper};
use super::{disk, root};
use crate::failure::{At, Failure};
use crate::files;
use crate::guest_root::{Durable, GuestRoot, view};
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

const COPY: Duration = Duration::from_mins(10);
/// For folders that lie in each other tens of thousands deep.
const DEEP: Duration = Duration::from_mins(10);

/// Makes the guest's folder under a hidden name and renames it when it is whole.
pub fn make(task: &Task<'_>, plan: &GuestPlan, config: &str) -> Result<(), Failure> {
    let image = task.host.image(&plan.image).join("rootfs");
    if !image.is_dir() {
        return Err(Failure::Missing(format!("there is no image {} on the node", plan.image)));
    }
    let hidden = hidden(task.host, "new", &plan.name);
    remove_released(task, &hidden)?;
    // LXC wants to pass through it, nobody wants to read in it.
    fs::DirBuilder::new().recursive(true).mode(0o711).create(&hidden).at("make", &hidden)?;
    match plan.backing {
        Backing::Dir => copy(task, &image, &hidden.join("rootfs"), plan.ids)?,
        Backing::Loop => disk::make(task, plan, &hidden)?,
        _ => layers(&image, &hidden, plan.ids)?,
    }
    if plan.ids.is_some() {
        let place = root::place(&hidden);
        fs::create_dir(&place).at("make", &place)?;
    }
    files::write(&hidden.join("config"), config, 0o644)?;
    let folder = task.host.lxc_guest(&plan.name);
    fs::rename(&hidden, &folder).at("make", &folder)
}

/// Owners, access lists and capabilities of files come out as the guest's, since they are read so.
fn copy(task: &Task<'_>, image: &Path, root: &Path, ids: Option<IdRange>) -> Result<(), Failure> {
    task.note("copying the image");
    let image = match ids {
        Some(ids) => view(image, ids)?,
        None => GuestRoot::folder(image)?,
    };
    let argv = Argv::new("cp").args(["-a", "--reflink=auto", "--"]).arg(image.path().join(".")).arg(root);
    argv.limit(COPY).run(task).map(|_| ())
}

/// What the overlay writes to; its root shows the permissions of the image's.
fn layers(image: &Path, folder: &Path, ids: Option<IdRange>) -> Result<(), Failure> {
    let mode = fs::metadata(image).at("look at", image)?.permissions().mode() & 0o7777;
    let owner = ids.map(IdRange::first);
    for layer in [folder.join(UPPER), root::work(folder)] {
        fs::create_dir(&layer).at("make", &layer)?;
        fs::set_permissions(&layer, fs::Permissions::from_mode(mode)).at("make", &layer)?;
        chown(&layer, owner, owner).at("give away", &layer)?;
    }
    Ok(())
}

/// The files of a stopped guest.
pub fn open(task: &Task<'_>, name: &GuestName, made: &Made) -> Result<GuestRoot, Failure> {
    let host = task.host;
    let folder = host.lxc_guest(name);
    match made.backing {
        Backing::Dir => return Ok(GuestRoot::folder(&folder.join("rootfs"))?.with_ids(made.ids)),
        // On its disk a guest's ids are as it has them.
        Backing::Loop => return disk::open(task, &disk::file(&folder)),
        _ => {}
    }
    let work = folder.join("setup-work");
    files::remove_folder(&work)?;
    fs::create_dir(&work).at("make", &work)?;
    let image = host.image(&made.image).join("rootfs");
    GuestRoot::overlay(&image, &upper(host, name), &work, Durable::No, made.ids)
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
    Ok(remove_released(task, &hidden(host, "new", name))? || found)
}

/// A loop device that still holds the guest's disk would keep its room on the node's.
fn remove_released(task: &Task<'_>, folder: &Path) -> Result<bool, Failure> {
    disk::release(task, &disk::file(folder))?;
    remove_all(task, folder)
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

/// A guest's root may have made files immutable, to outlive the guest, or folders that lie deeper in each other
/// than a process may have open; `rm` goes back up instead.
fn remove_all(task: &Task<'_>, folder: &Path) -> Result<bool, Failure> {
    match files::remove_folder(folder) {
        Err(Failure::Io { source, .. }) if source.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => {
            let argv = Argv::new("rm").args(["-rf", "--one-file-system", "--"]).arg(folder);
            argv.limit(DEEP).run(task).map(|_| true)
        }
        Err(Failure::Io { source, .. }) if source.kind() == std::io::ErrorKind::PermissionDenied => {
            make_mutable(folder);
            files::remove_folder(folder)
        }
        other => other,
    }
}

fn make_mutable(path: &Path) {
    let Ok(stat) = fs::symlink_metadata(path) else { return };
    if !stat.is_dir() && !stat.is_file() {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(path, flags, Mode::empty()) {
        let _ = rustix::fs::ioctl_setflags(&file, IFlags::empty());
    }
    if stat.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            make_mutable(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
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
        assert!(upper(&host, &plan.name).is_dir());
        let remove = || with_task(&host, |task| remove(task, &plan.name)).unwrap();
        assert!(remove() && !remove());
        assert_eq!(fs::read_dir(host.lxc()).unwrap().count(), 0);
    }
}
