//! What a push wanted, kept beside its order until the deployment is over.
//!
//! The runner calls [`begin`] when its turn has come and [`settle`] when it is over, so that the
//! branch follows what is live whether or not anybody waits for the push. Both can be repeated:
//! a hook that still waits settles too, and so does every later push for those before it.

use std::fs;

use corpus_domain::{CommitId, DeploymentId, DeploymentState};
use corpus_protocol::Report;
use serde::{Deserialize, Serialize};

use crate::failure::{At, Failure};
use crate::files;
use crate::project::git::Repository;
use crate::project::layout::Layout;
use crate::project::saved;
use crate::runner::Argv;
use crate::task::Task;

/// What is kept of a push.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pushed {
    /// To which repository.
    pub repository: Repository,
    /// To which branch: `refs/heads/main`.
    pub name: String,
    /// What the pusher took it to be.
    pub old: Option<CommitId>,
    /// What it is to be.
    pub new: CommitId,
    /// What it was when the deployment began; a pillar goes back to that.
    #[serde(default)]
    pub before: Option<CommitId>,
}

fn path(layout: &Layout, id: DeploymentId) -> std::path::PathBuf {
    layout.deployment(id).join("push.json")
}

/// Keeps what a push wants; before the order.
pub(super) fn keep(layout: &Layout, id: DeploymentId, pushed: &Pushed) -> Result<(), Failure> {
    let folder = layout.deployment(id);
    fs::create_dir_all(&folder).at("make", &folder)?;
    saved::write(&path(layout, id), pushed)
}

/// Forgets it again: the order was never given.
pub(super) fn forget(layout: &Layout, id: DeploymentId) -> Result<(), Failure> {
    files::remove(&path(layout, id))?;
    let _ = fs::remove_dir(layout.deployment(id));
    Ok(())
}

/// A deployment's turn has come: fails when the branch has moved since it was pushed and what
/// was pushed does not contain that. A pillar is put in place for the deployment to see.
/// Nothing happens for one that no push ordered.
pub fn begin(layout: &Layout, id: DeploymentId, task: &Task<'_>) -> Result<(), Failure> {
    let Some(mut pushed) = saved::read::<Pushed>(&path(layout, id))? else { return Ok(()) };
    let git = Git { layout, repository: pushed.repository, task };
    let now = git.commit(&pushed.name)?;
    if now != pushed.old
        && let Some(now) = &now
        && *now != pushed.new
        && git.contains(&pushed.new, pushed.old.as_ref())?
        && !git.contains(&pushed.new, Some(now))?
    {
        let branch = short(&pushed.name);
        let text = format!("{branch} went to {} while this push waited; fetch, merge and push again", now.short());
        return Err(Failure::Invalid(text));
    }
    // A runner that was killed after it had set the branch comes here again.
    if pushed.repository == Repository::Project || now.as_ref() == Some(&pushed.new) {
        return Ok(());
    }
    pushed.before = now;
    keep(layout, id, &pushed)?;
    git.set(&pushed.name, &pushed.new)
}

/// The branch follows the end of a deployment: what went live is what it holds, and what did
/// not is kept at `refs/corpus/failed/<deployment>`.
pub fn settle(layout: &Layout, report: &Report, task: &Task<'_>) -> Result<(), Failure> {
    let Some(pushed) = saved::read::<Pushed>(&path(layout, report.id))? else { return Ok(()) };
    let git = Git { layout, repository: pushed.repository, task };
    if report.state == DeploymentState::Live {
        git.set(&pushed.name, &pushed.new)?;
        git.head(&pushed.name)?;
    } else {
        git.set(&format!("{FAILED}{}", report.id), &pushed.new)?;
        git.take_back(&pushed)?;
        git.rotate()?;
    }
    files::remove(&path(layout, report.id)).map(drop)
}

/// Settles all deployments that are over and were not settled: their guest lost its power, or
/// their runner its life, at the very end.
pub(super) fn settle_all(layout: &Layout, task: &Task<'_>) -> Result<(), Failure> {
    let Ok(entries) = fs::read_dir(layout.deployments()) else { return Ok(()) };
    for entry in entries.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if path(layout, id).exists()
            && let Some(report) = saved::read::<Report>(&layout.report(id))?
        {
            settle(layout, &report, task)?;
        }
    }
    Ok(())
}

/// Where commits that did not go live are kept.
const FAILED: &str = "refs/corpus/failed/";

/// A branch as people write it.
pub(super) fn short(name: &str) -> &str {
    name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/")).unwrap_or(name)
}

/// Git on one of the repositories.
pub(super) struct Git<'a> {
    pub layout: &'a Layout,
    pub repository: Repository,
    pub task: &'a Task<'a>,
}

impl Git<'_> {
    fn argv(&self) -> Argv {
        Argv::new("git").arg("--git-dir").arg(self.repository.path(self.layout)).quiet()
    }

    /// What a reference holds; none when there is no such reference.
    pub(super) fn commit(&self, name: &str) -> Result<Option<CommitId>, Failure> {
        let (status, output) = self.argv().args(["rev-parse", "--quiet", "--verify", name]).end(self.task)?;
        if !status.success() {
            return Ok(None);
        }
        Ok(Some(output.stdout.trim().parse()?))
    }

    /// Whether an object is a commit, as everything that is deployed.
    pub(super) fn is_commit(&self, id: &CommitId) -> Result<bool, Failure> {
        let (status, output) = self.argv().args(["cat-file", "-t", id.as_str()]).end(self.task)?;
        Ok(status.success() && output.stdout.trim() == "commit")
    }

    /// Whether a commit contains another one; every commit contains none.
    fn contains(&self, commit: &CommitId, other: Option<&CommitId>) -> Result<bool, Failure> {
        let Some(other) = other else { return Ok(true) };
        let ask = ["merge-base", "--is-ancestor", other.as_str(), commit.as_str()];
        Ok(self.argv().args(ask).end(self.task)?.0.success())
    }

    fn set(&self, name: &str, commit: &CommitId) -> Result<(), Failure> {
        self.argv().args(["update-ref", "-m", "corpus", name, commit.as_str()]).run(self.task).map(drop)
    }

    fn delete(&self, name: &str) -> Result<(), Failure> {
        self.argv().args(["update-ref", "-d", name]).run(self.task).map(drop)
    }

    /// A clone of a repository whose first branch is not `main` gets that one.
    fn head(&self, name: &str) -> Result<(), Failure> {
        if self.commit("HEAD")?.is_some() {
            return Ok(());
        }
        self.argv().args(["symbolic-ref", "HEAD", name]).run(self.task).map(drop)
    }

    /// A pillar that was put in place for a deployment that failed is taken out again.
    fn take_back(&self, pushed: &Pushed) -> Result<(), Failure> {
        if pushed.repository == Repository::Project || self.commit(&pushed.name)?.as_ref() != Some(&pushed.new) {
            return Ok(());
        }
        match &pushed.before {
            Some(before) => self.set(&pushed.name, before),
            None => self.delete(&pushed.name),
        }
    }

    /// Failed commits are kept as long as the record of their deployment.
    fn rotate(&self) -> Result<(), Failure> {
        let kept = self.argv().args(["for-each-ref", "--format=%(refname)", FAILED]).run(self.task)?;
        for name in kept.stdout.lines() {
            let id = name.strip_prefix(FAILED).and_then(|id| id.parse().ok());
            if id.is_some_and(|id| !self.layout.deployment(id).exists()) {
                self.delete(name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use corpus_domain::{Environment, Trigger};
    use uuid::Uuid;

    use super::*;
    use crate::host::Host;
    use crate::project::git::install;
    use crate::task::test::with_task;

    const MAIN: &str = "refs/heads/main";
    const AT: &str = "2026-01-01T00:00:00Z";

    /// Both repositories of a project, with commits in them: `a`, `b` on it, and `c` beside `b`.
    fn with_commits(act: impl FnOnce(&Layout, &Task<'_>, &[CommitId; 3])) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        with_task(&Host::below(folder.path()), |task| {
            install(&layout, task).unwrap();
            let made = Repository::ALL.map(|repository| {
                let git = Git { layout: &layout, repository, task };
                let tree = git.argv().args(["hash-object", "-w", "-t", "tree", "/dev/null"]).run(task).unwrap().stdout;
                let commit = |message: &str, parent: Option<&CommitId>| -> CommitId {
                    let who = ["-c", "user.name=mia", "-c", "user.email=mia@example.org"];
                    // The same commits in both repositories, however long this takes.
                    let argv = git.argv().env("GIT_AUTHOR_DATE", AT).env("GIT_COMMITTER_DATE", AT).args(who).args([
                        "commit-tree",
                        tree.trim(),
                        "-m",
                        message,
                    ]);
                    let parents = parent.map(|parent| ["-p".to_owned(), parent.to_string()]);
                    argv.args(parents.into_iter().flatten()).run(task).unwrap().stdout.trim().parse().unwrap()
                };
                let a = commit("a", None);
                [a.clone(), commit("b", Some(&a)), commit("c", Some(&a))]
            });
            act(&layout, task, &made[0]);
        });
    }

    fn push(layout: &Layout, repository: Repository, old: Option<&CommitId>, new: &CommitId) -> DeploymentId {
        let id = DeploymentId(Uuid::now_v7());
        let pushed = Pushed { repository, name: MAIN.into(), old: old.cloned(), new: new.clone(), before: None };
        keep(layout, id, &pushed).unwrap();
        id
    }

    fn report(layout: &Layout, id: DeploymentId, state: DeploymentState) -> Report {
        Report {
            id,
            project: layout.project().clone(),
            environment: Environment::Staging,
            state,
            trigger: Trigger::Push,
            by: "mia".into(),
            commit: None,
            pillar: None,
            previous: None,
            commits: vec![],
            plain_archive: false,
            warnings: vec![],
            ordered_ms: 0,
            began_ms: 0,
            ended_ms: 0,
            phases: vec![],
            fault: None,
            proofs: vec![],
            live: None,
            failed_tree: None,
            archives: vec![],
            lines: 0,
        }
    }

    #[test]
    fn the_branch_follows_what_went_live() {
        with_commits(|layout, task, [a, b, _]| {
            let git = Git { layout, repository: Repository::Project, task };
            let first = push(layout, Repository::Project, None, a);
            begin(layout, first, task).unwrap();
            assert_eq!(git.commit(MAIN).unwrap(), None);
            settle(layout, &report(layout, first, DeploymentState::Live), task).unwrap();
            assert_eq!(git.commit(MAIN).unwrap().as_ref(), Some(a));

            let failed = push(layout, Repository::Project, Some(a), b);
            begin(layout, failed, task).unwrap();
            settle(layout, &report(layout, failed, DeploymentState::RolledBack), task).unwrap();
            assert_eq!(git.commit(MAIN).unwrap().as_ref(), Some(a));
            assert_eq!(git.commit(&format!("{FAILED}{failed}")).unwrap().as_ref(), Some(b));
            // It is kept as long as the record of its deployment.
            files::remove_folder(&layout.deployment(failed)).unwrap();
            let again = push(layout, Repository::Project, Some(a), b);
            settle(layout, &report(layout, again, DeploymentState::Superseded), task).unwrap();
            assert_eq!(git.commit(&format!("{FAILED}{failed}")).unwrap(), None);
        });
    }

    #[test]
    fn who_did_not_settle_is_settled_later() {
        with_commits(|layout, task, [a, b, _]| {
            let git = Git { layout, repository: Repository::Project, task };
            let (over, runs) = (push(layout, Repository::Project, None, a), push(layout, Repository::Project, None, b));
            saved::write(&layout.report(over), &report(layout, over, DeploymentState::Live)).unwrap();
            settle_all(layout, task).unwrap();
            assert_eq!(git.commit(MAIN).unwrap().as_ref(), Some(a));
            assert!(!path(layout, over).exists() && path(layout, runs).exists());
        });
    }

    #[test]
    fn a_branch_that_moved_is_not_lost() {
        with_commits(|layout, task, [a, b, c]| {
            let git = Git { layout, repository: Repository::Project, task };
            git.set(MAIN, b).unwrap();
            let beside = push(layout, Repository::Project, Some(a), c);
            let error = begin(layout, beside, task).unwrap_err().to_string();
            assert!(error.contains(&format!("main went to {}", b.short())), "{error}");
            // Who threw away what was there before, by force, throws away this too.
            begin(layout, push(layout, Repository::Project, Some(c), b), task).unwrap();
            git.set(MAIN, a).unwrap();
            begin(layout, push(layout, Repository::Project, None, b), task).unwrap();
            // No push, no opinion.
            begin(layout, DeploymentId(Uuid::now_v7()), task).unwrap();
        });
    }

    #[test]
    fn a_pillar_is_there_for_its_deployment_and_goes_with_it() {
        with_commits(|layout, task, [a, b, _]| {
            let git = Git { layout, repository: Repository::Pillar, task };
            for (before, state, after) in [
                (None, DeploymentState::RolledBack, None),
                (Some(a), DeploymentState::Broken, Some(a)),
                (Some(a), DeploymentState::Live, Some(b)),
            ] {
                if let Some(commit) = before {
                    git.set(MAIN, commit).unwrap();
                }
                let id = push(layout, Repository::Pillar, before, b);
                begin(layout, id, task).unwrap();
                assert_eq!(git.commit(MAIN).unwrap().as_ref(), Some(b));
                // A runner that was killed begins again.
                begin(layout, id, task).unwrap();
                settle(layout, &report(layout, id, state), task).unwrap();
                assert_eq!(git.commit(MAIN).unwrap().as_ref(), after);
            }
        });
    }
}
