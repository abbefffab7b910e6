//! The service that hears haproxy: what `corpus-agent traffic` does.
//!
//! Its standard input is the socket that haproxy writes to; systemd made it, and holds it while a collector ends and the
//! next one begins, so what is told meanwhile waits there. What was counted is written down every few seconds, and a
//! minute when it is over. A disk that takes nothing costs counts and no more.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

use corpus_protocol::Millis;

use super::count::Count;
use super::followers::Followers;
use super::line::{LONGEST, Line};
use super::store::Store;
use super::{A_MINUTE, FOLLOW, now};
use crate::drivers::AGENT;
use crate::failure::Failure;
use crate::host::Host;

/// How long it waits for a datagram before it looks at the clock.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the minute that runs is written down.
const KEPT_MS: Millis = 5_000;
/// A clock that was set back so little goes on with the minute that runs.
const SET_BACK_MS: Millis = 10 * A_MINUTE;

/// What is counted, and where it goes.
struct Collector {
    store: Store,
    count: Count,
    /// Whether there is something to write down, and since when.
    unwritten: Option<Millis>,
}

/// Hears haproxy, until the agent is another one: then the service begins anew with that.
pub fn collect(host: &Host) -> io::Result<()> {
    let input = UnixDatagram::from(rustix::stdio::stdin().try_clone_to_owned()?);
    input.set_nonblocking(false)?;
    input.set_read_timeout(Some(PATIENCE))?;
    let followers = Followers::default();
    followers.listen(&host.path(FOLLOW))?;
    let mut collector = Collector::begin(Store::of(host), now());
    let mut datagram = [0; LONGEST];
    loop {
        let heard = match input.recv(&mut datagram) {
            Ok(length) => datagram.get(..length).and_then(Line::read),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
            Err(error) => return Err(error),
        };
        let now = now();
        // First what is over: the request ended after it.
        let next_minute = collector.pass(now);
        if let Some(line) = heard {
            collector.hear(&line, now);
            followers.tell(&line, now);
        }
        if next_minute && is_replaced(&host.path(AGENT)) {
            collector.write_down();
            return Ok(());
        }
    }
}

impl Collector {
    /// Goes on where the last one ended.
    fn begin(store: Store, now: Millis) -> Self {
        let count = store.kept().unwrap_or_else(|| Count::at(now, Count::default()));
        Self { store, count, unwritten: None }
    }

    fn hear(&mut self, line: &Line<'_>, now: Millis) {
        self.count.add(line, now);
        self.unwritten.get_or_insert(now);
    }

    /// Lets time pass: a minute that is over is kept, and the next one begins. Tells whether one did.
    fn pass(&mut self, now: Millis) -> bool {
        let goes_on = now < self.count.minute + A_MINUTE && now + SET_BACK_MS > self.count.minute;
        if goes_on {
            if self.unwritten.is_some_and(|since| now.abs_diff(since) >= KEPT_MS) {
                self.write_down();
            }
            return false;
        }
        if !self.count.is_empty() {
            report(self.store.write(&self.count).and_then(|()| self.store.forget()));
        }
        self.count = Count::at(now, std::mem::take(&mut self.count));
        // Without this, one that ends now would count the last minute twice.
        self.write_down();
        true
    }

    fn write_down(&mut self) {
        report(self.store.keep(&self.count));
        self.unwritten = None;
    }
}

/// For the journal: nobody asked for it.
fn report(done: Result<(), Failure>) {
    if let Err(failure) = done {
        eprintln!("{}", failure.in_full());
    }
}

/// Whether another agent lies where the unit starts it.
fn is_replaced(agent: &Path) -> bool {
    let id = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    id(agent).is_some_and(|there| id(Path::new("/proc/self/exe")) != Some(there))
}

#[cfg(test)]
mod tests {
    use corpus_protocol::TrafficReading;

    use super::super::line::tests::line;
    use super::*;

    const BEGIN: Millis = 1_700_000_040_000;

    fn hear(collector: &mut Collector, number: u64, now: Millis) {
        collector.pass(now);
        let text = line(number, "a.example.org", "/", 200, "--");
        collector.hear(&Line::read(text.as_bytes()).unwrap(), now);
    }

    fn told(store: &Store) -> (Vec<(Millis, u64)>, u64) {
        let TrafficReading { minutes, lost_lines, .. } = store.read(None, BEGIN + 100 * A_MINUTE).unwrap();
        (minutes.iter().map(|one| ((one.at_ms - BEGIN) / A_MINUTE, one.requests)).collect(), lost_lines)
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::of(&Host::below(folder.path()));
        (folder, store)
    }

    #[test]
    fn a_minute_is_kept_when_it_is_over() {
        let (_folder, store) = store();
        let mut collector = Collector::begin(store.clone(), BEGIN);
        (0..3).for_each(|number| hear(&mut collector, number, BEGIN + 20_000 * number));
        assert_eq!(told(&store).0, []);
        hear(&mut collector, 3, BEGIN + A_MINUTE);
        assert_eq!(told(&store), (vec![(0, 3)], 0));
        assert!(collector.pass(BEGIN + 9 * A_MINUTE) && collector.pass(BEGIN + 10 * A_MINUTE));
        assert_eq!(told(&store).0, [(0, 3), (1, 1)], "minutes without requests are none");
    }

    #[test]
    fn one_that_is_killed_costs_seconds_and_says_so() {
        let (_folder, store) = store();
        let mut first = Collector::begin(store.clone(), BEGIN);
        hear(&mut first, 0, BEGIN);
        hear(&mut first, 1, BEGIN + 6_000);
        hear(&mut first, 2, BEGIN + 6_001);
        drop(first);
        let mut second = Collector::begin(store.clone(), BEGIN + 7_000);
        hear(&mut second, 3, BEGIN + 7_001);
        assert!(second.pass(BEGIN + A_MINUTE));
        assert_eq!(told(&store), (vec![(0, 2)], 2));
        // One that was away for long keeps what the last one counted, in its minute.
        hear(&mut second, 4, BEGIN + A_MINUTE);
        second.write_down();
        let mut third = Collector::begin(store.clone(), BEGIN + 30 * A_MINUTE);
        hear(&mut third, 5, BEGIN + 30 * A_MINUTE);
        assert_eq!(told(&store).0, [(0, 2), (1, 1)]);
    }

    #[test]
    fn nothing_is_counted_twice() {
        let (_folder, store) = store();
        let mut first = Collector::begin(store.clone(), BEGIN);
        hear(&mut first, 0, BEGIN);
        first.pass(BEGIN + A_MINUTE);
        drop(first);
        let mut second = Collector::begin(store.clone(), BEGIN + A_MINUTE);
        second.pass(BEGIN + 2 * A_MINUTE);
        assert_eq!(told(&store).0, [(0, 1)]);
    }

    #[test]
    fn a_clock_that_is_set_back_stops_nothing() {
        let (_folder, store) = store();
        let mut collector = Collector::begin(store.clone(), BEGIN + 60 * A_MINUTE);
        hear(&mut collector, 0, BEGIN + 60 * A_MINUTE);
        hear(&mut collector, 1, BEGIN + 55 * A_MINUTE);
        hear(&mut collector, 2, BEGIN);
        collector.pass(BEGIN + A_MINUTE);
        assert_eq!(told(&store).0, [(0, 1), (60, 2)]);
    }

    #[test]
    fn a_disk_that_takes_nothing_costs_counts_alone() {
        let (folder, store) = store();
        std::fs::create_dir_all(folder.path().join("var/lib")).unwrap();
        std::fs::write(folder.path().join("var/lib/corpus-traffic"), "").unwrap();
        let mut collector = Collector::begin(store, BEGIN);
        hear(&mut collector, 0, BEGIN);
        assert!(collector.pass(BEGIN + A_MINUTE));
        hear(&mut collector, 1, BEGIN + A_MINUTE);
        assert_eq!(collector.count.reading().minutes[0].requests, 1);
    }

    #[test]
    fn it_gives_way_to_another_agent() {
        let folder = tempfile::tempdir().unwrap();
        let agent = folder.path().join("agent");
        assert!(!is_replaced(&agent), "none is there");
        std::fs::write(&agent, "another").unwrap();
        assert!(is_replaced(&agent));
        assert!(!is_replaced(Path::new("/proc/self/exe")));
    }
}
