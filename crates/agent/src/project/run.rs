//! A runner: carries one deployment from its order to its end, whatever happens on the way.
//!
//! A runner that finds a journal which began and has no end is the successor of one that was
//! killed, by hand or with its guest: it rolls back, unless the deployment is live already, and
//! then finishes. Nothing is changed before the archive is whole; the deployment is live once
//! `live.json` names it, and not before all checks passed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use corpus_domain::{CommitId, DeploymentId, DeploymentState, Outcome, Phase};
use corpus_protocol::{DeploymentEvent, ErrorKind, Event, Fault, Live, ProjectPlan};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::files;
use crate::host::Host;
use crate::project::configuration::Configuration;
use crate::project::journal::Journal;
use crate::project::layout::Layout;
use crate::project::leftovers;
use crate::project::order::{self, Ordered};
use crate::project::queue::{self, Turn};
use crate::project::redact::Redactor;
use crate::project::saved;
use crate::task::{Cancel, Task};

const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Bytes kept free for what must be written when the disk is full.
const RESERVE: usize = 1 << 20;

/// What a deployment aims at, decided when its turn came.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The commit to go live.
    pub commit: Option<CommitId>,
    /// The pillar's commit.
    pub pillar: Option<CommitId>,
    /// What was live before.
    pub previous: Option<Live>,
    /// The guest's run in which it began.
    pub boot: String,
}

/// A deployment while it runs.
pub struct Run<'a> {
    /// Where the project is.
    pub layout: &'a Layout,
    /// The guest.
    pub host: &'a Host,
    /// What the project should be.
    pub plan: ProjectPlan,
    /// The order.
    pub ordered: Ordered,
    /// What happened.
    pub journal: Mutex<Journal>,
    /// Set when somebody ends it.
    pub cancel: Arc<Cancel>,
    /// What it aims at.
    pub target: Target,
    /// The configuration of the trees as they are.
    pub configuration: Configuration,
    /// How it ends, once that is known.
    pub ending: Option<DeploymentState>,
}

/// Asks that a deployment ends.
pub fn ask_to_end(layout: &Layout, id: DeploymentId) -> Result<(), Failure> {
    let path = layout.deployment(id).join("cancel.json");
    with_reserve(layout, id, || saved::write_first(&path, &saved::now())).map(drop)
}

/// Writes what a deployment that runs must be told. When the disk is full, the room that it keeps for its end is given for it.
pub fn with_reserve<T>(
    layout: &Layout,
    id: DeploymentId,
    write: impl Fn() -> Result<T, Failure>,
) -> Result<T, Failure> {
    match write() {
        Err(failure) if failure.kind() == ErrorKind::NoSpace => {
            files::remove(&reserve_path(layout, id))?;
            write()
        }
        written => written,
    }
}

fn reserve_path(layout: &Layout, id: DeploymentId) -> PathBuf {
    layout.deployment(id).join("reserve")
}

/// Runs a deployment to its end; returns at once when another process does that or it is over.
pub fn run(layout: &Layout, id: DeploymentId, host: &Host) -> Result<(), Failure> {
    let missing = || Failure::Missing(format!("there is no deployment {id} of {} here", layout.project()));
    let ordered: Ordered = saved::read(&layout.order(id))?.ok_or_else(missing)?;
    let Some(_runner) = order::become_runner(layout, id)? else { return Ok(()) };
    if order::is_over(layout, id) {
        return Ok(());
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    leftovers::become_reaper();
    leftovers::end_leftovers(&id.to_string());
    let journal = Journal::open(layout, id)?;
    if let Some(report) = &journal.progress().report {
        return saved::write(&layout.report(id), report);
    }
    let mut run = Run {
        layout,
        host,
        plan: saved::plan(layout)?,
        ordered,
        journal: Mutex::new(journal),
        cancel: Arc::default(),
        target: saved::read(&layout.deployment(id).join("target.json"))?.unwrap_or_default(),
        configuration: Configuration::default(),
        ending: None,
    };
    let watched = Watched::cancel_file(layout, id, &run.cancel);
    let ended = run.carry_out();
    drop(watched);
    ended
}

impl Run<'_> {
    fn carry_out(&mut self) -> Result<(), Failure> {
        let cancel = Arc::clone(&self.cancel);
        let tell = &mut |what| self.journal().tell(DeploymentEvent::Waiting { what });
        match queue::wait(self.layout, &self.ordered, &|| cancel.is_set(), tell)? {
            Turn::Mine(_turn) => {
                let ended = self.in_turn();
                queue::done(self.layout);
                ended
            }
            Turn::Superseded(by) => {
                let text = format!("superseded by deployment {} of {}, which came later", by.order.id, by.order.by);
                self.journal().note(text);
                self.end(DeploymentState::Superseded, None)
            }
            Turn::Cancelled => {
                let fault = self.fault(Phase::Archive, "cancelled while it waited; nothing was changed");
                self.end(DeploymentState::RolledBack, Some(fault))
            }
        }
    }

    fn in_turn(&mut self) -> Result<(), Failure> {
        self.hide_secrets();
        let found = self.journal().progress().begun.is_some();
        let reached = match found {
            false => self.begin().and_then(|()| self.forward()),
            true if self.was_prepared() => self.prepare_and_commit(),
            true => Err(self.interrupted()),
        };
        let (state, fault) = match reached {
            Ok(()) => (DeploymentState::Live, None),
            Err(_) if self.is_live() => (DeploymentState::Live, None),
            Err(fault) => (self.back(&fault)?, Some(fault)),
        };
        self.tell_everyone(state, fault.as_ref());
        self.end(state, fault)
    }

    /// Why the runner before this one did not come to an end.
    fn interrupted(&mut self) -> Fault {
        let (open, began) = {
            let journal = self.journal();
            let progress = journal.progress();
            (progress.open, progress.phases.last().and_then(|report| report.began_ms))
        };
        if let Some(phase) = open {
            let elapsed_ms = began.map_or(0, |began| saved::now().saturating_sub(began));
            self.journal().tell(DeploymentEvent::PhaseEnded { phase, outcome: Outcome::Failed, elapsed_ms });
        }
        if let Ok(Some(fault)) = saved::read(&self.fault_path()) {
            return fault;
        }
        let last = self.journal().progress().phases.last().map(|report| report.phase);
        let phase = open.or(last).unwrap_or(Phase::Archive);
        let who = if self.target.boot == boot() { "the agent was killed" } else { "the guest was restarted" };
        self.fault(phase, format!("{who} in the middle of {phase}"))
    }

    /// Whether this deployment went live.
    pub fn is_live(&self) -> bool {
        let live = saved::read::<Live>(&self.layout.live()).ok().flatten();
        live.is_some_and(|live| live.deployment == self.id())
    }

    /// Its id.
    pub fn id(&self) -> DeploymentId {
        self.ordered.order.id
    }

    /// The journal; nobody panics while holding it.
    pub fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A fault of Corpus's own.
    pub fn fault(&self, phase: Phase, message: impl Into<String>) -> Fault {
        Fault { phase, recipe: None, message: message.into(), line: None }
    }

    /// Where the fault is kept, for a successor.
    pub fn fault_path(&self) -> std::path::PathBuf {
        self.layout.deployment(self.id()).join("fault.json")
    }

    /// Keeps room for the end.
    pub fn reserve(&self) {
        let _ = std::fs::write(reserve_path(self.layout, self.id()), vec![1; RESERVE]);
    }

    /// The end is written, for which room was kept.
    pub fn use_reserve(&self) {
        let _ = files::remove(&reserve_path(self.layout, self.id()));
    }

    /// Does something of Corpus's own; its lines go to the journal.
    pub fn with_task<T>(&self, cancel: &Cancel, act: impl FnOnce(&Task<'_>) -> T) -> T {
        let events = |event| {
            if let Event::Log { stream, text } = event {
                self.journal().line(stream, &text);
            }
        };
        act(&Task { host: self.host, cancel, events: &events })
    }

    /// Secrets of the configuration that was, and that is, are blacked out from now on.
    pub fn hide_secrets(&mut self) {
        let live = Configuration::live(self.layout).ok().flatten();
        let mut secrets = live.as_ref().map(Configuration::secrets).unwrap_or_default();
        let now = Configuration::load(self.layout, &self.plan).ok().or(live);
        self.configuration = now.unwrap_or_else(|| Configuration::before_values(self.layout, &self.plan));
        secrets.extend(self.configuration.secrets());
        self.hide(secrets);
    }

    /// These are blacked out from now on, and passwords that recipes had made.
    pub fn hide(&self, mut secrets: Vec<String>) {
        let made: BTreeMap<String, String> = saved::read(&self.layout.passwords()).ok().flatten().unwrap_or_default();
        secrets.extend(made.into_values());
        self.journal().hide(Redactor::new(secrets));
    }
}

/// The guest's run: another one after each start of it, container or not.
pub fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let stat = std::fs::read_to_string("/proc/1/stat").unwrap_or_default();
    let started = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)).unwrap_or_default();
    format!("{} {started}", id.trim())
}

/// Looks for a request to end the deployment.
struct Watched {
    over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Watched {
    fn cancel_file(layout: &Layout, id: DeploymentId, cancel: &Arc<Cancel>) -> Self {
        let path = layout.deployment(id).join("cancel.json");
        let over = Arc::new(AtomicBool::new(false));
        let (ended, cancel) = (Arc::clone(&over), Arc::clone(cancel));
        let thread = thread::spawn(move || {
            while !ended.load(Ordering::Acquire) {
                if path.exists() {
                    cancel.set();
                    return;
                }
                thread::sleep(POLL_INTERVAL);
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
