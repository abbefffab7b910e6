//! The runs of this server and their leases.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use corpus_domain::JobId;

use super::claim::Claimant;
use super::drive::Signals;
use super::writer::Lease;

/// One of them.
#[derive(Debug)]
pub(super) struct ActiveRun {
    pub lease: Lease,
    pub renewed: Instant,
    pub signals: Signals,
}

/// The runs of this server.
#[derive(Debug, Clone, Default)]
pub(super) struct Active(Arc<Mutex<HashMap<JobId, ActiveRun>>>);

impl Active {
    pub fn locked(&self) -> MutexGuard<'_, HashMap<JobId, ActiveRun>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An earlier run of the same job lost its lease to this one. Its lease is renewed as long as what this returns lives.
    pub fn add(&self, run: ActiveRun) -> Renewed {
        let renewed = Renewed { active: self.clone(), lease: run.lease };
        if let Some(earlier) = self.locked().insert(run.lease.job, run) {
            earlier.signals.halt.cancel();
        }
        renewed
    }

    fn remove(&self, lease: Lease) {
        let mut runs = self.locked();
        if runs.get(&lease.job).is_some_and(|run| run.lease == lease) {
            runs.remove(&lease.job);
        }
    }

    pub fn leases(&self) -> Vec<Lease> {
        self.locked().values().map(|run| run.lease).collect()
    }

    pub fn cancel(&self, job: JobId) {
        if let Some(run) = self.locked().get(&job) {
            run.signals.cancel.cancel();
        }
    }

    pub fn halt_all(&self) {
        self.locked().values().for_each(|run| run.signals.halt.cancel());
    }

    /// Takes note of the leases that were just renewed, out of those `asked` at `now`.
    pub fn renewed(&self, asked: &[Lease], ours: &[(Lease, bool)], now: Instant) {
        for run in self.locked().values_mut().filter(|run| asked.contains(&run.lease)) {
            match ours.iter().find(|(lease, _)| *lease == run.lease) {
                Some((_, cancel)) => {
                    run.renewed = now;
                    if *cancel {
                        run.signals.cancel.cancel();
                    }
                }
                None => run.signals.halt.cancel(),
            }
        }
    }

    /// Halts the runs whose lease others may have taken by now.
    pub fn halt_expired(&self, lease: Duration) {
        for run in self.locked().values().filter(|run| run.renewed.elapsed() >= lease) {
            tracing::warn!(job.id = %run.lease.job, "could not renew the lease of a job in time");
            run.signals.halt.cancel();
        }
    }
}

/// A run whose lease is renewed. One that ends by a defect lets go of it as any other does: else its job would be kept
/// from the other servers for ever, by a server that does nothing for it.
#[derive(Debug)]
#[must_use = "the lease runs out when it is dropped"]
pub(super) struct Renewed {
    active: Active,
    lease: Lease,
}

impl Drop for Renewed {
    fn drop(&mut self) {
        self.active.remove(self.lease);
    }
}

/// Renews the leases, and halts the runs that lost theirs.
pub(super) async fn keep_leases(claimant: Claimant, active: Active, every: Duration) {
    let mut beat = tokio::time::interval(every);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        let (asked, now) = (active.leases(), Instant::now());
        if asked.is_empty() {
            continue;
        }
        match tokio::time::timeout(claimant.lease / 2, claimant.renew(&asked)).await {
            Ok(Ok(ours)) => active.renewed(&asked, &ours, now),
            Ok(Err(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "can't renew the leases of jobs");
            }
            Err(_) => tracing::warn!("the database takes too long to renew the leases of jobs"),
        }
        active.halt_expired(claimant.lease);
    }
}
