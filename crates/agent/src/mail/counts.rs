//! What became of the mail of each guest, by the hour, and how much more of it is taken in this one.
//!
//! It is written to a file every second in which something changed, so a service that begins anew goes on where it was:
//! a guest gains nothing by making it fall. What can be told is bounded: a day's hours, of as many guests as fit.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use corpus_domain::GuestName;
use corpus_protocol::{MAX_MAIL_COUNTS, MailCount};
use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::files;

/// Hours that are kept, this one included.
const KEPT_H: i64 = 26;
/// A file that is larger was not written by us.
const MAX_FILE: u64 = 4 << 20;

/// How a message ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The relay took it; so many bytes.
    Accepted(u64),
    /// The relay did not.
    Refused,
    /// It was malformed, or broken off.
    Failed,
    /// The relay was away, which is no fault of the guest's: it may send another one instead.
    Away,
    /// It was never sent. What was asked of the relay until then counts as any other, or there would be no end to asking.
    GivenUp,
}

/// An hour of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// Messages that were begun at the relay, which is what is limited.
    begun: u32,
    #[serde(flatten)]
    count: MailCount,
}

/// The counts, and where they are kept.
#[derive(Debug)]
pub struct Counts {
    path: PathBuf,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: BTreeMap<(i64, GuestName), Entry>,
    changed: bool,
}

impl Counts {
    /// Those of this file; none when there is none, or it can't be read.
    pub fn open(path: PathBuf) -> Self {
        let entries = entries(&path).unwrap_or_default();
        let entries = entries.into_iter().map(|entry| ((entry.count.hour, entry.count.guest.clone()), entry)).collect();
        Self { path, kept: Mutex::new(Kept { entries, changed: false }) }
    }

    /// Whether the guest may begin one more message in this hour; if not, that is counted.
    pub fn begin(&self, guest: &GuestName, most: u32, hour: i64) -> bool {
        self.change(guest, hour, |entry| {
            let may = entry.begun < most;
            if may {
                entry.begun += 1;
            } else {
                entry.count.limited += 1;
            }
            may
        })
    }

    /// A message that was begun has ended.
    pub fn end(&self, guest: &GuestName, hour: i64, outcome: Outcome) {
        self.change(guest, hour, |entry| match outcome {
            Outcome::Accepted(bytes) => {
                entry.count.accepted += 1;
                entry.count.bytes = entry.count.bytes.saturating_add(bytes);
            }
            Outcome::Refused => entry.count.refused += 1,
            Outcome::Failed => entry.count.failed += 1,
            Outcome::Away => {
                entry.begun = entry.begun.saturating_sub(1);
                entry.count.failed += 1;
            }
            Outcome::GivenUp => {}
        });
    }

    /// Writes them, if there is anything new.
    pub fn save(&self) -> Result<(), Failure> {
        let text = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if !std::mem::take(&mut kept.changed) {
                return Ok(());
            }
            serde_json::to_string(&kept.entries.values().collect::<Vec<_>>()).unwrap_or_default()
        };
        files::write(&self.path, &text, 0o600)
    }

    fn change<T>(&self, guest: &GuestName, hour: i64, change: impl FnOnce(&mut Entry) -> T) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.changed = true;
        let key = (hour, guest.clone());
        if !kept.entries.contains_key(&key) {
            kept.make_room(hour);
        }
        change(kept.entries.entry(key).or_insert_with(|| Entry { begun: 0, count: none(guest, hour) }))
    }
}

impl Kept {
    /// Room for one more in this hour. A clock that was set back would keep what is to come for ever.
    fn make_room(&mut self, hour: i64) {
        let is_kept = |of: i64| (hour - KEPT_H + 1..=hour).contains(&of);
        let ends = [self.entries.first_key_value(), self.entries.last_key_value()];
        if ends.into_iter().flatten().any(|((of, _), _)| !is_kept(*of)) {
            self.entries.retain(|(of, _), _| is_kept(*of));
        }
        while self.entries.len() >= MAX_MAIL_COUNTS {
            self.entries.pop_first();
        }
    }
}

fn none(guest: &GuestName, hour: i64) -> MailCount {
    MailCount { guest: guest.clone(), hour, accepted: 0, limited: 0, refused: 0, failed: 0, bytes: 0 }
}

/// What a service that may be running has counted; it is believed to be no more than a file that it could write.
pub fn read(path: &Path) -> Vec<MailCount> {
    let entries = entries(path).unwrap_or_default();
    entries.into_iter().map(|entry| entry.count).take(MAX_MAIL_COUNTS).collect()
}

fn entries(path: &Path) -> io::Result<Vec<Entry>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text)?;
    serde_json::from_str(&text).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> GuestName {
        text.parse().unwrap()
    }

    #[test]
    fn a_guest_has_so_many_an_hour_and_a_new_beginning_gives_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.json");
        let (guest, other) = (name("a.example.org"), name("b.example.org"));
        let counts = Counts::open(path.clone());
        assert!(counts.begin(&guest, 2, 7) && counts.begin(&guest, 2, 7) && !counts.begin(&guest, 2, 7));
        assert!(counts.begin(&other, 2, 7), "one uses up what another one has");
        counts.end(&guest, 7, Outcome::Accepted(500));
        counts.save().unwrap();
        let counts = Counts::open(path.clone());
        assert!(!counts.begin(&guest, 2, 7));
        counts.end(&guest, 7, Outcome::Away);
        assert!(counts.begin(&guest, 2, 7), "what the relay was not there for counts");
        counts.end(&guest, 7, Outcome::GivenUp);
        assert!(!counts.begin(&guest, 2, 7), "there is no end to asking");
        assert!(counts.begin(&guest, 2, 8));
        counts.end(&guest, 8, Outcome::Refused);
        counts.save().unwrap();
        let told: Vec<_> = read(&path)
            .into_iter()
            .filter(|one| one.guest == guest)
            .map(|one| (one.hour, one.accepted, one.limited, one.refused, one.failed, one.bytes))
            .collect();
        assert_eq!(told, [(7, 1, 3, 0, 1, 500), (8, 0, 0, 1, 0, 0)]);
    }

    #[test]
    fn they_do_not_grow() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.json");
        let counts = Counts::open(path.clone());
        for hour in 0..100 {
            counts.begin(&name("a.example.org"), 1, hour);
        }
        counts.save().unwrap();
        assert_eq!(read(&path).len(), usize::try_from(KEPT_H).unwrap());
        for number in 0..=MAX_MAIL_COUNTS {
            counts.begin(&name(&format!("g{number}.example.org")), 1, 100);
        }
        counts.save().unwrap();
        assert_eq!(read(&path).len(), MAX_MAIL_COUNTS);
    }

    #[test]
    fn what_is_no_file_of_counts_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("counts.json");
        assert_eq!(read(&path), []);
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert_eq!(read(&path), []);
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(read(&path), []);
    }
}
