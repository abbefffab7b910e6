//! Mounts that show the files of an image and of a guest to nobody but who holds them.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use corpus_domain::IdRange;
use corpus_namespaces::{look_only, map_ids, own_mounts};
use rustix::fs::{CWD, fstat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen, open_tree,
};

use super::GuestRoot;
use crate::failure::{At, Failure};
use crate::users;

/// The mount of a folder as its guest is to see it, its image's, attached nowhere.
pub fn view(folder: &Path, ids: Option<IdRange>) -> Result<GuestRoot, Failure> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let root = open_tree(CWD, folder, flags).map(GuestRoot::of).at("open", folder)?;
    match ids {
        Some(ids) => root.shifted(ids),
        None => Ok(root),
    }
}

/// Nothing is changed through the mount.
pub fn to_look(mount: &OwnedFd) -> Result<(), Failure> {
    look_only(mount).at("protect", "the files of a guest")
}

/// It is looked at whether the kernel does what it says: `mount(8)` of Debian 12 says so and does not.
pub fn shift(mount: &OwnedFd, ids: IdRange) -> Result<(), Failure> {
    let place = "the files of a guest";
    map_ids(mount, &*users::namespace(ids)?).at("map the ids of", place)?;
    let owner = fstat(mount).at("look at", place)?.st_uid;
    if ids.inside(owner).is_some() {
        return Ok(());
    }
    let wrong =
        format!("the kernel does not map ids: {place} should be those of {ids} and up, and are those of {owner}");
    Err(Failure::Missing(wrong))
}

/// Whether an overlay is to outlive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// As any disk does.
    Yes,
    /// Nothing waits until it is on disk when the overlay goes, which took 0.4 s on a busy one. It
    /// marks `work`, which so must be none that the guest is started with.
    No,
}

/// Lays `upper` over `lower`, which is seen with the guest's ids.
pub fn over(
    lower: &Path,
    upper: &Path,
    ids: Option<IdRange>,
    lay: &(dyn Fn() -> Result<OwnedFd, Errno> + Sync),
) -> Result<GuestRoot, Failure> {
    let mount = || {
        if let Some(ids) = ids {
            // An overlay takes its layers from places; nobody else sees what is at this one.
            own_mounts().at("make room for mounts over", lower)?;
            view(lower, Some(ids))?.attach(lower)?;
        }
        lay().map(GuestRoot::of).at("lay an overlay over", upper)
    };
    let root = std::thread::scope(|scope| scope.spawn(mount).join());
    let ended = |_| Failure::Invalid(format!("the overlay over {} could not be laid", upper.display()));
    Ok(root.map_err(ended)??.with_ids(ids))
}

/// The overlay to be written to.
pub fn lay(lower: &Path, upper: &Path, work: &Path, durable: Durable) -> Result<OwnedFd, Errno> {
    let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(overlay.as_fd(), "lowerdir", lower)?;
    fsconfig_set_string(overlay.as_fd(), "upperdir", upper)?;
    fsconfig_set_string(overlay.as_fd(), "workdir", work)?;
    if durable == Durable::No {
        fsconfig_set_flag(overlay.as_fd(), "volatile")?;
    }
    fsconfig_create(overlay.as_fd())?;
    fsmount(overlay.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NODEV)
}

/// The overlay to be looked at.
pub fn layers(lower: &Path, upper: &Path) -> Result<OwnedFd, Errno> {
    let overlay = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(overlay.as_fd(), "lowerdir", [upper.as_os_str(), lower.as_os_str()].join(":".as_ref()))?;
    fsconfig_create(overlay.as_fd())?;
    fsmount(overlay.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NODEV)
}
