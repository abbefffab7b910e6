//! Extended attributes as the guest has them, access lists and capabilities among them.
//!
//! Ids stand in these too. Where the files' own ids are shifted, so are those of an access list; and a capability that
//! is bound to the guest's root is, for the guest, one that is bound to nobody in particular.

use std::fs::File;
use std::os::fd::AsRawFd;

use corpus_domain::IdRange;
use corpus_protocol::{Attributes, MAX_TREE_LINE};
use rustix::buffer::spare_capacity;
use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;

use crate::failure::{At, Failure};
use crate::guest_root::NOBODY;

const ACCESS_LISTS: [&[u8]; 2] = [b"system.posix_acl_access", b"system.posix_acl_default"];
const CAPABILITY: &[u8] = b"security.capability";
/// The kernel's own limit, of all names and of a value.
const MAX_BYTES: usize = 64 << 10;
/// No more than this of one file is looked at: some file systems have thousands of the largest values.
const MOST: usize = 1 << 20;
/// As much of a line as attributes may take; a byte takes up to three, and each some more.
const ROOM: usize = MAX_TREE_LINE - (32 << 10);

/// The attributes of a file, in the order of their names. What a line has no room for is left out.
pub fn read(file: &File, ids: Option<IdRange>) -> Result<Attributes, Errno> {
    let mut room = ROOM;
    let mut all = raw(file)?;
    all.retain_mut(|(name, value)| {
        let Some(inside) = inside(name, value, ids) else { return false };
        *value = inside;
        let taken = 3 * (name.len() + value.len()) + 8;
        let fits = taken <= room;
        room -= if fits { taken } else { 0 };
        fits
    });
    Ok(all)
}

/// The attributes of the file are these; what is so already stays untouched.
pub fn write(file: &File, wanted: &Attributes, ids: Option<IdRange>) -> Result<(), Failure> {
    let mut wanted = wanted
        .iter()
        .map(|(name, value)| Ok((name.clone(), outside(name, value, ids)?)))
        .collect::<Result<Attributes, Failure>>()?;
    let had = raw(file).at("look at the attributes of", "a guest's file")?;
    for (name, value) in &had {
        if !wanted.iter().any(|(other, _)| other == name) {
            removexattr(path(file), name.as_slice()).at("remove an attribute of", "a guest's file")?;
        } else if wanted.contains(&(name.clone(), value.clone())) {
            wanted.retain(|(other, _)| other != name);
        }
    }
    for (name, value) in wanted {
        setxattr(path(file), name.as_slice(), &value, XattrFlags::empty())
            .at("give an attribute to", "a guest's file")?;
    }
    Ok(())
}

/// Whether it is told, and may be given.
fn is_told(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name == CAPABILITY || ACCESS_LISTS.contains(&name)
}

/// Those that are told, as the file has them.
fn raw(file: &File) -> Result<Attributes, Errno> {
    let mut names = Vec::with_capacity(MAX_BYTES);
    match listxattr(path(file), spare_capacity(&mut names)) {
        Err(Errno::NOTSUP) => return Ok(Vec::new()),
        other => other?,
    };
    let mut all = Attributes::new();
    let mut taken = 0;
    for name in names.split(|byte| *byte == 0).filter(|name| is_told(name)) {
        if taken > MOST {
            break;
        }
        let mut value = Vec::with_capacity(MAX_BYTES);
        match getxattr(path(file), name, spare_capacity(&mut value)) {
            // A capability of somebody else's root is none here.
            Err(Errno::NODATA | Errno::OVERFLOW | Errno::NOTSUP) => continue,
            other => other?,
        };
        taken += value.len();
        all.push((name.to_owned(), value));
    }
    all.sort_unstable();
    Ok(all)
}

/// A path to the open file itself, whatever it is and however it was opened.
fn path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// The value as the guest has it; none where the guest has no such attribute.
fn inside(name: &[u8], value: &[u8], ids: Option<IdRange>) -> Option<Vec<u8>> {
    let Some(ids) = ids else { return Some(value.to_owned()) };
    if ACCESS_LISTS.contains(&name) {
        return access_list(value, &|id| Some(ids.inside(id).unwrap_or(NOBODY)));
    }
    if name != CAPABILITY {
        return Some(value.to_owned());
    }
    let capability = Capability::of(value)?;
    match ids.inside(capability.root?)? {
        0 => Some(Capability { root: None, ..capability }.to_bytes()),
        root => Some(Capability { root: Some(root), ..capability }.to_bytes()),
    }
}

/// The value as the file is to have it.
fn outside(name: &[u8], value: &[u8], ids: Option<IdRange>) -> Result<Vec<u8>, Failure> {
    let shown = String::from_utf8_lossy(name);
    if !is_told(name) || name.contains(&0) {
        return Err(Failure::Invalid(format!("{shown:?} is no attribute that a guest's file may be given")));
    }
    let wrong = || Failure::Invalid(format!("the attribute {shown} is none, or of ids that the guest does not have"));
    let Some(ids) = ids else { return Ok(value.to_owned()) };
    if ACCESS_LISTS.contains(&name) {
        return access_list(value, &|id| ids.outside(id)).ok_or_else(wrong);
    }
    if name != CAPABILITY {
        return Ok(value.to_owned());
    }
    let capability = Capability::of(value).ok_or_else(wrong)?;
    let root = ids.outside(capability.root.unwrap_or(0)).ok_or_else(wrong)?;
    Ok(Capability { root: Some(root), ..capability }.to_bytes())
}

/// `struct posix_acl_xattr_entry`s behind a version: tag, permissions, id. Only those of a named user or group have one.
fn access_list(value: &[u8], shift: &dyn Fn(u32) -> Option<u32>) -> Option<Vec<u8>> {
    const NAMED: [u16; 2] = [0x02, 0x08];
    let (version, entries) = value.split_first_chunk::<4>()?;
    let mut shifted = version.to_vec();
    let (entries, rest) = entries.as_chunks::<8>();
    for [tag0, tag1, permissions @ .., id0, id1, id2, id3] in entries {
        let id = u32::from_le_bytes([*id0, *id1, *id2, *id3]);
        let is_named = NAMED.contains(&u16::from_le_bytes([*tag0, *tag1]));
        let id = if is_named { shift(id)? } else { id };
        shifted.extend([*tag0, *tag1].iter().chain(permissions).chain(&id.to_le_bytes()));
    }
    rest.is_empty().then_some(shifted)
}

/// `struct vfs_ns_cap_data`: what may be done is left as it is.
struct Capability {
    flags: u32,
    sets: [u8; 16],
    /// Whose root it is for, in the third revision.
    root: Option<u32>,
}

impl Capability {
    const REVISION: u32 = 0xff00_0000;
    const SECOND: u32 = 0x0200_0000;
    const THIRD: u32 = 0x0300_0000;

    fn of(value: &[u8]) -> Option<Self> {
        let (magic, rest) = value.split_first_chunk::<4>()?;
        let (sets, rest) = rest.split_first_chunk::<16>()?;
        let magic = u32::from_le_bytes(*magic);
        let root = match (magic & Self::REVISION, rest) {
            (Self::SECOND, []) => None,
            (Self::THIRD, rest) => Some(u32::from_le_bytes(rest.try_into().ok()?)),
            _ => return None,
        };
        Some(Self { flags: magic & !Self::REVISION, sets: *sets, root })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let revision = if self.root.is_some() { Self::THIRD } else { Self::SECOND };
        let mut bytes = (revision | self.flags).to_le_bytes().to_vec();
        bytes.extend(self.sets);
        bytes.extend(self.root.into_iter().flat_map(u32::to_le_bytes));
        bytes
    }
}
