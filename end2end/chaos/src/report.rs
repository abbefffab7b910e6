//! The matrix as a table: for people at the terminal, and for `docs/reliability.md`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use corpus_domain::{JobKind, JobState};
use serde::{Deserialize, Serialize};

use crate::cell::{Outcome, Place};
use crate::fault::{Fault, Moment, Touches};

/// A step of a job, and what it works on.
pub type StepOf = (JobKind, &'static str, Touches);

/// What came of a cell, or why that is not known.
pub type Tried = std::result::Result<Outcome, String>;

/// All that was tried, now and before.
#[derive(Default)]
pub struct Report {
    cells: Vec<(Place, Tried)>,
    /// How many of them now.
    pub tried: usize,
    /// And how many of those ended wrong.
    pub wrong: usize,
}

/// A cell as it is kept between runs.
#[derive(Serialize, Deserialize)]
struct Kept {
    kind: JobKind,
    step: String,
    fault: Fault,
    moment: Moment,
    state: Option<JobState>,
    elapsed_ms: u64,
    wrong: Vec<String>,
}

const fn letter(state: JobState) -> char {
    match state {
        JobState::Done => 'D',
        JobState::Undone => 'U',
        JobState::Stuck => 'S',
        _ => '?',
    }
}

fn is_good(outcome: &Tried) -> bool {
    outcome.as_ref().is_ok_and(|outcome| outcome.wrong.is_empty())
}

impl Report {
    /// Takes a cell in; what an earlier run found there counts no more.
    pub fn note(&mut self, place: Place, outcome: Tried) {
        self.tried += 1;
        self.wrong += usize::from(!is_good(&outcome));
        self.cells.retain(|(earlier, _)| *earlier != place);
        self.cells.push((place, outcome));
    }

    /// Whether it was tried, and ended as it should.
    pub fn has_good(&self, place: Place) -> bool {
        self.cells.iter().any(|(tried, outcome)| *tried == place && is_good(outcome))
    }

    /// Takes over what an earlier run has kept.
    pub fn add_kept(&mut self, file: &Path, steps: &[StepOf]) -> Result<()> {
        let kept: Vec<Kept> = serde_json::from_slice(&fs::read(file)?)?;
        for cell in kept {
            let Some(step) = steps.iter().find(|step| (step.0, step.1) == (cell.kind, cell.step.as_str())) else {
                continue;
            };
            let (fault, moment) = (cell.fault, cell.moment);
            let place = Place { kind: step.0, step: step.1, touches: step.2, fault, moment };
            let elapsed = Duration::from_millis(cell.elapsed_ms);
            let outcome = cell.state.map(|state| Outcome { state, elapsed, wrong: cell.wrong.clone() });
            self.cells.push((place, outcome.ok_or_else(|| cell.wrong.join("\n"))));
        }
        Ok(())
    }

    /// Keeps all cells for a later run.
    pub fn keep(&self, file: &Path) -> Result<()> {
        let kept = self.cells.iter().map(|(place, outcome)| Kept {
            kind: place.kind,
            step: place.step.to_owned(),
            fault: place.fault,
            moment: place.moment,
            state: outcome.as_ref().ok().map(|outcome| outcome.state),
            elapsed_ms: outcome.as_ref().map_or(0, |one| u64::try_from(one.elapsed.as_millis()).unwrap_or(u64::MAX)),
            wrong: outcome.as_ref().map_or_else(|error| vec![error.clone()], |one| one.wrong.clone()),
        });
        Ok(fs::write(file, serde_json::to_vec(&kept.collect::<Vec<_>>())?)?)
    }

    fn mark(&self, step: &StepOf, fault: Fault, moment: Moment) -> char {
        let here = |place: &Place| {
            (place.kind, place.step) == (step.0, step.1) && (place.fault, place.moment) == (fault, moment)
        };
        match self.cells.iter().find(|(place, _)| here(place)) {
            Some((_, Ok(outcome))) if outcome.wrong.is_empty() => letter(outcome.state),
            Some(_) => '✗',
            None if step.2.obstacle(fault).is_some() => '–',
            None => ' ',
        }
    }

    /// Whether every cell that can be was tried.
    pub fn is_whole(&self, steps: &[StepOf]) -> bool {
        let marks = |step: &StepOf| Fault::ALL.map(|fault| Moment::ALL.map(|moment| self.mark(step, fault, moment)));
        !steps.iter().flat_map(marks).flatten().any(|mark| mark == ' ')
    }

    /// The whole of it.
    pub fn markdown(&self, steps: &[StepOf]) -> String {
        let mut text = String::new();
        let (tried, wrong) = (self.cells.len(), self.cells.iter().filter(|(_, outcome)| !is_good(outcome)).count());
        let cannot = steps.iter().flat_map(|step| Fault::ALL.map(|fault| step.2.obstacle(fault).is_some()));
        let cannot = cannot.filter(|cannot| *cannot).count() * Moment::ALL.len();
        let _ = writeln!(
            text,
            "{tried} cells were tried, {wrong} of them ended wrong; {cannot} can't be, for the reasons below.\n\n\
             Each mark stands for a job that was really run, with the fault before, during and after the step's effect:\n\
             `D` it ended done, `U` undone with nothing left, `S` stuck with what is left named, `–` it can't happen.\n"
        );
        self.table(&mut text, steps);
        self.times(&mut text);
        reasons(&mut text, steps);
        text
    }

    fn table(&self, text: &mut String, steps: &[StepOf]) {
        let _ = write!(text, "| job | step |");
        for fault in Fault::ALL {
            let _ = write!(text, " {} |", fault.title());
        }
        let _ = writeln!(text, "\n|---|---|{}", "---|".repeat(Fault::ALL.len()));
        for step in steps {
            let _ = write!(text, "| {} | {} |", step.0, step.1);
            for fault in Fault::ALL {
                let marks: String = Moment::ALL.iter().map(|moment| self.mark(step, fault, *moment)).collect();
                let _ = write!(text, " {marks} |");
            }
            text.push('\n');
        }
    }

    fn times(&self, text: &mut String) {
        let _ = writeln!(
            text,
            "\nFrom the fault to the end of the job, in seconds. An outage lasts 6 s (a database that refuses 2.5 s, a lease \
             1.5 s, an answer that is late 11 s), and time limits are shortened to 16 %, but none below 5 s.\n\n\
             | fault | cells | done | undone | stuck | median | longest |\n|---|---|---|---|---|---|---|"
        );
        let mut by_fault: BTreeMap<Fault, Vec<&Outcome>> = BTreeMap::new();
        for (place, outcome) in &self.cells {
            if let Ok(outcome) = outcome {
                by_fault.entry(place.fault).or_default().push(outcome);
            }
        }
        for (fault, outcomes) in by_fault {
            let count = |state| outcomes.iter().filter(|outcome| outcome.state == state).count();
            let mut times: Vec<f64> = outcomes.iter().map(|outcome| outcome.elapsed.as_secs_f64()).collect();
            times.sort_by(f64::total_cmp);
            let (median, longest) = (times.get(times.len() / 2), times.last());
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {:.1} | {:.1} |",
                fault.title(),
                outcomes.len(),
                count(JobState::Done),
                count(JobState::Undone),
                count(JobState::Stuck),
                median.copied().unwrap_or_default(),
                longest.copied().unwrap_or_default()
            );
        }
    }
}

fn reasons(text: &mut String, steps: &[StepOf]) {
    let mut by_reason: BTreeMap<&str, (Vec<String>, Vec<&str>)> = BTreeMap::new();
    for (kind, step, touches) in steps {
        for fault in Fault::ALL {
            let Some(reason) = touches.obstacle(fault) else { continue };
            let (places, faults) = by_reason.entry(reason).or_default();
            let place = format!("{kind}.{step}");
            if !places.contains(&place) {
                places.push(place);
            }
            if !faults.contains(&fault.title()) {
                faults.push(fault.title());
            }
        }
    }
    let _ = writeln!(text, "\nWhat can't be, and why:\n");
    for (reason, (places, faults)) in by_reason {
        let _ = writeln!(text, "- {reason}: {} at {}", faults.join(", "), places.join(", "));
    }
}
