//! The minutes of a day, a file each, and the one that runs.
//!
//! The collector writes, whole files only; the agent reads as root, and believes nothing of it: no link is followed, no
//! file read beyond what one may have, and what is no minute is none.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use corpus_protocol::{
    MAX_LINE, MAX_VALUES, Millis, RoutedName, TRAFFIC_AT_ONCE, TrafficMinute, TrafficReading, values,
};
use rustix::fs::OFlags;

use super::count::Count;
use super::{A_MINUTE, STATE};
use crate::failure::{At, Failure};
use crate::files;
use crate::host::Host;

/// A day.
const MINUTES: usize = 24 * 60;
/// All files together: 180 kB for each minute of the day.
const BYTES: u64 = 256 << 20;
/// A file that is longer is none of ours.
const LONGEST: u64 = 16 << 20;
/// The minute that runs.
const NOW: &str = "now";

/// The folder of them.
#[derive(Debug, Clone)]
pub struct Store(PathBuf);

/// What still fits into a line to the controller.
struct Room {
    bytes: usize,
    values: usize,
    names: usize,
}

impl Store {
    /// The host's.
    pub fn of(host: &Host) -> Self {
        Self(host.path(STATE))
    }

    /// Keeps a minute that is over. What an earlier collector has kept of it, when the clock was set back, stays in it.
    pub fn write(&self, count: &Count) -> Result<(), Failure> {
        let path = self.path(count.minute);
        let reading = match minute(&path, count.minute) {
            Some(before) => merged(before, count.reading()),
            None => count.reading(),
        };
        files::write(&path, &serde_json::to_string(&reading).unwrap_or_default(), 0o600)
    }

    /// Forgets the oldest minutes that are too many, or too much.
    pub fn forget(&self) -> Result<(), Failure> {
        let (mut kept, mut bytes) = (0, 0);
        for at in self.minutes()?.into_iter().rev() {
            let path = self.path(at);
            bytes += fs::symlink_metadata(&path).map_or(0, |found| found.len());
            kept += 1;
            if kept > MINUTES || bytes > BYTES {
                files::remove(&path)?;
            }
        }
        Ok(())
    }

    /// Keeps the minute that runs.
    pub fn keep(&self, count: &Count) -> Result<(), Failure> {
        files::write(&self.0.join(NOW), &serde_json::to_string(count).unwrap_or_default(), 0o600)
    }

    /// The minute that ran when the last collector ended.
    pub fn kept(&self) -> Option<Count> {
        serde_json::from_str(&bounded(&self.0.join(NOW)).ok()?).ok()
    }

    /// The minutes that began after this one and are over, as many as fit into a line. Each is whole: one that would not
    /// fit at all goes without its errors.
    pub fn read(&self, after: Option<Millis>, now: Millis) -> Result<TrafficReading, Failure> {
        let mut reading = TrafficReading::default();
        // What stands around them in a line is far less than what is left here.
        let mut room = Room { bytes: MAX_LINE - (1 << 20), values: MAX_VALUES - 1000, names: TRAFFIC_AT_ONCE };
        let wanted = |at: &Millis| after.is_none_or(|after| *at > after) && at.saturating_add(A_MINUTE) <= now;
        for at in self.minutes()?.into_iter().filter(wanted) {
            let Some(mut one) = minute(&self.path(at), at) else { continue };
            if !room.take(&one) {
                one.minutes.iter_mut().for_each(|minute| minute.errors.clear());
                let first = reading.minutes.is_empty();
                if !(first && room.take(&one)) {
                    reading.more = true;
                    break;
                }
            }
            reading.minutes.append(&mut one.minutes);
            reading.lost_lines = reading.lost_lines.saturating_add(one.lost_lines);
        }
        Ok(reading)
    }

    fn path(&self, minute: Millis) -> PathBuf {
        self.0.join(minute.to_string())
    }

    /// When the minutes that are there began, the oldest first.
    fn minutes(&self) -> Result<Vec<Millis>, Failure> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.at("list", &self.0)?,
        };
        let begun = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        let mut minutes: Vec<Millis> = entries.flatten().filter_map(begun).filter(|at| at % A_MINUTE == 0).collect();
        minutes.sort_unstable();
        Ok(minutes)
    }
}

impl Room {
    /// Takes the room of a minute, if there is any.
    fn take(&mut self, one: &TrafficReading) -> bool {
        let line = serde_json::to_vec(&one.minutes).unwrap_or_default();
        let left = self.without(line.len(), values(&line), one.minutes.len());
        let fits = left.is_some();
        if let Some(left) = left {
            *self = left;
        }
        fits
    }

    fn without(&self, bytes: usize, values: usize, names: usize) -> Option<Self> {
        Some(Self {
            bytes: self.bytes.checked_sub(bytes)?,
            values: self.values.checked_sub(values)?,
            names: self.names.checked_sub(names)?,
        })
    }
}

/// What was counted in a minute, if that is what the file says.
fn minute(path: &Path, at: Millis) -> Option<TrafficReading> {
    let mut reading: TrafficReading = serde_json::from_str(&bounded(path).ok()?).ok()?;
    reading.minutes.retain(|minute| minute.at_ms == at);
    reading.minutes.truncate(TRAFFIC_AT_ONCE);
    Some(reading)
}

fn merged(before: TrafficReading, more: TrafficReading) -> TrafficReading {
    let mut names: BTreeMap<RoutedName, TrafficMinute> = BTreeMap::new();
    for minute in before.minutes.into_iter().chain(more.minutes) {
        match names.get_mut(&minute.name) {
            Some(into) => into.merge(minute),
            None => drop(names.insert(minute.name.clone(), minute)),
        }
    }
    let lost_lines = before.lost_lines.saturating_add(more.lost_lines);
    TrafficReading { minutes: names.into_values().take(TRAFFIC_AT_ONCE).collect(), more: false, lost_lines }
}

/// The text of a file that is one, and no longer than it may be.
fn bounded(path: &Path) -> io::Result<String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::super::line::{Line, tests::line};
    use super::*;

    const BEGIN: Millis = 1_700_000_040_000;

    fn at(minute: u64) -> Millis {
        BEGIN + minute * A_MINUTE
    }

    fn count(minute: u64, names: usize, path: &str) -> Count {
        let mut count = Count::at(at(minute), Count::default());
        for number in 0..names * 9 {
            let text = line(number as u64, &format!("n{}.example.org", number % names), path, 500, "--");
            count.add(&Line::read(text.as_bytes()).unwrap(), at(minute));
        }
        count
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::of(&Host::below(folder.path()));
        (folder, store)
    }

    #[test]
    fn minutes_are_read_from_where_one_was() {
        let (_folder, store) = store();
        assert_eq!(store.read(None, at(9)).unwrap(), TrafficReading::default());
        for minute in 0..3 {
            store.write(&count(minute, 2, "/")).unwrap();
        }
        let times =
            |after, now| store.read(after, now).unwrap().minutes.iter().map(|one| one.at_ms).collect::<Vec<_>>();
        assert_eq!(times(None, at(9)), [at(0), at(0), at(1), at(1), at(2), at(2)]);
        assert_eq!(times(Some(at(1)), at(9)), [at(2), at(2)]);
        assert_eq!(times(Some(at(0)), at(2) + 59_999), [at(1), at(1)], "one that runs is not told");
        assert_eq!(times(Some(at(2)), at(9)), Vec::<Millis>::new());
        // The clock was set back.
        store.write(&count(2, 1, "/")).unwrap();
        let again = store.read(Some(at(1)), at(9)).unwrap();
        assert_eq!(again.minutes.iter().map(|one| one.requests).collect::<Vec<_>>(), [18, 9]);
    }

    #[test]
    fn the_minute_that_runs_outlives_the_collector() {
        let (_folder, store) = store();
        assert_eq!(store.kept(), None);
        let one = count(0, 3, "/");
        store.keep(&one).unwrap();
        assert_eq!(store.kept(), Some(one));
        assert_eq!(store.read(None, at(9)).unwrap(), TrafficReading::default());
    }

    #[test]
    fn a_day_is_kept() {
        let (_folder, store) = store();
        for minute in 0..5 + MINUTES as u64 {
            fs::create_dir_all(&store.0).unwrap();
            fs::write(store.path(at(minute)), "{}").unwrap();
        }
        store.forget().unwrap();
        let minutes = store.minutes().unwrap();
        assert_eq!((minutes.len(), minutes[0]), (MINUTES, at(5)));
        let big = fs::File::options().write(true).open(store.path(at(900))).unwrap();
        big.set_len(BYTES).unwrap();
        store.forget().unwrap();
        assert_eq!(store.minutes().unwrap()[0], at(901), "nothing is too much");
    }

    #[test]
    fn a_reading_is_a_line_whatever_visitors_ask_for() {
        let (_folder, store) = store();
        for minute in 0..4 {
            store.write(&count(minute, 900, &"{,".repeat(100))).unwrap();
        }
        let (mut after, mut readings) = (None, 0);
        loop {
            let reading = store.read(after, at(9)).unwrap();
            let line = serde_json::to_vec(&reading).unwrap();
            assert!(values(&line) <= MAX_VALUES && line.len() <= MAX_LINE && reading.minutes.len() <= TRAFFIC_AT_ONCE);
            readings += 1;
            after = reading.minutes.last().map(|one| one.at_ms);
            assert_eq!(
                reading.minutes.iter().filter(|one| Some(one.at_ms) == after).count(),
                900,
                "a minute is parted"
            );
            if !reading.more {
                break;
            }
        }
        assert_eq!((after, readings > 1), (Some(at(3)), true));
    }

    #[test]
    fn the_most_names_fit_whatever_they_counted() {
        let (_folder, store) = store();
        let mut one = count(0, TRAFFIC_AT_ONCE, "/").reading();
        for (number, minute) in one.minutes.iter_mut().enumerate() {
            let labels = "x".repeat(60);
            minute.name.name = format!("n{number}.{labels}.{labels}.{labels}.{}", "y".repeat(55)).parse().unwrap();
            minute.latency = vec![u64::MAX; 31].try_into().unwrap();
            (minute.requests, minute.statuses) = (u64::MAX, [u64::MAX; 5]);
        }
        files::write(&store.path(at(0)), &serde_json::to_string(&one).unwrap(), 0o600).unwrap();
        let reading = store.read(None, at(9)).unwrap();
        assert_eq!((reading.minutes.len(), reading.more), (TRAFFIC_AT_ONCE, false));
    }

    #[test]
    fn what_the_collector_was_made_to_leave_is_nothing() {
        let (folder, store) = store();
        let secret = folder.path().join("secret");
        fs::write(&secret, serde_json::to_string(&count(0, 1, "/").reading()).unwrap()).unwrap();
        fs::create_dir_all(&store.0).unwrap();
        std::os::unix::fs::symlink(&secret, store.path(at(0))).unwrap();
        mknodat(CWD, store.path(at(1)), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        fs::write(store.path(at(2)), "[[[[").unwrap();
        // Another minute than its name says.
        fs::copy(&secret, store.path(at(3))).unwrap();
        assert_eq!(store.read(None, at(9)).unwrap(), TrafficReading::default());
    }
}
