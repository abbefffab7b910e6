//! Whether the host has the storage that a guest is promised.

use corpus_domain::Bytes;
use corpus_protocol::Storage;

use crate::facts;
use crate::failure::Failure;
use crate::host::Host;

/// Fails unless a guest that has `taken` and was promised `own` more, in bytes, can be given all of `size`, and every
/// other one what it was promised.
pub fn require(host: &Host, (taken, own): (u64, u64), size: Bytes) -> Result<(), Failure> {
    let storage = facts::storage(host)?;
    let others = Bytes(storage.promised.0.saturating_sub(own));
    let free = Storage { promised: others, ..storage }.free();
    let needed = Bytes(size.0.saturating_sub(taken));
    if free < needed { Err(Failure::NoSpace { folder: host.lxc(), free, needed }) } else { Ok(()) }
}
