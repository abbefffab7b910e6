//! A snapshot of the image: made in no time, and held to its size by the file system's own counts (qgroups).
//!
//! It needs the folder of guests to be on btrfs. There the image becomes a subvolume once ([`base`]), and each guest's
//! root is a snapshot of it, limited in what it may refer to. The files of the root have the guest's own ids; the kernel
//! shifts them for the guest, so on the node a guest's programs with set-uid bits would be the node's root's. That is
//! why nobody but root may pass through the folder that the root is in. A subvolume that a guest made in its own root
//! would not be counted: it has no such calls ([`IOCTLS`]).
//!
//! What a guest refers to is read from `/sys/fs/btrfs`, where its count is found by what [`make`] noted.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use corpus_domain::{Backing as Kind, Bytes, ImageName, SizeProfile};
use corpus_protocol::GuestStorage;
use rustix::fs::{FsWord, statfs};

use super::{Backing, Store, room, too_full};
use crate::failure::{At, Failure};
use crate::files;
use crate::guest_root::{GuestRoot, view};
use crate::host::Host;
use crate::lock;
use crate::packages;
use crate::runner::{Argv, Output};
use crate::task::Task;

/// The calls that make a subvolume or a snapshot, which anybody may who may write: `BTRFS_IOC_SUBVOL_CREATE` and
/// `_SNAP_CREATE`, and the second version of each.
pub const IOCTLS: [u32; 4] = [0x5000_940e, 0x5000_9401, 0x5000_9418, 0x5000_9417];

/// What `statfs` tells of a btrfs.
const MAGIC: FsWord = 0x9123_683e;
/// For the copy of an image, and for the first count of a file system.
const LONG: Duration = Duration::from_mins(10);

/// The backing.
pub struct Btrfs;

/// What only root passes through.
const PIECE: &str = "btrfs";

fn piece(store: &Store) -> PathBuf {
    store.folder.join(PIECE)
}

fn tree(piece: &Path) -> PathBuf {
    piece.join("rootfs")
}

/// Where it is noted which count is that of the tree.
fn note(piece: &Path) -> PathBuf {
    piece.join("count")
}

impl Backing for Btrfs {
    fn kind(&self) -> Kind {
        Kind::Btrfs
    }

    fn obstacle(&self, host: &Host) -> Option<String> {
        let lxc = host.lxc();
        let folder = lxc.ancestors().find(|path| path.is_dir())?;
        let is_btrfs = statfs(folder).is_ok_and(|stat| stat.f_type == MAGIC);
        (!is_btrfs).then(|| format!("{} is not on btrfs", lxc.display()))
    }

    fn lies_on_image(&self) -> bool {
        false
    }

    fn keeps_ids(&self) -> bool {
        true
    }

    fn piece(&self) -> &'static str {
        PIECE
    }

    fn make(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<(), Failure> {
        if let Some(obstacle) = self.obstacle(task.host) {
            return Err(Failure::Invalid(format!("guests can't lie on btrfs here: {obstacle}")));
        }
        packages::ensure_disks(task)?;
        let uuid = counted(task)?;
        room::require(task.host, (0, 0), size.storage())?;
        let base = base(task, store)?;
        task.note("taking a snapshot of the image");
        let piece = piece(store);
        snapshot(task, &uuid, &base, &piece)?;
        let has = Bytes(count(task.host, &piece, "referenced").unwrap_or(0));
        if has > size.storage() {
            return Err(Failure::Invalid(format!("the image needs {}, more than {size} has", has.gb())));
        }
        limit(task, &piece, size)
    }

    fn root(&self, _: &Store) -> Option<PathBuf> {
        None
    }

    fn mount(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        view(&tree(&piece(store)), store.ids)
    }

    fn open(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        // On disk a guest's ids are as it has them.
        GuestRoot::folder(&tree(&piece(store)))
    }

    fn look(&self, _: &Task<'_>, store: &Store) -> Result<GuestRoot, Failure> {
        view(&tree(&piece(store)), None)?.protected()
    }

    fn resize(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
        let wanted = size.storage();
        let piece = piece(store);
        let has = Bytes(limited(task.host, &piece).unwrap_or(0));
        if has > wanted {
            let message = format!("the guest's storage has {}; it can't shrink to {size}, {}", has.gb(), wanted.gb());
            return Err(Failure::Invalid(message));
        }
        if has == wanted {
            return Ok(false);
        }
        let taken = count(task.host, &piece, "exclusive").unwrap_or(0);
        room::require(task.host, (taken, self.promised(task.host, &store.folder)), wanted)?;
        limit(task, &piece, size).map(|()| true)
    }

    /// What is written meanwhile beyond it stays, and no more can be written.
    fn shrink(&self, task: &Task<'_>, store: &Store, size: SizeProfile) -> Result<bool, Failure> {
        let (wanted, piece) = (size.storage(), piece(store));
        let has = limited(task.host, &piece).map(Bytes);
        if has.is_some_and(|has| has <= wanted) {
            return Ok(false);
        }
        let taken = Bytes(count(task.host, &piece, "referenced").unwrap_or(0));
        if taken > wanted {
            return Err(too_full(taken, size));
        }
        limit(task, &piece, size).map(|()| true)
    }

    fn usage(&self, host: &Host, folder: &Path) -> Option<GuestStorage> {
        let piece = folder.join(PIECE);
        let count = |what| count(host, &piece, what).map(Bytes);
        Some(GuestStorage {
            used: count("referenced")?,
            of: limited(host, &piece).map(Bytes)?,
            taken: count("exclusive")?,
        })
    }

    /// All at once; what is left of it is removed as any folder is.
    fn remove(&self, task: &Task<'_>, piece: &Path) -> Result<(), Failure> {
        let tree = tree(piece);
        if !tree.is_dir() {
            return Ok(());
        }
        let noted = files::read(&note(piece))?;
        btrfs(["subvolume", "delete"]).arg(&tree).quiet().end(task)?;
        // Newer kernels do that by themselves.
        if let Some(id) = noted.as_deref().and_then(|text| text.trim().rsplit_once('_')).map(|(_, id)| id) {
            btrfs(["qgroup", "destroy"]).arg(format!("0/{id}")).arg(piece).quiet().end(task)?;
        }
        Ok(())
    }

    fn copies_at_once(&self) -> bool {
        true
    }

    fn copy(&self, task: &Task<'_>, from: &Path, to: &Path) -> Result<(), Failure> {
        snapshot(task, &counted(task)?, &tree(from), to)
    }

    fn size_of(&self, task: &Task<'_>, piece: &Path) -> Result<Bytes, Failure> {
        Ok(Bytes(count(task.host, piece, "referenced").unwrap_or(0)))
    }

    fn promised(&self, host: &Host, folder: &Path) -> u64 {
        // What it shares with the image is its own as soon as it writes there.
        let piece = folder.join(PIECE);
        let taken = count(host, &piece, "exclusive").unwrap_or(0);
        limited(host, &piece).map_or(0, |limit| limit.saturating_sub(taken))
    }

    fn forget_images(&self, task: &Task<'_>, only: Option<&ImageName>) -> Result<bool, Failure> {
        let folder = images(task.host);
        if let Some(image) = only {
            let base = folder.join(image.as_str());
            let is_there = base.exists();
            return remove_base(task, &base).map(|()| is_there);
        }
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            remove_base(task, &entry.path())?;
        }
        files::remove_folder(&folder)
    }
}

fn btrfs(words: [&str; 2]) -> Argv {
    Argv::new("btrfs").args(words)
}

fn number(said: &Output) -> Result<u64, Failure> {
    said.stdout.trim().parse().map_err(|_| Failure::Invalid(format!("btrfs said {:?}, no number", said.stdout)))
}

/// The file system counts what each subvolume refers to; where it does so is told.
fn counted(task: &Task<'_>) -> Result<String, Failure> {
    let lxc = task.host.lxc();
    let said = btrfs(["filesystem", "show"]).arg("--raw").arg(&lxc).quiet().run(task)?;
    let uuid = said.stdout.split_whitespace().skip_while(|word| *word != "uuid:").nth(1);
    let uuid = uuid.filter(|text| text.len() == 36 && text.chars().all(|one| one.is_ascii_hexdigit() || one == '-'));
    let uuid = uuid.ok_or_else(|| Failure::Invalid(format!("btrfs tells no uuid of {}", lxc.display())))?;
    if !counts(task.host).join(uuid).join("qgroups").is_dir() {
        task.note("counting what is on the file system, the first time");
        btrfs(["quota", "enable"]).arg(&lxc).run(task)?;
    }
    // One that was just enabled is counting still, and one that lost count is not counting any more.
    let wrong = fs::read_to_string(counts(task.host).join(uuid).join("qgroups/inconsistent"));
    if wrong.is_ok_and(|text| text.trim() != "0") {
        btrfs(["quota", "rescan"]).arg("-w").arg(&lxc).limit(LONG).quiet().end(task)?;
    }
    Ok(uuid.to_owned())
}

fn counts(host: &Host) -> PathBuf {
    host.path("/sys/fs/btrfs")
}

/// What is counted of a piece.
fn count(host: &Host, piece: &Path, what: &str) -> Option<u64> {
    let noted = files::read(&note(piece)).ok().flatten()?;
    fs::read_to_string(counts(host).join(noted.trim()).join(what)).ok()?.trim().parse().ok()
}

/// What a piece is limited to, if it is.
fn limited(host: &Host, piece: &Path) -> Option<u64> {
    count(host, piece, "max_referenced").filter(|limit| *limit > 0)
}

fn limit(task: &Task<'_>, piece: &Path, size: SizeProfile) -> Result<(), Failure> {
    btrfs(["qgroup", "limit"]).arg(size.storage().0.to_string()).arg(tree(piece)).run(task).map(drop)
}

/// Makes a piece that is a snapshot of a subvolume, and notes its count.
fn snapshot(task: &Task<'_>, uuid: &str, of: &Path, piece: &Path) -> Result<(), Failure> {
    files::private(piece)?;
    let tree = tree(piece);
    btrfs(["subvolume", "snapshot"]).args([of, &tree]).quiet().run(task)?;
    let id = number(&btrfs(["inspect-internal", "rootid"]).arg(&tree).quiet().run(task)?)?;
    files::write(&note(piece), &format!("{uuid}/qgroups/0_{id}\n"), 0o600)
}

/// The image as a subvolume beside the guests; it is made anew when the image was.
fn base(task: &Task<'_>, store: &Store) -> Result<PathBuf, Failure> {
    let image = store.image.file_name().unwrap_or_default().to_string_lossy();
    // Two guests may want it at once.
    let _lock = lock::take(&[lock::Wanted { name: format!("subvolume-{image}"), shared: false }], task)?;
    let base = images(task.host).join(&*image);
    let origin = files::read(&store.image.join("sha256"))?.unwrap_or_default();
    if files::read(&base.join("sha256"))?.as_deref() == Some(&origin) {
        return Ok(base.join("rootfs"));
    }
    task.note("making a subvolume of the image");
    let beside = images(task.host).join(format!(".new-{image}"));
    remove_base(task, &beside)?;
    files::private(&beside)?;
    let root = beside.join("rootfs");
    btrfs(["subvolume", "create"]).arg(&root).quiet().run(task)?;
    let copy = Argv::new("cp").args(["-a", "--reflink=auto", "--"]);
    let made = copy.arg(store.image_root().join(".")).arg(&root).limit(LONG).run(task).map(drop);
    let made = made.and_then(|()| files::write(&beside.join("sha256"), &origin, 0o600)).and_then(|()| {
        remove_base(task, &base)?;
        fs::rename(&beside, &base).at("make", &base)
    });
    if made.is_err() {
        let _ = remove_base(task, &beside);
    }
    made.map(|()| base.join("rootfs"))
}

/// Where images are as subvolumes: beside the guests, since a snapshot stays on its file system.
fn images(host: &Host) -> PathBuf {
    host.lxc().join(".corpus-images")
}

fn remove_base(task: &Task<'_>, folder: &Path) -> Result<(), Failure> {
    let root = folder.join("rootfs");
    if root.is_dir() {
        btrfs(["subvolume", "delete"]).arg(&root).quiet().end(task)?;
    }
    files::remove_folder(folder).map(drop)
}
