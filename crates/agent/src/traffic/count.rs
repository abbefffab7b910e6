//! Counts the requests of a minute by name, and those that were not heard.
//!
//! haproxy waits for nobody, so lines may be lost on their way. It numbers them, which tells how many. The threads of a
//! process may number two alike or be heard in another order, so what counts is the difference over a minute.

use std::collections::BTreeMap;

use corpus_protocol::{
    Millis, RoutedName, TRAFFIC_AT_ONCE, TRAFFIC_ERRORS, TrafficError, TrafficMinute, TrafficReading,
};
use serde::{Deserialize, Serialize};

use super::A_MINUTE;
use super::line::Line;

/// Processes of haproxy: each reload leaves one until its last connection ends.
const PROCESSES: usize = 16;
/// One that begins so far before where it was is another one with the same number.
const ANOTHER: u64 = 10_000;

/// A minute while it is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// When it began.
    pub minute: Millis,
    /// Names and what was counted for them, in no order on the disk.
    #[serde(with = "minutes")]
    names: BTreeMap<RoutedName, TrafficMinute>,
    /// Requests of names beyond the last one that has a place.
    turned_away: u64,
    /// The processes that were heard, the one that was heard last at the end.
    processes: Vec<Process>,
}

/// What was heard of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    id: u32,
    /// The highest number of its lines.
    last: u64,
    /// Lines of this minute that were not heard, less those that were heard late or have a number twice.
    missing: i64,
}

impl Count {
    /// The minute that this moment is in, with what was heard of processes before.
    pub fn at(now: Millis, before: Self) -> Self {
        let processes = before.processes.into_iter().map(|one| Process { missing: 0, ..one }).collect();
        Self { minute: now - now % A_MINUTE, processes, ..Self::default() }
    }

    /// Counts a request.
    pub fn add(&mut self, line: &Line<'_>, now: Millis) {
        self.number(line.process, line.number);
        let Some(name) = &line.name else { return };
        if self.names.len() >= TRAFFIC_AT_ONCE && !self.names.contains_key(name) {
            self.turned_away = self.turned_away.saturating_add(1);
            return;
        }
        let minute = self.minute;
        let one = self.names.entry(name.clone()).or_insert_with(|| TrafficMinute::of(name.clone(), minute));
        one.requests = one.requests.saturating_add(1);
        let class = usize::from(line.status / 100);
        if let Some(count) = class.checked_sub(1).and_then(|class| one.statuses.get_mut(class)) {
            *count = count.saturating_add(1);
        }
        one.bytes_in = one.bytes_in.saturating_add(line.bytes_in);
        one.bytes_out = one.bytes_out.saturating_add(line.bytes_out);
        one.latency.add(line.took_ms);
        if line.status >= 500 {
            let excess = (one.errors.len() + 1).saturating_sub(TRAFFIC_ERRORS);
            one.errors.drain(..excess);
            one.errors.push(error(line, now));
        }
    }

    /// Notes which lines were told before this one.
    fn number(&mut self, id: u32, number: u64) {
        let at = self.processes.iter().position(|one| one.id == id);
        let before = at.map(|at| self.processes.remove(at));
        let known = before.filter(|one| number.saturating_add(ANOTHER) > one.last);
        let process = match known {
            None => Process { id, last: number, missing: 0 },
            Some(one) => {
                let skipped =
                    i64::try_from(number).unwrap_or(i64::MAX).saturating_sub_unsigned(one.last).saturating_sub(1);
                Process { id, last: one.last.max(number), missing: one.missing.saturating_add(skipped.max(-1)) }
            }
        };
        self.processes.push(process);
        let excess = self.processes.len().saturating_sub(PROCESSES);
        self.processes.drain(..excess);
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.lost() == 0
    }

    fn lost(&self) -> u64 {
        let missing = self.processes.iter().map(|one| u64::try_from(one.missing).unwrap_or(0));
        missing.fold(self.turned_away, u64::saturating_add)
    }

    /// What was counted.
    pub fn reading(&self) -> TrafficReading {
        TrafficReading { minutes: self.names.values().cloned().collect(), more: false, lost_lines: self.lost() }
    }
}

fn error(line: &Line<'_>, at_ms: Millis) -> TrafficError {
    TrafficError {
        at_ms,
        method: line.method(),
        path: line.path(),
        status: line.status,
        took_ms: line.took_ms,
        cause: line.cause(),
    }
}

/// As a list: a name is no key in JSON.
mod minutes {
    use std::collections::BTreeMap;

    use corpus_protocol::{RoutedName, TrafficMinute};
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(names: &BTreeMap<RoutedName, TrafficMinute>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(names.values())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<RoutedName, TrafficMinute>, D::Error> {
        let minutes = Vec::<TrafficMinute>::deserialize(from)?;
        Ok(minutes.into_iter().map(|minute| (minute.name.clone(), minute)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::tests::line;
    use super::*;
    use proptest::prelude::*;

    const NOW: Millis = 1_700_000_040_000;

    fn heard(lines: impl IntoIterator<Item = String>) -> Count {
        let mut count = Count::at(NOW + 7, Count::default());
        for text in lines {
            count.add(&Line::read(text.as_bytes()).unwrap(), NOW + 7);
        }
        count
    }

    #[test]
    fn requests_count_for_their_name() {
        let lines = [(200, "--"), (404, "--"), (503, "SC"), (-1, "CH")];
        let lines = lines
            .into_iter()
            .zip(0..)
            .map(|((status, cause), number)| line(number, "a.example.org", "/x", status, cause));
        let count = heard(lines.chain([line(4, "b.example.org", "/", 308, "LR"), line(5, "", "/", 400, "PR")]));
        let reading = count.reading();
        let [a, b] = reading.minutes.as_slice() else { panic!("{reading:?}") };
        assert_eq!((a.at_ms, a.requests, a.statuses, a.bytes_in, a.bytes_out), (NOW, 4, [0, 1, 0, 1, 1], 320, 4800));
        assert_eq!((a.errors.len(), a.errors[0].path.as_str(), a.errors[0].cause.as_str()), (1, "/x", "SC"));
        assert_eq!((b.requests, b.statuses, a.latency.requests()), (1, [0, 0, 1, 0, 0], 4));
        assert_eq!(reading.lost_lines, 0);
        let kept: Count = serde_json::from_str(&serde_json::to_string(&count).unwrap()).unwrap();
        assert_eq!(kept, count);
    }

    #[test]
    fn the_last_errors_are_told() {
        let count = heard((0..20).map(|number| line(number, "a.example.org", &format!("/{number}"), 500, "--")));
        let paths: Vec<_> = count.reading().minutes[0].errors.iter().map(|one| one.path.clone()).collect();
        assert_eq!(paths, ["/15", "/16", "/17", "/18", "/19"]);
    }

    #[test]
    fn names_have_an_end() {
        let names = u64::try_from(TRAFFIC_AT_ONCE).unwrap() + 3;
        let reading =
            heard((0..names).map(|number| line(number, &format!("n{number}.example.org"), "/", 200, "--"))).reading();
        assert_eq!((reading.minutes.len(), reading.lost_lines), (TRAFFIC_AT_ONCE, 3));
    }

    fn lost(numbers: &[u64]) -> u64 {
        heard(numbers.iter().map(|number| line(*number, "a.example.org", "/", 200, "--"))).reading().lost_lines
    }

    #[test]
    fn what_was_not_heard_is_known() {
        assert_eq!(lost(&[5, 6, 9]), 2);
        assert_eq!(lost(&[5, 7, 6, 8]), 0, "two in another order");
        assert_eq!(lost(&[5, 6, 6, 8]), 0, "two that have one number");
        assert_eq!(lost(&[900_000, 0, 1, 2]), 0, "another process");
        assert_eq!(lost(&[u64::MAX, 0]), 0);
        let before = heard([line(5, "a.example.org", "/", 200, "--"), line(8, "a.example.org", "/", 200, "--")]);
        let mut next = Count::at(NOW + 60_000, before);
        assert!(next.is_empty());
        next.add(&Line::read(line(10, "a.example.org", "/", 200, "--").as_bytes()).unwrap(), NOW + 60_000);
        assert_eq!((next.reading().lost_lines, next.minute), (1, NOW + 60_000));
    }

    #[test]
    fn processes_have_an_end() {
        let mut count = Count::default();
        (0..100).for_each(|id| count.number(id, 1));
        assert_eq!((count.processes.len(), count.processes[0].id), (PROCESSES, 84));
    }

    proptest! {
        #[test]
        fn whatever_the_order_nothing_is_lost(first in 0_u64..100, mut order in Just((1_u64..60).collect::<Vec<_>>()).prop_shuffle()) {
            for number in &mut order {
                *number += first;
            }
            order.insert(0, first);
            prop_assert_eq!(lost(&order), 0);
        }
    }
}
