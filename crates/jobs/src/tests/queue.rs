//! The queue's decision, over random queues.

use std::collections::{HashMap, HashSet, VecDeque};

use corpus_domain::{JobId, ProjectId};
use proptest::prelude::*;
use uuid::Uuid;

use crate::queue::{Entry, Verdict, decide, share};
use crate::{Lock, LockMode};

fn lock() -> impl Strategy<Value = Lock> {
    (0..4u8, any::<bool>())
        .prop_map(|(thing, shared)| if shared { Lock::shared("thing", thing) } else { Lock::exclusive("thing", thing) })
}

fn queue() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec(prop::collection::vec(lock(), 0..3), 0..10).prop_map(|jobs| {
        let entry = |(number, locks): (usize, Vec<Lock>)| {
            let mut seen = HashSet::new();
            let locks = locks.into_iter().filter(|lock| seen.insert(lock.resource.clone())).collect();
            let job = JobId(Uuid::from_u128(number as u128 + 1));
            Entry { job, project: None, holds: false, runs_here: false, locks }
        };
        jobs.into_iter().enumerate().map(entry).collect()
    })
}

fn conflict(a: &Entry, b: &Entry) -> bool {
    let alone = |a: &Lock, b: &Lock| a.mode == LockMode::Exclusive || b.mode == LockMode::Exclusive;
    a.locks.iter().any(|mine| b.locks.iter().any(|its| mine.resource == its.resource && alone(mine, its)))
}

/// Lets those that may run hold, and tells which.
fn run(queue: &mut [Entry]) -> Vec<JobId> {
    let verdicts = decide(queue);
    let runs: Vec<JobId> =
        verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Run).map(|(job, _)| *job).collect();
    queue.iter_mut().filter(|entry| runs.contains(&entry.job)).for_each(|entry| entry.holds = true);
    runs
}

proptest! {
    /// Ending jobs in any order: conflicting ones never hold together, conflicting ones begin
    /// in the order of the queue, something always runs, and all end.
    #[test]
    fn all_run_in_order_and_never_together(mut queue in queue(), picks in prop::collection::vec(any::<prop::sample::Index>(), 10)) {
        let all = queue.clone();
        let mut begun: Vec<JobId> = Vec::new();
        for pick in picks {
            let runs = run(&mut queue);
            for job in &runs {
                let me = all.iter().find(|entry| entry.job == *job).unwrap();
                for earlier in all.iter().take_while(|entry| entry.job != *job).filter(|earlier| conflict(earlier, me)) {
                    prop_assert!(begun.contains(&earlier.job), "{me:?} overtook {earlier:?}");
                }
            }
            begun.extend(runs);
            let holding: Vec<Entry> = queue.iter().filter(|entry| entry.holds).cloned().collect();
            for (index, one) in holding.iter().enumerate() {
                prop_assert!(!holding.iter().skip(index + 1).any(|other| conflict(one, other)));
            }
            if queue.is_empty() {
                break;
            }
            prop_assert!(!holding.is_empty(), "nothing runs");
            let ends = pick.get(&holding).job;
            queue.retain(|entry| entry.job != ends);
        }
        prop_assert!(queue.is_empty());
    }

    /// A job waits for one that really is in its way.
    #[test]
    fn the_blocker_is_in_the_way(queue in queue()) {
        for (job, verdict) in decide(&queue) {
            if let Verdict::Wait(blocker) = verdict {
                let find = |job| queue.iter().find(|entry| entry.job == job).unwrap();
                prop_assert!(blocker != job && conflict(find(job), find(blocker)));
            }
        }
    }
}

/// A server of so many places. Each project submits at its times, each of its jobs takes its time.
struct Places {
    capacity: usize,
    running: Vec<(JobId, Option<ProjectId>, u64)>,
    waiting: VecDeque<(JobId, Option<ProjectId>, u64)>,
    submitted: u128,
}

impl Places {
    fn new(capacity: usize) -> Self {
        Self { capacity, running: Vec::new(), waiting: VecDeque::new(), submitted: 0 }
    }

    fn submit(&mut self, project: u128, count: usize, takes: u64) {
        for _ in 0..count {
            self.submitted += 1;
            let whose = (project > 0).then(|| ProjectId(Uuid::from_u128(project)));
            self.waiting.push_back((JobId(Uuid::from_u128(self.submitted)), whose, takes));
        }
    }

    fn has(&self, project: u128) -> usize {
        let whose = (project > 0).then(|| ProjectId(Uuid::from_u128(project)));
        self.running.iter().filter(|job| job.1 == whose).count()
    }

    /// One moment: what has had its time ends, what gets a place begins.
    fn pass(&mut self) -> usize {
        self.running.retain_mut(|(_, _, left)| {
            *left -= 1;
            *left > 0
        });
        let mut running: HashMap<_, usize> = HashMap::new();
        self.running.iter().for_each(|(_, project, _)| *running.entry(*project).or_default() += 1);
        let ready: Vec<_> = self.waiting.iter().map(|(job, project, _)| (*job, *project)).collect();
        let begin = share(self.capacity, running, &ready);
        for job in &begin {
            let at = self.waiting.iter().position(|waiting| waiting.0 == *job).unwrap();
            self.running.push(self.waiting.remove(at).unwrap());
        }
        assert!(self.running.len() <= self.capacity);
        begin.len()
    }
}

#[test]
fn a_project_that_floods_delays_no_other() {
    let mut places = Places::new(256);
    places.submit(1, 1_000, 1_000);
    places.pass();
    assert_eq!(places.has(1), 128, "half of them, with nobody else there");
    for _ in 0..20 {
        for project in [2, 3, 0] {
            places.submit(project, 1, 2);
        }
        places.pass();
        assert_eq!((places.has(2), places.has(3), places.has(0)), (1, 1, 1), "each begins at once");
        assert_eq!(places.has(1), 128);
        places.pass();
        places.pass();
    }
    // One who joins in gets half of what is left, and a third one still begins at once.
    places.submit(2, 1_000, 1_000);
    places.pass();
    assert_eq!(places.has(2), 64);
    places.submit(3, 1, 1);
    places.pass();
    assert_eq!(places.has(3), 1);
}

#[test]
fn who_has_the_fewest_is_next_and_all_come_to_their_turn() {
    let mut places = Places::new(8);
    for project in 1..=3 {
        places.submit(project, 50, 3);
    }
    places.pass();
    assert_eq!((places.has(1), places.has(2), places.has(3)), (2, 2, 2), "not in the order of the queue");
    let moments = (0..1_000).take_while(|_| {
        !(places.waiting.is_empty() && places.running.is_empty()) && {
            places.pass();
            true
        }
    });
    assert!(moments.count() < 100, "150 jobs of 3 moments on 6 places");
    let mut one = Places::new(1);
    one.submit(1, 2, 1);
    assert_eq!((one.pass(), one.pass(), one.pass()), (1, 1, 0), "the only place is used");
}

proptest! {
    #[test]
    fn no_place_is_promised_twice_and_none_begins_out_of_its_projects_order(
        capacity in 1_usize..40,
        jobs in prop::collection::vec(0..5_u128, 0..80),
        before in prop::collection::hash_map(0..5_u128, 0_usize..10, 0..5),
    ) {
        let whose = |project: u128| (project > 0).then(|| ProjectId(Uuid::from_u128(project)));
        let ready: Vec<_> = jobs.iter().enumerate().map(|(n, project)| (JobId(Uuid::from_u128(n as u128)), whose(*project))).collect();
        let running: HashMap<_, _> = before.iter().map(|(project, count)| (whose(*project), *count)).collect();
        let busy: usize = running.values().sum();
        let begin = share(capacity, running.clone(), &ready);
        prop_assert!(begin.is_empty() || busy + begin.len() <= capacity);
        let chosen: HashSet<_> = begin.iter().copied().collect();
        prop_assert_eq!(chosen.len(), begin.len());
        for project in 0..5 {
            let own: Vec<_> = ready.iter().filter(|(_, of)| *of == whose(project)).map(|(job, _)| chosen.contains(job)).collect();
            prop_assert!(own.is_sorted_by(|a, b| a >= b), "the earlier ones first");
            let has = running.get(&whose(project)).copied().unwrap_or_default();
            prop_assert!(has + own.iter().filter(|begins| **begins).count() <= capacity.div_ceil(2).max(has));
        }
    }
}
