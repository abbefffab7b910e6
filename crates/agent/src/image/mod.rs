//! The images on the node: `/var/lib/corpus/images/<name>/rootfs`, and beside it the SHA-256 of
//! what it was made from. An image is made under a hidden name and renamed when it is whole.

pub(crate) mod archive;
mod debootstrap;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use corpus_domain::ImageName;
use corpus_protocol::ImageSource;

use crate::backings;
use crate::drivers;
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;
use crate::task::Task;

/// The image is on the node, made from this source.
pub fn ensure(task: &Task<'_>, name: &ImageName, source: &ImageSource) -> Result<bool, Failure> {
    match source {
        ImageSource::Archive { path, sha256, unpacked } => archive::ensure(task, name, path, (sha256, *unpacked)),
        ImageSource::Debootstrap { suite, mirror } => debootstrap::ensure(task, name, suite, mirror.as_deref()),
    }
}

/// The images and what they were made from.
pub fn list(host: &Host) -> Vec<(ImageName, String)> {
    let entries = fs::read_dir(host.corpus().join("images")).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<ImageName>().ok());
    let mut images: Vec<_> = names.filter_map(|name| origin(host, &name).map(|origin| (name, origin))).collect();
    images.sort();
    images
}

/// What the image was made from, if it is on the node and whole.
fn origin(host: &Host, name: &ImageName) -> Option<String> {
    let folder = host.image(name);
    let origin = fs::read_to_string(folder.join("sha256")).ok()?;
    folder.join("rootfs").is_dir().then(|| origin.trim().to_owned())
}

/// Whether there is nothing to do: it is there already, or guests still live on an older one.
fn is_settled(task: &Task<'_>, name: &ImageName, wanted: &str) -> bool {
    match origin(task.host, name) {
        Some(found) if found == wanted => true,
        Some(_) if is_used(task.host, name) => {
            task.note(format!("image {name} stays as it is: guests on this node use it"));
            true
        }
        _ => false,
    }
}

/// The image is not on the node, unless a guest stands on it: what was made from it would lose its files.
pub fn forget(task: &Task<'_>, name: &ImageName) -> Result<bool, Failure> {
    if origin(task.host, name).is_some() && is_used(task.host, name) {
        task.note(format!("image {name} stays: guests on this node use it"));
        return Ok(false);
    }
    let folder = task.host.image(name);
    // What is half gone is no image any more.
    files::remove(&folder.join("sha256"))?;
    let beside = backings::forget_images(task, Some(name))?;
    Ok(files::remove_folder(&folder)? || beside)
}

fn is_used(host: &Host, name: &ImageName) -> bool {
    drivers::all().iter().any(|driver| driver.uses_image(host, name))
}

/// Makes the image with `make`, which fills the folder it is given; nothing is left if it fails.
fn replace(
    task: &Task<'_>,
    name: &ImageName,
    origin: &str,
    make: impl FnOnce(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let folder = task.host.image(name);
    let new = folder.with_file_name(format!(".new-{name}"));
    let old = folder.with_file_name(format!(".old-{name}"));
    files::remove_folder(&new)?;
    files::remove_folder(&old)?;
    let root = new.join("rootfs");
    // What may become root's in a guest must not become it here, and programs of an image have their set-uid bits.
    let images = task.host.corpus().join("images");
    files::private(&images)?;
    fs::set_permissions(&images, fs::Permissions::from_mode(0o700)).at("change", &images)?;
    fs::create_dir_all(&root).at("make", &root)?;
    let finished = make(&root).and_then(|()| require_system(&root)).and_then(|()| {
        files::write(&new.join("sha256"), &format!("{origin}\n"), 0o644)?;
        if folder.exists() {
            fs::rename(&folder, &old).at("replace", &folder)?;
        }
        fs::rename(&new, &folder).at("make", &folder)
    });
    if finished.is_err() {
        let _ = files::remove_folder(&new);
    }
    finished.and_then(|()| files::remove_folder(&old).map(|_| ()))
}

/// An image without these can't become a guest that one can enter.
fn require_system(root: &Path) -> Result<(), Failure> {
    for path in ["etc/passwd", "etc/shadow", "sbin/init", "usr/sbin/sshd"] {
        if fs::symlink_metadata(root.join(path)).is_err() {
            return Err(Failure::Invalid(format!("the image has no /{path}: it is no system to make guests from")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::test::with_task;

    #[test]
    fn what_is_forgotten_is_gone_and_can_be_forgotten_again() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let [old, other] = ["debian-12-0123456789ab", "debian-12"].map(|name| name.parse::<ImageName>().unwrap());
        for name in [&old, &other] {
            fs::create_dir_all(host.image(name).join("rootfs/etc")).unwrap();
            files::write(&host.image(name).join("sha256"), "00\n", 0o644).unwrap();
        }
        assert!(with_task(&host, |task| forget(task, &old)).unwrap());
        assert_eq!(list(&host), [(other, "00".to_owned())]);
        assert!(!host.image(&old).exists());
        assert!(!with_task(&host, |task| forget(task, &old)).unwrap());
    }
}
