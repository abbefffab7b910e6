//! The `proc-receive` hook: decides on each branch that a push wants changed.
//!
//! A deployed branch is ordered and followed, its lines go to standard error, which git shows
//! the pusher as `remote:`. Other branches and tags are git's to store. That nobody reads any
//! more, or that this process is killed, ends only the telling.

use std::io::{self, Write};
use std::path::Path;

use corpus_domain::{CommitId, DeploymentId, DeploymentState, Trigger, plain_line};
use corpus_protocol::{DeployOrder, Live, ProjectPlan, Report, Source};
use uuid::Uuid;

use super::Repository;
use super::protocol::{Command, Push, Verdict, ask, report};
use super::pushed::{self, Git, Pushed, short};
use super::pusher::{BY, pusher};
use crate::failure::{At, Failure};
use crate::project::configuration::Configuration;
use crate::project::journal::MAX_TEXT;
use crate::project::layout::Layout;
use crate::project::{follow, order, render, saved};
use crate::task::Task;

/// The id that a deployment gets if the push is one. Not the variable that the processes of a
/// deployment carry: by that the runner ends what is left of them, and git is not one of them.
pub(super) const DEPLOYMENT: &str = "CORPUS_PUSH_DEPLOYMENT";
/// The branches of previews.
const PREVIEWS: &str = "refs/heads/preview/";
/// The one option of a push: what is live is archived as it lies.
const PLAIN_ARCHIVE: &str = "plain-archive";
/// Deployed unless the configuration says otherwise.
const DEFAULT: [&str; 2] = ["main", "master"];

/// Serves `git receive-pack` as its hook, on standard input and output. `exposed` is the file in
/// which sshd says which key opened the session.
pub fn receive(
    layout: &Layout,
    repository: Repository,
    exposed: Option<&Path>,
    task: &Task<'_>,
) -> Result<(), Failure> {
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let Some(push) = ask(&mut input, &mut output).at("read from", "git receive-pack")? else { return Ok(()) };
    pushed::settle_all(layout, task)?;
    let plain_archive = push.options.iter().any(|option| option == PLAIN_ARCHIVE);
    let (branches, by) = (deployed(layout), pusher(task.host, exposed));
    let hook = Hook { layout, repository, task, branches, plain_archive, by };
    let verdicts = hook.decide(push);
    // Git may be gone: what was decided stays so.
    let _ = report(&mut output, &verdicts);
    Ok(())
}

/// The branches that are deployed. A configuration that can't be read is told by the deployment.
fn deployed(layout: &Layout) -> Vec<String> {
    let plan = saved::read::<ProjectPlan>(&layout.plan()).ok().flatten();
    let now = plan.and_then(|plan| Configuration::load(layout, &plan).ok());
    let configuration = now.or_else(|| Configuration::live(layout).ok().flatten()).unwrap_or_default();
    let branches = configuration.branches().unwrap_or_default();
    if branches.is_empty() { DEFAULT.map(str::to_owned).into() } else { branches }
}

struct Hook<'a> {
    layout: &'a Layout,
    repository: Repository,
    task: &'a Task<'a>,
    branches: Vec<String>,
    plain_archive: bool,
    by: String,
}

impl Hook<'_> {
    /// Deployed branches come first: what becomes of them may decide on the others.
    fn decide(&self, push: Push) -> Vec<(Command, Verdict)> {
        if let Some(unknown) = push.options.iter().find(|option| *option != PLAIN_ARCHIVE) {
            let shown: String = unknown.chars().take(40).collect();
            let refused = format!("there is no option {shown:?} of a push; there is {PLAIN_ARCHIVE}");
            return push.commands.into_iter().map(|command| (command, Verdict::Refused(refused.clone()))).collect();
        }
        let (deployed, stored): (Vec<_>, Vec<_>) =
            push.commands.into_iter().partition(|command| self.is_deployed(&command.name));
        let several = deployed.len() > 1;
        let mut verdicts = Vec::new();
        for command in deployed {
            let verdict = if several {
                Verdict::Refused("push one deployed branch at a time".into())
            } else {
                self.deploy(&command).unwrap_or_else(|failure| Verdict::Refused(told(failure)))
            };
            verdicts.push((command, verdict));
        }
        let failed = verdicts.iter().any(|(_, verdict)| matches!(verdict, Verdict::Refused(_)));
        for command in stored {
            let verdict = if failed && push.atomic {
                Verdict::Refused("the push is atomic, and another branch was refused".into())
            } else {
                self.store(&command)
            };
            verdicts.push((command, verdict));
        }
        verdicts
    }

    fn is_deployed(&self, name: &str) -> bool {
        name.strip_prefix("refs/heads/").is_some_and(|branch| self.branches.iter().any(|deployed| deployed == branch))
    }

    fn store(&self, command: &Command) -> Verdict {
        let (name, deployed) = (short(&command.name), self.branches.join(" and "));
        let are = if self.branches.len() == 1 { "is" } else { "are" };
        if command.name.starts_with(PREVIEWS) && self.repository == Repository::Project {
            say(&preview_told(name, std::env::var_os(BY).is_some()));
            return Verdict::Git;
        }
        say(&match command.new {
            Some(_) => format!("{name}: stored, not deployed; {deployed} {are} deployed"),
            None => format!("{name}: deleted; nothing is deployed"),
        });
        Verdict::Git
    }

    fn deploy(&self, command: &Command) -> Result<Verdict, Failure> {
        let branch = short(&command.name);
        let Some(new) = &command.new else {
            return Ok(Verdict::Refused(format!("{branch} is deployed and can't be deleted")));
        };
        order::ensure_leader(self.layout)?;
        let git = Git { layout: self.layout, repository: self.repository, task: self.task };
        if !git.is_commit(new)? {
            return Ok(Verdict::Refused(format!("{branch} can only be a commit")));
        }
        let Some(source) = self.source(new, &git)? else {
            say("the pillar is stored; the first push of code deploys with it");
            return Ok(Verdict::Git);
        };
        let id = given_id()?.unwrap_or_else(|| DeploymentId(Uuid::now_v7()));
        if self.layout.order(id).exists() {
            return Ok(Verdict::Refused(format!("deployment {id} was ordered before; push again")));
        }
        let wanted = Pushed {
            repository: self.repository,
            name: command.name.clone(),
            old: command.old.clone(),
            new: new.clone(),
            before: None,
        };
        pushed::keep(self.layout, id, &wanted)?;
        let done = self.order(id, source)?;
        Ok(verdict(&done))
    }

    /// What a push deploys: the commit, or for a pillar what is live. None when nothing is.
    fn source(&self, new: &CommitId, project: &Git<'_>) -> Result<Option<Source>, Failure> {
        if self.repository == Repository::Project {
            return Ok(Some(Source::Commit { commit: new.clone() }));
        }
        let live = saved::read::<Live>(&self.layout.live())?;
        if let Some(commit) = live.and_then(|live| live.commit) {
            return Ok(Some(Source::Commit { commit }));
        }
        let code = Git { repository: Repository::Project, ..*project };
        Ok(code.commit("HEAD")?.map(|_| Source::Head))
    }

    fn order(&self, id: DeploymentId, source: Source) -> Result<Report, Failure> {
        let ordered = DeployOrder {
            project: self.layout.project().clone(),
            id,
            source,
            trigger: Trigger::Push,
            only: Vec::new(),
            plain_archive: self.plain_archive,
            by: self.by.clone(),
            follower: false,
        };
        if let Err(failure) = order::order(self.layout, &ordered, self.task) {
            if !self.layout.order(id).exists() {
                pushed::forget(self.layout, id)?;
            }
            return Err(failure);
        }
        let mut render = render::Render::default();
        let report = follow(self.layout, id, 0, self.task, &mut |_, entry| {
            render.lines(&entry).iter().for_each(|line| say(line));
        })?;
        pushed::settle(self.layout, &report, self.task)?;
        Ok(report)
    }
}

/// What the pusher is told of the branch of a preview: what becomes of it Corpus says, where it saw the push.
fn preview_told(name: &str, through_corpus: bool) -> String {
    if through_corpus {
        return format!("{name}: stored");
    }
    format!("{name}: stored here; a preview is made of what is pushed to Corpus's own address")
}

/// What git tells the pusher of a deployment that is over.
fn verdict(report: &Report) -> Verdict {
    let now = report.live.as_ref().and_then(|live| live.commit.as_ref()).map(CommitId::short);
    let fault = report.fault.as_ref().map(|fault| match &fault.recipe {
        Some(recipe) => format!("{} failed at {recipe}: {}", fault.phase, fault.message),
        None => format!("{} failed: {}", fault.phase, fault.message),
    });
    let fault = fault.unwrap_or_else(|| "it failed".into());
    match report.state {
        DeploymentState::Live => Verdict::Done,
        DeploymentState::Superseded => Verdict::Refused("superseded: a later push came while this one waited".into()),
        DeploymentState::Broken => Verdict::Refused(format!("{fault}; the rollback failed too, look at the guest")),
        _ => Verdict::Refused(match now {
            Some(commit) => format!("{fault}; rolled back to {commit}"),
            None => format!("{fault}; rolled back, nothing is live"),
        }),
    }
}

fn given_id() -> Result<Option<DeploymentId>, Failure> {
    let Some(given) = std::env::var_os(DEPLOYMENT) else { return Ok(None) };
    let id = given.to_str().and_then(|given| given.parse().ok());
    id.map(Some).ok_or_else(|| Failure::Invalid(format!("{DEPLOYMENT} is no UUID")))
}

/// Tells the pusher a line, whose terminal no recipe may command; nobody may be left to hear it.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{}", plain_line(line, 2 * MAX_TEXT));
}

fn told(failure: Failure) -> String {
    corpus_protocol::RequestError::from(failure).message
}
