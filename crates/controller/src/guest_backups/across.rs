//! From a node to another: all files of a guest, or those that differ from what was brought there before.
//!
//! Neither node is told of the other. What is brought is decided by a thread that reads both lists, which lie on disk; what
//! is wanted is asked for ahead of what is handed on, so that neither node waits for the other's line.

use std::collections::HashSet;
use std::pin::pin;

use bytes::{BufMut, Bytes, BytesMut};
use corpus_protocol::{KEPT, TreeEntry, TreeKind, TreeLine};
use tokio::sync::mpsc;

use super::bring::answer;
use super::incoming::{Incoming, Listed, Output};
use super::{CarryError, ENDS, Limits, Program};
use crate::nodes::TreeInput;

/// So many files are asked for ahead.
const AHEAD: usize = 512;
/// What goes at once, in bytes: small files go together.
const AT_ONCE: usize = 256 << 10;

/// The files of a guest on their way from a node to another.
pub(crate) struct Across<'a> {
    /// Tells them.
    pub from: Program<'a>,
    /// Tells what was brought before, from files of which none that was changed since this second was seen as it is now.
    pub before: Option<(Program<'a>, i64)>,
    /// Takes them.
    pub to: Program<'a>,
    /// How much there may be.
    pub limits: Limits,
}

/// What was brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Brought {
    /// How many files the guest has.
    pub files: u64,
    /// How much is in them, in bytes.
    pub bytes: u64,
    /// How much of that was there.
    pub kept_bytes: u64,
}

impl Across<'_> {
    /// Brings them. `progress` is told how much of how much has gone.
    pub(crate) async fn bring(
        self,
        progress: impl Fn(u64, u64) + Send + Sync,
        cancelled: impl Future<Output = ()>,
    ) -> Result<Brought, CarryError> {
        tokio::select! {
            brought = Box::pin(self.all(&progress)) => brought,
            () = cancelled => Err(CarryError::Cancelled),
        }
    }

    async fn all(self, progress: &(impl Fn(u64, u64) + Send + Sync)) -> Result<Brought, CarryError> {
        let Self { from, before, to, limits } = self;
        let (ask, output) = from.start().await?;
        let mut incoming = Incoming::new(output);
        let known = async {
            let Some((program, since)) = before else { return Ok(None) };
            let (_input, output) = program.start().await?;
            Ok::<_, CarryError>(Some((Listed::read(&mut Incoming::new(output), limits).await?, since)))
        };
        let (listed, known) = tokio::try_join!(Listed::read(&mut incoming, limits), known)?;
        let most = listed.bytes;
        let (input, output) = to.start().await?;
        let (decided, orders) = mpsc::channel(AHEAD);
        let deciding = tokio::task::spawn_blocking(move || decide(listed, known, &decided));
        let sending = async {
            let handed = hand_over(&ask, incoming, &input, orders, |gone| progress(gone, most)).await?;
            let brought = tokio::time::timeout(ENDS, deciding).await.map_err(|_| CarryError::Ended)?;
            let brought = brought.map_err(|_| CarryError::Ended)??;
            let end = TreeLine::End { entries: brought.files };
            // A program that takes no more says why.
            if handed && input.send(text(&end)?.into()).await.is_ok() {
                input.end().await;
            }
            Ok::<_, CarryError>(brought)
        };
        let (mut answered, mut sending) = (pin!(answer(output)), pin!(sending));
        let (brought, written) = tokio::select! {
            biased;
            // Before all was sent it can only have failed.
            answered = &mut answered => return answered.and(Err(CarryError::Ended)),
            sent = &mut sending => (sent?, answered.await?),
        };
        if brought.files == written {
            return Ok(brought);
        }
        Err(CarryError::Unclear(format!("{} files were sent, and {written} were written", brought.files)))
    }
}

/// A file that is to be told to the node that it goes to.
struct Order {
    line: Vec<u8>,
    content: Content,
    size: u64,
}

/// What becomes of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// It has none.
    None,
    /// It was told under another name.
    Told,
    /// The node has it.
    Kept,
    /// It is asked for, by this number.
    Asked(usize),
}

fn text(line: &TreeLine) -> Result<Vec<u8>, CarryError> {
    let mut text = serde_json::to_vec(line).map_err(|error| CarryError::Unclear(error.to_string()))?;
    text.push(b'\n');
    Ok(text)
}

/// Decides for each file in turn, and tells what there is. Nobody may want to hear it any more.
fn decide(listed: Listed, known: Option<(Listed, i64)>, to: &mpsc::Sender<Order>) -> Result<Brought, CarryError> {
    let mut known = known.map(|(listed, since)| (Known::new(listed.entries()), since));
    let (mut path, mut told, mut brought) = (Path::default(), HashSet::new(), Brought::default());
    for (number, entry) in listed.entries().enumerate() {
        let entry = entry.map_err(CarryError::Unclear)?;
        path.go_to(&entry)?;
        let there = match &mut known {
            Some((known, since)) => known.at(&path)?.map(|there| (there, *since)),
            None => None,
        };
        let content = match entry.kind {
            TreeKind::File if entry.links > 1 && !told.insert(entry.inode) => Content::Told,
            TreeKind::File if there.is_some_and(|(there, since)| is_same(&entry, there, since)) => Content::Kept,
            TreeKind::File => Content::Asked(number),
            TreeKind::Folder | TreeKind::Link(_) | TreeKind::Pipe => Content::None,
        };
        let size = entry.size;
        brought.files += 1;
        brought.bytes = brought.bytes.saturating_add(if content == Content::Told { 0 } else { size });
        brought.kept_bytes = brought.kept_bytes.saturating_add(if content == Content::Kept { size } else { 0 });
        let line = text(&TreeLine::Entry(Box::new(entry)))?;
        if to.blocking_send(Order { line, content, size }).is_err() {
            return Err(CarryError::Ended);
        }
    }
    Ok(brought)
}

/// Whether what is there is what the file has: it was changed before what is there was read, and looks alike. What has
/// several names is told anew.
fn is_same(entry: &TreeEntry, there: &TreeEntry, since: i64) -> bool {
    there.kind == TreeKind::File
        && entry.links <= 1
        && there.links <= 1
        && (entry.size, entry.modified) == (there.size, there.modified)
        && entry.changed.0 < since
}

/// Where a list is: the names that lead there. In the order of a list, which is that of these.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Path(Vec<Vec<u8>>);

impl Path {
    fn go_to(&mut self, entry: &TreeEntry) -> Result<(), CarryError> {
        let depth = usize::try_from(entry.depth).unwrap_or(usize::MAX);
        let Some(above) = depth.checked_sub(1) else { return Ok(()) };
        if above > self.0.len() {
            return Err(CarryError::Unclear("a file lies in a folder that was not told".to_owned()));
        }
        self.0.truncate(above);
        self.0.push(entry.name.clone());
        Ok(())
    }
}

/// What was brought before, read along with what is brought now.
struct Known<I> {
    entries: I,
    path: Path,
    here: Option<TreeEntry>,
}

impl<I: Iterator<Item = Result<TreeEntry, String>>> Known<I> {
    fn new(entries: I) -> Self {
        Self { entries, path: Path::default(), here: None }
    }

    /// What was brought of this path, if anything was. Paths are asked for in order.
    fn at(&mut self, path: &Path) -> Result<Option<&TreeEntry>, CarryError> {
        while self.here.is_none() || self.path < *path {
            let Some(entry) = self.entries.next() else {
                self.here = None;
                return Ok(None);
            };
            let entry = entry.map_err(CarryError::Unclear)?;
            self.path.go_to(&entry)?;
            self.here = Some(entry);
        }
        Ok(self.here.as_ref().filter(|_| self.path == *path))
    }
}

/// Hands on what was decided. Tells whether all of it was taken.
async fn hand_over<O: Output>(
    ask: &TreeInput,
    mut incoming: Incoming<O>,
    to: &TreeInput,
    mut orders: mpsc::Receiver<Order>,
    progress: impl Fn(u64),
) -> Result<bool, CarryError> {
    let (next, mut asked) = mpsc::channel::<Order>(AHEAD);
    let asking = async move {
        while let Some(order) = orders.recv().await {
            let is_gone = match order.content {
                // One that has ended is heard of by the other half.
                Content::Asked(number) => ask.send(format!("{number}\n").into()).await.is_err(),
                _ => false,
            };
            if is_gone || next.send(order).await.is_err() {
                break;
            }
        }
    };
    let handing = async move {
        let (mut kept, mut gone) = (BytesMut::new(), 0_u64);
        while let Some(Order { line, content, size }) = asked.recv().await {
            kept.extend_from_slice(&line);
            match content {
                Content::None => {}
                Content::Told => kept.put_u32(0),
                Content::Kept => {
                    kept.put_u32(KEPT);
                    gone += size;
                }
                Content::Asked(_) => {
                    let mut left = size;
                    loop {
                        let piece = incoming.piece().await?;
                        let length = u32::try_from(piece.len()).unwrap_or(u32::MAX);
                        kept.put_u32(length);
                        if piece.is_empty() {
                            break;
                        }
                        left = left.checked_sub(length.into()).ok_or_else(longer)?;
                        gone += u64::from(length);
                        kept.extend_from_slice(&piece);
                        if !flush(to, &mut kept, AT_ONCE).await {
                            return Ok(false);
                        }
                        progress(gone);
                    }
                }
            }
            if !flush(to, &mut kept, AT_ONCE).await {
                return Ok(false);
            }
        }
        progress(gone);
        Ok(flush(to, &mut kept, 1).await)
    };
    let ((), handed) = tokio::join!(asking, handing);
    handed
}

fn longer() -> CarryError {
    CarryError::Unclear("more came of a file than was listed".to_owned())
}

/// Sends what is kept if it is so much. Tells whether there is still somebody who takes it.
async fn flush(to: &TreeInput, kept: &mut BytesMut, least: usize) -> bool {
    let full: Bytes = if kept.len() < least { return true } else { kept.split().freeze() };
    to.send(full).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(depth: u32, name: &str, kind: TreeKind, size: u64) -> TreeEntry {
        TreeEntry {
            depth,
            name: name.into(),
            kind,
            mode: 0o644,
            uid: 0,
            gid: 0,
            modified: (100, 7),
            changed: (100, 8),
            inode: 0,
            links: 1,
            size,
            attributes: Vec::new(),
        }
    }

    fn folder(depth: u32, name: &str) -> TreeEntry {
        entry(depth, name, TreeKind::Folder, 0)
    }

    fn file(depth: u32, name: &str, size: u64) -> TreeEntry {
        entry(depth, name, TreeKind::File, size)
    }

    /// What becomes of each file.
    fn decided(now: Vec<TreeEntry>, before: Option<Vec<TreeEntry>>, since: i64) -> (Vec<Content>, Brought) {
        let before = before.map(|entries| (Listed::of(entries), since));
        let (to, mut orders) = mpsc::channel(100);
        let brought = decide(Listed::of(now), before, &to).unwrap();
        drop(to);
        let contents = std::iter::from_fn(|| orders.blocking_recv()).map(|order| order.content).collect();
        (contents, brought)
    }

    #[test]
    fn what_is_there_and_was_not_touched_stays() {
        use Content::{Asked, Kept, None, Told};
        let tree = |size| vec![folder(0, ""), folder(1, "a"), file(2, "x", size), file(1, "a.b", 5), file(1, "z", 6)];
        let (all, brought) = decided(tree(4), Option::None, 200);
        assert_eq!(all, [None, None, Asked(2), Asked(3), Asked(4)]);
        assert_eq!(brought, Brought { files: 5, bytes: 15, kept_bytes: 0 });
        let (all, brought) = decided(tree(4), Some(tree(4)), 200);
        assert_eq!((all, brought.kept_bytes), (vec![None, None, Kept, Kept, Kept], 15));
        // Another size, another time, changed since, and of another kind there.
        let (all, _) = decided(tree(9), Some(tree(4)), 200);
        assert_eq!(all, [None, None, Asked(2), Kept, Kept]);
        let (all, _) = decided(tree(4), Some(tree(4)), 100);
        assert_eq!(all, [None, None, Asked(2), Asked(3), Asked(4)]);
        let mut touched = tree(4);
        touched[3].modified.1 = 8;
        touched[4].kind = TreeKind::Pipe;
        let (all, _) = decided(tree(4), Some(touched), 200);
        assert_eq!(all, [None, None, Kept, Asked(3), Asked(4)]);
        // What went, what came, and what was called otherwise; behind each the lists meet again.
        let mut other = tree(4);
        other.remove(2);
        other.insert(1, folder(1, "Z"));
        other.insert(3, file(2, "y", 4));
        let (all, _) = decided(tree(4), Some(other), 200);
        assert_eq!(all, [None, None, Asked(2), Kept, Kept]);
        // Files of several names are told once, and anew.
        let linked = |name| TreeEntry { inode: 9, links: 2, ..file(1, name, 3) };
        let links = vec![folder(0, ""), linked("a"), linked("b")];
        let (all, brought) = decided(links.clone(), Some(links), 200);
        assert_eq!((all, brought.bytes), (vec![None, Asked(1), Told], 3));
    }

    #[test]
    fn a_list_that_is_none_is_refused() {
        let (to, _orders) = mpsc::channel(100);
        let nowhere = Listed::of(vec![folder(0, ""), file(3, "x", 1)]);
        let error = decide(nowhere, None, &to).unwrap_err();
        assert!(error.to_string().contains("a folder that was not told"), "{error}");
    }
}
