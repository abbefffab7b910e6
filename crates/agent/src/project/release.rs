//! The trees follow the repositories: only what differs is written, what git does not know stays.
//!
//! Git itself writes: it makes no file through a link, takes no path that leads out of the tree,
//! and removes what the commit before had and this one has not. Its index lies in the bare
//! repository, so the tree holds nothing but the project.

use std::path::PathBuf;
use std::time::Duration;

use corpus_domain::CommitId;
use corpus_protocol::Commit;

use crate::failure::Failure;
use crate::files;
use crate::runner::Argv;
use crate::task::Task;

/// No more commits than these are told.
const TOLD: &str = "50";
/// What live is called in the repositories.
const LIVE: &str = "refs/corpus/live";
/// A tree of many files takes its time; the phase's own limit is checked besides.
const LIMIT: Duration = Duration::from_mins(30);

/// A bare repository and the tree that is checked out of it.
pub struct Checkout {
    /// The repository.
    pub repository: PathBuf,
    /// The tree.
    pub tree: PathBuf,
}

impl Checkout {
    fn git(&self) -> Argv {
        Argv::new("git").arg("--git-dir").arg(&self.repository).quiet().limit(LIMIT)
    }

    fn git_in_tree(&self) -> Argv {
        // A file that looks like a commit's may be another one of the same size and time.
        let fresh = ["-c", "core.trustctime=true", "-c", "core.checkStat=default", "-c", "advice.detachedHead=false"];
        Argv::new("git")
            .args(fresh)
            .arg("--git-dir")
            .arg(&self.repository)
            .arg("--work-tree")
            .arg(&self.tree)
            .limit(LIMIT)
    }

    /// The commit of a name; none when there is none.
    pub fn commit(&self, task: &Task<'_>, name: &str) -> Result<Option<CommitId>, Failure> {
        let name = format!("{name}^{{commit}}");
        let (status, output) =
            self.git().args(["rev-parse", "--quiet", "--verify", "--end-of-options", &name]).end(task)?;
        Ok(if status.success() { Some(output.stdout.trim().parse()?) } else { None })
    }

    /// What the first of these branches that exists holds.
    pub fn head(&self, task: &Task<'_>, branches: &[String]) -> Result<Option<CommitId>, Failure> {
        for branch in branches {
            if let Some(commit) = self.commit(task, &format!("refs/heads/{branch}"))? {
                return Ok(Some(commit));
            }
        }
        Ok(None)
    }

    /// The tree is as the commit has it.
    pub fn check_out(&self, task: &Task<'_>, commit: &CommitId) -> Result<(), Failure> {
        self.unlock()?;
        // Fixperms changes owners, by which git takes a file for another one and writes it again.
        let _ = self.git_in_tree().quiet().args(["update-index", "-q", "--refresh"]).end(task)?;
        self.git_in_tree().args(["read-tree", "--reset", "-u", commit.as_str()]).run(task).map(drop)
    }

    /// The tree was put in place by other means; git is told which commit it is of.
    pub fn forget(&self, task: &Task<'_>, commit: Option<&CommitId>) -> Result<(), Failure> {
        self.unlock()?;
        files::remove(&self.repository.join("index"))?;
        commit.map_or(Ok(()), |commit| self.git().args(["read-tree", commit.as_str()]).run(task).map(drop))
    }

    /// A git that was killed leaves its lock; the deployment's turn keeps others away.
    fn unlock(&self) -> Result<(), Failure> {
        files::remove(&self.repository.join("index.lock")).map(drop)
    }

    /// What differs in the tree from a commit, as a patch of the files that git knows.
    pub fn local_changes(&self, task: &Task<'_>, commit: &CommitId) -> Result<String, Failure> {
        self.unlock()?;
        let _ = self.git_in_tree().quiet().args(["update-index", "-q", "--refresh"]).end(task)?;
        let diff =
            self.git_in_tree().quiet().args(["diff-index", "-p", "--binary", "--no-ext-diff", commit.as_str(), "--"]);
        Ok(diff.run(task)?.stdout)
    }

    /// The commits that come with one after another, newest first.
    pub fn commits(&self, task: &Task<'_>, from: Option<&CommitId>, to: &CommitId) -> Result<Vec<Commit>, Failure> {
        let range = from.filter(|from| *from != to).map_or_else(|| to.to_string(), |from| format!("{from}..{to}"));
        let only = if from == Some(to) { "1" } else { TOLD };
        let format = "--format=%H%x1f%s%x1f%an%x1f%at";
        let said = self.git().args(["log", "--max-count", only, format, &range, "--"]).run(task)?;
        Ok(said.stdout.lines().filter_map(parse).collect())
    }

    /// Remembers which commit is live, so that git keeps it.
    pub fn set_live(&self, task: &Task<'_>, commit: &CommitId) -> Result<(), Failure> {
        self.git().args(["update-ref", LIVE, commit.as_str()]).run(task).map(drop)
    }
}

fn parse(line: &str) -> Option<Commit> {
    let mut fields = line.split('\x1f');
    let id = fields.next()?.parse().ok()?;
    let mut text = || fields.next().map(str::to_owned);
    let (subject, author) = (text()?, text()?);
    let seconds: u64 = text()?.parse().ok()?;
    Some(Commit { id, subject, author, at_ms: seconds.saturating_mul(1000) })
}
