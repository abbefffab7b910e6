//! Those who follow names: each asks on a connection of its own, and is given lines until it leaves.
//!
//! Who hears haproxy waits for none of them: a line that finds no place with a follower is left out there, and the
//! follower is told how many were. Connections, lines a second, lines that wait and the time are bounded.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corpus_protocol::{
    AccessLine, AddressDetail, FOLLOW_LIMIT_S, FOLLOWED_NAMES, LINES_A_SECOND, LINES_AT_ONCE, Millis, RoutedName,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::line::Line;

/// Connections at once.
const MOST: usize = 32;
/// Lines that wait for one follower.
const WAITING: usize = 2 * LINES_AT_ONCE;
/// How long lines are gathered before they are given.
const PAUSE: Duration = Duration::from_millis(200);
/// How long a follower may take to say what it wants, and to take what it is given.
const PATIENCE: Duration = Duration::from_secs(5);
/// Looks, and does not wait.
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// The longest order: so many names of 253 characters.
const ORDER: u64 = 64 << 10;

/// What a follower wants; a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// These names.
    pub names: Vec<RoutedName>,
    /// So much of addresses.
    pub addresses: AddressDetail,
}

/// What it is given; a line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// The oldest first.
    pub lines: Vec<AccessLine>,
    /// How many more there were since the last batch.
    pub left_out: u64,
}

/// All that follow.
#[derive(Debug, Clone, Default)]
pub struct Followers(Arc<Mutex<HashMap<u64, Option<Follower>>>>);

/// One of them, once it has said what it wants.
#[derive(Debug)]
struct Follower {
    names: BTreeSet<RoutedName>,
    addresses: AddressDetail,
    to: SyncSender<AccessLine>,
    left_out: Arc<AtomicU64>,
    /// The second that runs, and how many lines it was given in it.
    second: (Millis, u32),
}

impl Followers {
    /// Takes those who come there.
    pub fn listen(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        let all = self.clone();
        thread::Builder::new().name("followers".to_owned()).spawn(move || all.take(&listener)).map(drop)
    }

    fn take(&self, listener: &UnixListener) {
        for (id, stream) in (0..).zip(listener.incoming()) {
            let Ok(stream) = stream else {
                // Such as too many open files: others leave.
                thread::sleep(PAUSE);
                continue;
            };
            // The one that is too many is told by its end.
            if !self.admit(id) {
                continue;
            }
            let all = self.clone();
            let begun = thread::Builder::new().spawn(move || {
                let _ = all.serve(id, &stream);
                all.lock().remove(&id);
            });
            if begun.is_err() {
                self.lock().remove(&id);
            }
        }
    }

    fn admit(&self, id: u64) -> bool {
        let mut all = self.lock();
        let free = all.len() < MOST;
        if free {
            all.insert(id, None);
        }
        free
    }

    fn serve(&self, id: u64, stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut text = String::new();
        BufReader::new(stream.take(ORDER)).read_line(&mut text)?;
        let order: Order = serde_json::from_str(&text)?;
        if order.names.len() > FOLLOWED_NAMES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (to, lines) = sync_channel(WAITING);
        let left_out = Arc::new(AtomicU64::new(0));
        let follower = Follower {
            names: order.names.into_iter().collect(),
            addresses: order.addresses,
            to,
            left_out: Arc::clone(&left_out),
            second: (0, 0),
        };
        self.lock().insert(id, Some(follower));
        give(stream, &lines, &left_out)
    }

    /// Gives a request to those who follow its name.
    pub fn tell(&self, line: &Line<'_>, at_ms: Millis) {
        let Some(name) = &line.name else { return };
        for one in self.lock().values_mut().flatten().filter(|one| one.names.contains(name)) {
            let second = at_ms / 1000;
            if one.second.0 != second {
                one.second = (second, 0);
            }
            let fits = one.second.1 < LINES_A_SECOND && one.to.try_send(line.told(name, at_ms, one.addresses)).is_ok();
            if fits {
                one.second.1 += 1;
            } else {
                one.left_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// A thread that panicked left the list usable.
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Option<Follower>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives lines as they come, until the follower leaves or its time is over.
fn give(mut stream: &UnixStream, lines: &Receiver<AccessLine>, left_out: &AtomicU64) -> io::Result<()> {
    let end = Instant::now() + Duration::from_secs(FOLLOW_LIMIT_S.into()) + PATIENCE;
    // It says nothing more: whatever there is to read is its end.
    while Instant::now() < end && poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&AT_ONCE))? == 0 {
        thread::sleep(PAUSE);
        let batch = Batch {
            lines: lines.try_iter().take(LINES_AT_ONCE).collect(),
            left_out: left_out.swap(0, Ordering::Relaxed),
        };
        if batch != Batch::default() {
            let mut text = serde_json::to_vec(&batch)?;
            text.push(b'\n');
            stream.write_all(&text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::line::tests::line;
    use super::*;

    fn tell(followers: &Followers, name: &str, count: u64, at_ms: Millis) {
        for number in 0..count {
            let text = line(number, name, &format!("/{number}"), 200, "--");
            followers.tell(&Line::read(text.as_bytes()).unwrap(), at_ms);
        }
    }

    pub fn name(text: &str) -> RoutedName {
        RoutedName { name: text.parse().unwrap(), wildcard: false }
    }

    fn ask(path: &Path, names: &[&str]) -> BufReader<UnixStream> {
        let mut stream = UnixStream::connect(path).unwrap();
        let order = Order { names: names.iter().map(|text| name(text)).collect(), addresses: AddressDetail::Cut };
        let mut text = serde_json::to_vec(&order).unwrap();
        text.push(b'\n');
        stream.write_all(&text).unwrap();
        BufReader::new(stream)
    }

    fn wait_for(what: impl Fn() -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !what() {
            assert!(Instant::now() < end, "it does not come to be");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn batch(from: &mut BufReader<UnixStream>) -> Batch {
        let mut text = String::new();
        from.read_line(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    fn listening() -> (tempfile::TempDir, std::path::PathBuf, Followers) {
        let folder = tempfile::tempdir().unwrap();
        let (path, followers) = (folder.path().join("follow"), Followers::default());
        followers.listen(&path).unwrap();
        (folder, path, followers)
    }

    #[test]
    fn each_is_told_of_its_names() {
        let (_folder, path, followers) = listening();
        let mut one = ask(&path, &["a.example.org", "c.example.org"]);
        wait_for(|| followers.lock().values().flatten().count() == 1);
        tell(&followers, "b.example.org", 3, 1_000);
        tell(&followers, "a.example.org", 2, 2_000);
        let told = batch(&mut one);
        let paths: Vec<_> = told.lines.iter().map(|line| (line.name.name.as_str(), line.path.as_str())).collect();
        assert_eq!(paths, [("a.example.org", "/0"), ("a.example.org", "/1")]);
        assert_eq!((told.left_out, told.lines[0].from.as_deref()), (0, Some("192.0.2.0/24")));
        drop(one);
        wait_for(|| followers.lock().is_empty());
    }

    #[test]
    fn what_is_too_much_is_left_out_and_said() {
        let (_folder, path, followers) = listening();
        let mut one = ask(&path, &["a.example.org"]);
        wait_for(|| followers.lock().values().flatten().count() == 1);
        tell(&followers, "a.example.org", 150, 1_000);
        let (mut lines, mut left_out) = (0, 0);
        while lines + left_out < 150 {
            let told = batch(&mut one);
            lines += told.lines.len() as u64;
            left_out += told.left_out;
        }
        assert_eq!((lines, left_out), (100, 50));
    }

    #[test]
    fn one_that_takes_nothing_costs_nobody_anything() {
        let followers = Followers::default();
        let (to, lines) = sync_channel(WAITING);
        let left_out = Arc::new(AtomicU64::new(0));
        let names = [name("a.example.org")].into();
        let one =
            Follower { names, addresses: AddressDetail::None, to, left_out: Arc::clone(&left_out), second: (0, 0) };
        followers.lock().insert(1, Some(one));
        (0..20).for_each(|second| tell(&followers, "a.example.org", 100, 1_000 * second));
        assert_eq!((lines.try_iter().count(), left_out.load(Ordering::Relaxed)), (WAITING, 1_600));
    }

    #[test]
    fn followers_have_an_end_and_say_what_they_want() {
        let (_folder, path, followers) = listening();
        let mut wrong = ask(&path, &["a.example.org"; FOLLOWED_NAMES + 1]);
        assert_eq!(wrong.read_line(&mut String::new()).unwrap(), 0);
        let mut silent = Vec::new();
        wait_for(|| followers.lock().is_empty());
        for count in 1..=MOST {
            silent.push(UnixStream::connect(&path).unwrap());
            wait_for(|| followers.lock().len() == count);
        }
        let mut more = UnixStream::connect(&path).unwrap();
        assert_eq!(more.read(&mut [0; 9]).unwrap(), 0, "one more has a place");
        drop(silent);
        wait_for(|| followers.lock().is_empty());
    }
}
