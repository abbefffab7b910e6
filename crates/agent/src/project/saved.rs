//! JSON files that survive a power cut: each is the old one or the new one, whole.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::SystemTime;

use corpus_protocol::{Millis, ProjectPlan};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{At, Failure};
use crate::files;
use crate::project::layout::Layout;

/// Now, by this host's clock.
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a file, or tells that there is none.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Failure> {
    files::read(path)?.map(|text| serde_json::from_str(&text).at("understand", path)).transpose()
}

/// Writes a file for root's eyes only, beside the old one, and renames it over once it is on the disk.
pub fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), Failure> {
    let text = serde_json::to_vec_pretty(value).at("write", path)?;
    let beside = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside).at("write", &beside)?;
    file.write_all(&text).and_then(|()| file.sync_all()).at("write", &beside)?;
    fs::rename(&beside, path).at("write", path)?;
    files::sync_folder(path.parent().unwrap_or(path))
}

/// Writes a file unless there is one: of several writers at once the first one's stays. Tells whether it was this one.
pub fn write_first<T: Serialize>(path: &Path, value: &T) -> Result<bool, Failure> {
    let own = path.with_file_name(format!("{}.first", uuid::Uuid::now_v7()));
    if let Err(failure) = write(&own, value) {
        // What is there of it, when the disk is full.
        let _ = files::remove(&own.with_extension("new"));
        return Err(failure);
    }
    let linked = fs::hard_link(&own, path);
    files::remove(&own)?;
    match linked {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        linked => {
            linked.at("write", path).and_then(|()| files::sync_folder(path.parent().unwrap_or(path))).map(|()| true)
        }
    }
}

/// What a project should be here.
pub fn plan(layout: &Layout) -> Result<ProjectPlan, Failure> {
    let missing = || Failure::Missing(format!("there is no project {} here", layout.project()));
    read(&layout.plan())?.ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_whole_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        assert_eq!(read::<Vec<u8>>(&path).unwrap(), None);
        write(&path, &vec![1, 2]).unwrap();
        write(&path, &vec![3]).unwrap();
        assert_eq!(read::<Vec<u8>>(&path).unwrap(), Some(vec![3]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        fs::write(&path, "[3").unwrap();
        assert!(read::<Vec<u8>>(&path).unwrap_err().to_string().starts_with("can't understand"));
    }
}
