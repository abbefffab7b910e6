//! What is done with files in one session of SFTP: many questions on their way at a time, so that a far server is no slow
//! one.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};

use super::super::{KEYS, Room};
use super::connect::Session;
use super::{Told, is_missing};

/// Each server takes as much in one piece.
const PIECE: usize = 32 << 10;
/// So many pieces are on their way.
const PIECES: usize = 64;
/// So many files or folders are asked for at a time.
const MANY: usize = 16;
/// A repository is for nobody else at the server to read.
const FOLDER_MODE: u32 = 0o700;
const FOLDERS: [&str; 5] = [KEYS, "snapshots", "index", "locks", "data"];

/// Makes the folders of a repository, but for those of the packs.
pub(super) async fn prepare(session: &Session, path: &str) -> Told<()> {
    make(session, path).await?;
    for folder in FOLDERS {
        make(session, &format!("{path}/{folder}")).await?;
    }
    Ok(())
}

/// Makes a folder, and those that it is in.
async fn make(session: &Session, path: &str) -> Told<()> {
    let attributes = FileAttributes { permissions: Some(FOLDER_MODE), ..FileAttributes::empty() };
    match session.sftp.mkdir(path, attributes.clone()).await {
        Err(error) if is_missing(&error) => {
            let Some((above, _)) = path.rsplit_once('/').filter(|(above, _)| !above.is_empty()) else {
                return Err(error);
            };
            Box::pin(make(session, above)).await?;
            match session.sftp.mkdir(path, attributes).await {
                Err(error) if !is_folder(session, path).await? => Err(error),
                _ => Ok(()),
            }
        }
        // It may be there; servers differ in what they say then.
        Err(error @ SftpError::Status(_)) if !is_folder(session, path).await? => Err(error),
        Err(error) if !matches!(error, SftpError::Status(_)) => Err(error),
        _ => Ok(()),
    }
}

async fn is_folder(session: &Session, path: &str) -> Told<bool> {
    match session.sftp.stat(path).await {
        Err(SftpError::Status(_)) => Ok(false),
        found => Ok(found?.attrs.is_dir()),
    }
}

pub(super) async fn exists(session: &Session, path: &str) -> Told<bool> {
    match session.sftp.stat(path).await {
        Err(error) if is_missing(&error) => Ok(false),
        found => found.map(|_| true),
    }
}

/// What is in a folder; none where there is none.
async fn entries(session: &Session, path: &str) -> Told<Vec<(String, FileAttributes)>> {
    let handle = match session.sftp.opendir(path).await {
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        opened => opened?.handle,
    };
    let mut found = Vec::new();
    let read = loop {
        match session.sftp.readdir(handle.as_str()).await {
            Ok(more) => found.extend(more.files.into_iter().map(|file| (file.filename, file.attrs))),
            Err(SftpError::Status(status)) if status.status_code == StatusCode::Eof => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    session.sftp.close(handle).await?;
    read?;
    found.retain(|(name, _)| !matches!(name.as_str(), "." | "..") && !name.contains('/'));
    Ok(found)
}

/// The files in a folder and in the folders in it.
pub(super) async fn list(session: &Session, path: &str) -> Told<Vec<(String, u64)>> {
    let (folders, mut files): (Vec<_>, Vec<_>) =
        entries(session, path).await?.into_iter().partition(|(_, about)| about.is_dir());
    let below = stream::iter(folders).map(|(name, _)| {
        let folder = format!("{path}/{name}");
        async move { entries(session, &folder).await }
    });
    let below: Vec<_> = below.buffer_unordered(MANY).try_collect().await?;
    files.extend(below.into_iter().flatten());
    files.retain(|(_, about)| about.is_regular());
    Ok(files.into_iter().map(|(name, about)| (name, about.size.unwrap_or_default())).collect())
}

/// So many bytes of a file; none where it has not as many.
pub(super) async fn read(session: &Session, path: &str, offset: u64, length: u64) -> Told<Option<Bytes>> {
    let handle = session.sftp.open(path, OpenFlags::READ, FileAttributes::empty()).await?.handle;
    let pieces = (0..length).step_by(PIECE).map(|at| {
        let wanted = (length - at).min(PIECE as u64);
        piece(session, &handle, offset + at, wanted)
    });
    let read: Told<Vec<Vec<u8>>> = stream::iter(pieces).buffered(PIECES).try_collect().await;
    session.sftp.close(handle.as_str()).await?;
    let whole = read?.concat();
    Ok((whole.len() as u64 == length).then(|| whole.into()))
}

/// A piece of a file, which a server may give in parts; shorter where the file ends.
async fn piece(session: &Session, handle: &str, offset: u64, length: u64) -> Told<Vec<u8>> {
    let mut piece = Vec::new();
    while (piece.len() as u64) < length {
        let left = u32::try_from(length - piece.len() as u64).unwrap_or(u32::MAX);
        match session.sftp.read(handle, offset + piece.len() as u64, left).await {
            Ok(more) if more.data.is_empty() => break,
            Ok(more) => piece.extend(more.data),
            Err(SftpError::Status(status)) if status.status_code == StatusCode::Eof => break,
            Err(error) => return Err(error),
        }
    }
    Ok(piece)
}

/// Writes a file, which has its name when all of it is there.
pub(super) async fn write(session: &Session, path: &str, content: &[Bytes]) -> Told<()> {
    let unnamed = format!("{path}-tmp");
    fill(session, &unnamed, content).await?;
    if let Err(error @ SftpError::Status(_)) = session.sftp.rename(unnamed.as_str(), path).await {
        // Renaming replaces nothing in this version of the protocol. What is there has the same name for having the same
        // content, and was written by somebody before, or by us on a line that broke.
        if !exists(session, path).await? {
            return Err(error);
        }
        remove(session, path).await?;
        session.sftp.rename(unnamed, path).await?;
    }
    Ok(())
}

/// Gives a file its name unless there is one of that name.
pub(super) async fn create(session: &Session, path: &str, unnamed: &str, content: &[Bytes]) -> Told<()> {
    fill(session, unnamed, content).await?;
    match session.sftp.rename(unnamed, path).await {
        Err(error @ SftpError::Status(_)) => {
            remove(session, unnamed).await?;
            if exists(session, path).await? { Ok(()) } else { Err(error) }
        }
        renamed => renamed.map(drop),
    }
}

async fn fill(session: &Session, unnamed: &str, content: &[Bytes]) -> Told<()> {
    let flags = OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::WRITE;
    let attributes = FileAttributes { permissions: Some(0o600), ..FileAttributes::empty() };
    let handle = match session.sftp.open(unnamed, flags, attributes.clone()).await {
        Err(error) if is_missing(&error) => {
            make(session, unnamed.rsplit_once('/').map_or("/", |(folder, _)| folder)).await?;
            session.sftp.open(unnamed, flags, attributes).await?.handle
        }
        opened => opened?.handle,
    };
    let filled = write_to(session, &handle, content).await;
    let closed = session.sftp.close(handle).await;
    if let Err(error) = filled.and(closed.map(drop)) {
        if matches!(error, SftpError::Status(_)) {
            // It is in nobody's way but takes room, of which there may be none.
            remove(session, unnamed).await.ok();
        }
        return Err(error);
    }
    Ok(())
}

async fn write_to(session: &Session, handle: &str, content: &[Bytes]) -> Told<()> {
    let mut offset = 0;
    let pieces = content.iter().flat_map(|part| part.chunks(PIECE)).map(|piece| {
        let at = offset;
        offset += piece.len() as u64;
        async move { session.sftp.write(handle, at, piece.to_vec()).await.map(drop) }
    });
    let () = stream::iter(pieces).buffer_unordered(PIECES).try_collect().await?;
    if session.fsync {
        session.sftp.fsync(handle).await?;
    }
    Ok(())
}

pub(super) async fn remove(session: &Session, path: &str) -> Told<()> {
    match session.sftp.remove(path).await {
        Err(error) if is_missing(&error) => Ok(()),
        removed => removed.map(drop),
    }
}

/// Removes a folder and all that is in it.
pub(super) async fn remove_all(session: &Session, path: &str) -> Told<()> {
    let (folders, files): (Vec<_>, Vec<_>) =
        entries(session, path).await?.into_iter().partition(|(_, about)| about.is_dir());
    for (name, _) in folders {
        Box::pin(remove_all(session, &format!("{path}/{name}"))).await?;
    }
    let files = stream::iter(files).map(|(name, _)| {
        let file = format!("{path}/{name}");
        async move { remove(session, &file).await }
    });
    let () = files.buffer_unordered(MANY).try_collect().await?;
    match session.sftp.rmdir(path).await {
        Err(error) if is_missing(&error) => Ok(()),
        removed => removed.map(drop),
    }
}

/// The room where a folder is or will be; none where the server can't tell.
pub(super) async fn room(session: &Session, path: &str) -> Told<Option<Room>> {
    if !session.statvfs {
        return Ok(None);
    }
    let mut there = path;
    // The first backup makes the folder.
    while !exists(session, there).await? {
        there = match there.rsplit_once('/') {
            Some((above, _)) if !above.is_empty() => above,
            _ => break,
        };
    }
    let found = session.sftp.statvfs(there).await?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.fragment_size);
    Ok(Some(Room { free: bytes(found.blocks_avail), all: bytes(found.blocks) }))
}
