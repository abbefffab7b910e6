//! The engine: takes jobs, keeps their leases, hands cancels on, and leaves in good order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::action::actions;
use super::active::{Active, ActiveRun, keep_leases};
use super::claim::{Claimant, Claimed};
use super::define::Registry;
use super::drive::{Runtime, Signals, drive};
use super::error::JobsError;
use super::handle::Jobs;
use super::listen::Notice;

/// The engine's times and sizes.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// This server, in leases.
    pub instance: Uuid,
    /// How long a lease lasts without being renewed.
    pub lease: Duration,
    /// How often leases are renewed.
    pub heartbeat: Duration,
    /// How often to look for work without being told.
    pub poll: Duration,
    /// How many jobs run here at once, shared between projects (see `queue`). Most wait for a host most of the time, some for as long as a
    /// deployment takes, and one that waits costs little: so there is room for many.
    pub capacity: usize,
    /// How long a step has to end by itself after a cancel, before it is dropped.
    pub cancel_grace: Duration,
    /// What goes wrong on purpose.
    #[cfg(any(test, feature = "testing"))]
    pub faults: Arc<super::testing::Faults>,
}

impl Default for EngineConfig {
    /// Another server has a dead one's jobs within 10 s.
    fn default() -> Self {
        Self {
            instance: Uuid::now_v7(),
            lease: Duration::from_secs(8),
            heartbeat: Duration::from_secs(2),
            poll: Duration::from_secs(1),
            capacity: 256,
            cancel_grace: Duration::from_secs(5),
            #[cfg(any(test, feature = "testing"))]
            faults: Arc::default(),
        }
    }
}

/// Runs jobs. When it is dropped without [`Engine::shutdown`] its jobs stop where they are and
/// are taken over when their leases run out.
#[derive(Debug)]
pub struct Engine {
    active: Active,
    stop: CancellationToken,
    end: CancellationToken,
    drain: CancellationToken,
    tasks: TaskTracker,
}

impl Engine {
    /// Begins to take and run jobs of the registry's kinds.
    pub fn start<S: Send + Sync + 'static>(
        jobs: Jobs,
        registry: &Registry<S>,
        services: Arc<S>,
        config: &EngineConfig,
    ) -> Self {
        let claimant = Claimant {
            db: jobs.db().clone(),
            owner: config.instance,
            lease: config.lease,
            kinds: registry.jobs.keys().map(|kind| kind.as_str().to_owned()).collect(),
        };
        let runtime = Arc::new(Runtime {
            jobs,
            services,
            actions: Arc::new(actions(registry)),
            around: registry.around.clone(),
            grace: config.cancel_grace,
            #[cfg(any(test, feature = "testing"))]
            faults: Arc::clone(&config.faults),
        });
        let engine = Self {
            active: Active::default(),
            stop: CancellationToken::new(),
            end: CancellationToken::new(),
            drain: CancellationToken::new(),
            tasks: TaskTracker::new(),
        };
        let taker = Taker {
            claimant: claimant.clone(),
            active: engine.active.clone(),
            drain: engine.drain.clone(),
            tasks: engine.tasks.clone(),
            capacity: config.capacity,
            runtime,
        };
        tokio::spawn(engine.stop.clone().run_until_cancelled_owned(taker.take_jobs(config.poll)));
        let beat = keep_leases(claimant, engine.active.clone(), config.heartbeat);
        tokio::spawn(engine.end.clone().run_until_cancelled_owned(beat));
        engine
    }

    /// Takes no more jobs, lets the steps that run end within `grace`, and gives the jobs to
    /// the other servers.
    pub async fn shutdown(self, grace: Duration) {
        self.stop.cancel();
        self.drain.cancel();
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait()).await.is_err() {
            self.active.halt_all();
            self.tasks.wait().await;
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.cancel();
        self.end.cancel();
        self.active.halt_all();
    }
}

/// Takes jobs and starts them.
struct Taker<S: Send + Sync + 'static> {
    claimant: Claimant,
    active: Active,
    drain: CancellationToken,
    tasks: TaskTracker,
    capacity: usize,
    runtime: Arc<Runtime<S>>,
}

impl<S: Send + Sync + 'static> Taker<S> {
    async fn take_jobs(self, every: Duration) {
        let mut notices = self.runtime.jobs.notices();
        let mut poll = tokio::time::interval(every);
        poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let mut look = tokio::select! {
                notice = notices.recv() => match notice {
                    Ok(notice) => self.notice(notice),
                    Err(RecvError::Lagged(_)) => true,
                    Err(RecvError::Closed) => return,
                },
                _ = poll.tick() => true,
            };
            while let Ok(notice) = notices.try_recv() {
                look |= self.notice(notice);
            }
            if look && let Err(error) = self.look().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "can't take jobs");
            }
        }
    }

    /// Tells whether to look for work.
    fn notice(&self, notice: Notice) -> bool {
        match notice {
            Notice::Cancel(job) => self.active.cancel(job),
            Notice::Feed(_) => {}
            Notice::Wake | Notice::Look => return true,
        }
        false
    }

    async fn look(&self) -> Result<(), JobsError> {
        let found = self.claimant.look().await?;
        if found.ownerless {
            for claimed in self.claimant.adopt(self.capacity).await? {
                self.start(claimed);
            }
        }
        if found.waiting {
            for claimed in self.claimant.claim(self.capacity).await? {
                self.start(claimed);
            }
        }
        Ok(())
    }

    fn start(&self, claimed: Claimed) {
        let signals =
            Signals { cancel: CancellationToken::new(), halt: CancellationToken::new(), drain: self.drain.clone() };
        if claimed.cancel_requested_at.is_some() {
            signals.cancel.cancel();
        }
        let lease = claimed.lease;
        let renewed = self.active.add(ActiveRun { lease, renewed: Instant::now(), signals: signals.clone() });
        let (claimant, runtime) = (self.claimant.clone(), Arc::clone(&self.runtime));
        self.tasks.spawn(async move {
            let drain = signals.drain.clone();
            drive(&runtime, claimed, signals).await;
            drop(renewed);
            if drain.is_cancelled()
                && let Err(error) = claimant.release(&[lease]).await
            {
                tracing::warn!(job.id = %lease.job, error = &error as &dyn std::error::Error, "can't give back the lease of a job");
            }
        });
    }
}
