//! Whose a file is, what may be done with it, and when it was changed.
//!
//! What is so already stays untouched: an overlay copies a file of its image whole as soon as anything of it is set.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;

use corpus_domain::IdRange;
use corpus_protocol::TreeEntry;
use rustix::fs::{
    AtFlags, Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid, chownat, fchmod, fchown, futimens, utimensat,
};

use super::attributes;
use super::content::Place;
use crate::failure::{At, Failure};

const SECOND: u32 = 1_000_000_000;

/// The file is as its entry says. Set-id bits, access lists and capabilities come after its owner, who takes them away.
pub fn apply(file: &File, entry: &TreeEntry, ids: Option<IdRange>) -> Result<(), Failure> {
    let what = "a guest's file";
    let owner = owner(entry, ids)?;
    if is_others(&file.metadata().at("look at", what)?, owner) {
        fchown(file, Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1))).at("give away", what)?;
    }
    attributes::write(file, &entry.attributes, ids)?;
    let stat = file.metadata().at("look at", what)?;
    if stat.mode() & 0o7777 != entry.mode {
        fchmod(file, Mode::from_raw_mode(entry.mode)).at("set the permissions of", what)?;
    }
    if is_of_another_time(&stat, entry) {
        futimens(file, &times(entry)).at("set the times of", what)?;
    }
    Ok(())
}

/// The link is as its entry says: it has an owner and a time only.
pub fn apply_to_link(
    place: Place<'_>,
    stat: &Metadata,
    entry: &TreeEntry,
    ids: Option<IdRange>,
) -> Result<(), Failure> {
    let (what, flags) = ("a guest's link", AtFlags::SYMLINK_NOFOLLOW);
    let owner = owner(entry, ids)?;
    if is_others(stat, owner) {
        let (user, group) = (Some(Uid::from_raw(owner.0)), Some(Gid::from_raw(owner.1)));
        chownat(place.folder, place.name, user, group, flags).at("give away", what)?;
    }
    if is_of_another_time(stat, entry) {
        utimensat(place.folder, place.name, &times(entry), flags).at("set the times of", what)?;
    }
    Ok(())
}

/// Fails where an entry says what no file has.
pub fn require_possible(entry: &TreeEntry, ids: Option<IdRange>) -> Result<(), Failure> {
    let (_, nanoseconds) = entry.modified;
    if entry.mode > 0o7777 || nanoseconds >= SECOND {
        let message = format!("a file has no permissions {:o} and no {nanoseconds} ns", entry.mode);
        return Err(Failure::Invalid(message));
    }
    owner(entry, ids).map(drop)
}

/// User and group as the files have them.
fn owner(entry: &TreeEntry, ids: Option<IdRange>) -> Result<(u32, u32), Failure> {
    let outside = |id: u32| {
        let shifted = ids.map_or(Some(id), |ids| ids.outside(id)).filter(|id| *id != u32::MAX);
        shifted.ok_or_else(|| Failure::Invalid(format!("the guest has no id {id} that could own a file")))
    };
    Ok((outside(entry.uid)?, outside(entry.gid)?))
}

fn is_others(stat: &Metadata, owner: (u32, u32)) -> bool {
    (stat.uid(), stat.gid()) != owner
}

/// Whether it was changed at another time than its entry says.
pub fn is_of_another_time(stat: &Metadata, entry: &TreeEntry) -> bool {
    (stat.mtime(), stat.mtime_nsec()) != (entry.modified.0, entry.modified.1.into())
}

fn times(entry: &TreeEntry) -> Timestamps {
    let (seconds, nanoseconds) = entry.modified;
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() },
    }
}
