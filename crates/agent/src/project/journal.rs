//! The journal of a deployment: what happened, a line each, in the order in which it happened.
//!
//! Every entry is one write at the end of the file, so who follows never sees half of one but at
//! the very end; the ends of phases are on the disk before the run goes on. The writer folds what
//! it writes into the report ([`Progress`]), and a later runner folds what it finds.
//!
//! Of output only so much is kept: recipes that write without end fill neither the guest's disk
//! nor the controller's database, and the journal says that it is cut.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;

use corpus_domain::{DeploymentId, Outcome, Phase, plain_line};
use corpus_protocol::{DeploymentEvent, Entry, Millis, Moment, PhaseReport, Proof, RecipeReport, Report, Stream};

use crate::failure::{At, Failure};
use crate::project::layout::Layout;
use crate::project::redact::Redactor;
use crate::project::saved;

/// The longest text of a line, in characters.
pub const MAX_TEXT: usize = 4096;
/// Lines of output of a deployment, and bytes of them: a recipe tells 1.3 MB of its output at most,
/// so a dozen may be as loud as they can.
const MAX_LINES: u64 = 50_000;
const MAX_BYTES: usize = 16 << 20;
/// What Corpus itself says after that.
const MAX_NOTES: u64 = 2_000;
/// What stands where output is left out.
const CUT: &str = "the output is cut here: the deployment has written as much as is kept";

/// What a journal tells so far.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// When it began.
    pub began_ms: Option<Millis>,
    /// The event with which it began.
    pub begun: Option<DeploymentEvent>,
    /// Its phases so far; the last one may not have ended.
    pub phases: Vec<PhaseReport>,
    /// The checks so far.
    pub proofs: Vec<Proof>,
    /// What was odd so far.
    pub warnings: Vec<String>,
    /// How many lines it has.
    pub lines: u64,
    /// The bytes of their text.
    pub bytes: usize,
    /// The phase that began and did not end.
    pub open: Option<Phase>,
    /// The report, when it is over.
    pub report: Option<Report>,
}

impl Progress {
    /// Takes the next entry.
    pub fn take(&mut self, entry: &Entry) {
        match &entry.event {
            DeploymentEvent::Waiting { .. }
            | DeploymentEvent::RecipeBegun { .. }
            | DeploymentEvent::NeedsRoom { .. }
            | DeploymentEvent::LeavesBalance { .. } => {}
            DeploymentEvent::Begun { .. } => {
                self.began_ms.get_or_insert(entry.at_ms);
                self.begun.get_or_insert_with(|| entry.event.clone());
            }
            DeploymentEvent::PhaseBegun { phase } => {
                self.open = Some(*phase);
                // One that is begun again, after its runner died, counts from anew.
                self.phases.retain(|known| known.phase != *phase);
                self.phases.push(PhaseReport {
                    phase: *phase,
                    outcome: Outcome::Failed,
                    began_ms: Some(entry.at_ms),
                    elapsed_ms: 0,
                    recipes: Vec::new(),
                });
            }
            DeploymentEvent::Line { text, .. } => {
                self.lines += 1;
                self.bytes = self.bytes.saturating_add(text.len());
            }
            DeploymentEvent::RecipeEnded { phase, recipe } => {
                self.of(*phase, |report| report.recipes.push(recipe.clone()));
            }
            DeploymentEvent::Proved { proof } => self.proofs.push(proof.clone()),
            // Once, however often a run began anew.
            DeploymentEvent::Warned { text } => {
                if !self.warnings.contains(text) {
                    self.warnings.push(text.clone());
                }
            }
            DeploymentEvent::PhaseEnded { phase, outcome, elapsed_ms } => {
                self.open = None;
                self.of(*phase, |report| (report.outcome, report.elapsed_ms) = (*outcome, *elapsed_ms));
            }
            DeploymentEvent::Ended { report } => self.report = Some(report.as_ref().clone()),
        }
    }

    fn of(&mut self, phase: Phase, change: impl FnOnce(&mut PhaseReport)) {
        if let Some(report) = self.phases.iter_mut().find(|report| report.phase == phase) {
            change(report);
        }
    }

    /// All phases in the order of a run; those that were not run are skipped ones.
    pub fn all_phases(&self) -> Vec<PhaseReport> {
        let skipped = |phase| PhaseReport {
            phase,
            outcome: Outcome::Skipped,
            began_ms: None,
            elapsed_ms: 0,
            recipes: Vec::new(),
        };
        let known = |phase: Phase| self.phases.iter().find(|report| report.phase == phase).cloned();
        Phase::ALL.iter().map(|phase| known(*phase).unwrap_or_else(|| skipped(*phase))).collect()
    }

    /// Whether all checks of a moment passed; nothing when there were none.
    pub fn passed(&self, moment: Moment) -> Option<bool> {
        let mut proofs = self.proofs.iter().filter(|proof| proof.moment == moment).peekable();
        proofs.peek()?;
        Some(proofs.all(|proof| proof.passed))
    }
}

/// The end of a journal, to write on.
pub struct Journal {
    file: File,
    redactor: Redactor,
    progress: Progress,
    is_cut: bool,
}

impl Journal {
    /// Opens the journal of a deployment and reads what is in it.
    pub fn open(layout: &Layout, id: DeploymentId) -> Result<Self, Failure> {
        let path = layout.journal(id);
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path).at("open", &path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).at("read", &path)?;
        let mut progress = Progress::default();
        for line in text.split(|byte| *byte == b'\n') {
            if let Ok(entry) = serde_json::from_slice(line) {
                progress.take(&entry);
            }
        }
        if text.last().is_some_and(|byte| *byte != b'\n') {
            file.seek(SeekFrom::End(0)).and_then(|_| file.write_all(b"\n")).at("write", &path)?;
        }
        Ok(Self { file, redactor: Redactor::default(), progress, is_cut: false })
    }

    /// What it tells so far.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// From now on these secrets are blacked out, besides those before.
    pub fn hide(&mut self, redactor: Redactor) {
        let before = std::mem::take(&mut self.redactor);
        self.redactor = before.and(redactor);
    }

    /// What it blacks out.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Writes an entry. A journal that can't be written (the disk is full) holds up nothing:
    /// putting things back matters more, and its end is written when there is room again.
    pub fn tell(&mut self, event: DeploymentEvent) {
        let entry = Entry { at_ms: saved::now(), event: self.redactor.event(event) };
        self.progress.take(&entry);
        let matters = !matches!(entry.event, DeploymentEvent::Line { .. });
        if self.write(&entry).is_ok() && matters {
            let _ = self.file.sync_data();
        }
    }

    /// Writes the last entry, surely.
    pub fn end(&mut self, report: Report) -> Result<(), Failure> {
        let event = self.redactor.event(DeploymentEvent::Ended { report: Box::new(report) });
        let entry = Entry { at_ms: saved::now(), event };
        self.write(&entry).and_then(|()| self.file.sync_all()).at("write", "the journal")?;
        self.progress.take(&entry);
        Ok(())
    }

    fn write(&mut self, entry: &Entry) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(&line);
        if written.is_err() {
            // Half of a line would spoil the next one.
            let _ = self.file.set_len(before);
        }
        written
    }

    /// Writes a line of output; returns its number. Long ones are cut; of one that is left out the
    /// number is that of the last that is kept.
    pub fn line(&mut self, stream: Stream, text: &str) -> u64 {
        let Progress { lines, bytes, .. } = self.progress;
        let fits = lines < MAX_LINES && bytes < MAX_BYTES;
        if fits || (stream == Stream::Note && lines < MAX_LINES + MAX_NOTES) {
            self.tell(DeploymentEvent::Line { stream, text: plain_line(text, MAX_TEXT) });
        } else if !std::mem::replace(&mut self.is_cut, true) {
            self.tell(DeploymentEvent::Line { stream: Stream::Note, text: CUT.to_owned() });
        }
        self.progress.lines
    }

    /// Says something of Corpus's own.
    pub fn note(&mut self, text: impl AsRef<str>) {
        for line in text.as_ref().lines() {
            self.line(Stream::Note, line);
        }
    }

    /// Says what is odd, and goes on.
    pub fn warn(&mut self, text: &str) {
        self.tell(DeploymentEvent::Warned { text: plain_line(text, MAX_TEXT) });
    }

    /// A recipe ended.
    pub fn recipe(&mut self, phase: Phase, recipe: RecipeReport) {
        self.tell(DeploymentEvent::RecipeEnded { phase, recipe });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(folder: &tempfile::TempDir) -> (Layout, DeploymentId) {
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        let id = DeploymentId::from(uuid::Uuid::now_v7());
        std::fs::create_dir_all(layout.deployment(id)).unwrap();
        (layout, id)
    }

    #[test]
    fn a_torn_line_is_ended_and_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let (layout, id) = journal(&folder);
        let mut first = Journal::open(&layout, id).unwrap();
        first.hide(Redactor::new(vec!["hunter22".into()]));
        assert_eq!(first.line(Stream::Out, "the password is hunter22"), 1);
        let mut file = OpenOptions::new().append(true).open(layout.journal(id)).unwrap();
        file.write_all(b"{\"at_ms\":1,\"ev").unwrap();
        let mut second = Journal::open(&layout, id).unwrap();
        second.tell(DeploymentEvent::PhaseBegun { phase: Phase::Install });
        let third = Journal::open(&layout, id).unwrap();
        assert_eq!((third.progress().lines, third.progress().open), (1, Some(Phase::Install)));
        let text = std::fs::read_to_string(layout.journal(id)).unwrap();
        assert!(text.contains("the password is [secret]") && text.lines().count() == 3, "{text}");
    }

    #[test]
    fn output_without_end_is_cut_and_corpus_still_says_what_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let (layout, id) = journal(&folder);
        let mut journal = Journal::open(&layout, id).unwrap();
        let long = "x".repeat(MAX_TEXT);
        let last = (0..5_000).map(|_| journal.line(Stream::Out, &long)).last().unwrap();
        journal.note("a check failed");
        let text = std::fs::read_to_string(layout.journal(id)).unwrap();
        assert!(text.len() < MAX_BYTES + (1 << 20), "{}", text.len());
        assert_eq!((text.matches(CUT).count(), text.matches("a check failed").count()), (1, 1));
        assert_eq!((last, journal.progress().lines), (4_097, 4_098));
        assert_eq!(journal.line(Stream::Err, "no more"), 4_098);
        assert_eq!(Journal::open(&layout, id).unwrap().progress().lines, 4_098);
    }

    #[test]
    fn what_a_recipe_writes_acts_on_no_terminal() {
        let folder = tempfile::tempdir().unwrap();
        let (layout, id) = journal(&folder);
        let mut journal = Journal::open(&layout, id).unwrap();
        journal.line(Stream::Out, "\u{1b}[32mgreen\u{1b}]52;c;eA==\u{7} \0\u{202e}");
        let text = std::fs::read_to_string(layout.journal(id)).unwrap();
        assert!(text.contains("green \u{fffd}\u{fffd}\""), "{text}");
    }

    #[test]
    fn phases_that_did_not_run_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let (layout, id) = journal(&folder);
        let mut journal = Journal::open(&layout, id).unwrap();
        journal.tell(DeploymentEvent::PhaseBegun { phase: Phase::Sync });
        journal.tell(DeploymentEvent::PhaseEnded { phase: Phase::Sync, outcome: Outcome::Done, elapsed_ms: 3 });
        let phases = journal.progress().all_phases();
        assert_eq!(phases.len(), Phase::ALL.len());
        assert_eq!((phases[0].outcome, phases[1].outcome), (Outcome::Skipped, Outcome::Done));
    }
}
