//! Volumes of ZFS: clones in a pool named `corpus`, which an operator makes on the disks of the node that are for guests.
//!
//! They are volumes with a btrfs in them, as those of LVM are, and no datasets: the ZFS of Debian 12 shifts no ids for a
//! guest, and a dataset can't have less than what is in it. A clone needs the snapshot that it was made of, and that
//! its volume; so a volume that goes leaves its snapshots to the clones of those (`zfs promote`), and takes the one
//! that it was made of with it when no other clone needs that ([`Zfs::remove`]).
//!
//! A volume has a device only when somebody needs it (`volmode`).

use std::fs::File;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::{Backing as Kind, Bytes};

use super::volumes::{Found, Name, TOOL, Use, Volume, Volumes, hold, is_device};
use crate::failure::{At, Failure};
use crate::host::Host;
use crate::packages;
use crate::runner::Argv;
use crate::task::Task;

/// The volumes.
pub struct Zfs;

const POOL: &str = "corpus";
/// What all volumes are in.
const PARENT: &str = "corpus/guests";
/// How long udev may take to name a device.
const NAMED: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
const BUSY_INTERVAL: Duration = Duration::from_millis(200);
/// A volume is made of blocks of this size, and is a multiple of the step.
const BLOCK: &str = "16k";
const STEP: u64 = 1 << 20;
/// One part of so many is what ZFS itself notes of a full volume.
const NOTES: u64 = 32;
/// Volumes that go are promoted so often at most: a guest has 16 snapshots.
const MOST: usize = 1000;

impl Volumes for Zfs {
    fn kind(&self) -> Kind {
        Kind::Zfs
    }

    fn obstacle(&self, host: &Host) -> Option<String> {
        if !host.path("/sys/module/zfs").exists() {
            let how = "install zfs-dkms and zfsutils-linux, and modprobe zfs";
            return Some(format!("the kernel has no ZFS, or has not loaded it; {how}"));
        }
        let is_there = host.path("/proc/spl/kstat/zfs").join(POOL).exists();
        (!is_there).then(|| format!("there is no pool {POOL}; zpool create {POOL} /dev/DISK makes one"))
    }

    fn ensure(&self, task: &Task<'_>) -> Result<(), Failure> {
        packages::ensure_zfs(task)?;
        if list(task, "filesystem", "name")?.lines().any(|line| line == PARENT) {
            return Ok(());
        }
        change(task)?.args(["create", "-o", "canmount=off", "-o", "mountpoint=none", PARENT]).run(task).map(drop)
    }

    fn give_back(&self, task: &Task<'_>) -> Result<bool, Failure> {
        if self.obstacle(task.host).is_some() || !self.found(task)?.volumes.is_empty() {
            return Ok(false);
        }
        if !list(task, "filesystem", "name")?.lines().any(|line| line == PARENT) {
            return Ok(false);
        }
        change(task)?.args(["destroy", PARENT]).run(task).map(|_| true)
    }

    fn place(&self) -> PathBuf {
        PathBuf::from(PARENT)
    }

    fn device(&self, host: &Host, name: &Name) -> PathBuf {
        host.path(format!("/dev/zvol/{PARENT}/{name}"))
    }

    fn room(&self, task: &Task<'_>) -> Result<Bytes, Failure> {
        let argv = Argv::new("zfs").args(["list", "-H", "-p", "-o", "available", POOL]);
        let said = argv.limit(TOOL).quiet().run(task)?.stdout;
        said.trim().parse().map(Bytes).map_err(|_| wrong(&said))
    }

    fn volumes_in(&self, room: Bytes) -> Bytes {
        Bytes(room.0 - room.0.div_ceil(NOTES + 1))
    }

    fn found(&self, task: &Task<'_>) -> Result<Found, Failure> {
        parse(&list(task, "filesystem,volume", "name,volsize,used,available,referenced")?)
    }

    fn make(&self, task: &Task<'_>, name: &Name, size: Bytes) -> Result<(), Failure> {
        let argv = change(task)?.args(["create", "-s", "-b", BLOCK, "-o", "volmode=none", "-V"]);
        argv.arg(size.0.to_string()).arg(path(name)).run(task).map(drop)
    }

    fn copy(&self, task: &Task<'_>, from: &Name, to: &Name) -> Result<(), Failure> {
        let lock = hold(task, Kind::Zfs)?;
        let snapshot = format!("{}@{to}", path(from));
        zfs(&lock)?.args(["snapshot", &snapshot]).run(task)?;
        zfs(&lock)?.args(["clone", "-o", "volmode=none", &snapshot]).arg(path(to)).run(task).map(drop)
    }

    fn attach(&self, task: &Task<'_>, name: &Name) -> Result<(), Failure> {
        change(task)?.args(["set", "volmode=dev"]).arg(path(name)).run(task)?;
        let (device, end) = (self.device(task.host, name), Instant::now() + NAMED);
        while !is_device(&device) && Instant::now() < end {
            sleep(POLL_INTERVAL);
            task.go_on()?;
        }
        // A name that was just made may go once more and come back, while udev has not looked at the device for the last time.
        let timeout = format!("--timeout={}", NAMED.as_secs());
        Argv::new("udevadm").args(["settle", &timeout]).limit(TOOL).quiet().end(task).map(drop)
    }

    fn detach(&self, task: &Task<'_>, name: &Name) -> Result<(), Failure> {
        change(task)?.args(["set", "volmode=none"]).arg(path(name)).run(task).map(drop)
    }

    fn resize(&self, task: &Task<'_>, name: &Name, from: Bytes, to: Bytes) -> Result<(), Failure> {
        if to < from {
            // What lies beyond would come back when it grows again.
            let argv = Argv::new("blkdiscard").args(["--force", "--offset"]).arg(to.0.to_string());
            argv.arg(self.device(task.host, name)).limit(TOOL).run(task)?;
        }
        change(task)?.args(["set", &format!("volsize={}", to.0)]).arg(path(name)).run(task).map(drop)
    }

    fn remove(&self, task: &Task<'_>, name: &Name) -> Result<(), Failure> {
        if self.obstacle(task.host).is_some() {
            task.note(format!("the pool of the volume {name} is not there any more"));
            return Ok(());
        }
        let lock = hold(task, Kind::Zfs)?;
        for _ in 0..MOST {
            let needed = snapshots(task)?.into_iter().find(|one| one.of == path(name) && !one.clones.is_empty());
            let Some(clone) = needed.and_then(|one| one.clones.into_iter().next()) else { break };
            zfs(&lock)?.args(["promote", &clone]).run(task)?;
        }
        if list(task, "volume", "name")?.lines().any(|line| line == path(name)) {
            destroy(task, &lock, &path(name))?;
        }
        // Nobody else is between the two steps of a copy now.
        for unused in snapshots(task)?.into_iter().filter(Snapshot::is_unused) {
            destroy(task, &lock, &format!("{}@{}", unused.of, unused.name))?;
        }
        Ok(())
    }
}

/// What a clone was made of, once.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot {
    /// Of which volume.
    of: String,
    name: String,
    /// What was made of it.
    clones: Vec<String>,
}

impl Snapshot {
    /// Whether it is one of ours, which are made for a clone each, and has none.
    fn is_unused(&self) -> bool {
        self.clones.is_empty() && self.name.parse::<Name>().is_ok()
    }
}

/// The program that changes something, while the lock is held.
fn zfs(lock: &File) -> Result<Argv, Failure> {
    Ok(Argv::new("zfs").limit(TOOL).quiet().holding(lock.try_clone().at("hold", "the lock of ZFS")?))
}

fn change(task: &Task<'_>) -> Result<Argv, Failure> {
    zfs(&hold(task, Kind::Zfs)?)
}

/// With its snapshots. Whoever looks at its device once it was written to is soon done.
fn destroy(task: &Task<'_>, lock: &File, what: &str) -> Result<(), Failure> {
    let end = Instant::now() + NAMED;
    loop {
        match zfs(lock)?.args(["destroy", "-r", what]).run(task) {
            Err(Failure::Command { tail, .. })
                if tail.iter().any(|line| line.contains("busy")) && Instant::now() < end =>
            {
                sleep(BUSY_INTERVAL);
            }
            other => return other.map(drop),
        }
    }
}

fn path(name: &Name) -> String {
    format!("{PARENT}/{name}")
}

/// These properties of all of this kind that is in our place: nothing where that is not there.
fn list(task: &Task<'_>, kind: &str, properties: &str) -> Result<String, Failure> {
    let argv = Argv::new("zfs").args(["list", "-H", "-p", "-r", "-t", kind, "-o", properties, PARENT]);
    match argv.limit(TOOL).quiet().run(task) {
        Ok(said) => Ok(said.stdout),
        Err(Failure::Command { tail, .. }) if tail.iter().any(|line| line.contains("does not exist")) => {
            Ok(String::new())
        }
        Err(other) => Err(other),
    }
}

fn snapshots(task: &Task<'_>) -> Result<Vec<Snapshot>, Failure> {
    list(task, "snapshot", "name,clones")?.lines().map(snapshot).collect()
}

fn snapshot(line: &str) -> Result<Snapshot, Failure> {
    let parts = || {
        let (path, clones) = line.split_once('\t')?;
        let (of, name) = path.split_once('@')?;
        let clones = clones.split(',').filter(|clone| !["", "-"].contains(clone)).map(str::to_owned).collect();
        Some(Snapshot { of: of.to_owned(), name: name.to_owned(), clones })
    };
    parts().ok_or_else(|| wrong(line))
}

fn wrong(line: &str) -> Failure {
    Failure::Invalid(format!("zfs said {line:?}, which is not what was asked"))
}

fn parse(said: &str) -> Result<Found, Failure> {
    let mut found = Found { step: Bytes(STEP), ..Found::default() };
    for line in said.lines() {
        let [path, size, used, available, referenced] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(wrong(line));
        };
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong(line));
        if path == PARENT {
            found.room = Bytes(number(used)?.saturating_add(number(available)?));
        } else if let Some(name) = path.strip_prefix(PARENT).and_then(|rest| rest.strip_prefix('/')) {
            // A file system of somebody's can come to take what its quota says; we count what is in it.
            let is_volume = size != "-";
            let size = if is_volume { number(size)? } else { number(referenced)? };
            let is_copy = name.parse::<Name>().is_ok_and(|name| name.purpose() == Use::Copy);
            let promised = if is_copy { number(referenced)? } else { size.saturating_add(size / NOTES) };
            found.volumes.push(Volume { name: name.to_owned(), size: Bytes(size), promised: Bytes(promised) });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_zfs_lists() {
        let list = "corpus/guests\t-\t300000000\t700000000\t24576\n\
            corpus/guests/guest.0195b7c6f2a17c3e9d58a1b2c3d4e5f6\t320000000\t5\t700000000\t100\n\
            corpus/guests/copy.0195b7c6f2a17c3e9d58a1b2c3d4e5f7\t320000000\t5\t700000000\t200\n\
            corpus/guests/somebodys\t-\t5\t700000000\t300\n";
        let found = parse(list).unwrap();
        assert_eq!(found.room, Bytes(1_000_000_000));
        let promised: Vec<u64> = found.volumes.iter().map(|volume| volume.promised.0).collect();
        assert_eq!(promised, [330_000_000, 200, 309]);
        assert_eq!(found.volumes[0].name, "guest.0195b7c6f2a17c3e9d58a1b2c3d4e5f6");
        assert!(parse("corpus/guests\t-\n").is_err());
        assert_eq!(parse("").unwrap().room, Bytes(0));
        // So much that a volume of that size, with its notes, has room.
        let size = Zfs.volumes_in(found.room).0;
        assert!(size + size / NOTES <= 1_000_000_000 && size > 969_000_000, "{size}");
    }

    #[test]
    fn snapshots_of_others_stay() {
        let ours = "guest.0195b7c6f2a17c3e9d58a1b2c3d4e5f6";
        let read = |name: &str, clones: &str| snapshot(&format!("corpus/guests/{ours}@{name}\t{clones}")).unwrap();
        assert!(read(ours, "").is_unused() && read(ours, "-").is_unused());
        assert!(!read("daily-2026-11-27", "").is_unused());
        let used = read(ours, "corpus/guests/a,corpus/guests/b");
        assert!(!used.is_unused() && used.clones == ["corpus/guests/a", "corpus/guests/b"]);
        assert!(snapshot("corpus/guests\t-").is_err() && snapshot("").is_err());
    }

    #[test]
    fn what_is_missing_is_said_in_turn() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let says = |what: &str| {
            let obstacle = Zfs.obstacle(&host).unwrap();
            assert!(obstacle.contains(what), "{obstacle}");
        };
        says("the kernel has no ZFS");
        fs::create_dir_all(host.path("/sys/module/zfs")).unwrap();
        says("there is no pool corpus; zpool create corpus /dev/DISK");
        fs::create_dir_all(host.path("/proc/spl/kstat/zfs/corpus")).unwrap();
        assert_eq!(Zfs.obstacle(&host), None);
    }
}
