//! A folder of this machine, or one that is mounted on it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::{CONFIG, Files, KEYS, Result, Room, StorageError};

/// The folders of a repository besides that of the packs, in which there is one for each first byte of their names.
const FOLDERS: [&str; 4] = [KEYS, "snapshots", "index", "locks"];
const PACKS: &str = "data";

#[derive(Debug)]
pub(super) struct Folder(PathBuf);

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> StorageError {
    let path = path.to_owned();
    move |error| StorageError::Folder { doing, path, source: Arc::new(error) }
}

impl Folder {
    pub(super) const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }
}

impl Files for Folder {
    fn name(&self) -> String {
        self.0.display().to_string()
    }

    fn prepare(&self) -> Result<()> {
        let packs = (0..=u8::MAX).map(|byte| format!("{PACKS}/{byte:02x}"));
        let all = FOLDERS.iter().map(|&folder| folder.to_owned()).chain(packs);
        all.map(|folder| self.at(&folder))
            .try_for_each(|folder| fs::create_dir_all(&folder).map_err(failed("making", &folder)))
    }

    fn lock(&self) -> Result<Option<File>> {
        fs::create_dir_all(&self.0).map_err(failed("making", &self.0))?;
        let folder = File::open(&self.0).map_err(failed("opening", &self.0))?;
        folder.lock().map_err(failed("locking", &self.0))?;
        Ok(Some(folder))
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        let mut folders = vec![self.at(folder)];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(failed("reading", &folder))?,
            };
            for entry in entries {
                let entry = entry.map_err(failed("reading", &folder))?;
                let about = match entry.metadata() {
                    // Whoever prunes or writes was faster.
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    about => about.map_err(failed("looking at", &entry.path()))?,
                };
                if about.is_dir() {
                    folders.push(entry.path());
                } else if about.is_file() {
                    found.push((entry.file_name().to_string_lossy().into_owned(), about.len()));
                }
            }
        }
        Ok(found)
    }

    fn exists(&self, path: &str) -> Result<bool> {
        let path = self.at(path);
        path.try_exists().map_err(failed("looking for", &path))
    }

    fn read(&self, path: &str) -> Result<Bytes> {
        let path = self.at(path);
        fs::read(&path).map(Bytes::from).map_err(failed("reading", &path))
    }

    fn read_part(&self, path: &str, offset: u64, length: u64) -> Result<Bytes> {
        let path = self.at(path);
        let read = || {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut part = vec![0; usize::try_from(length).map_err(|_| ErrorKind::OutOfMemory)?];
            file.read_exact(&mut part)?;
            Ok(part.into())
        };
        read().map_err(failed("reading", &path))
    }

    fn write(&self, path: &str, content: &[Bytes]) -> Result<()> {
        let path = self.at(path);
        let folder = path.parent().unwrap_or(&self.0);
        fs::create_dir_all(folder).map_err(failed("making", folder))?;
        let mut unnamed = path.clone().into_os_string();
        unnamed.push("-tmp");
        let written = File::create(&unnamed).and_then(|mut file| {
            content.iter().try_for_each(|piece| file.write_all(piece))?;
            file.sync_all()?;
            fs::rename(&unnamed, &path)
        });
        if written.is_err() {
            // It is in nobody's way but takes room, of which there may be none.
            fs::remove_file(&unnamed).ok();
        }
        written.map_err(failed("writing", &path))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("writing to", folder))
    }

    fn create(&self, path: &str, content: &[Bytes]) -> Result<bool> {
        // The lock keeps others away.
        if self.exists(path)? {
            return Ok(false);
        }
        self.write(path, content).map(|()| true)
    }

    fn remove(&self, path: &str) -> Result<()> {
        let path = self.at(path);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(failed("removing", &path)),
        }
    }

    fn remove_all(&self) -> Result<()> {
        // While it is there others take it for a repository.
        self.remove(CONFIG)?;
        match fs::remove_dir_all(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(failed("removing", &self.0)),
        }
    }

    fn room(&self) -> Result<Option<Room>> {
        // The first backup makes the folder.
        let there = self.0.ancestors().find(|folder| folder.exists()).unwrap_or(&self.0);
        let stat = rustix::fs::statvfs(there).map_err(|error| failed("looking at", there)(error.into()))?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(Some(Room { free: bytes(stat.f_bavail), all: bytes(stat.f_blocks) }))
    }
}
