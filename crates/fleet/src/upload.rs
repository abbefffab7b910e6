//! Large files to a node, by SFTP on a channel of their own.
//!
//! A file appears under its name only when all of it is there. What is there already with
//! the same SHA-256 is not sent again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use corpus_domain::Invalid;
use russh_sftp::client::SftpSession;
use russh_sftp::protocol::{FileAttributes, OpenFlags};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::command::{CACHE_FOLDER, Command, HostPath, must};
use super::connection::Connection;
use super::error::NodeError;
use super::install::has;
use super::privilege::Privilege;
use super::sha256::Sha256;

const LIMIT: Duration = Duration::from_mins(1);
/// Read at once; SFTP cuts it into packets and keeps 64 of them on their way.
const CHUNK: usize = 1 << 20;

/// The name of an uploaded file: 1 to 100 of `a-z 0-9 . _ -`, beginning with a letter or digit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UploadName(String);

impl std::str::FromStr for UploadName {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let fits = (1..=100).contains(&given.len())
            && given.bytes().next().is_some_and(plain)
            && given.bytes().all(|b| plain(b) || b"._-".contains(&b));
        if fits {
            Ok(Self(given.to_owned()))
        } else {
            Err(Invalid::new("upload name", given, "lower-case letters, digits, dots, hyphens and underscores"))
        }
    }
}

impl std::fmt::Display for UploadName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A file that is on the node now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uploaded {
    /// Its path on the node.
    pub path: String,
    /// Its SHA-256.
    pub sha256: Sha256,
    /// Its size in bytes.
    pub size: u64,
    /// Whether it was sent, or was there already.
    pub sent: bool,
}

/// The file is on the node under `name`. `progress` gets bytes sent and bytes in all.
pub(super) async fn upload(
    on: &Connection,
    by: Privilege,
    local: &Path,
    name: &UploadName,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Uploaded, NodeError> {
    let unreadable = |source| unreadable(local, source);
    let sha256 = Sha256::of_file(local).await.map_err(unreadable)?;
    let size = tokio::fs::metadata(local).await.map_err(unreadable)?.len();
    let place = HostPath::Upload(name);
    let sent = !has(on, by, place, sha256).await?;
    if sent {
        put(on, by, local, name, progress).await?;
    }
    Ok(Uploaded { path: place.to_string(), sha256, size, sent })
}

async fn put(
    on: &Connection,
    by: Privilege,
    local: &Path,
    name: &UploadName,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<(), NodeError> {
    must(on, Command::Folder(by, HostPath::UploadFolder, "0700"), LIMIT).await?;
    let sftp = on.sftp().await?;
    let part = match by {
        Privilege::Root => HostPath::UploadPart(name),
        Privilege::Sudo => {
            folder_of_cache(on, &sftp).await?;
            HostPath::UploadCached(name)
        }
    };
    send(on, &sftp, local, part, progress).await?;
    must(on, Command::Move(by, part, HostPath::Upload(name)), LIMIT).await?;
    must(on, Command::Own(by, HostPath::Upload(name)), LIMIT).await.map(|_| ())
}

/// The folder [`CACHE_FOLDER`] exists below the account's home, for nobody else to look into.
pub(super) async fn folder_of_cache(on: &Connection, sftp: &SftpSession) -> Result<(), NodeError> {
    let private = FileAttributes { permissions: Some(0o700), ..FileAttributes::empty() };
    for folder in [".cache", CACHE_FOLDER] {
        if sftp.create_dir(folder).await.is_ok() {
            sftp.set_metadata(folder, private.clone()).await.map_err(|e| on.sftp_failed("protecting", folder, e))?;
        }
    }
    Ok(())
}

/// Writes a local file to a path on the host, readable by its owner only.
pub(super) async fn send(
    on: &Connection,
    sftp: &SftpSession,
    local: &Path,
    to: HostPath<'_>,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<(), NodeError> {
    let path = to.to_string();
    let mut source = File::open(local).await.map_err(|source| unreadable(local, source))?;
    let total = source.metadata().await.map_err(|source| unreadable(local, source))?.len();
    let failed = |source| on.sftp_failed("writing", &path, source);
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE;
    let private = FileAttributes { permissions: Some(0o600), ..FileAttributes::empty() };
    let mut target = sftp.open_with_flags_and_attributes(path.as_str(), flags, private).await.map_err(failed)?;
    let mut done = 0;
    let mut buffer = vec![0_u8; CHUNK];
    loop {
        let count = source.read(&mut buffer).await.map_err(|source| unreadable(local, source))?;
        let Some(chunk) = buffer.get(..count).filter(|chunk| !chunk.is_empty()) else { break };
        target.write_all(chunk).await.map_err(|source| failed(source.into()))?;
        done += count as u64;
        progress(done, total);
    }
    target.close().await.map_err(|source| failed(source.into()))
}

fn unreadable(local: &Path, source: std::io::Error) -> NodeError {
    NodeError::Local { path: local.display().to_string(), source: Arc::new(source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert!("debian-12.tar.zst".parse::<UploadName>().is_ok());
        for bad in ["", ".", "..", "../x", "a/b", "-rf", "a b", "a;b", "$(x)", "A", "a\n", &"a".repeat(101)] {
            assert!(bad.parse::<UploadName>().is_err(), "{bad:?}");
        }
    }
}
