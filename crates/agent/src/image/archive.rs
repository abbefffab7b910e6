//! An image from an archive that was uploaded: checked by its hash, then unpacked.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use corpus_domain::{Bytes, ImageName};
use sha2::{Digest, Sha256};

use super::{is_settled, replace};
use crate::digest::hexadecimal;
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::runner::Argv;
use crate::task::Task;

const UNPACK: Duration = Duration::from_mins(10);
const CHUNK: usize = 1 << 20;
/// A system is about three times as large as its zstd archive; tar says so itself if it is more.
const EXPANSION: u64 = 3;

/// The image is what this archive holds; the archive is removed.
pub fn ensure(
    task: &Task<'_>,
    name: &ImageName,
    path: &str,
    (sha256, unpacked): (&str, Option<Bytes>),
) -> Result<bool, Failure> {
    let archive = uploaded(task.host, path)?;
    if is_settled(task, name, sha256) {
        files::remove(&archive)?;
        return Ok(false);
    }
    task.note(format!("checking the archive of image {name}"));
    let found = hash(task, &archive)?;
    if found != sha256 {
        files::remove(&archive)?;
        return Err(Failure::Invalid(format!("the archive of image {name} has the SHA-256 {found}, not {sha256}")));
    }
    task.note(format!("unpacking image {name}"));
    replace(task, name, sha256, |root| unpack(task, &archive, unpacked, root))?;
    files::remove(&archive)?;
    Ok(true)
}

/// Only what lies in the folder of uploads is read, and removed afterwards.
fn uploaded(host: &Host, path: &str) -> Result<PathBuf, Failure> {
    let folder = Path::new("/var/lib/corpus/upload");
    let inside = Path::new(path).strip_prefix(folder).ok();
    match inside.filter(|rest| rest.components().count() == 1 && rest.components().all(is_name)) {
        Some(rest) => Ok(host.path(folder).join(rest)),
        None => Err(Failure::Invalid(format!("{path:?} is no file in {}", folder.display()))),
    }
}

fn is_name(part: Component<'_>) -> bool {
    matches!(part, Component::Normal(_))
}

pub(crate) fn hash(task: &Task<'_>, path: &Path) -> Result<String, Failure> {
    let mut file = File::open(path).at("open", path)?;
    let total = file.metadata().at("look at", path)?.len();
    let mut digest = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    let mut done = 0;
    loop {
        task.go_on()?;
        let read = file.read(&mut chunk).at("read", path)?;
        if read == 0 {
            return Ok(hexadecimal(&digest.finalize()));
        }
        digest.update(chunk.get(..read).unwrap_or_default());
        done += read as u64;
        if done % (16 << 20) < CHUNK as u64 {
            task.progress(done, total);
        }
    }
}

fn unpack(task: &Task<'_>, archive: &Path, unpacked: Option<Bytes>, root: &Path) -> Result<(), Failure> {
    let size = fs::metadata(archive).at("look at", archive)?.len().saturating_mul(EXPANSION);
    files::require_room(root, Bytes(size.max(unpacked.unwrap_or_default().0)))?;
    let argv = Argv::new("tar").args(["--extract", "--zstd", "--numeric-owner", "--preserve-permissions"]);
    // Without its capability `ping` works for root only.
    let argv = argv.args(["--xattrs", "--xattrs-include=security.capability"]);
    let argv = argv.arg("--file").arg(archive).arg("--directory").arg(root);
    argv.limit(UNPACK).run(task).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::test::with_task;

    #[test]
    fn only_uploads_are_taken() {
        let host = Host::default();
        assert!(uploaded(&host, "/var/lib/corpus/upload/a.tar.zst").is_ok());
        for bad in
            ["/etc/shadow", "/var/lib/corpus/upload/../x", "/var/lib/corpus/upload", "a", "/var/lib/corpus/upload/a/b"]
        {
            assert!(uploaded(&host, bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wrong_hash_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let upload = host.path("/var/lib/corpus/upload/a");
        files::write(&upload, "abc", 0o644).unwrap();
        let name = "debian-12".parse().unwrap();
        let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(with_task(&host, |task| hash(task, &upload)).unwrap(), right);
        let error = with_task(&host, |task| ensure(task, &name, "/var/lib/corpus/upload/a", ("00", None))).unwrap_err();
        assert!(error.to_string().contains(right), "{error}");
        assert!(!upload.exists());
        assert!(crate::image::list(&host).is_empty());
    }
}
