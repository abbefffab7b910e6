//! A bucket of an S3 server: AWS' own, or any that speaks as it does.
//!
//! An object is there whole or not at all, so nothing is renamed, and there are no folders to make. How much room there is
//! no server tells.

mod answer;
mod client;

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use rusty_s3::{Bucket, UrlStyle};

use self::client::{Action, Ask, Declined, done};
use super::runtime::wait;
use super::{CONFIG, Files, KEYS, Result, Room, S3Access, StorageError};
use crate::place::{S3Place, is_plain};

/// So many objects are removed at a time.
const MANY: usize = 16;
/// What lies in a repository, besides its configuration.
const FOLDERS: [&str; 5] = [KEYS, "snapshots", "index", "locks", "data"];
/// The most of a list that is read at a time; no server gives more than a thousand names, of a kilobyte each, which takes
/// three where it is encoded.
const LIST_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct S3 {
    place: S3Place,
    access: Arc<S3Access>,
    bucket: Bucket,
}

impl S3 {
    pub(super) fn new(place: S3Place, access: Arc<S3Access>) -> Result<Self> {
        let style = if access.bucket_in_host { UrlStyle::VirtualHost } else { UrlStyle::Path };
        let bucket = Bucket::new(access.endpoint.clone(), style, place.bucket.clone(), access.region.clone());
        let bucket = bucket.map_err(|_| StorageError::NoBucketInHost(access.server()))?;
        Ok(Self { place, access, bucket })
    }

    /// The names below one, as they are after it, with their sizes.
    async fn names(&self, below: &str) -> Result<Vec<(String, u64)>> {
        let prefix = format!("{below}/");
        let (mut found, mut next) = (Vec::new(), None::<String>);
        loop {
            let action = Action::List(next.as_deref());
            let what = Ask { answer_bytes: LIST_BYTES, ..Ask::new("listing", action, &prefix) };
            let part = answer::listing(&self.asked(&what).await?);
            let part = part.map_err(|why| self.refused(&what, why))?;
            let inside = part.objects.into_iter().filter_map(|(key, size)| {
                let rest = key.strip_prefix(&prefix)?;
                rest.split('/').all(is_plain).then(|| (rest.to_owned(), size))
            });
            found.extend(inside);
            // A token that comes again would be asked for without end.
            if part.next.is_none() || part.next == next {
                return Ok(found);
            }
            next = part.next;
        }
    }

    async fn put(&self, key: &str, content: &[Bytes], only_if_none: bool) -> std::result::Result<Bytes, Declined> {
        let what = Ask { content, ..Ask::new("writing", Action::Put, key) };
        self.asked(&if only_if_none { what.unless_there() } else { what }).await
    }
}

impl Files for S3 {
    fn name(&self) -> String {
        crate::Place::S3(self.place.clone()).to_string()
    }

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self) -> Result<Option<std::fs::File>> {
        Ok(None)
    }

    fn list(&self, folder: &str) -> Result<Vec<(String, u64)>> {
        let below = self.place.key(folder);
        let found = wait(self.names(&below))?;
        let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        Ok(found.into_iter().map(|(path, size)| (last(&path), size)).collect())
    }

    fn exists(&self, path: &str) -> Result<bool> {
        let key = self.place.key(path);
        // Not HEAD, whose answers do not say why.
        let found = wait(async { Ok(self.asked(&Ask::new("looking for", Action::Get, &key)).await) })?;
        match found {
            Ok(_) => Ok(true),
            Err(Declined::Missing(_)) => Ok(false),
            Err(declined) => Err(declined.into()),
        }
    }

    fn read(&self, path: &str) -> Result<Bytes> {
        let key = self.place.key(path);
        // How long it is nobody knows: as long as packs get.
        let what = Ask { answer_bytes: 1 << 30, ..Ask::new("reading", Action::Get, &key) };
        wait(async { Ok(self.asked(&what).await?) })
    }

    fn read_part(&self, path: &str, offset: u64, length: u64) -> Result<Bytes> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let key = self.place.key(path);
        let what = Ask::new("reading", Action::Get, &key).range(offset, length);
        let part = wait(async { Ok(self.asked(&what).await?) })?;
        // A server that knows no parts gives all of it.
        if part.len() as u64 == length { Ok(part) } else { Err(StorageError::Short { path: key }) }
    }

    fn write(&self, path: &str, content: &[Bytes]) -> Result<()> {
        let key = self.place.key(path);
        wait(async { done(self.put(&key, content, false).await) })
    }

    fn create(&self, path: &str, content: &[Bytes]) -> Result<bool> {
        let key = self.place.key(path);
        let put = wait(async { Ok(self.put(&key, content, true).await) })?;
        match put {
            Ok(_) | Err(Declined::There) => {}
            // It writes only without conditions: whoever comes at the same moment is not seen.
            Err(Declined::Unknown) if self.exists(path)? => return Ok(false),
            Err(Declined::Unknown) => self.write(path, content)?,
            Err(declined) => return Err(declined.into()),
        }
        // One of two tries may have done it without our hearing of it, and some servers do not look at conditions.
        Ok(self.read(path)? == content.concat())
    }

    fn remove(&self, path: &str) -> Result<()> {
        let key = self.place.key(path);
        let removed = wait(async { Ok(self.asked(&Ask::new("removing", Action::Delete, &key)).await) })?;
        match removed {
            Err(Declined::Missing(_)) => Ok(()),
            removed => done(removed),
        }
    }

    /// What is not of a repository stays: there may be more in a bucket.
    fn remove_all(&self) -> Result<()> {
        // While it is there others take it for a repository.
        self.remove(CONFIG)?;
        for folder in FOLDERS {
            let below = self.place.key(folder);
            let found = wait(self.names(&below))?;
            let removing = stream::iter(found).map(|(name, _)| {
                let key = format!("{below}/{name}");
                async move {
                    match self.asked(&Ask::new("removing", Action::Delete, &key)).await {
                        Err(Declined::Missing(_)) => Ok(()),
                        removed => done(removed),
                    }
                }
            });
            wait(async { removing.buffer_unordered(MANY).try_collect::<()>().await })?;
        }
        Ok(())
    }

    fn room(&self) -> Result<Option<Room>> {
        Ok(None)
    }
}
