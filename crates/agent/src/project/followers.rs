//! Several guests of one environment commit in two phases: all go live, or none does.
//!
//! The leader, which is pushed to, deploys and proves; it is prepared then, and waits in the phase
//! `followers` while the controller has the followers prepare the same, which wait there too. Then
//! the leader commits, and when it has, so do the followers; when one of them can't be prepared,
//! all abort. So what the leader says is live is the decision: whoever lost the thread asks for that.
//!
//! How it goes on the followers comes as lines of a file beside the order, for who watches.
//!
//! The decision is a file beside the order. A runner that is killed while it is prepared, also with
//! its guest, has nothing to be sorry for: its successor proves once more and waits again.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corpus_domain::{DeploymentId, GuestName, Outcome, Phase};
use corpus_protocol::Role;
use serde::{Deserialize, Serialize};

use crate::failure::{At, Failure};
use crate::project::layout::Layout;
use crate::project::order;
use crate::project::run::{Run, with_reserve};
use crate::project::saved;
use crate::project::steps::{Span, Stop};

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What was decided on a deployment that is prepared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub enum Decision {
    /// It goes live.
    Commit,
    /// It puts everything back, for the reason.
    Abort(String),
}

/// A decision's file, in the words of before: a runner that began before the agent was replaced reads it.
#[derive(Serialize, Deserialize)]
struct Stored {
    refused: Option<String>,
}

impl From<Stored> for Decision {
    fn from(stored: Stored) -> Self {
        stored.refused.map_or(Self::Commit, Self::Abort)
    }
}

impl From<Decision> for Stored {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Commit => Self { refused: None },
            Decision::Abort(reason) => Self { refused: Some(reason) },
        }
    }
}

fn path(layout: &Layout, id: DeploymentId) -> PathBuf {
    layout.deployment(id).join("decision.json")
}

/// The deployment was ordered here.
pub fn there(layout: &Layout, id: DeploymentId) -> Result<(), Failure> {
    let missing = || Failure::Missing(format!("there is no deployment {id} of {} here", layout.project()));
    layout.order(id).exists().then_some(()).ok_or_else(missing)
}

/// Keeps what was decided; what was decided before stays. Tells whether it is new.
pub fn decide(layout: &Layout, id: DeploymentId, decision: &Decision) -> Result<bool, Failure> {
    there(layout, id)?;
    if order::is_over(layout, id) {
        return Ok(false);
    }
    with_reserve(layout, id, || saved::write_first(&path(layout, id), decision))
}

fn notes_path(layout: &Layout, id: DeploymentId) -> PathBuf {
    layout.deployment(id).join("notes")
}

/// Takes what the journal of a leader's deployment is to say; tells whether it is not over yet.
pub fn note(layout: &Layout, id: DeploymentId, lines: &[String]) -> Result<bool, Failure> {
    there(layout, id)?;
    if order::is_over(layout, id) {
        return Ok(false);
    }
    let path = notes_path(layout, id);
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).at("open", &path)?;
    let lines: Vec<_> = lines.iter().map(|line| line.replace('\n', " ")).collect();
    file.write_all(format!("{}\n", lines.join("\n")).as_bytes()).at("write", &path)?;
    Ok(true)
}

/// The notes that come from now on.
struct Notes {
    path: PathBuf,
    read: u64,
}

impl Notes {
    fn from_now(layout: &Layout, id: DeploymentId) -> Self {
        let path = notes_path(layout, id);
        let read = fs::metadata(&path).map_or(0, |file| file.len());
        Self { path, read }
    }

    /// Whole lines that are new.
    fn news(&mut self) -> Vec<String> {
        let mut text = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut text)
        });
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if read.is_err() || whole == 0 {
            return Vec::new();
        }
        text.truncate(whole);
        self.read += u64::try_from(whole).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
    }
}

impl Run<'_> {
    /// Whether this deployment commits in two phases. A phase run by hand on the leader makes
    /// nothing live, and is of no concern to the followers.
    pub fn is_two_phase(&self) -> bool {
        self.ordered.order.follower || (self.wants(Phase::ReleaseSync) && !self.followers().is_empty())
    }

    fn followers(&self) -> &[GuestName] {
        match &self.plan.role {
            Role::Leader { followers } => followers,
            Role::Follower { .. } => &[],
        }
    }

    fn decision(&self) -> Option<Decision> {
        saved::read(&path(self.layout, self.id())).ok().flatten()
    }

    /// Whether no proof matters any more: it aborts, or it was proven and may be live elsewhere.
    pub fn is_decided(&self) -> bool {
        match self.decision() {
            Some(Decision::Abort(_)) => true,
            Some(Decision::Commit) => self.was_prepared(),
            None => false,
        }
    }

    /// Whether a runner before this one was prepared, and nothing was wrong.
    pub fn was_prepared(&self) -> bool {
        let prepared = self.journal().progress().phases.iter().any(|report| report.phase == Phase::Followers);
        prepared && !self.fault_path().exists()
    }

    /// Prepared: waits for the decision.
    pub fn await_decision(&mut self, span: &Span) -> Result<Outcome, Stop> {
        let followers: Vec<_> = self.followers().iter().map(ToString::to_string).collect();
        if !followers.is_empty() {
            self.journal()
                .note(format!("proven here; {} next, and none goes live unless all can", followers.join(", ")));
        }
        let mut notes = Notes::from_now(self.layout, self.id());
        loop {
            let cancelled = self.cancel.is_set();
            let decision = self.decision();
            for line in notes.news() {
                self.journal().note(line);
            }
            match decision {
                // The leader is live, so that nothing ends it here any more.
                Some(Decision::Commit) if self.ordered.order.follower => {
                    self.cancel = Arc::default();
                    return Ok(Outcome::Done);
                }
                // It says why, also when it is followed by a cancel.
                Some(Decision::Abort(reason)) => return Err(Stop::new(reason)),
                _ if cancelled => return Err(Stop::from(Failure::Cancelled)),
                Some(Decision::Commit) => return Ok(Outcome::Done),
                None if Instant::now() > span.deadline => {
                    return Err(Stop::new(format!("no decision came within {} s", span.limit.as_secs())));
                }
                None => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_decision_counts() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        let id = DeploymentId::from(uuid::Uuid::now_v7());
        let abort = Decision::Abort("web-2: it failed".to_owned());
        assert!(decide(&layout, id, &Decision::Commit).unwrap_err().to_string().contains("no deployment"));
        std::fs::create_dir_all(layout.deployment(id)).unwrap();
        saved::write(&layout.order(id), &1).unwrap();
        assert!(decide(&layout, id, &abort).unwrap());
        assert!(!decide(&layout, id, &Decision::Commit).unwrap());
        assert_eq!(saved::read::<Decision>(&path(&layout, id)).unwrap(), Some(abort));
    }

    /// A runner that began before the agent was replaced waits for this file.
    #[test]
    fn a_runner_of_before_understands_the_decision() {
        let file = |decision: Decision| serde_json::to_string(&decision).unwrap();
        assert_eq!(file(Decision::Commit), r#"{"refused":null}"#);
        assert_eq!(file(Decision::Abort("no".to_owned())), r#"{"refused":"no"}"#);
    }

    #[test]
    fn notes_are_read_once_and_whole() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        let id = DeploymentId::from(uuid::Uuid::now_v7());
        let tell = |text: &str| note(&layout, id, &[text.to_owned()]);
        assert!(tell("too early").unwrap_err().to_string().contains("no deployment"));
        fs::create_dir_all(layout.deployment(id)).unwrap();
        saved::write(&layout.order(id), &1).unwrap();
        let mut notes = Notes::from_now(&layout, id);
        assert!(notes.news().is_empty());
        assert!(note(&layout, id, &["one".to_owned(), "t\nwo".to_owned()]).unwrap());
        assert_eq!(notes.news(), ["one", "t wo"]);
        OpenOptions::new().append(true).open(&notes.path).unwrap().write_all(b"thr").unwrap();
        assert!(notes.news().is_empty());
        OpenOptions::new().append(true).open(&notes.path).unwrap().write_all(b"ee\n").unwrap();
        assert_eq!(notes.news(), ["three"]);
        // A successor says nothing again.
        assert!(Notes::from_now(&layout, id).news().is_empty());
        saved::write(&layout.report(id), &1).unwrap();
        assert!(!tell("too late").unwrap());
    }

    #[test]
    fn of_two_at_once_one_decides() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        for _ in 0..20 {
            let id = DeploymentId::from(uuid::Uuid::now_v7());
            std::fs::create_dir_all(layout.deployment(id)).unwrap();
            saved::write(&layout.order(id), &1).unwrap();
            let abort = |reason: &str| Decision::Abort(reason.to_owned());
            let all = [Decision::Commit, abort("a"), abort("b"), abort("c")];
            let first: Vec<_> = std::thread::scope(|scope| {
                let layout = &layout;
                let threads =
                    all.map(|decision| scope.spawn(move || decide(layout, id, &decision).unwrap().then_some(decision)));
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            let kept: Decision = saved::read(&path(&layout, id)).unwrap().unwrap();
            assert_eq!(first, [kept]);
            // Nothing of those that came later is left.
            assert_eq!(std::fs::read_dir(layout.deployment(id)).unwrap().count(), 2);
        }
    }
}
