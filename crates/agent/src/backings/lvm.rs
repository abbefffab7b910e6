//! Logical volumes: thin ones of a pool in the volume group `corpus`, which an operator makes on the disks of the node that
//! are for guests.
//!
//! The pool is made here, of nearly all that is free in the group. Volumes are active only when somebody needs them: so
//! a node boots as fast with many of them, and udev does not look at copies, which have the identity of what they are
//! copies of. LVM's own programs keep what they do whole, whoever is killed; a lock that each of them holds has the next
//! agent wait for one that outlived its own.
//!
//! A copy is counted with what its origin held when it was made, which is noted on it ([`HOLDS`]): of one that is not
//! active, LVM does not know.

use std::path::PathBuf;

use corpus_domain::{Backing as Kind, Bytes};

use super::volumes::{Found, Name, TOOL, Use, Volume, Volumes, hold};
use crate::failure::Failure;
use crate::host::Host;
use crate::packages;
use crate::runner::Argv;
use crate::task::Task;

/// The volumes.
pub struct Lvm;

const GROUP: &str = "corpus";
const POOL: &str = "guests";
/// How many of 100 parts of what is free in the group the pool gets.
const PART: u64 = 95;
/// On a pool that we made.
const OURS: &str = "corpus.pool";
const HOLDS: &str = "corpus.holds=";
/// How LVM ends over an option that it does not know.
const UNKNOWN_OPTION: i32 = 3;

impl Volumes for Lvm {
    fn kind(&self) -> Kind {
        Kind::Lvm
    }

    fn obstacle(&self, host: &Host) -> Option<String> {
        let release = std::fs::read_to_string(host.path("/proc/sys/kernel/osrelease")).unwrap_or_default();
        let knows = |module: &str, sign: &str| {
            let file = format!("/lib/modules/{}/kernel/drivers/md/{module}.ko", release.trim());
            let files = ["", ".xz", ".zst", ".gz"].map(|packed| format!("{file}{packed}"));
            files.into_iter().chain([sign.to_owned()]).any(|sign| host.path(sign).exists())
        };
        if !knows("dm-mod", "/sys/class/misc/device-mapper") {
            return Some("the kernel has no device mapper (dm_mod)".to_owned());
        }
        if !knows("dm-thin-pool", "/sys/module/dm_thin_pool") {
            return Some("the kernel's device mapper has no thin volumes (dm_thin_pool)".to_owned());
        }
        // What LVM has noted of a group that was made here; of one whose disks were found; and of one in use.
        let signs = ["/etc/lvm/backup", "/run/lvm/vgs_online", "/dev"];
        let is_there = signs.iter().any(|folder| host.path(folder).join(GROUP).exists());
        (!is_there).then(|| format!("there is no volume group {GROUP}; vgcreate {GROUP} /dev/DISK makes one"))
    }

    fn ensure(&self, task: &Task<'_>) -> Result<(), Failure> {
        packages::ensure_lvm(task)?;
        if pool(task)?.is_some() {
            return Ok(());
        }
        if group(task, "vg_name")? != GROUP {
            let missing =
                format!("the node has no volume group {GROUP} any more; vgcreate {GROUP} /dev/DISK makes one");
            return Err(Failure::Missing(missing));
        }
        task.note("making a pool of the volume group, the first time");
        // What is left of the group is for what the pool knows of its volumes, should that have to be mended.
        let argv = change(task, "lvcreate")?
            .args(["--type", "thin-pool", "--name", POOL, "--extents"])
            .arg(format!("{PART}%FREE"));
        // Who writes to a full one is told so, and does not wait. LVM takes this from its configuration only.
        let argv = argv.args(["--zero", "y", "--config", "activation/error_when_full=1", "--addtag", OURS, GROUP]);
        argv.run(task).map(drop)
    }

    fn give_back(&self, task: &Task<'_>) -> Result<bool, Failure> {
        if self.obstacle(task.host).is_some() || pool(task)?.is_none_or(|tags| !tags.split(',').any(|tag| tag == OURS))
        {
            return Ok(false);
        }
        if !self.found(task)?.volumes.is_empty() {
            return Ok(false);
        }
        change(task, "lvremove")?.arg(format!("{GROUP}/{POOL}")).run(task).map(|_| true)
    }

    fn place(&self) -> PathBuf {
        PathBuf::from(format!("/dev/{GROUP}/{POOL}"))
    }

    fn device(&self, host: &Host, name: &Name) -> PathBuf {
        host.path(format!("/dev/mapper/{GROUP}-{name}"))
    }

    fn room(&self, task: &Task<'_>) -> Result<Bytes, Failure> {
        let said = group(task, "vg_free")?;
        let free = said.parse::<u64>().map_err(|_| Failure::Invalid(format!("vgs said {said:?}, no size")))?;
        Ok(Bytes(free / 100 * PART))
    }

    fn found(&self, task: &Task<'_>) -> Result<Found, Failure> {
        parse(&list(task)?)
    }

    fn make(&self, task: &Task<'_>, name: &Name, size: Bytes) -> Result<(), Failure> {
        let argv = change(task, "lvcreate")?.args(["--type", "thin", "--virtualsize"]).arg(format!("{}b", size.0));
        let argv = argv.args(["--name", &name.to_string(), "--activate", "n", "--setactivationskip", "y"]);
        argv.args(["--thinpool", POOL, GROUP]).run(task).map(drop)
    }

    fn copy(&self, task: &Task<'_>, from: &Name, to: &Name) -> Result<(), Failure> {
        let mut argv =
            change(task, "lvcreate")?.args(["--snapshot", "--setactivationskip", "y", "--name"]).arg(to.to_string());
        if to.purpose() == Use::Copy {
            argv = argv.arg("--addtag").arg(format!("{HOLDS}{}", held(task, from)?));
        }
        argv.arg(path(from)).run(task).map(drop)
    }

    fn attach(&self, task: &Task<'_>, name: &Name) -> Result<(), Failure> {
        change(task, "lvchange")?
            .args(["--activate", "y", "--ignoreactivationskip"])
            .arg(path(name))
            .run(task)
            .map(drop)
    }

    fn detach(&self, task: &Task<'_>, name: &Name) -> Result<(), Failure> {
        change(task, "lvchange")?.args(["--activate", "n"]).arg(path(name)).run(task).map(drop)
    }

    fn resize(&self, task: &Task<'_>, name: &Name, from: Bytes, to: Bytes) -> Result<(), Failure> {
        let size = format!("{}b", to.0);
        if to >= from {
            return change(task, "lvextend")?.args(["--size", &size]).arg(path(name)).run(task).map(drop);
        }
        // What lies beyond would stay taken.
        let argv = Argv::new("blkdiscard").args(["--force", "--offset"]).arg(to.0.to_string());
        argv.arg(self.device(task.host, name)).limit(TOOL).run(task)?;
        // Newer ones want to see to the file system themselves, and know none but theirs.
        let reduce = |more: &[&str]| {
            let argv = change(task, "lvreduce")?.args(["--force", "--size", &size]).args(more).arg(path(name));
            Ok::<_, Failure>(argv)
        };
        match reduce(&["--fs", "ignore"])?.end(task)? {
            (status, _) if status.success() => Ok(()),
            (status, _) if status.code() == Some(UNKNOWN_OPTION) => reduce(&[])?.run(task).map(drop),
            (status, output) => {
                Err(Failure::Command { program: "lvreduce", status: status.to_string(), tail: output.tail })
            }
        }
    }

    fn remove(&self, task: &Task<'_>, name: &Name) -> Result<(), Failure> {
        let (status, output) = change(task, "lvremove")?.arg(path(name)).end(task)?;
        if status.success() || self.found(task)?.is_without(name) {
            return Ok(());
        }
        Err(Failure::Command { program: "lvremove", status: status.to_string(), tail: output.tail })
    }
}

/// Something of the group; nothing where there is none.
fn group(task: &Task<'_>, what: &'static str) -> Result<String, Failure> {
    let argv = Argv::new("vgs").args(["--noheadings", "--nosuffix", "--units", "b", "--options", what, "--select"]);
    let said = argv.arg(format!("vg_name={GROUP}")).limit(TOOL).quiet().run(task)?.stdout;
    Ok(said.trim().to_owned())
}

/// A program that changes something, one at a time.
fn change(task: &Task<'_>, program: &'static str) -> Result<Argv, Failure> {
    let lock = hold(task, Kind::Lvm)?;
    Ok(Argv::new(program).args(["--yes", "--quiet"]).limit(TOOL).quiet().holding(lock))
}

fn path(name: &Name) -> String {
    format!("{GROUP}/{name}")
}

fn list(task: &Task<'_>) -> Result<String, Failure> {
    let argv = Argv::new("lvs").args(["--noheadings", "--nosuffix", "--units", "b", "--separator", "|", "--options"]);
    let argv = argv.args(["lv_name,segtype,lv_size,pool_lv,vg_extent_size,lv_tags", "--select"]);
    Ok(argv.arg(format!("vg_name={GROUP}")).limit(TOOL).quiet().run(task)?.stdout)
}

/// The tags of the pool, if there is one.
fn pool(task: &Task<'_>) -> Result<Option<String>, Failure> {
    let said = list(task)?;
    let mut rows = said.lines().map(|line| line.trim().split('|').collect::<Vec<_>>());
    match rows.find(|row| row.first() == Some(&POOL)).as_deref() {
        None => Ok(None),
        Some([_, "thin-pool", _, _, _, tags]) => Ok(Some((*tags).to_owned())),
        Some(_) => Err(Failure::Invalid(format!(
            "{GROUP}/{POOL} is no thin pool; guests lie in one of that name, which is made when there is none"
        ))),
    }
}

/// What a volume has taken, as if it shared nothing.
fn held(task: &Task<'_>, name: &Name) -> Result<u64, Failure> {
    let ask = || {
        let argv = Argv::new("lvs").args(["--noheadings", "--nosuffix", "--units", "b", "--separator", "|"]);
        argv.args(["--options", "lv_size,data_percent"]).arg(path(name)).limit(TOOL).quiet().run(task)
    };
    let mut said = ask()?.stdout;
    if part_of(&said).is_none() {
        // It was not used since the node came up.
        Lvm.attach(task, name)?;
        said = ask()?.stdout;
    }
    part_of(&said).ok_or_else(|| Failure::Invalid(format!("lvs said {said:?}, not how much is taken")))
}

/// Of a size and how many of 100 parts of that are taken, to two digits.
fn part_of(said: &str) -> Option<u64> {
    let (size, percent) = said.trim().split_once('|')?;
    let (size, (whole, digits)) = (size.parse::<u64>().ok()?, percent.split_once('.')?);
    let parts = format!("{whole}{digits:0<2}").parse::<u128>().ok()? + 1;
    u64::try_from(u128::from(size) * parts / 10_000).ok().map(|taken| taken.min(size))
}

fn parse(said: &str) -> Result<Found, Failure> {
    let wrong = |line: &str| Failure::Invalid(format!("lvs said {line:?}, no logical volume"));
    let mut found = Found::default();
    for line in said.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let [name, kind, size, pool, step, tags] = line.split('|').collect::<Vec<_>>()[..] else {
            return Err(wrong(line));
        };
        let number = |text: &str| text.parse().map(Bytes).map_err(|_| wrong(line));
        if name == POOL && kind == "thin-pool" {
            (found.room, found.step) = (number(size)?, number(step)?);
        }
        if pool == POOL {
            let size = number(size)?;
            let holds = tags.split(',').find_map(|tag| tag.strip_prefix(HOLDS)?.parse().ok());
            found.volumes.push(Volume { name: name.to_owned(), size, promised: holds.map_or(size, Bytes) });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LIST: &str = "  backups|linear|1073741824||4194304|\n  guests|thin-pool|25497174016||4194304|corpus.pool\n  \
        guest.0195b7c6f2a17c3e9d58a1b2c3d4e5f6|thin|503316480|guests|4194304|\n  \
        copy.0195b7c6f2a17c3e9d58a1b2c3d4e5f7|thin|503316480|guests|4194304|corpus.holds=300000000,mine\n  \
        somebodys|thin|1073741824|guests|4194304|\n";

    #[test]
    fn what_lvs_lists() {
        let found = parse(LIST).unwrap();
        let names: Vec<_> = found.volumes.iter().map(|volume| (volume.name.as_str(), volume.promised.0)).collect();
        assert_eq!((found.room, found.step), (Bytes(25_497_174_016), Bytes(4 << 20)));
        assert_eq!(
            names,
            [
                ("guest.0195b7c6f2a17c3e9d58a1b2c3d4e5f6", 503_316_480),
                ("copy.0195b7c6f2a17c3e9d58a1b2c3d4e5f7", 300_000_000),
                ("somebodys", 1 << 30)
            ]
        );
        assert_eq!(parse("\n").unwrap(), Found::default());
        assert!(parse("  WARNING: a device is missing\n").is_err() && parse("guests|thin-pool|x||4|\n").is_err());
    }

    #[test]
    fn what_is_taken_is_never_told_as_less() {
        assert_eq!(part_of("  503316480|48.31\n"), Some(503_316_480 * 4832 / 10_000));
        assert_eq!(part_of("503316480|100.00"), Some(503_316_480));
        assert_eq!(part_of("503316480|0.00"), Some(50_331));
        assert_eq!((part_of("503316480|"), part_of("")), (None, None));
    }

    #[test]
    fn what_is_missing_is_said_in_turn() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let put = |path: &str, text: &str| {
            let path = host.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let says = |what: &str| {
            let obstacle = Lvm.obstacle(&host).unwrap();
            assert!(obstacle.contains(what), "{obstacle}");
        };
        says("device mapper (dm_mod)");
        put("/proc/sys/kernel/osrelease", "6.1.0-52-amd64\n");
        put("/lib/modules/6.1.0-51-amd64/kernel/drivers/md/dm-mod.ko", "");
        says("device mapper (dm_mod)");
        put("/sys/class/misc/device-mapper/dev", "");
        says("no thin volumes");
        put("/lib/modules/6.1.0-52-amd64/kernel/drivers/md/dm-thin-pool.ko.xz", "");
        says("there is no volume group corpus; vgcreate corpus /dev/DISK");
        put("/etc/lvm/backup/corpus", "");
        assert_eq!(Lvm.obstacle(&host), None);
    }
}
