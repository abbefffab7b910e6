//! Many jobs at once: half make guests, half destroy some that were there before.

use std::time::{Duration, Instant};

use corpus_api::guests::DestroyGuest;
use corpus_database::beside;
use corpus_domain::{JobId, JobState, NodeId};
use corpus_simulation::{Fleet, FleetError};
use futures::{StreamExt, TryStreamExt};

const LIMIT: Duration = Duration::from_mins(15);
/// How many ask at once.
const MEMBERS: usize = 16;

/// What became of them.
#[derive(Debug)]
pub(crate) struct Worked {
    pub(crate) jobs: usize,
    /// How long it took to ask for all of them.
    pub(crate) asked: Duration,
    /// From the first request to the end of the last job.
    pub(crate) elapsed: Duration,
    pub(crate) failed: usize,
    /// Each from its submission to its end, in seconds, sorted.
    pub(crate) waited: Vec<f64>,
    /// Each from its start to its end, in seconds, sorted.
    pub(crate) ran: Vec<f64>,
}

/// Asks for a new guest on a node, and for the end of an old one.
async fn ask(fleet: &Fleet, node: NodeId, number: usize, old: usize) -> Result<Vec<JobId>, FleetError> {
    let mut jobs = vec![fleet.request(format!("new{number}.sim.test").parse()?, Some(node)).await?.1];
    let guests = fleet.guests_on(node).await?;
    if let Some(old) = guests.iter().find(|guest| guest.name.as_str().starts_with(&format!("g{old}."))) {
        jobs.push(fleet.controller.call(&fleet.principal, DestroyGuest { guest: old.id }, None).await?.job);
    }
    Ok(jobs)
}

/// Asks for all jobs, and waits until they are over.
pub(crate) async fn run(fleet: &Fleet, nodes: &[NodeId], count: usize) -> Result<Worked, FleetError> {
    let began = Instant::now();
    let pairs = nodes.iter().cycle().take(count.div_ceil(2)).enumerate();
    // Each round over the nodes ends another of their guests.
    let asking = pairs.map(|(number, node)| beside(ask(fleet, *node, number, 1 + number / nodes.len())));
    let mut jobs: Vec<JobId> = futures::stream::iter(asking).buffer_unordered(MEMBERS).try_concat().await?;
    jobs.truncate(count);
    let asked = began.elapsed();
    let ended = fleet.ended(&jobs, LIMIT).await?;
    let elapsed = began.elapsed();
    let (mut waited, mut ran) = fleet.job_times(&jobs).await?;
    waited.sort_by(f64::total_cmp);
    ran.sort_by(f64::total_cmp);
    let failed = ended.iter().filter(|(_, state)| *state != JobState::Done).count();
    Ok(Worked { jobs: jobs.len(), asked, elapsed, failed, waited, ran })
}
