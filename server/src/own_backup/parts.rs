//! The files of a backup: gathered where the server keeps its own, and each by its whole path, so that it goes back to
//! where it lay.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Component, Path, PathBuf};

use tempfile::TempDir;

use super::{About, OwnBackupError, Result, file_error};
use crate::config::Settings;

/// The database, as `pg_dump` writes it.
pub const DATABASE: &str = "database.dump";
/// Files by their whole paths.
pub const FILES: &str = "files";
/// What folders begin with in which backups are gathered.
const STAGING: &str = "backup-";
const ABOUT: &str = "about.json";

/// A folder of nobody else's, gone when it is let go; below the one that is given.
pub fn private_folder(below: &Path) -> Result<TempDir> {
    std::fs::create_dir_all(below).map_err(file_error("making", below))?;
    tempfile::Builder::new().prefix(STAGING).tempdir_in(below).map_err(file_error("making a folder in", below))
}

/// Removes what one left that was killed; for who alone takes backups.
pub fn clear_left(below: &Path) -> Result<()> {
    let entries = match std::fs::read_dir(below) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(file_error("reading", below))?,
    };
    for entry in entries {
        let entry = entry.map_err(file_error("reading", below))?;
        if entry.file_name().as_encoded_bytes().starts_with(STAGING.as_bytes()) {
            std::fs::remove_dir_all(entry.path()).map_err(file_error("removing", &entry.path()))?;
        }
    }
    Ok(())
}

/// Copies what is needed besides the database: the configuration, the seal key, the files that the configuration names,
/// and the hooks.
pub fn gather(settings: &Settings, into: &Path) -> Result<()> {
    let named = settings.named_files.iter().chain(&settings.file).chain([&settings.seal_key_file]);
    for path in named {
        let path = std::path::absolute(path).map_err(file_error("resolving", path))?;
        copy(&path, &into.join(FILES), &path)?;
    }
    let hooks = std::path::absolute(&settings.hooks_folder).map_err(file_error("resolving", &settings.hooks_folder))?;
    for path in files_below(&hooks)? {
        copy(&path, &into.join(FILES), &path)?;
    }
    Ok(())
}

/// Copies a file with its mode to its own path below another root; its folders are made, for nobody else.
fn copy(from: &Path, root: &Path, path: &Path) -> Result<()> {
    let to = below(root, path);
    if let Some(folder) = to.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(file_error("making", folder))?;
    }
    std::fs::copy(from, &to).map_err(file_error("copying", from))?;
    Ok(())
}

/// An absolute path below a root; nothing of it leads out of there.
fn below(root: &Path, path: &Path) -> PathBuf {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .fold(root.to_owned(), |at, part| at.join(part))
}

/// Every file in a folder and below it, sorted; none where there is no folder.
pub fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(file_error("reading", &folder))?,
        };
        for entry in entries {
            let entry = entry.map_err(file_error("reading", &folder))?;
            let kind = entry.file_type().map_err(file_error("looking at", &entry.path()))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Puts the files of a backup back to where they lay. What is there and the same stays; when anything there is not the
/// same, nothing is done. The files that were written.
pub fn put_back(from: &Path) -> Result<Vec<PathBuf>> {
    let root = from.join(FILES);
    let mut missing = Vec::new();
    let mut in_the_way = Vec::new();
    for path in files_below(&root)? {
        let Ok(rest) = path.strip_prefix(&root) else { continue };
        let home = Path::new("/").join(rest);
        let ours = std::fs::read(&path).map_err(file_error("reading", &path))?;
        match std::fs::read(&home) {
            Ok(there) if there == ours => {}
            Ok(_) => in_the_way.push(home),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => missing.push((path, home)),
            Err(error) => return Err(file_error("reading", &home)(error)),
        }
    }
    if !in_the_way.is_empty() {
        return Err(OwnBackupError::InTheWay(in_the_way));
    }
    for (path, home) in &missing {
        write_back(path, home)?;
    }
    Ok(missing.into_iter().map(|(_, home)| home).collect())
}

/// Whole or not at all, never readable by more than it was, and of whoever took the backup: who served reads it again.
fn write_back(path: &Path, home: &Path) -> Result<()> {
    let folder = home.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(folder).map_err(file_error("making", folder))?;
    let was = std::fs::metadata(path).map_err(file_error("looking at", path))?;
    let mode = std::fs::Permissions::from_mode(was.mode() & 0o777);
    let new = tempfile::NamedTempFile::new_in(folder).map_err(file_error("writing into", folder))?;
    std::fs::copy(path, new.path()).map_err(file_error("writing", home))?;
    if rustix::process::geteuid().is_root() {
        chown(new.path(), Some(was.uid()), Some(was.gid())).map_err(file_error("giving away", home))?;
    }
    std::fs::set_permissions(new.path(), mode).map_err(file_error("writing", home))?;
    new.as_file().sync_all().map_err(file_error("writing", home))?;
    new.persist(home).map_err(|error| file_error("writing", home)(error.error))?;
    Ok(())
}

pub fn write_about(into: &Path, about: &About) -> Result<()> {
    let path = into.join(ABOUT);
    let text = serde_json::to_vec_pretty(about).map_err(|error| file_error("writing", &path)(error.into()))?;
    std::fs::write(&path, text).map_err(file_error("writing", &path))
}

pub fn read_about(from: &Path) -> Result<About> {
    let text = std::fs::read(from.join(ABOUT)).map_err(|_| OwnBackupError::NotOurs("it has no about.json"))?;
    serde_json::from_slice(&text).map_err(|_| OwnBackupError::NotOurs("its about.json can't be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_a_backup() {
        assert_eq!(
            below(Path::new("/root"), Path::new("/etc/corpus/corpus.toml")),
            Path::new("/root/etc/corpus/corpus.toml")
        );
        assert_eq!(below(Path::new("/root"), Path::new("/etc/../../x")), Path::new("/root/etc/x"));
    }

    /// Brought back by root, a key must still open for the service.
    #[test]
    fn a_file_is_again_of_who_served() {
        let root = rustix::process::geteuid().is_root();
        let (from, machine) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let home = machine.path().join("data/seal.key");
        let saved = below(&from.path().join(FILES), &home);
        std::fs::create_dir_all(saved.parent().unwrap()).unwrap();
        std::fs::write(&saved, "key").unwrap();
        std::fs::set_permissions(&saved, std::fs::Permissions::from_mode(0o600)).unwrap();
        if root {
            chown(&saved, Some(65534), Some(65534)).unwrap();
        }
        assert_eq!(put_back(from.path()).unwrap(), std::slice::from_ref(&home));
        let (was, is) = (std::fs::metadata(&saved).unwrap(), std::fs::metadata(&home).unwrap());
        assert_eq!((is.uid(), is.gid(), is.mode() & 0o777), (was.uid(), was.gid(), 0o600));
    }
}
