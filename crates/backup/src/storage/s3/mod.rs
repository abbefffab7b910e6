//! A bucket of an S3 server: AWS' own, or any that speaks as it does.
//!
//! An object is there whole or not at all, so nothing is renamed, and there are no folders to make. How much room there is
//! no server tells.

mod answer;
mod client;
mod sign;

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use reqwest::Method;

use self::client::{Ask, Declined, ask, done};
use super::runtime::wait;
use super::{CONFIG, Files, KEYS, Result, Room, S3Access, StorageError};
use crate::place::{S3Place, is_plain};

/// So many objects are removed at a time.
const MANY: usize = 16;
/// What lies in a repository, besides its configuration.
const FOLDERS: [&str; 5] = [KEYS, "snapshots", "index", "locks", "data"];
/// The most of a list that is read at a time; no server gives more than a thousand names, of a kilobyte each.
const LIST_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct S3 {
    place: S3Place,
    access: Arc<S3Access>,
}

impl S3 {
    pub(super) const fn new(place: S3Place, access: Arc<S3Access>) -> Self {
        Self { place, access }
    }

    async fn asked(&self, what: &Ask<'_>) -> std::result::Result<Bytes, Declined> {
        ask(&self.access, &self.place, what).await
    }

    fn refused(&self, doing: &'static str, path: &str, why: String) -> StorageError {
        let server = self.access.endpoint.host_str().unwrap_or_default().to_owned();
        StorageError::Refused { server, doing, path: format!("{}/{path}", self.place.bucket), why }
    }

    /// The names below one, as they are after it, with their sizes.
    async fn names(&self, below: &str) -> Result<Vec<(String, u64)>> {
        let prefix = format!("{below}/");
        let (mut found, mut next) = (Vec::new(), None::<String>);
        loop {
            let from = next.as_deref().map(|token| ("continuation-token", token));
            let query: Vec<_> = from.into_iter().chain([("list-type", "2"), ("prefix", prefix.as_str())]).collect();
            let what = Ask { query: &query, answer_bytes: LIST_BYTES, ..Ask::new("listing", Method::GET, "") };
            let body = self.asked(&what).await?;
            let part = answer::listing(&String::from_utf8_lossy(&body));
            let part = part.map_err(|why| self.refused("listing", below, why))?;
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
        let what = Ask { content, ..Ask::new("writing", Method::PUT, key) };
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
        let found = wait(async { Ok(self.asked(&Ask::new("looking for", Method::GET, &key)).await) })?;
        match found {
            Ok(_) => Ok(true),
            Err(Declined::Missing(_)) => Ok(false),
            Err(declined) => Err(declined.into()),
        }
    }

    fn read(&self, path: &str) -> Result<Bytes> {
        let key = self.place.key(path);
        // How long it is nobody knows: as long as packs get.
        let what = Ask { answer_bytes: 1 << 30, ..Ask::new("reading", Method::GET, &key) };
        wait(async { Ok(self.asked(&what).await?) })
    }

    fn read_part(&self, path: &str, offset: u64, length: u64) -> Result<Bytes> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let key = self.place.key(path);
        let what = Ask::new("reading", Method::GET, &key).range(offset, length);
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
        let removed = wait(async { Ok(self.asked(&Ask::new("removing", Method::DELETE, &key)).await) })?;
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
                    match self.asked(&Ask::new("removing", Method::DELETE, &key)).await {
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
