//! The phases of a run, in order, each within its time limit.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use corpus_domain::{CommitId, Environment, Outcome, Phase, Trigger};
use corpus_protocol::{DeploymentEvent, Fault, Live, Source, Turn};

use crate::failure::{At, Failure};
use crate::files;
use crate::project::archive::{self, Archive};
use crate::project::configuration::{Access, Configuration};
use crate::project::permissions::{self, Rule};
use crate::project::recipe::{Around, Recipes};
use crate::project::release::Checkout;
use crate::project::rotation::Retention;
use crate::project::run::{Run, Target, boot};
use crate::project::steps::{Span, Stop};
use crate::project::{account, ensure, git, restore, saved};
use crate::task::Task;

/// How long the storage may take to grow, and no longer than half of what the phase may take.
const GROWTH: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// What is live may not be able to archive itself, and must not stand in the way of what mends that.
const WITHOUT_RECIPE: &str = "it is what is live that failed to archive itself; to go on without that, with its code and pillar \
                              kept all the same: git push -o plain-archive, or on the page of this deployment";
/// What changes something, so that there must be a way back.
const CHANGING: [Phase; 4] = [Phase::Sync, Phase::ReleaseSync, Phase::Install, Phase::Fixperms];

impl Run<'_> {
    /// Whether the order wants a phase.
    pub fn wants(&self, phase: Phase) -> bool {
        let only = &self.ordered.order.only;
        only.is_empty() || only.contains(&phase)
    }

    fn changes(&self) -> bool {
        CHANGING.iter().any(|phase| self.wants(*phase))
    }

    /// Decides what goes live, and says so.
    pub fn begin(&mut self) -> Result<(), Fault> {
        let aimed = self.aim();
        let failed = aimed.as_ref().err().map(ToString::to_string);
        if let Ok(target) = aimed {
            self.target = target;
        }
        let path = self.layout.deployment(self.id()).join("target.json");
        let kept = saved::write(&path, &self.target);
        let previous = self.target.previous.as_ref().and_then(|live| live.commit.clone());
        let commits =
            self.target.commit.as_ref().map(|commit| {
                self.with_task(&self.cancel, |task| self.code().commits(task, previous.as_ref(), commit))
            });
        self.journal().tell(DeploymentEvent::Begun {
            commit: self.target.commit.clone(),
            pillar: self.target.pillar.clone(),
            previous,
            commits: commits.and_then(Result::ok).unwrap_or_default(),
            plain_archive: self.ordered.order.plain_archive,
        });
        let stopped = failed.or_else(|| kept.err().map(|failure| failure.to_string()));
        stopped.map_or(Ok(()), |message| Err(self.fault(Phase::Archive, message)))
    }

    fn aim(&self) -> Result<Target, Failure> {
        let previous: Option<Live> = saved::read(&self.layout.live())?;
        let (id, order) = (self.id(), &self.ordered.order);
        self.with_task(&self.cancel, |task| {
            git::begin(self.layout, id, task)?;
            let branches = self.configuration.branches()?;
            let of_live = |of: fn(&Live) -> Option<_>| previous.as_ref().and_then(of);
            let mut target = Target {
                commit: of_live(|live| live.commit.clone()),
                pillar: of_live(|live| live.pillar.clone()),
                previous: previous.clone(),
                boot: boot(),
            };
            if !self.wants(Phase::ReleaseSync) {
                return Ok(target);
            }
            target.pillar = self.secrets().head(task, &branches)?;
            match &order.source {
                Source::Head => {
                    let missing = || {
                        Failure::Missing(format!(
                            "nothing was pushed yet: there is no branch {}",
                            branches.join(" or ")
                        ))
                    };
                    target.commit = Some(self.code().head(task, &branches)?.ok_or_else(missing)?);
                }
                Source::Commit { commit } => {
                    let missing = || Failure::Missing(format!("there is no commit {commit} in the repository"));
                    target.commit = Some(self.code().commit(task, commit.as_str())?.ok_or_else(missing)?);
                }
                Source::Release { commit, pillar } => {
                    target.commit = commit.as_ref().map(|commit| brought(&self.code(), commit, task)).transpose()?;
                    target.pillar = pillar.as_ref().map(|pillar| brought(&self.secrets(), pillar, task)).transpose()?;
                }
                Source::Archive { archive } => {
                    let missing = || Failure::Missing(format!("there is no archive {archive}"));
                    let kept = Archive::of(self.layout, *archive).meta()?.ok_or_else(missing)?.live;
                    target.commit = kept.as_ref().and_then(|live| live.commit.clone());
                    target.pillar = kept.and_then(|live| live.pillar);
                }
            }
            Ok(target)
        })
    }

    /// Runs the phases up to live.
    pub fn forward(&mut self) -> Result<(), Fault> {
        self.reserve();
        if self.changes() {
            self.prove_before();
        }
        if self.wants(Phase::Archive) {
            self.phase(Phase::Archive, Self::archive)?;
        } else if self.changes() {
            let made = self.with_task(&self.cancel, |task| self.way_back(task));
            made.map_err(|failure| self.fault(Phase::Archive, Stop::from(failure).message))?;
        }
        if self.changes() {
            self.leave_balance(Turn::Forward).map_err(|stop| self.fault(Phase::Archive, stop.message))?;
        }
        if self.wants(Phase::Sync) {
            self.phase(Phase::Sync, |run, _| run.sync())?;
        }
        if self.wants(Phase::ReleaseSync) {
            self.phase(Phase::ReleaseSync, |run, _| run.release_sync())?;
        } else {
            let taken = self.take_configuration();
            taken.map_err(|failure| self.fault(Phase::ReleaseSync, Stop::from(failure).message))?;
        }
        if self.wants(Phase::Install) {
            self.phase(Phase::Install, Self::install)?;
        }
        if self.wants(Phase::Fixperms) {
            self.phase(Phase::Fixperms, Self::fixperms)?;
        }
        self.prepare_and_commit()
    }

    /// The end of the way forward, which a runner that was killed while it was prepared begins anew.
    pub fn prepare_and_commit(&mut self) -> Result<(), Fault> {
        if self.wants(Phase::Prove) && !self.is_decided() {
            let proven = self.phase(Phase::Prove, Self::prove);
            // It may have been decided meanwhile, when a runner before this one was prepared.
            if !self.is_decided() {
                proven?;
            }
        }
        if self.is_two_phase() {
            self.phase(Phase::Followers, Self::await_decision)?;
        }
        self.commit().map_err(|failure| self.fault(Phase::Prove, Stop::from(failure).message))
    }

    /// Runs a phase; its fault is that of the deployment.
    pub fn phase(
        &mut self,
        phase: Phase,
        act: impl FnOnce(&mut Self, &Span) -> Result<Outcome, Stop>,
    ) -> Result<(), Fault> {
        let limit = self.configuration.limit(phase);
        let began = Instant::now();
        self.journal().tell(DeploymentEvent::PhaseBegun { phase });
        let span = Span { phase, limit, deadline: began + limit };
        let mut ended = act(self, &span);
        if ended.is_ok() && self.cancel.is_set() {
            ended = Err(Stop::from(Failure::Cancelled));
        } else if ended.is_ok() && Instant::now() > span.deadline && phase != Phase::Rollback {
            ended = Err(Stop::new(format!("not done within {} s", limit.as_secs())));
        }
        let outcome = *ended.as_ref().unwrap_or(&Outcome::Failed);
        let elapsed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.journal().tell(DeploymentEvent::PhaseEnded { phase, outcome, elapsed_ms });
        ended.map(drop).map_err(|stop| Fault { phase, recipe: stop.recipe, message: stop.message, line: stop.line })
    }

    fn archive(&mut self, span: &Span) -> Result<Outcome, Stop> {
        if self.ordered.order.plain_archive {
            self.keep(span)?;
            self.journal().note("the recipe that what is live has for this does not run, as was wanted");
            return Ok(Outcome::Done);
        }
        let recipes = self.found()?;
        let archived = self.archive_by(span, &recipes);
        if archived.as_ref().is_err_and(|stop| stop.recipe.is_some()) && !self.cancel.is_set() {
            self.journal().note(WITHOUT_RECIPE);
        }
        archived.map(|()| Outcome::Done)
    }

    /// What was stopped for the copy is started again, whatever became of it.
    fn archive_by(&mut self, span: &Span, recipes: &Recipes) -> Result<(), Stop> {
        let before = self.all(span, recipes.around_archive(Around::Before));
        let kept = before.and_then(|_| self.keep(span));
        let archived = kept.and_then(|()| self.recipes(span, recipes, Phase::Archive));
        let after = self.all(span, recipes.around_archive(Around::After));
        archived.and(after).map(drop)
    }

    /// The recipes that the tree has for this environment.
    pub fn found(&self) -> Result<Recipes, Failure> {
        Recipes::find(&self.layout.tree(), self.plan.environment)
    }

    /// Keeps what is live.
    fn keep(&mut self, span: &Span) -> Result<(), Stop> {
        let in_use = self.archives_in_use();
        let (kept, live) = (self.configuration.archives()?, self.target.previous.as_ref());
        let rule = Retention { kept, live, in_use: &in_use, failed_tree: None };
        if self.plan.storage_grows {
            self.wait_for_room(span);
            // No old archive goes for what is given up.
            if self.cancel.is_set() {
                return Err(Stop::from(Failure::Cancelled));
            }
        }
        self.with_task(&self.cancel, |task| {
            archive::ensure_room(self.layout, &rule, task)?;
            self.way_back(task)
        })?;
        self.warn_of_way_back(span)
    }

    /// Who gives the guest more storage hears that it is too small, and has a while for it.
    fn wait_for_room(&self, span: &Span) {
        let (home, wanted) = (self.layout.home(), archive::wanted(self.layout));
        let short = || files::require_room(&home, wanted).err();
        let Some(Failure::NoSpace { free, .. }) = short() else { return };
        self.journal().tell(DeploymentEvent::NeedsRoom { bytes: wanted.0.saturating_sub(free.0) });
        let began = Instant::now();
        let until = began + GROWTH.min(span.limit / 2);
        while short().is_some() && Instant::now() < until && !self.cancel.is_set() {
            thread::sleep(POLL_INTERVAL);
        }
        self.journal().note(match short() {
            None => "there is room now".to_owned(),
            Some(short) => format!("{short}; the storage did not grow for {} s", began.elapsed().as_secs()),
        });
    }

    /// Its own archive, and the one that comes back.
    fn archives_in_use(&self) -> Vec<corpus_domain::DeploymentId> {
        let mut in_use = vec![self.id()];
        if let Source::Archive { archive } = self.ordered.order.source {
            in_use.push(archive);
        }
        in_use
    }

    /// Keeps what the deployment may have to go back to.
    fn way_back(&self, task: &Task<'_>) -> Result<(), Failure> {
        let made = Archive::of(self.layout, self.id()).make(self.layout, task, self.target.previous.clone())?;
        task.note(format!("{:.1} MB of code and pillar are kept", bytes_in_mb(made.bytes)));
        Ok(())
    }

    fn sync(&mut self) -> Result<Outcome, Stop> {
        self.with_task(&self.cancel, |task| ensure::layout(self.layout, &self.plan, task))?;
        Ok(Outcome::Done)
    }

    fn release_sync(&mut self) -> Result<Outcome, Stop> {
        self.with_task(&self.cancel, |task| {
            self.keep_local_changes(task)?;
            if let Source::Archive { archive } = &self.ordered.order.source {
                restore::bring_back(self.layout, self.id(), *archive, task)?;
                self.code().forget(task, self.target.commit.as_ref())?;
                return self.secrets().forget(task, self.target.pillar.as_ref());
            }
            if let Some(commit) = &self.target.commit {
                self.code().check_out(task, commit)?;
                task.note(format!("the tree is at {}", commit.short()));
            }
            if let Some(pillar) = &self.target.pillar {
                self.secrets().check_out(task, pillar)?;
                task.note(format!("the pillar is at {}", pillar.short()));
            }
            Ok(())
        })?;
        self.take_configuration()?;
        self.warn_of_tree();
        Ok(Outcome::Done)
    }

    /// In dev the tree is edited in place: what was not committed is put aside, not lost.
    fn keep_local_changes(&self, task: &Task<'_>) -> Result<(), Failure> {
        let live = self.target.previous.as_ref().and_then(|live| live.commit.as_ref());
        let Some(commit) = live.filter(|_| self.plan.environment == Environment::Dev) else { return Ok(()) };
        let patch = self.code().local_changes(task, commit)?;
        if !patch.is_empty() {
            let kept = self.layout.deployment(self.id()).join("local.patch");
            files::write(&kept, &patch, 0o600)?;
            task.note(format!("changes in the tree that were not committed are kept in {}", kept.display()));
        }
        Ok(())
    }

    /// From here on the configuration is that of the trees as they are now.
    fn take_configuration(&mut self) -> Result<(), Failure> {
        self.render_values()?;
        self.configuration = Configuration::load(self.layout, &self.plan)?;
        self.hide(self.configuration.secrets());
        Ok(())
    }

    fn install(&mut self, span: &Span) -> Result<Outcome, Stop> {
        let recipes = self.found()?;
        for ignored in &recipes.ignored {
            self.journal().note(format!("ignored: {ignored}"));
        }
        if let Source::Archive { .. } = self.ordered.order.source {
            // The data hooks of what comes back.
            self.recipes(span, &recipes, Phase::Rollback)?;
        }
        self.recipes(span, &recipes, Phase::Install)?;
        // What is only run when this is live, or has to go, is not found to be broken then. It may ask for what was installed.
        self.render(span, recipes.later())?;
        if self.ordered.order.trigger == Trigger::Drill {
            return Err(Stop::new("drill: broken on purpose at the end of install"));
        }
        Ok(Outcome::Done)
    }

    fn fixperms(&mut self, span: &Span) -> Result<Outcome, Stop> {
        if !self.recipes(span, &self.found()?, Phase::Fixperms)? {
            self.fix_permissions()?;
        }
        Ok(Outcome::Done)
    }

    /// The tree belongs to the project's account, and is open to those that the configuration names; the pillar can be read by it, and by nobody else.
    fn fix_permissions(&self) -> Result<(), Failure> {
        let (user, group) = account::ids(&self.configuration.user()?)?;
        let Access { read, write } = self.configuration.access()?;
        let named = |names: Vec<String>| names.iter().map(|name| account::ids(name).map(|(user, _)| user)).collect();
        let (readers, writers): (Result<Vec<u32>, Failure>, Result<Vec<u32>, Failure>) = (named(read), named(write));
        let (readers, writers) = (readers?, writers?);
        permissions::apply(&self.layout.tree(), &Rule { user, group, add: 0o755, take: 0o022, readers, writers })?;
        let (readers, writers) = (Vec::new(), Vec::new());
        permissions::apply(&self.layout.pillar(), &Rule { user: 0, group, add: 0o750, take: 0o027, readers, writers })?;
        Ok(())
    }

    /// From here on this deployment is what is live.
    fn commit(&mut self) -> Result<(), Failure> {
        self.use_reserve();
        if self.changes() {
            saved::write(&self.layout.configuration(), self.configuration.values())?;
        }
        if !self.wants(Phase::ReleaseSync) {
            return Ok(());
        }
        let Target { commit, pillar, .. } = self.target.clone();
        self.with_task(&self.cancel, |task| {
            commit.iter().try_for_each(|commit| self.code().set_live(task, commit))?;
            pillar.iter().try_for_each(|commit| self.secrets().set_live(task, commit))
        })?;
        saved::write(&self.layout.live(), &Live { deployment: self.id(), commit, pillar, since_ms: saved::now() })
    }

    /// The code's repository and tree.
    pub fn code(&self) -> Checkout {
        Checkout { repository: self.layout.repository(), tree: self.layout.tree() }
    }

    /// The pillar's repository and tree.
    pub fn secrets(&self) -> Checkout {
        Checkout { repository: self.layout.pillar_repository(), tree: self.layout.pillar() }
    }
}

/// The commit is here.
fn brought(checkout: &Checkout, commit: &CommitId, task: &Task<'_>) -> Result<CommitId, Failure> {
    let missing = || {
        let repository = checkout.repository.display();
        Failure::Missing(format!("commit {commit} was not brought to {repository}; deploy again on the leader"))
    };
    checkout.commit(task, commit.as_str())?.ok_or_else(missing)
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn bytes_in_mb(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The configuration as a file that only root can read, while a recipe runs.
pub fn configuration_file(run: &Run<'_>) -> Result<std::path::PathBuf, Failure> {
    let path = run.layout.deployment(run.id()).join("configuration.json");
    let text = serde_json::to_string_pretty(run.configuration.values()).at("write", &path)?;
    files::ensure(&path, &text, 0o600)?;
    fs::metadata(&path).at("read", &path)?;
    Ok(path)
}
