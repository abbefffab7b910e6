//! The queue's decision, over random queues.

use std::collections::HashSet;

use corpus_domain::JobId;
use proptest::prelude::*;
use uuid::Uuid;

use crate::jobs::queue::{Entry, Verdict, decide};
use crate::jobs::{Lock, LockMode};

fn lock() -> impl Strategy<Value = Lock> {
    (0..4u8, any::<bool>())
        .prop_map(|(thing, shared)| if shared { Lock::shared("thing", thing) } else { Lock::exclusive("thing", thing) })
}

fn queue() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec(prop::collection::vec(lock(), 0..3), 0..10).prop_map(|jobs| {
        let entry = |(number, locks): (usize, Vec<Lock>)| {
            let mut seen = HashSet::new();
            let locks = locks.into_iter().filter(|lock| seen.insert(lock.resource.clone())).collect();
            Entry { job: JobId(Uuid::from_u128(number as u128 + 1)), holds: false, locks }
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
