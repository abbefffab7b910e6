//! The git client, as a member runs it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Long enough for two slow processors that others use too.
pub const WAIT_LIMIT: Duration = Duration::from_mins(1);

pub fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn git_command(args: &[&str]) -> Command {
    let mut git = command("git");
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null").env("LC_ALL", "C");
    for side in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{side}_NAME"), "Mia").env(format!("GIT_{side}_EMAIL"), "mia@corpus.test");
    }
    git.args(args);
    git
}

/// Commits a file of this content in a working copy.
pub fn commit(copy: &Path, file: &str, content: &[u8]) {
    std::fs::write(copy.join(file), content).unwrap();
    let at = copy.to_str().unwrap();
    run_git(&["-C", at, "add", "."]);
    run_git(&["-C", at, "commit", "--quiet", "-m", "a change"]);
}

/// Git on this machine, which must succeed.
pub fn run_git(args: &[&str]) -> String {
    let output = git_command(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs a command to its end, but not for ever.
pub async fn ended(mut command: Command) -> Output {
    let child = command.spawn().unwrap();
    let id = child.id().to_string();
    let waiting = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    if let Ok(output) = tokio::time::timeout(WAIT_LIMIT, waiting).await {
        return output.unwrap();
    }
    drop(self::command("kill").arg(id).status());
    panic!("{command:?} did not end");
}

/// What a command said on its standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
