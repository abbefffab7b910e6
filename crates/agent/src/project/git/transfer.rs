//! `send-git` and `take-git`: a commit goes from the leader of an environment to a follower.
//!
//! Git itself speaks at both ends, push and `receive-pack`, so only what the other has not yet is
//! sent; the controller only joins their lines. It arrives at `refs/corpus/release/<deployment>`,
//! where no push of anybody else can write, and is forgotten when its deployment is over.
//!
//! A push through inherited files that breaks off holds the line open itself, so that the other
//! end waits for it as it waits for the other end: what can be known to fail fails before the
//! first byte, and neither end lives longer than [`TRANSFER_TIMEOUT`].

use std::ffi::OsString;
use std::os::fd::{AsFd, IntoRawFd, RawFd};

use corpus_domain::{CommitId, DeploymentId};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

use crate::failure::{At, Failure};
use crate::project::git::Repository;
use crate::project::layout::Layout;
use crate::project::release::Checkout;
use crate::runner::{self, Argv};
use crate::task::Task;

/// The longest that either end may take, for `timeout(1)`.
const TRANSFER_TIMEOUT: &str = "1h";

/// Where a commit arrives.
fn arrival(id: DeploymentId) -> String {
    format!("refs/corpus/release/{id}")
}

/// Becomes git, by the words `NAME project|pillar COMMIT DEPLOYMENT`; returns only what kept it from that.
pub fn transfer(which: &str, words: &[&str], task: &Task<'_>) -> Failure {
    let bounded =
        |git: Vec<OsString>| ["--kill-after=10s", TRANSFER_TIMEOUT, "git"].map(OsString::from).into_iter().chain(git);
    prepare(which, words, task).map_or_else(
        |failure| failure,
        |git| {
            let args: Vec<OsString> = bounded(git).collect();
            runner::become_command("timeout", &args, &[("GIT_TERMINAL_PROMPT", "0".into())])
        },
    )
}

fn prepare(which: &str, words: &[&str], task: &Task<'_>) -> Result<Vec<OsString>, Failure> {
    let [project, repository, commit, deployment] = words else {
        return Err(Failure::Invalid(format!("usage: corpus-agent project {which} NAME REPOSITORY COMMIT DEPLOYMENT")));
    };
    let layout = Layout::of(task.host, &project.parse()?);
    let path = repository.parse::<Repository>()?.path(&layout);
    let commit: CommitId = commit.parse()?;
    let id: DeploymentId = deployment.parse().map_err(|_| Failure::Invalid(format!("{deployment:?} is no UUID")))?;
    if !path.join("HEAD").exists() {
        return Err(Failure::Missing(format!("there is no project {project} here")));
    }
    if which == "take-git" {
        // Nothing is deployed by it, and what may not be pushed is taken from here only.
        let ours = ["core.hooksPath=/dev/null", "receive.hideRefs=!refs/corpus", "receive.maxInputSize=0"];
        let mut args: Vec<OsString> = ours.iter().flat_map(|one| ["-c".into(), one.into()]).collect();
        args.extend(["receive-pack".into(), path.into()]);
        return Ok(args);
    }
    let checkout = Checkout { repository: path.clone(), tree: layout.tree() };
    if checkout.commit(task, commit.as_str())?.is_none() {
        return Err(Failure::Missing(format!("there is no commit {commit} in {}", path.display())));
    }
    // Git's helper has pipes of its own as its first three files.
    let (input, output) = (beyond(std::io::stdin())?, beyond(std::io::stdout())?);
    let to = format!("{commit}:{}", arrival(id));
    Ok([
        "--git-dir".into(),
        path.into(),
        "push".into(),
        "--quiet".into(),
        format!("fd::{input},{output}").into(),
        to.into(),
    ]
    .into())
}

/// The same file under a number above those of the standard ones, which the next program inherits.
fn beyond(file: impl AsFd) -> Result<RawFd, Failure> {
    let copy = fcntl_dupfd_cloexec(file, 3).map_err(std::io::Error::from).at("copy", "a standard file")?;
    fcntl_setfd(&copy, FdFlags::empty()).map_err(std::io::Error::from).at("keep", "a standard file")?;
    Ok(copy.into_raw_fd())
}

/// What was brought for a deployment is kept no longer than by what is live.
pub fn forget(layout: &Layout, id: DeploymentId, task: &Task<'_>) -> Result<(), Failure> {
    for repository in Repository::ALL {
        let git = Argv::new("git").arg("--git-dir").arg(repository.path(layout)).quiet();
        git.args(["update-ref", "-d", &arrival(id)]).run(task)?;
    }
    Ok(())
}
