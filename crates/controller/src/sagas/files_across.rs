//! Bringing the files of one guest to another, or to itself at another node: read at one node and written at the other, by
//! way of the controller, so nodes need no way to each other.

use corpus_domain::{Bytes, GuestName, NodeId};

use super::backup::{failed, most, words};
use super::node_calls::{awaited, endpoint};
use crate::guest_backups::{Across, Program};
use crate::jobs::{StepContext, StepError};
use crate::nodes::{TreeWhat, TreeWhich};
use crate::services::Services;

/// From where to where.
pub(super) struct Way<'a> {
    /// Whose files, and where that is.
    pub from: (&'a GuestName, NodeId),
    /// Which of its files.
    pub which: TreeWhich,
    /// Who gets them, and where that is.
    pub to: (&'a GuestName, NodeId),
    /// What that one is promised.
    pub storage: Bytes,
    /// Onto what was brought before: only what was changed at this second or later, or is not there.
    pub onto: Option<i64>,
}

/// Brings them to where they can be made the guest's. Tells how much was sent.
pub(super) async fn carry<P: Send + Sync>(ctx: &StepContext<Services, P>, way: Way<'_>) -> Result<Bytes, StepError> {
    let Way { from: (source, from), which, to: (guest, to), storage, onto } = way;
    let (from, to) = (endpoint(ctx, from).await?, endpoint(ctx, to).await?);
    let nodes = &ctx.services().nodes;
    // At one node both go on at once.
    let beside = (from.id == to.id).then(|| nodes.beside());
    let source_nodes = beside.as_ref().unwrap_or(nodes);
    let read = |node, guest, which| Program { nodes, node, words: words(ctx, guest, TreeWhat::Read(which)) };
    let written = onto.map(|since| (read(&to, guest, TreeWhich::Written), since));
    let to_write = words(ctx, guest, TreeWhat::Write { bytes: storage.0, onto: onto.is_some() });
    let across = Across {
        from: Program { nodes: source_nodes, ..read(&from, source, which) },
        before: written,
        to: Program { nodes, node: &to, words: to_write },
        limits: most(storage),
    };
    let brought = across.bring(|gone, of| ctx.progress(gone, of), ctx.cancelled()).await;
    if let Some(beside) = &beside {
        beside.forget(from.id);
    }
    let brought = brought.map_err(|error| failed(awaited(&to), error))?;
    let sent = Bytes(brought.bytes.saturating_sub(brought.kept_bytes));
    ctx.log(format!("{} files, {}, of which {} were brought", brought.files, Bytes(brought.bytes).gb(), sent.gb()));
    Ok(sent)
}
