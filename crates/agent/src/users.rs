//! User namespaces with the ids of a guest, for mounts that show its files as its own.
//!
//! The kernel takes the ids of such a mount from a user namespace, and gives one only to a process
//! that has no other thread. So the agent starts itself once more for a moment, with the word
//! [`WORD`]; the ids are written from outside, where root may give any; and the namespace stays as
//! long as someone has it open. One is made in about a millisecond and kept for a guest's next
//! requests, as long as this agent runs: it is no more than a descriptor.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use corpus_domain::IdRange;

use crate::failure::{At, Failure};

/// What the agent is started with to be the process of a new user namespace.
pub const WORD: &str = "own-users";
/// How many are kept; a guest is made with about ten requests.
const MAX_RECORDS: usize = 32;
const SELF: &str = "/proc/self/exe";

static NAMESPACES: Mutex<VecDeque<(IdRange, Arc<OwnedFd>)>> = Mutex::new(VecDeque::new());

/// A user namespace in which the range's ids are 0 to 65,535.
pub fn namespace(ids: IdRange) -> Result<Arc<OwnedFd>, Failure> {
    let mut kept = NAMESPACES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, namespace)) = kept.iter().find(|(range, _)| *range == ids) {
        return Ok(Arc::clone(namespace));
    }
    let made = Arc::new(make(ids).at("make a user namespace for", "the guest's ids")?);
    kept.truncate(MAX_RECORDS - 1);
    kept.push_front((ids, Arc::clone(&made)));
    Ok(made)
}

/// Waits in a user namespace of its own until its input ends: what `corpus-agent own-users` does.
pub fn wait() -> io::Result<()> {
    corpus_namespaces::own_users()?;
    io::stdout().write_all(b"\n")?;
    io::stdout().flush()?;
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

#[expect(clippy::disallowed_methods, reason = "it is the agent itself, which only waits; it ends with its input")]
fn make(ids: IdRange) -> io::Result<OwnedFd> {
    let mut waiting = Command::new(SELF)
        .arg(WORD)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let made = give(&mut waiting, ids);
    drop(waiting.stdin.take());
    waiting.wait()?;
    made
}

fn give(waiting: &mut Child, ids: IdRange) -> io::Result<OwnedFd> {
    let out = waiting.stdout.as_mut().ok_or_else(|| io::Error::other("no pipe"))?;
    let begun = out.read_exact(&mut [0]);
    begun.map_err(|_| io::Error::other("the kernel gives no user namespaces (user.max_user_namespaces)"))?;
    let process = format!("/proc/{}", waiting.id());
    for map in ["uid_map", "gid_map"] {
        fs::write(format!("{process}/{map}"), format!("0 {} {}\n", ids.first(), IdRange::LEN))?;
    }
    File::open(format!("{process}/ns/user")).map(OwnedFd::from)
}
