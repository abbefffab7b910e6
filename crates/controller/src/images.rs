//! The archives of images in the controller's folder: `<image>.tar.zst` each, put there by an operator or by what builds
//! them. What lies there under an image's name is a version of it, known by its SHA-256; the one that was made last is
//! what new guests are clones of. Each server looks at its own folder, so several are given the same archives.

use std::collections::HashMap;
use std::path::PathBuf;
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
pub struct Seen(Arc<Mutex<HashMap<ImageName, (Looks, Sha256)>>>);

/// What tells that a file is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Looks {
    modified: SystemTime,
    bytes: u64,
}

impl Seen {
    /// The archive's sum, by what it looks like.
    async fn sum(&self, name: &ImageName, path: &std::path::Path, looks: Looks) -> std::io::Result<Sha256> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied();
        if let Some((_, sum)) = known.filter(|(seen, _)| *seen == looks) {
            return Ok(sum);
        }
        let sum = Sha256::of_file(path).await?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), (looks, sum));
        Ok(sum)
    }
}

/// An archive that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Archive {
    pub sha256: Sha256,
    bytes: Bytes,
    made_at: DateTime<Utc>,
}

impl Services {
    /// Where the archive of an image is looked for.
    pub(crate) fn archive_path(&self, name: &ImageName) -> PathBuf {
        self.settings.image_folder.join(format!("{name}.tar.zst"))
    }

    /// The archive of an image, if there is one.
    pub(crate) async fn archive(&self, name: &ImageName) -> std::io::Result<Option<Archive>> {
        let path = self.archive_path(name);
        let about = match tokio::fs::metadata(&path).await {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            about => about?,
        };
        let looks = Looks { modified: about.modified()?, bytes: about.len() };
        let sha256 = self.archives_seen.sum(name, &path, looks).await?;
        Ok(Some(Archive { sha256, bytes: Bytes(looks.bytes), made_at: looks.modified.into() }))
    }

    /// Looks which archives there are, and keeps what is new. One that can't be read is told of in the log.
    pub(crate) async fn look_for_images(&self) -> sqlx::Result<()> {
        for name in self.settings.images.iter() {
            let archive = match self.archive(name).await {
                Ok(Some(archive)) => archive,
                Ok(None) => continue,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(image = %name, error, "an archive of an image can't be read");
                    continue;
                }
            };
            let mut conn = self.db.acquire().await?;
            let Archive { sha256, bytes, made_at } = archive;
            if images::found(&mut conn, name, &sha256.to_string(), bytes, made_at).await? {
                tracing::info!(image = %name, %sha256, "a version of an image was found");
            }
        }
        Ok(())
    }
}
