//! Several guests of one environment: each holds when it could go live, and none does before all can.
//!
//! The first guest leads. It deploys and proves, then holds in the phase `others` while the
//! controller has the other guests do the same, which hold there too. Then the first goes live,
//! and when it has, the others are told to; when one of them can't, all are told to go back.
//! So what the first guest says is live is the decision: whoever lost the thread asks for that.
//!
//! How it goes on the other guests comes as lines of a file beside the order, for who watches.
//!
//! The decision is a file beside the order. A runner that is killed while it holds, also with its
//! guest, has nothing to be sorry for: its successor proves once more and holds again.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use corpus_domain::{DeploymentId, Outcome, Phase};
use corpus_protocol::Place;
use serde::{Deserialize, Serialize};

use crate::failure::{At, Failure};
use crate::project::layout::Layout;
use crate::project::order;
use crate::project::run::{Run, with_reserve};
use crate::project::saved;
use crate::project::steps::{Span, Stop};

const GLANCE: Duration = Duration::from_millis(20);

/// What was decided on a deployment that holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Decision {
    /// Why it goes back; none when it goes live.
    refused: Option<String>,
}

fn path(layout: &Layout, id: DeploymentId) -> PathBuf {
    layout.deployment(id).join("decision.json")
}

fn there(layout: &Layout, id: DeploymentId) -> Result<(), Failure> {
    let missing = || Failure::Missing(format!("there is no deployment {id} of {} here", layout.project()));
    layout.order(id).exists().then_some(()).ok_or_else(missing)
}

/// Keeps what was decided; what was decided before stays. Tells whether it is new.
pub fn decide(layout: &Layout, id: DeploymentId, refused: Option<&str>) -> Result<bool, Failure> {
    there(layout, id)?;
    if order::is_over(layout, id) {
        return Ok(false);
    }
    let decision = Decision { refused: refused.map(str::to_owned) };
    with_reserve(layout, id, || saved::write_first(&path(layout, id), &decision))
}

fn notes_path(layout: &Layout, id: DeploymentId) -> PathBuf {
    layout.deployment(id).join("notes")
}

/// Takes what the journal of a deployment that holds is to say; tells whether it is not over yet.
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
    /// Whether this deployment goes live together with other guests. A phase run by hand on the
    /// first guest makes nothing live, and is of no concern to the others.
    pub fn has_others(&self) -> bool {
        self.ordered.order.led || (self.wants(Phase::ReleaseSync) && !self.other_guests().is_empty())
    }

    fn other_guests(&self) -> &[corpus_domain::GuestName] {
        match &self.plan.place {
            Place::First { others } => others,
            Place::Other { .. } => &[],
        }
    }

    fn decision(&self) -> Option<Decision> {
        saved::read(&path(self.layout, self.id())).ok().flatten()
    }

    /// Whether no proof matters any more: it goes back, or it was proven and may be live elsewhere.
    pub fn is_decided(&self) -> bool {
        self.decision().is_some_and(|decision| decision.refused.is_some() || self.was_holding())
    }

    /// Whether a runner before this one came as far as holding, and nothing was wrong.
    pub fn was_holding(&self) -> bool {
        let held = self.journal().progress().phases.iter().any(|report| report.phase == Phase::Others);
        held && !self.fault_path().exists()
    }

    /// Holds until it is decided.
    pub fn others(&mut self, span: &Span) -> Result<Outcome, Stop> {
        let others: Vec<_> = self.other_guests().iter().map(ToString::to_string).collect();
        if !others.is_empty() {
            self.journal().note(format!("proven here; {} next, and none goes live unless all can", others.join(", ")));
        }
        let mut notes = Notes::from_now(self.layout, self.id());
        loop {
            let cancelled = self.cancel.is_set();
            let decision = self.decision();
            for line in notes.news() {
                self.journal().note(line);
            }
            match decision {
                // The first guest is live, so that nothing ends it here any more.
                Some(Decision { refused: None }) if self.ordered.order.led => {
                    self.cancel = Arc::default();
                    return Ok(Outcome::Done);
                }
                // It says why, also when it is followed by a cancel.
                Some(Decision { refused: Some(why) }) => return Err(Stop::new(why)),
                _ if cancelled => return Err(Stop::from(Failure::Cancelled)),
                Some(Decision { refused: None }) => return Ok(Outcome::Done),
                None if Instant::now() > span.deadline => {
                    let limit = span.limit.as_secs();
                    return Err(Stop::new(format!("nothing was heard of the other guests for {limit} s")));
                }
                None => std::thread::sleep(GLANCE),
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
        assert!(decide(&layout, id, None).unwrap_err().to_string().contains("no deployment"));
        std::fs::create_dir_all(layout.deployment(id)).unwrap();
        saved::write(&layout.order(id), &1).unwrap();
        assert!(decide(&layout, id, Some("web-2: it failed")).unwrap());
        assert!(!decide(&layout, id, None).unwrap());
        let kept: Decision = saved::read(&path(&layout, id)).unwrap().unwrap();
        assert_eq!(kept.refused.as_deref(), Some("web-2: it failed"));
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
            let all = [None, Some("a"), Some("b"), Some("c")];
            let first: Vec<_> = std::thread::scope(|scope| {
                let layout = &layout;
                let threads =
                    all.map(|refused| scope.spawn(move || decide(layout, id, refused).unwrap().then_some(refused)));
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            let kept: Decision = saved::read(&path(&layout, id)).unwrap().unwrap();
            assert_eq!(first, [kept.refused.as_deref()]);
            // Nothing of the others is left.
            assert_eq!(std::fs::read_dir(layout.deployment(id)).unwrap().count(), 2);
        }
    }
}
