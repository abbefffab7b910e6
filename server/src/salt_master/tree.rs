//! The states of operators from a git repository: a master has one commit of it at a time, whole.
//!
//! What is fetched goes into a folder of its own, and one link is turned to it: Salt never reads half of a commit, and one that
//! can't be had leaves what was there. The repository has the folders `states` and `pillar`.
#![expect(clippy::disallowed_methods, reason = "running git is this module's purpose")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::process::Command;
use tokio::time::timeout;

/// How long git may take for one thing.
const LIMIT: Duration = Duration::from_mins(5);

/// Where the states come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The repository, as git takes it.
    pub url: String,
    /// The branch that is followed.
    pub branch: String,
}

/// Where they lie here.
#[derive(Debug, Clone)]
pub struct Tree {
    folder: PathBuf,
}

impl Tree {
    /// Below the folder of a master.
    pub fn below(folder: &Path) -> Self {
        Self { folder: folder.join("tree") }
    }

    /// The commit that is there now, as Salt reads it.
    pub fn current(&self) -> PathBuf {
        self.folder.join("current")
    }

    pub(super) fn repository(&self) -> PathBuf {
        self.folder.join("repository.git")
    }

    /// Folders and an empty repository, and something to read before the first commit is there.
    pub async fn prepare(&self) -> anyhow::Result<()> {
        tokio::fs::create_dir_all(&self.folder)
            .await
            .with_context(|| format!("{} can't be made", self.folder.display()))?;
        if !self.repository().join("HEAD").exists() {
            git(&self.repository(), &["init", "--quiet", "--bare"]).await?;
        }
        Ok(())
    }

    /// The latest commit of the branch is what Salt reads; tells which that is.
    pub async fn follow(&self, source: &Source) -> anyhow::Result<String> {
        let repository = self.repository();
        let wanted = format!("+refs/heads/{}:refs/heads/followed", source.branch);
        let fetch = ["fetch", "--quiet", "--no-tags", "--depth", "1", "--update-head-ok", "--", &source.url, &wanted];
        git(&repository, &fetch).await?;
        let commit =
            git(&repository, &["rev-parse", "--verify", "refs/heads/followed^{commit}"]).await?.trim().to_owned();
        if !(40..=64).contains(&commit.len()) || !commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            bail!("git told no commit");
        }
        let place = self.folder.join(&commit);
        if !place.exists() {
            self.check_out(&commit, &place).await?;
        }
        self.turn_to(&commit).await?;
        self.remove_others(&commit).await?;
        Ok(commit)
    }

    async fn check_out(&self, commit: &str, place: &Path) -> anyhow::Result<()> {
        let part = place.with_extension("part");
        let _ = tokio::fs::remove_dir_all(&part).await;
        tokio::fs::create_dir_all(&part).await?;
        let work_tree = format!("--work-tree={}", text(&part));
        git(&self.repository(), &[&work_tree, "checkout", "--quiet", "--force", commit, "--", "."]).await?;
        if !part.join("states").is_dir() {
            let _ = tokio::fs::remove_dir_all(&part).await;
            bail!("commit {commit} has no folder states");
        }
        Ok(tokio::fs::rename(&part, place).await?)
    }

    async fn turn_to(&self, commit: &str) -> anyhow::Result<()> {
        if tokio::fs::read_link(self.current()).await.is_ok_and(|is| is == Path::new(commit)) {
            return Ok(());
        }
        let part = self.folder.join("current.part");
        let _ = tokio::fs::remove_file(&part).await;
        tokio::fs::symlink(commit, &part).await?;
        Ok(tokio::fs::rename(&part, self.current()).await?)
    }

    /// What Salt reads now may be in the middle of being read; what was before that is gone.
    async fn remove_others(&self, commit: &str) -> anyhow::Result<()> {
        let mut entries = tokio::fs::read_dir(&self.folder).await?;
        let mut old = Vec::new();
        while let Some(entry) = entries.next_entry().await? {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_commit = name.len() >= 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_commit && name != commit {
                old.push((entry.metadata().await?.modified()?, entry.path()));
            }
        }
        old.sort();
        old.pop();
        for (_, path) in old {
            tokio::fs::remove_dir_all(path).await?;
        }
        Ok(())
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Runs git, which asks nobody for anything.
async fn git(repository: &Path, words: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.arg("--git-dir").arg(repository).args(words).stdin(Stdio::null()).kill_on_drop(true);
    command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o ConnectTimeout=20");
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_ADVICE", "0").env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    let ran = timeout(LIMIT, command.output()).await;
    let ran = ran.map_err(|_| anyhow::anyhow!("git took more than {} s", LIMIT.as_secs()))?;
    let told = ran.context("git can't be started")?;
    if told.status.success() {
        return Ok(String::from_utf8_lossy(&told.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&told.stderr);
    let line = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("git failed").trim();
    bail!("{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn commit(repository: &Path, file: &str, body: &str) {
        let path = repository.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, body).unwrap();
        for words in [
            &["add", "--all"][..],
            &["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "x"],
        ] {
            let ran = Command::new("git").arg("-C").arg(repository).args(words).output().await.unwrap();
            assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        }
    }

    #[tokio::test]
    async fn a_commit_is_there_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let origin = folder.path().join("origin");
        let made = Command::new("git").args(["init", "--quiet", "-b", "main"]).arg(&origin).output().await.unwrap();
        assert!(made.status.success());
        let tree = Tree::below(folder.path());
        let source = Source { url: text(&origin), branch: "main".to_owned() };
        tree.prepare().await.unwrap();
        assert!(tree.follow(&source).await.is_err(), "there is no commit yet");
        commit(&origin, "states/top.sls", "one").await;
        let first = tree.follow(&source).await.unwrap();
        let read = || std::fs::read_to_string(tree.current().join("states/top.sls")).ok();
        assert_eq!(read().as_deref(), Some("one"));
        assert_eq!(tree.follow(&source).await.unwrap(), first, "once more is the same");
        commit(&origin, "states/top.sls", "two").await;
        let second = tree.follow(&source).await.unwrap();
        assert_eq!((first == second, read().as_deref()), (false, Some("two")));
        // One without states is refused, and what was there stays.
        std::fs::remove_dir_all(origin.join("states")).unwrap();
        commit(&origin, "other", "x").await;
        let wrong = tree.follow(&source).await.unwrap_err().to_string();
        assert!(wrong.contains("no folder states"), "{wrong}");
        assert_eq!(read().as_deref(), Some("two"));
        let gone = Source { url: text(&folder.path().join("nowhere")), branch: "main".to_owned() };
        assert!(tree.follow(&gone).await.is_err() && read().is_some());
        for text in ["three", "four"] {
            commit(&origin, "states/top.sls", text).await;
            tree.follow(&source).await.unwrap();
        }
        let kept = std::fs::read_dir(folder.path().join("tree")).unwrap().count();
        assert_eq!(kept, 4, "the repository, the link, this commit and the one before");
        // What looks like an option is none.
        let option = Source { url: "--upload-pack=touch".to_owned(), branch: "main".to_owned() };
        assert!(tree.follow(&option).await.is_err());
    }
}
