//! A project whose tree is edited in place: in `dev`, it is a clone of where its code comes from.
//!
//! The clone is made by the project's account, with its own key. What is edited runs at once, by the phases that somebody asks
//! for; what is committed is taken to the repository that deploys here when it is asked for again, is deployed as anywhere
//! else, and finds its files already there.

use std::fs;
use std::path::Path;

use corpus_domain::Environment;

use crate::failure::{At, Failure};
use crate::project::account;
use crate::project::layout::Layout;
use crate::runner::Argv;
use crate::task::Task;

/// The tree is a clone of `origin`, and what that has is here to be deployed; tells whether it was made now.
pub fn ensure(layout: &Layout, environment: Environment, origin: &str, task: &Task<'_>) -> Result<bool, Failure> {
    if environment != Environment::Dev {
        return Err(Failure::Invalid(format!("a tree is edited in dev only, and this project is {environment} here")));
    }
    if origin.is_empty() || origin.starts_with('-') || origin.chars().any(char::is_control) {
        return Err(Failure::Invalid("this is no address of a repository".into()));
    }
    let (tree, account) = (layout.tree(), account::name(layout.project()));
    let git = || Argv::new("runuser").args(["-u", &account, "--", "git"]);
    if tree.join(".git").is_dir() {
        let is = git().arg("-C").arg(&tree).args(["remote", "get-url", "origin"]).quiet().run(task)?;
        if is.stdout.trim() == origin {
            return take(layout, &tree, task).map(|()| false);
        }
        return Err(Failure::Invalid(format!("the tree is a clone of {} already", is.stdout.trim())));
    }
    if fs::read_dir(&tree).at("list", &tree)?.next().is_some() {
        return Err(Failure::Invalid(format!("{} has files already: it is not replaced by a clone", tree.display())));
    }
    git().args(["clone", "--quiet", "--", origin]).arg(&tree).run(task)?;
    take(layout, &tree, task)?;
    Ok(true)
}

/// What the clone has checked out is in the repository that deploys here. Git reads the account's clone as the account does:
/// root would have its configuration obeyed.
fn take(layout: &Layout, tree: &Path, task: &Task<'_>) -> Result<(), Failure> {
    let account = account::name(layout.project());
    let bundle = layout.data().join(".origin.bundle");
    let _ = fs::remove_file(&bundle);
    let pack = Argv::new("runuser").args(["-u", &account, "--", "git", "-C"]).arg(tree);
    let branch = pack.args(["symbolic-ref", "--short", "HEAD"]).quiet().run(task)?.stdout.trim().to_owned();
    let pack = Argv::new("runuser").args(["-u", &account, "--", "git", "-C"]).arg(tree);
    pack.args(["bundle", "create", "--quiet"]).arg(&bundle).arg(&branch).run(task)?;
    let refs = format!("+refs/heads/{branch}:refs/heads/{branch}");
    let fetch = Argv::new("git").arg("--git-dir").arg(layout.repository());
    let fetched =
        fetch.args(["fetch", "--quiet", "--no-tags", "--update-head-ok", "--"]).arg(&bundle).arg(&refs).run(task);
    let _ = fs::remove_file(&bundle);
    fetched.map(drop)
}
