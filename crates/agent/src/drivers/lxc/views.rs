//! What a guest sees of itself: `free`, `nproc` and `uptime` in it tell of the guest, not of its node.
//!
//! lxcfs serves files of /proc as the reader's control group has them; a few of them are mounted
//! over the guest's own. Ours is a service of its own beside the package's: the package's hooks
//! make every stop of a container half a second longer, and its unit does not run where a node is
//! a container itself.
//!
//! A daemon that dies takes its mount with it, and what was mounted over in the guests then answers
//! "Transport endpoint is not connected", also when the daemon is back. So whenever it starts, it
//! runs `corpus-agent views`, which mounts the files anew in every guest that runs. That enters the
//! mounts of a guest whose root is hostile: nothing is executed or opened there, only unmounted and
//! mounted, each guest by a process of its own that has a time limit.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::GuestName;
use corpus_protocol::{Event, RequestError};
use rustix::fs::{CWD, Mode, OFlags, openat, statfs};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, OpenTreeFlags, UnmountFlags, move_mount, open_tree, unmount};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::tools::{self, AGENT};
use super::{folder, state};
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::{Cancel, Task};

/// The unit of our lxcfs.
pub const UNIT: &str = "corpus-lxcfs.service";
const FOLDER: &str = "/run/corpus-lxcfs";
const FILES: [&str; 8] = [
    "proc/cpuinfo",
    "proc/diskstats",
    "proc/loadavg",
    "proc/meminfo",
    "proc/stat",
    "proc/swaps",
    "proc/uptime",
    "sys/devices/system/cpu/online",
];
/// What statfs(2) calls a file system of a daemon.
const FUSE: i64 = 0x6573_5546;
/// How long the daemon may take to serve.
const READY: Duration = Duration::from_secs(5);
/// How long one guest may take; a hostile one can make it hang.
const EACH: Duration = Duration::from_secs(3);
/// Mounts that may lie over each other on one file.
const LAYERS: u32 = 16;

/// What makes a guest see itself, as lines of LXC's configuration. A guest starts without it too.
pub fn lines() -> impl Iterator<Item = String> {
    FILES.iter().map(|file| format!("lxc.mount.entry = {FOLDER}/{file} {file} none bind,optional 0 0"))
}

/// Whether a line of a configuration is one of these.
pub fn is_ours(line: &str) -> bool {
    line.starts_with(&format!("lxc.mount.entry = {FOLDER}/"))
}

/// The daemon runs, and comes back when it ends.
pub fn ensure(task: &Task<'_>) -> Result<bool, Failure> {
    tools::ensure(task.host)?;
    let changed = files::ensure(&unit_path(task.host), &unit(), 0o644)?;
    if changed {
        Argv::new("systemctl").arg("daemon-reload").run(task)?;
    }
    if !changed && is_served(task.host) {
        return Ok(false);
    }
    Argv::new("systemctl").args(["enable", "--quiet", UNIT]).quiet().run(task)?;
    let verb = if is_served(task.host) { "reload" } else { "restart" };
    Argv::new("systemctl").args([verb, UNIT]).run(task)?;
    Ok(true)
}

/// The package's own daemon, when it came with ours: nobody has asked for it.
pub fn stop_packaged(task: &Task<'_>) -> Result<(), Failure> {
    Argv::new("systemctl").args(["disable", "--now", "--quiet", "lxcfs.service"]).quiet().end(task).map(drop)
}

/// Nothing of it is left; the package stays.
pub fn remove(task: &Task<'_>) -> Result<bool, Failure> {
    let there = unit_path(task.host).exists();
    if there {
        Argv::new("systemctl").args(["disable", "--now", "--quiet", UNIT]).quiet().end(task)?;
        files::remove(&unit_path(task.host))?;
        Argv::new("systemctl").arg("daemon-reload").run(task)?;
    }
    Ok(there)
}

/// Whether the daemon serves its files.
pub fn is_served(host: &Host) -> bool {
    is_fuse(&host.path(FOLDER).join("proc/uptime"))
}

/// What `corpus-agent views` does, for every guest or one.
pub fn serve(name: Option<&str>) -> io::Result<()> {
    let host = Host::default();
    let events = |event| {
        if let Event::Log { text, .. } = event {
            eprintln!("{text}");
        }
    };
    let done = match name.map(str::parse) {
        None => mend(&Task { host: &host, cancel: &Cancel::default(), events: &events }),
        Some(Ok(name)) => mend_one(&host, &name),
        Some(Err(invalid)) => Err(invalid.into()),
    };
    done.map_err(|failure| io::Error::other(RequestError::from(failure).message))
}

/// Every guest that runs sees what the daemon serves now.
fn mend(task: &Task<'_>) -> Result<(), Failure> {
    let end = Instant::now() + READY;
    while !is_served(task.host) {
        if Instant::now() > end {
            return Err(Failure::TimedOut { program: "lxcfs", limit: READY, tail: vec![] });
        }
        sleep(Duration::from_millis(5));
    }
    for name in folder::names(task.host).iter().filter(|name| state::init(task.host, name).is_some()) {
        // One guest that can't be mended keeps no other from it.
        let mended = Argv::new(AGENT).args(["views", name.as_str()]).limit(EACH).run(task);
        if let Err(failure) = mended {
            task.note(format!("{name} does not see itself: {failure}"));
        }
    }
    Ok(())
}

/// The same for one guest. This process is in the guest's mounts afterwards, so it must end; it has
/// no other thread, for the kernel takes none with others along.
fn mend_one(host: &Host, name: &GuestName) -> Result<(), Failure> {
    let Some(init) = state::init(host, name) else { return Ok(()) };
    let served = served(host)?;
    let mounts = format!("/proc/{init}/ns/mnt");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = openat(CWD, &mounts, flags, Mode::empty()).at("open", &mounts)?;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Mount)).at("enter", &mounts)?;
    for (path, device, tree) in served {
        if fs::symlink_metadata(&path).is_ok_and(|found| found.dev() == device) {
            continue;
        }
        uncover(&path).at("unmount the guest's", &path)?;
        move_mount(tree.as_fd(), "", CWD, &path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
            .at("mount the guest's", &path)?;
    }
    Ok(())
}

/// Each file, the device of what is served, and a mount of it that is nowhere yet.
fn served(host: &Host) -> Result<Vec<(PathBuf, u64, rustix::fd::OwnedFd)>, Failure> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let one = |file: &&str| {
        let source = host.path(FOLDER).join(file);
        let device = fs::metadata(&source).at("look at", &source)?.dev();
        Ok((Path::new("/").join(file), device, open_tree(CWD, &source, flags).at("mount", &source)?))
    };
    FILES.iter().map(one).collect()
}

/// Takes away what a daemon, dead or alive, has mounted over a file.
fn uncover(path: &Path) -> Result<(), Errno> {
    for _ in 0..LAYERS {
        if !is_fuse(path) {
            break;
        }
        unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
    }
    Ok(())
}

/// Whether a path is of a daemon's file system, also of one that is dead.
fn is_fuse(path: &Path) -> bool {
    match statfs(path) {
        Ok(found) => found.f_type == FUSE,
        Err(error) => error == Errno::NOTCONN,
    }
}

fn unit_path(host: &Host) -> PathBuf {
    host.path("/etc/systemd/system").join(UNIT)
}

/// A guest that reads without end takes time from the daemon's half processor, not from the node. It
/// takes the daemon 5 s to end by itself, and it has nothing to keep.
fn unit() -> String {
    format!(
        "# Written by corpus-agent; changes are overwritten.
[Unit]
Description=Corpus: what guests see of themselves
Before=lxc.service
StartLimitIntervalSec=0

[Service]
ExecStartPre=-/bin/umount -l {FOLDER}
ExecStartPre=/bin/mkdir -p {FOLDER}
ExecStart=/usr/bin/lxcfs --foreground --enable-loadavg --enable-cfs --disable-swap --pidfile=/run/corpus-lxcfs.pid {FOLDER}
ExecStartPost=-{AGENT} views
ExecReload=/bin/kill -USR1 $MAINPID
ExecStopPost=-/bin/umount -l {FOLDER}
KillSignal=SIGKILL
SuccessExitStatus=SIGKILL
Restart=always
RestartSec=100ms
OOMScoreAdjust=-1000
CPUQuota=50%
Delegate=yes

[Install]
WantedBy=multi-user.target
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit() {
        insta::assert_snapshot!(unit());
    }

    #[test]
    fn a_folder_of_the_disk_is_no_daemons() {
        assert!(!is_fuse(Path::new("/proc")) && !is_served(&Host::below("/nowhere")));
    }

    #[test]
    fn lines_are_known_again() {
        assert!(lines().all(|line| is_ours(&line)));
        assert!(!is_ours("lxc.mount.entry = /srv srv none bind 0 0"));
    }
}
