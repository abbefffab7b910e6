//! Snapshots of a guest's files, whatever made the guest and whatever they lie on.
//!
//! A backing has the files of a guest in one piece of its folder, which is renamed as a whole, and copies one. So a
//! snapshot is a copy that only root gets to, and restoring one is a copy that takes the piece's place; what was there is
//! kept aside until it is sure that nobody wants it back. Each is made beside and renamed when it is whole. The same place
//! may be taken by files that come from elsewhere ([`write`]): from a backup.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::{Bytes, GuestName, JobId, SnapshotId};

use crate::backings::{self, Backing, Store};
use crate::drivers::{self, Driver, Kept};
use crate::failure::{At, Failure};
use crate::files;
use crate::guest_root::GuestRoot;
use crate::task::Task;

/// Where snapshots are, in a guest's folder.
const SNAPSHOTS: &str = "snapshots";
/// Where what was is kept.
const FORMER: &str = "former";
/// Where what is to come is made.
const NEXT: &str = "next";
/// For which job it is there, beside it.
const JOB: &str = "job";
/// How long a guest that was just stopped may take to be gone.
const GONE: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// There is a snapshot of the guest. Tells how much is in it.
pub fn take(task: &Task<'_>, name: &GuestName, id: SnapshotId) -> Result<Bytes, Failure> {
    let (driver, kept) = kept(task, name)?;
    let Kept { backing, store, .. } = &kept;
    let all = store.folder.join(SNAPSHOTS);
    let (whole, part) = (all.join(id.to_string()), all.join(format!(".{id}")));
    if !whole.exists() {
        let from = store.folder.join(backing.piece());
        files::private(&all)?;
        clear(task, *backing, &part)?;
        files::private(&part)?;
        let to = part.join(backing.piece());
        if backing.copies_at_once() {
            backing.copy(task, &from, &to)?;
        } else {
            backing.require_room(task, None, backing.size_of(task, &from)?)?;
            let runs = driver.runs(task.host, name);
            task.note(if runs { "copying its files, while it stands still" } else { "copying its files" });
            driver.while_still(task, name, &mut || backing.copy(task, &from, &to)).inspect_err(|_| {
                let _ = clear(task, *backing, &part);
            })?;
        }
        fs::rename(&part, &whole).at("make", &whole)?;
    }
    backing.size_of(task, &whole.join(backing.piece()))
}

/// There is no such snapshot.
pub fn forget(task: &Task<'_>, name: &GuestName, id: SnapshotId) -> Result<bool, Failure> {
    // A guest that is gone has none.
    let Some(driver) = drivers::that_made(task.host, name)? else { return Ok(false) };
    let Kept { backing, store, .. } = driver.kept(task.host, name)?;
    let all = store.folder.join(SNAPSHOTS);
    let (whole, part) = (all.join(id.to_string()), all.join(format!(".{id}")));
    let found = whole.exists();
    if found {
        clear(task, backing, &part)?;
        fs::rename(&whole, &part).at("remove", &whole)?;
    }
    clear(task, backing, &part).map(|()| found)
}

/// The guest's files are those of the snapshot, unless this job has seen to that before.
pub fn restore(task: &Task<'_>, name: &GuestName, id: SnapshotId, job: JobId) -> Result<bool, Failure> {
    let (driver, kept) = kept(task, name)?;
    require_stopped(task, driver, name)?;
    let Kept { backing, store, size } = &kept;
    let snapshot = piece_of(&kept, id);
    if !snapshot.exists() {
        return Err(missing(name, id));
    }
    if is_swapped(&kept, job)? {
        return backing.resize(task, store, *size);
    }
    let next = store.folder.join(NEXT);
    clear(task, *backing, &next)?;
    files::private(&next)?;
    if !backing.copies_at_once() {
        backing.require_room(task, None, backing.size_of(task, &snapshot)?)?;
    }
    task.note("bringing the snapshot's files back");
    backing.copy(task, &snapshot, &next.join(backing.piece()))?;
    swap(task, &kept, job)
}

/// Files of a guest that may be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// Those of a snapshot.
    Snapshot(SnapshotId),
    /// Those that it has now; it does not run, and nobody may start it meanwhile.
    Own,
    /// Those that were written for a job and are not the guest's yet; nobody may change them meanwhile.
    Written(JobId),
}

/// Files of the guest, to be looked at.
pub fn open(task: &Task<'_>, name: &GuestName, files: Files) -> Result<GuestRoot, Failure> {
    let (driver, kept) = kept(task, name)?;
    let Kept { backing, store, .. } = &kept;
    match files {
        Files::Snapshot(id) if !piece_of(&kept, id).exists() => Err(missing(name, id)),
        Files::Snapshot(id) => {
            let folder = store.folder.join(SNAPSHOTS).join(id.to_string());
            backing.look_at_copy(task, &Store { folder, ..kept.store })
        }
        Files::Own => {
            require_at_rest(task, driver, store, name)?;
            backing.look(task, store)
        }
        Files::Written(job) => {
            let next = store.folder.join(NEXT);
            require_written(*backing, &next, name, job)?;
            backing.look(task, &Store { folder: next, ..kept.store })
        }
    }
}

/// Has files written that are to be the guest's, about so many bytes, onto what the guest was made from; whether it runs
/// does not matter. What failed leaves nothing.
pub fn write<T>(
    task: &Task<'_>,
    name: &GuestName,
    (job, bytes): (JobId, Bytes),
    fill: impl FnOnce(&GuestRoot) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (_, Kept { backing, store, size }) = kept(task, name)?;
    require_image(&store, name)?;
    let fresh = Store { folder: store.folder.join(NEXT), ..store };
    clear(task, backing, &fresh.folder)?;
    backing.require_room(task, None, bytes)?;
    let begin = || {
        files::private(&fresh.folder)?;
        backing.make(task, &fresh, size)
    };
    write_there(task, backing, &fresh, job, begin, fill)
}

/// The same onto what was written for the job before. What is refused before anything was changed leaves that as it is.
pub fn write_onto<T>(
    task: &Task<'_>,
    name: &GuestName,
    (job, bytes): (JobId, Bytes),
    fill: impl FnOnce(&GuestRoot) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (_, Kept { backing, store, .. }) = kept(task, name)?;
    require_image(&store, name)?;
    let fresh = Store { folder: store.folder.join(NEXT), ..store };
    let next = &fresh.folder;
    require_written(backing, next, name, job)?;
    // As much as was asked of the node when it began, less what it has taken since.
    backing.require_room(task, Some(&next.join(backing.piece())), bytes)?;
    let begin = || {
        // From here on it is nobody's, whatever becomes of us.
        files::remove(&next.join(JOB))?;
        files::sync_folder(next)
    };
    write_there(task, backing, &fresh, job, begin, fill)
}

/// Has it begun and filled. It is the job's when all of it is on disk; what failed leaves nothing.
fn write_there<T>(
    task: &Task<'_>,
    backing: &dyn Backing,
    fresh: &Store,
    job: JobId,
    begin: impl FnOnce() -> Result<(), Failure>,
    fill: impl FnOnce(&GuestRoot) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let next = &fresh.folder;
    let written = (|| {
        begin()?;
        let root = backing.open(task, fresh)?;
        let filled = fill(&root)?;
        root.sync()?;
        drop(root);
        backing.release(task, next)?;
        // An overlay that is open for us only writes nothing to the disk by itself.
        let folder = File::open(next).at("open", next)?;
        rustix::fs::syncfs(folder).at("write", next)?;
        files::write(&next.join(JOB), &format!("{job}\n"), 0o600).map(|()| filled)
    })();
    written.inspect_err(|_| {
        let _ = clear(task, backing, next);
    })
}

/// The guest's files are those that were written for this job, unless it has seen to that before.
pub fn replace(task: &Task<'_>, name: &GuestName, job: JobId) -> Result<bool, Failure> {
    let (driver, kept) = kept(task, name)?;
    require_stopped(task, driver, name)?;
    let Kept { backing, store, size } = &kept;
    if is_swapped(&kept, job)? {
        return backing.resize(task, store, *size);
    }
    let next = store.folder.join(NEXT);
    require_written(*backing, &next, name, job)?;
    backing.release(task, &next)?;
    swap(task, &kept, job)
}

/// What was made beside is the guest's, and what was the guest's is kept for the job.
fn swap(task: &Task<'_>, kept: &Kept, job: JobId) -> Result<bool, Failure> {
    let Kept { backing, store, size } = kept;
    let piece = store.folder.join(backing.piece());
    let (former, next) = (store.folder.join(FORMER), store.folder.join(NEXT));
    // One that was cut has kept it already.
    if !is_of(&former, job)? || !former.join(backing.piece()).exists() {
        clear(task, *backing, &former)?;
        files::private(&former)?;
        files::write(&former.join(JOB), &format!("{job}\n"), 0o600)?;
        fs::rename(&piece, former.join(backing.piece())).at("keep", &piece)?;
    }
    fs::rename(next.join(backing.piece()), &piece).at("make", &piece)?;
    clear(task, *backing, &next)?;
    backing.resize(task, store, *size)?;
    Ok(true)
}

/// Whether the job has done that before.
fn is_swapped(Kept { backing, store, .. }: &Kept, job: JobId) -> Result<bool, Failure> {
    let (piece, former) = (store.folder.join(backing.piece()), store.folder.join(FORMER));
    Ok(is_of(&former, job)? && former.join(backing.piece()).exists() && piece.exists())
}

/// The guest's files are what they were before the job restored a snapshot, or replaced them.
pub fn go_back(task: &Task<'_>, name: &GuestName, job: JobId) -> Result<bool, Failure> {
    let (driver, Kept { backing, store, .. }) = kept(task, name)?;
    let (former, next) = (store.folder.join(FORMER), store.folder.join(NEXT));
    clear(task, backing, &next)?;
    let kept = former.join(backing.piece());
    if !is_of(&former, job)? || !kept.exists() {
        return Ok(false);
    }
    require_stopped(task, driver, name)?;
    let piece = store.folder.join(backing.piece());
    if piece.exists() {
        files::private(&next)?;
        fs::rename(&piece, next.join(backing.piece())).at("remove", &piece)?;
    }
    fs::rename(&kept, &piece).at("bring back", &piece)?;
    clear(task, backing, &next)?;
    clear(task, backing, &former).map(|()| true)
}

/// Nothing is kept aside.
pub fn settle(task: &Task<'_>, name: &GuestName) -> Result<bool, Failure> {
    let (_, Kept { backing, store, .. }) = kept(task, name)?;
    let found = store.folder.join(FORMER).exists();
    for place in [FORMER, NEXT] {
        clear(task, backing, &store.folder.join(place))?;
    }
    Ok(found)
}

/// What is not removed with the folder of a guest that is about to go, whatever it was made with.
pub fn remove(task: &Task<'_>, folder: &Path) -> Result<(), Failure> {
    for backing in backings::all() {
        for place in places(folder) {
            let _ = backing.release(task, &place);
            backing.remove(task, &place.join(backing.piece()))?;
        }
    }
    Ok(())
}

/// Where a guest's folder may have pieces: itself, and what is made in it here.
fn places(folder: &Path) -> Vec<PathBuf> {
    let snapshots = fs::read_dir(folder.join(SNAPSHOTS)).into_iter().flatten().flatten().map(|entry| entry.path());
    let own = [folder.to_owned(), folder.join(FORMER), folder.join(NEXT)];
    own.into_iter().chain(snapshots).collect()
}

fn kept(task: &Task<'_>, name: &GuestName) -> Result<(&'static dyn Driver, Kept), Failure> {
    let missing = || Failure::Missing(format!("there is no guest {name} on the node"));
    let driver = drivers::that_made(task.host, name)?.ok_or_else(missing)?;
    Ok((driver, driver.kept(task.host, name)?))
}

fn require_stopped(task: &Task<'_>, driver: &dyn Driver, name: &GuestName) -> Result<(), Failure> {
    if driver.runs(task.host, name) {
        return Err(Failure::Busy(format!("{name}, which runs")));
    }
    // A loop device that is still attached would hold what is about to go.
    driver.kept(task.host, name).and_then(|kept| kept.backing.release(task, &kept.store.folder))
}

/// Fails unless the guest stands still: one that has just ended may still be on its way out.
fn require_at_rest(task: &Task<'_>, driver: &dyn Driver, store: &Store, name: &GuestName) -> Result<(), Failure> {
    let end = Instant::now() + GONE;
    loop {
        let runs = driver.runs(task.host, name);
        if !runs && !(store.is_begun)(&store.folder) {
            return Ok(());
        }
        if runs || Instant::now() > end {
            let message = format!("{name} runs; the files that it has now are read only while it is stopped");
            return Err(Failure::Invalid(message));
        }
        sleep(POLL_INTERVAL);
        task.go_on()?;
    }
}

/// Fails unless all was written there for this job.
fn require_written(backing: &dyn Backing, next: &Path, name: &GuestName, job: JobId) -> Result<(), Failure> {
    if is_of(next, job)? && next.join(backing.piece()).exists() {
        return Ok(());
    }
    Err(Failure::Missing(format!("nothing was written for job {job} that could be the files of {name}")))
}

fn require_image(store: &Store, name: &GuestName) -> Result<(), Failure> {
    if store.image_root().is_dir() {
        return Ok(());
    }
    let image = store.image.file_name().unwrap_or_default().display();
    Err(Failure::Missing(format!("there is no image {image} on the node, which {name} was made from")))
}

fn piece_of(Kept { backing, store, .. }: &Kept, id: SnapshotId) -> PathBuf {
    store.folder.join(SNAPSHOTS).join(id.to_string()).join(backing.piece())
}

fn missing(name: &GuestName, id: SnapshotId) -> Failure {
    Failure::Missing(format!("there is no snapshot {id} of {name} on the node"))
}

/// Whether what is there is the job's.
fn is_of(place: &Path, job: JobId) -> Result<bool, Failure> {
    Ok(files::read(&place.join(JOB))?.is_some_and(|text| text.trim() == job.to_string()))
}

/// Nothing is left of a folder with a piece in it.
fn clear(task: &Task<'_>, backing: &dyn Backing, folder: &Path) -> Result<(), Failure> {
    // An agent that was killed may have left a device that holds it. One that is being read goes with its reader.
    let _ = backing.release(task, folder);
    // Half of it is nobody's.
    files::remove(&folder.join(JOB))?;
    backing.remove(task, &folder.join(backing.piece()))?;
    files::remove_tree(task, folder).map(drop)
}

#[cfg(test)]
pub(crate) mod tests;
