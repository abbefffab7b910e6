//! The few system calls around namespaces that no kept crate offers without `unsafe`.
//!
//! An unprivileged guest sees its files with its own ids through a mount that shifts them
//! (`mount_setattr(2)`), which needs a user namespace with those ids, and a place for mounts that
//! nobody else sees; and files that are only looked at are seen through one that changes nothing. `rustix` has no
//! `mount_setattr`, and its `unshare` is unsafe for the one flag that is not used here. This is the only crate of Corpus with `unsafe` code: three calls, each
//! with what makes it sound; all that could be wrong with them stands on this page.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Has a mount show each file with the ids that the user namespace gives to the file's own.
///
/// `mount` must not be attached anywhere yet (`open_tree(2)` with `OPEN_TREE_CLONE`, `fsmount(2)`)
/// and not be shifted already; `users` is a user namespace that is not the first one.
pub fn map_ids(mount: impl AsFd, users: impl AsFd) -> io::Result<()> {
    let number = u64::try_from(users.as_fd().as_raw_fd()).map_err(io::Error::other)?;
    set_attribute(mount, libc::MOUNT_ATTR_IDMAP, number)
}

/// Has a mount be one that nothing is changed through, not even the times of what is read.
///
/// `mount` is one of our own that is attached nowhere; what else shows the same files stays as it is.
pub fn look_only(mount: impl AsFd) -> io::Result<()> {
    set_attribute(mount, libc::MOUNT_ATTR_RDONLY, 0)
}

fn set_attribute(mount: impl AsFd, attribute: u64, users: u64) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: attribute, attr_clr: 0, propagation: 0, userns_fd: users };
    // SAFETY: the kernel reads a string that lives as long as the program, and as many bytes of
    // `attributes` as it is told, which are all that it has; it writes nothing. `mount` is borrowed
    // until the call returns; a number that is no descriptor of a user namespace fails.
    #[expect(unsafe_code, reason = "rustix has no mount_setattr")]
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From now on this thread has a user namespace of its own, in which it can do nothing until its
/// ids are given one. Fails in a process of several threads.
pub fn own_users() -> io::Result<()> {
    unshare(UnshareFlags::NEWUSER)
}

/// From now on this thread has mounts of its own: what it mounts, nobody else sees, and the kernel
/// takes it away with the thread; what others mount and unmount, it sees.
pub fn own_mounts() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS)?;
    Ok(mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?)
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: only with `UnshareFlags::FILES` could a thread lose descriptors that others count
    // on; neither caller gives it.
    #[expect(unsafe_code, reason = "it is unsafe for a flag that is not given")]
    unsafe {
        unshare_unsafe(flags)?;
    }
    Ok(())
}
