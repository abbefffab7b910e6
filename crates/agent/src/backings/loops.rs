//! Loop devices: which of them is attached to a file.
//!
//! The kernel has one set of loop devices for all containers, and tells their files by paths that
//! may be someone else's: a file is recognised by its number on its file system.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use crate::failure::{At, Failure};
use crate::runner::Argv;
use crate::task::Task;

/// The devices that are attached to the file; none when there is no such file.
pub fn of(task: &Task<'_>, file: &Path) -> Result<Vec<PathBuf>, Failure> {
    let stat = match fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        other => other.at("look at", file)?,
    };
    let argv = Argv::new("losetup").args(["--list", "--noheadings"]);
    let said = argv.args(["--output", "NAME,BACK-INO,BACK-MAJ:MIN"]).quiet().run(task)?;
    Ok(attached(&said.stdout, stat.ino(), stat.dev()))
}

fn attached(list: &str, inode: u64, device: u64) -> Vec<PathBuf> {
    let wanted = [inode.to_string(), format!("{}:{}", major(device), minor(device))];
    let found = list.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        let name = fields.next()?;
        fields.eq(wanted.iter()).then(|| PathBuf::from(name))
    });
    found.collect()
}

/// Attaches the file to a free device.
pub fn attach(task: &Task<'_>, file: &Path) -> Result<PathBuf, Failure> {
    let said = Argv::new("losetup").args(["--find", "--show"]).arg(file).quiet().run(task)?;
    Ok(said.stdout.trim().into())
}

/// The kernel lets go of the file as soon as nothing is mounted from the device any more.
pub fn detach(task: &Task<'_>, device: &Path) -> Result<(), Failure> {
    // It may be gone already.
    Argv::new("losetup").arg("--detach").arg(device).quiet().end(task).map(drop)
}

/// The device is as large as its file.
pub fn resize(task: &Task<'_>, device: &Path) -> Result<(), Failure> {
    Argv::new("losetup").arg("--set-capacity").arg(device).run(task).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_recognised_by_its_number() {
        let list =
            "/dev/loop1 894337   254:0  \n/dev/loop0 885990   254:0  \n/dev/loop2 885990     0:31 \n/dev/loop3\n";
        assert_eq!(attached(list, 885_990, rustix::fs::makedev(254, 0)), [Path::new("/dev/loop0")]);
        assert_eq!(attached(list, 88_599, rustix::fs::makedev(254, 0)), Vec::<PathBuf>::new());
    }
}
