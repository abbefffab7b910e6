//! The archives of images in the controller's folder: `<image>.tar.zst` each, put there by an operator or by what builds
//! them. What lies there under an image's name is a version of it, known by its SHA-256; the one that was made last is
//! what new guests are clones of. Each server looks at its own folder, so several are given the same archives.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, Utc};
use corpus_domain::{Bytes, ImageName};

use crate::nodes::Sha256;
use crate::services::{Services, internal};
use crate::store::{images, made_images};

/// Which images there are; the first is what guests are clones of unless they ask for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageNames(Vec<ImageName>);

impl Default for ImageNames {
    fn default() -> Self {
        Self(vec![ImageName::first()])
    }
}

impl ImageNames {
    /// The longest name, so that a version's name is one too.
    pub const LONGEST: usize = 27;

    /// These, in their order; none where there are none.
    pub fn new(names: Vec<ImageName>) -> Option<Self> {
        (!names.is_empty()).then_some(Self(names))
    }

    /// What guests are clones of unless they ask for another.
    pub fn usual(&self) -> ImageName {
        self.0.first().cloned().unwrap_or_else(ImageName::first)
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = &ImageName> {
        self.0.iter()
    }

    /// Whether this is one.
    pub fn has(&self, name: &ImageName) -> bool {
        self.0.contains(name)
    }
}

/// What was read of archives, so that one that did not change is not read again.
#[derive(Debug, Clone, Default)]
pub struct Seen(Arc<Mutex<HashMap<ImageName, (Looks, Content)>>>);

/// What tells that a file is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Looks {
    modified: SystemTime,
    bytes: u64,
}

/// What is in an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Content {
    sha256: Sha256,
    problem: Option<String>,
}

impl Content {
    async fn read(name: &ImageName, path: &Path) -> io::Result<Self> {
        let sha256 = Sha256::of_file(path).await?;
        let path = path.to_owned();
        let problem = tokio::task::spawn_blocking(move || problem(&path)).await.map_err(io::Error::other)?;
        if let Some(problem) = &problem {
            tracing::warn!(image = %name, problem, "an archive of an image can't be used");
        }
        Ok(Self { sha256, problem })
    }
}

/// Each of these, at one of its places: without them nobody enters a guest.
const NEEDED: [&[&str]; 4] = [&["etc/passwd"], &["etc/shadow"], &["sbin/init", "usr/sbin/init"], &["usr/sbin/sshd"]];

/// Why no guest can be a clone of what is in the archive: it is not whole, or no system.
pub(crate) fn problem(path: &Path) -> Option<String> {
    match missing(path) {
        Ok(missing) if missing.is_empty() => None,
        Ok(missing) => Some(format!("it has no {}", missing.join(", no "))),
        Err(error) => Some(format!("it is no whole tar compressed by zstd: {error}")),
    }
}

/// An archive is looked at as one that nobody will need only when it has not changed for so long.
const LEFT_FOR: Duration = Duration::from_hours(24);

/// The archives in a folder that have not changed for so long, and what each is called there.
fn archives_in(folder: &Path, unchanged: Duration) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let old = entries.filter(|entry| {
        let modified = entry.metadata().and_then(|about| about.modified());
        modified.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= unchanged))
    });
    old.map(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (entry.path(), name.strip_suffix(".tar.zst").unwrap_or(&name).to_owned())
    })
    .collect()
}

/// What stays free where archives are: a twentieth, and this much.
const LEFT: u64 = 1 << 30;

/// Why no archive is put there, if the folder's disk is as full as it may be.
pub(crate) fn is_full(folder: &Path) -> io::Result<Option<String>> {
    let stat = rustix::fs::statvfs(folder)?;
    let (free, all) = (stat.f_bavail.saturating_mul(stat.f_frsize), stat.f_blocks.saturating_mul(stat.f_frsize));
    let least = LEFT.max(all / 20);
    Ok((free < least).then(|| {
        let (free, least) = (Bytes(free).gb(), Bytes(least).gb());
        format!("where archives of images are, {free} are free, and {least} are to stay so")
    }))
}

/// Reads the archive to its end.
fn missing(path: &Path) -> io::Result<Vec<String>> {
    let mut archive = tar::Archive::new(zstd::stream::read::Decoder::new(File::open(path)?)?);
    let mut missing = NEEDED.to_vec();
    for entry in archive.entries()? {
        let entry = entry?;
        let path = entry.path_bytes();
        let name = path.strip_prefix(b"./").unwrap_or(&path);
        missing.retain(|places| !places.iter().any(|place| place.as_bytes() == name));
    }
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(missing.iter().filter_map(|places| places.first()).map(|place| format!("/{place}")).collect())
}

/// An archive that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Archive {
    pub sha256: Sha256,
    /// Why no guest can be a clone of it.
    pub problem: Option<String>,
    bytes: Bytes,
    made_at: DateTime<Utc>,
}

impl Seen {
    fn known(&self, name: &ImageName, looks: Looks) -> Option<Content> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(name).filter(|(seen, _)| *seen == looks).map(|(_, content)| content.clone())
    }

    fn keep(&self, name: &ImageName, looks: Looks, content: Content) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), (looks, content));
    }
}

impl Services {
    /// Where the archive of an image is looked for.
    pub(crate) fn archive_path(&self, name: &ImageName) -> PathBuf {
        self.settings.image_folder.join(format!("{name}.tar.zst"))
    }

    /// Where an archive of a project's image is.
    pub(crate) fn made_archive(&self, sha256: &str) -> PathBuf {
        self.settings.made_images.join(format!("{sha256}.tar.zst"))
    }

    /// Where the archive of a version is: one of a project's, or of those that operators put there.
    pub(crate) fn version_path(&self, version: &images::Version) -> PathBuf {
        match version.made {
            Some(_) => self.made_archive(&version.sha256),
            None => self.archive_path(&version.name),
        }
    }

    /// Removes archives that no version has any more: no image was made of them, or it was removed. One that is being
    /// made is not a day old.
    pub(crate) async fn forget_archives(&self) -> crate::Result<()> {
        let mut conn = self.db.acquire().await?;
        made_images::forget_superseded(&mut conn).await?;
        for (path, sha256) in archives_in(&self.settings.made_images, LEFT_FOR) {
            if !made_images::is_kept(&mut conn, &sha256).await? {
                tokio::fs::remove_file(&path)
                    .await
                    .map_err(|error| internal("an archive could not be removed", error))?;
            }
        }
        Ok(())
    }

    /// The archive of an image, if there is one.
    pub(crate) async fn archive(&self, name: &ImageName) -> io::Result<Option<Archive>> {
        let path = self.archive_path(name);
        let about = match tokio::fs::metadata(&path).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            about => about?,
        };
        let looks = Looks { modified: about.modified()?, bytes: about.len() };
        let content = if let Some(known) = self.archives_seen.known(name, looks) {
            known
        } else {
            let read = Content::read(name, &path).await?;
            self.archives_seen.keep(name, looks, read.clone());
            read
        };
        let Content { sha256, problem } = content;
        Ok(Some(Archive { sha256, problem, bytes: Bytes(looks.bytes), made_at: looks.modified.into() }))
    }

    /// Looks which archives there are, and keeps what is new. One that can't be used, or not be read, is told of in the log:
    /// new guests are made from what there was before.
    pub(crate) async fn look_for_images(&self) -> sqlx::Result<()> {
        for name in self.settings.images.iter() {
            let archive = match self.archive(name).await {
                Ok(Some(archive)) if archive.problem.is_none() => archive,
                Ok(_) => continue,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(image = %name, error, "an archive of an image can't be read");
                    continue;
                }
            };
            let mut conn = self.db.acquire().await?;
            let Archive { sha256, bytes, made_at, .. } = archive;
            if images::found(&mut conn, name, &sha256.to_string(), bytes, made_at).await? {
                tracing::info!(image = %name, %sha256, "a version of an image was found");
            }
        }
        Ok(())
    }
}
