//! Where files are, by their number: as little as finds them again among ten millions.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::Errno;

use super::folder::{WALK, open};
use crate::failure::Failure;

/// How many bytes all names may have; those of an honest guest have a tenth of it.
const MAX_NAMES: u32 = 512 << 20;

/// The root's number.
pub const ROOT: u32 = 0;

/// Names and the folders that they are in.
#[derive(Default)]
pub struct Places {
    names: Vec<u8>,
    /// The folder of each, and where in `names` its own ends.
    all: Vec<(u32, u32)>,
}

impl Places {
    /// Notes one more, and tells its number; the root is the first.
    pub fn add(&mut self, folder: u32, name: &[u8]) -> Result<u32, Failure> {
        let end = u32::try_from(self.names.len() + name.len()).ok().filter(|end| *end <= MAX_NAMES);
        let number = u32::try_from(self.all.len()).ok();
        let (Some(end), Some(number)) = (end, number) else {
            return Err(Failure::Invalid(format!("the names of all files have more than {MAX_NAMES} bytes")));
        };
        self.names.extend_from_slice(name);
        self.all.push((folder, end));
        Ok(number)
    }

    /// The folder that it is in, and its name there.
    pub fn get(&self, number: u32) -> Option<(u32, &[u8])> {
        let at = usize::try_from(number).ok()?;
        let (folder, end) = *self.all.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.all.get(before)).map_or(0, |(_, end)| *end);
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        Some((folder, self.names.get(range)?))
    }

    /// The folders that lead to it, from below the root down to it.
    fn chain(&self, folder: u32) -> Vec<u32> {
        let mut chain = Vec::new();
        let mut here = folder;
        while here != ROOT {
            chain.push(here);
            here = self.get(here).map_or(ROOT, |(above, _)| above);
        }
        chain.reverse();
        chain
    }

    /// The path of a name in a folder, as the guest has it.
    pub fn path(&self, folder: u32, name: &[u8]) -> PathBuf {
        let mut path = PathBuf::from("/");
        for number in self.chain(folder) {
            path.push(OsStr::from_bytes(self.get(number).map_or(&[][..], |(_, name)| name)));
        }
        path.push(OsStr::from_bytes(name));
        path
    }
}

/// The folders that were opened last: files are mostly asked for one beside the other.
pub struct Chain {
    root: OwnedFd,
    open: Vec<(u32, OwnedFd)>,
}

impl Chain {
    /// One that begins at the root.
    pub const fn new(root: OwnedFd) -> Self {
        Self { root, open: Vec::new() }
    }

    /// Opens a folder, by each that leads to it.
    pub fn to(&mut self, places: &Places, folder: u32) -> Result<&OwnedFd, Errno> {
        let chain = places.chain(folder);
        let same = self.open.iter().zip(&chain).take_while(|((open, _), wanted)| open == *wanted).count();
        self.open.truncate(same);
        for number in chain.into_iter().skip(same) {
            let (_, name) = places.get(number).ok_or(Errno::NOENT)?;
            let here = self.open.last().map_or(&self.root, |(_, folder)| folder);
            self.open.push((number, open(here, name, WALK)?));
        }
        Ok(self.open.last().map_or(&self.root, |(_, folder)| folder))
    }
}
