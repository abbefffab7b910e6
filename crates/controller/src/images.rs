//! The archives of images in the controller's folder: `<image>.tar.zst` each, put there by an operator or by what builds
//! them. What lies there under an image's name is a version of it, known by its SHA-256; the one that was made last is
//! what new guests are clones of. Each server looks at its own folder, so several are given the same archives.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use corpus_domain::{Bytes, ImageName};

use crate::nodes::Sha256;
use crate::services::Services;
use crate::store::images;

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
fn problem(path: &Path) -> Option<String> {
    match missing(path) {
        Ok(missing) if missing.is_empty() => None,
        Ok(missing) => Some(format!("it has no {}", missing.join(", no "))),
        Err(error) => Some(format!("it is no whole tar compressed by zstd: {error}")),
    }
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
