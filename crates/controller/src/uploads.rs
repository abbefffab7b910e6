//! Archives of images that come from outside, between their last byte and the change that keeps them.
//!
//! An operation is judged, carried out and audited in one transaction, which can't wait for gigabytes. So an archive comes
//! first, to who may send it, and lies beside the others under a number that nobody else knows; then the operation names
//! that number. Whatever goes wrong in between, what came is gone when nobody holds it any more; what a server that was
//! killed leaves goes with the archives that no image has (`images`).

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use corpus_api::images::upload::SentArchive;
use corpus_domain::Bytes as Size;
use futures::{Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::guest_backups::{CarryError, PIECES, Packed, Reading, aside, repack};
use crate::images::{is_full, problem};
use crate::nodes::Sha256;
use crate::services::{Services, internal};
use crate::{Error, Result};

/// An image has no more than this in its files, in bytes: each node that makes such a guest unpacks it.
pub(crate) const MOST: u64 = 20_000_000_000;
/// How long nothing may come before it is taken for cut.
const SILENT: Duration = Duration::from_mins(1);

/// After so many bytes it is looked whether the disk is full by now.
const LOOK_AFTER: usize = 64 << 20;

/// What came and is not kept yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrivals(Arc<Mutex<HashMap<SentArchive, Arrived>>>);

/// An archive that came, and was written anew.
#[derive(Debug, Clone)]
pub(crate) struct Arrived {
    pub path: PathBuf,
    pub sha256: Sha256,
    pub bytes: Size,
    pub unpacked: Size,
}

/// Holds what came; what was not kept until it is dropped is gone.
#[derive(Debug)]
pub struct HeldArchive {
    archive: SentArchive,
    of: Arrivals,
    path: PathBuf,
}

impl Arrivals {
    /// What came under a number.
    pub fn get(&self, archive: SentArchive) -> Option<Arrived> {
        self.locked().get(&archive).cloned()
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<SentArchive, Arrived>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HeldArchive {
    fn drop(&mut self) {
        self.of.locked().remove(&self.archive);
        // Where it was kept it has another name by now.
        drop(std::fs::remove_file(&self.path));
    }
}

impl Services {
    /// Takes an archive while it comes. It is found under its number as long as what is returned is held.
    pub(crate) async fn receive<E>(
        &self,
        archive: SentArchive,
        body: impl Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin,
    ) -> Result<HeldArchive> {
        let folder = self.settings.made_images.clone();
        let unwritable = |error: io::Error| internal("the folder of images can't be written to", error);
        tokio::fs::create_dir_all(&folder).await.map_err(unwritable)?;
        if let Some(full) = is_full(&folder).map_err(unwritable)? {
            return Err(Error::Conflict(full));
        }
        let path = folder.join(format!(".{}", archive.0));
        let held = HeldArchive { archive, of: self.arrivals.clone(), path: path.clone() };
        // What is sent twice is two versions: who sends an older one again wants it to be the newest.
        let packed = anew(body, archive.0.to_string(), path.clone()).await?;
        let (sha256, bytes) = whole(&path).await?;
        let arrived = Arrived { path, sha256, bytes, unpacked: Size(packed.unpacked) };
        self.arrivals.locked().insert(archive, arrived);
        Ok(held)
    }
}

/// Writes it anew while it comes.
async fn anew<E>(
    mut body: impl Stream<Item = std::result::Result<Bytes, E>> + Send + Unpin,
    mark: String,
    to: PathBuf,
) -> Result<Packed> {
    let folder = to.parent().unwrap_or(Path::new("/")).to_owned();
    let (pieces, from) = mpsc::channel(PIECES);
    let mut left = LOOK_AFTER;
    let work = aside(move || repack(Reading::of(from), &mark, MOST, &to));
    let came = loop {
        match timeout(SILENT, body.next()).await {
            Ok(Some(Ok(piece))) if piece.is_empty() => {}
            Ok(Some(Ok(piece))) => {
                left = left.saturating_sub(piece.len());
                if left == 0 {
                    left = LOOK_AFTER;
                    if let Some(full) =
                        is_full(&folder).map_err(|error| internal("the disk can't be looked at", error))?
                    {
                        return Err(Error::Conflict(full));
                    }
                }
                if pieces.send(piece).await.is_err() {
                    // Who writes it says why they take no more.
                    break true;
                }
            }
            Ok(None) => {
                drop(pieces.send(Bytes::new()).await);
                break true;
            }
            Ok(Some(Err(_))) | Err(_) => break false,
        }
    };
    drop(pieces);
    let written = work.await;
    if !came {
        return Err(wrong("It did not come whole, or there is more of it than may come.".to_owned()));
    }
    match written {
        Ok(Ok(packed)) => Ok(packed),
        Ok(Err(CarryError::Unclear(why) | CarryError::Told(why))) => {
            Err(wrong(format!("No guest can be made of it: {why}.")))
        }
        Ok(Err(error)) => Err(internal("an archive could not be written", error)),
        Err(error) => Err(internal("the work on an archive was ended", error)),
    }
}

/// What was written is a system that guests can be made of.
async fn whole(path: &Path) -> Result<(Sha256, Size)> {
    let unreadable = |error: io::Error| internal("an archive can't be read", error);
    let looked = path.to_owned();
    let looked = tokio::task::spawn_blocking(move || problem(&looked)).await;
    if let Some(problem) = looked.map_err(|error| internal("the look at an archive was ended", error))? {
        return Err(wrong(format!("No guest can be made of it: {problem}.")));
    }
    let sha256 = Sha256::of_file(path).await.map_err(unreadable)?;
    let bytes = tokio::fs::metadata(path).await.map_err(unreadable)?.len();
    Ok((sha256, Size(bytes)))
}

fn wrong(why: String) -> Error {
    Error::field("archive", why)
}
