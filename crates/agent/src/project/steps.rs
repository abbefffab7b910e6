//! Runs the recipes of a phase, and tells how each ended.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use corpus_domain::{CommitId, DeploymentState, Outcome, Phase};
use corpus_protocol::{DeploymentEvent, RecipeReport, RequestError, SaltState, Source, Stream};

use crate::failure::Failure;
use crate::project::archive::Archive;
use crate::project::checks::Prover;
use crate::project::dialect::Kept;
use crate::project::leftovers::MARK;
use crate::project::phases::configuration_file;
use crate::project::process::{Bounds, Program};
use crate::project::recipe::{Recipe, Recipes};
use crate::project::run::Run;
use crate::project::salt;

/// A phase while it runs.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// Which.
    pub phase: Phase,
    /// How long it may take.
    pub limit: Duration,
    /// Until when.
    pub deadline: Instant,
}

/// Why a phase ended early.
#[derive(Debug)]
pub struct Stop {
    /// In which recipe.
    pub recipe: Option<String>,
    /// What happened, for people.
    pub message: String,
    /// The number of the line to read first.
    pub line: Option<u64>,
}

impl Stop {
    /// Something of Corpus's own went wrong.
    pub fn new(message: impl Into<String>) -> Self {
        Self { recipe: None, message: message.into(), line: None }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::new(RequestError::from(failure).message)
    }
}

/// What a recipe's lines tell.
#[derive(Debug, Default)]
struct Trail {
    lines: Option<(u64, u64)>,
    telling: Option<(u64, String)>,
    error: Option<(u64, String)>,
    last: Option<(u64, String)>,
}

impl Trail {
    fn take(&mut self, number: u64, stream: Stream, text: &str) {
        self.lines = Some((self.lines.map_or(number, |(first, _)| first), number));
        if stream == Stream::Note || text.trim().is_empty() {
            return;
        }
        let line = Some((number, text.trim().chars().take(200).collect()));
        if salt::tells_failure(text) && self.telling.is_none() {
            self.telling.clone_from(&line);
        }
        if looks_like_an_error(text) || (stream == Stream::Err && self.error.is_none()) {
            self.error.clone_from(&line);
        }
        self.last = line;
    }

    /// The line to read first: what Salt says of a state that failed, the last that looks like
    /// an error, the last at all.
    fn failing(self) -> Option<(u64, String)> {
        self.telling.or(self.error).or(self.last)
    }
}

fn looks_like_an_error(text: &str) -> bool {
    let low = text.to_ascii_lowercase();
    ["error", "fatal:", "traceback", "no such file", "permission denied", "no space left", "not found", "failed"]
        .iter()
        .any(|word| low.contains(word))
}

impl Run<'_> {
    /// Runs the recipes of the tree that belong to a phase; tells whether there were any.
    pub fn recipes(&self, span: &Span, recipes: &Recipes, of: Phase) -> Result<bool, Stop> {
        self.all(span, recipes.of(of))
    }

    /// Runs these recipes in a phase; tells whether there were any.
    pub fn all<'r>(&self, span: &Span, recipes: impl Iterator<Item = &'r Recipe>) -> Result<bool, Stop> {
        let mut any = false;
        for recipe in recipes {
            any = true;
            self.recipe(span, recipe)?;
        }
        Ok(any)
    }

    fn recipe(&self, span: &Span, recipe: &Recipe) -> Result<(), Stop> {
        if self.cancel.is_set() {
            return Err(Stop::from(Failure::Cancelled));
        }
        self.journal().tell(DeploymentEvent::RecipeBegun { phase: span.phase, name: recipe.name.clone() });
        let began = Instant::now();
        let mut trail = Trail::default();
        let (failed, states) = match self.prepare(span, recipe, &salt::Act::Apply(&recipe.name)) {
            Ok((program, salt)) => {
                let failed = self.run_program(span, &program, &mut trail);
                let states = salt.map_or_else(|| Ok(Vec::new()), |run| run.result());
                (failed, states.unwrap_or_default())
            }
            Err(failure) => (Some(Stop::from(failure).message), Vec::new()),
        };
        let lines = trail.lines;
        let failing = failed.as_ref().and_then(|_| trail.failing());
        self.journal().recipe(
            span.phase,
            RecipeReport {
                name: recipe.name.clone(),
                outcome: if failed.is_some() { Outcome::Failed } else { Outcome::Done },
                elapsed_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
                reason: failed.clone(),
                lines,
                failing_line: failing.as_ref().map(|(line, _)| *line),
                states: states.clone(),
            },
        );
        let Some(reason) = failed else { return Ok(()) };
        let told = failing.as_ref().map(|(_, text)| text.clone());
        let said = told.as_deref().and_then(salt::missing).map(str::to_owned).or_else(|| said(&states)).or(told);
        let message = said.map_or_else(|| reason.clone(), |said| format!("{reason}: {said}"));
        Err(Stop { recipe: Some(recipe.name.clone()), message, line: failing.map(|(line, _)| line) })
    }

    /// Has Salt render these recipes, of which none runs: what would fail in it later fails now.
    pub fn render<'r>(&self, span: &Span, mut recipes: impl Iterator<Item = &'r Recipe>) -> Result<(), Stop> {
        recipes.try_for_each(|recipe| self.renders(span, recipe))
    }

    fn renders(&self, span: &Span, recipe: &Recipe) -> Result<(), Stop> {
        if self.cancel.is_set() {
            return Err(Stop::from(Failure::Cancelled));
        }
        let (program, run) = self.prepare(span, recipe, &salt::Act::Render(&recipe.name))?;
        let mut trail = Trail::default();
        let failed = self.run_program(span, &program, &mut trail);
        run.iter().try_for_each(salt::Run::forget)?;
        let Some(reason) = failed else { return Ok(()) };
        let (line, said) = trail.failing().unzip();
        let said = said.as_deref().map(|said| salt::missing(said).unwrap_or(said));
        let message = format!("it does not render: {}", said.unwrap_or(&reason));
        Err(Stop { recipe: Some(recipe.name.clone()), message, line })
    }

    fn run_program(&self, span: &Span, program: &Program, trail: &mut Trail) -> Option<String> {
        let bounds = Bounds {
            deadline: span.deadline,
            limit: span.limit,
            cancel: &self.cancel,
            mark: self.id().to_string(),
            redactor: self.journal().redactor().clone(),
        };
        program.run(&bounds, &mut |stream, text| {
            let mut journal = self.journal();
            // Blacked out as a whole, before it is cut.
            let text: Vec<char> = journal.redactor().text(text).chars().collect();
            for part in text.chunks(crate::project::journal::MAX_TEXT).map(|part| part.iter().collect::<String>()) {
                let number = journal.line(stream, &part);
                trail.take(number, stream, &part);
            }
            if text.is_empty() {
                let number = journal.line(stream, "");
                trail.take(number, stream, "");
            }
        })
    }

    fn prepare(
        &self,
        span: &Span,
        recipe: &Recipe,
        act: &salt::Act<'_>,
    ) -> Result<(Program, Option<salt::Run>), Failure> {
        if !recipe.salt {
            return Ok((Program { path: recipe.path.clone(), ..self.program(span.phase)? }, None));
        }
        let goes_back =
            span.phase == Phase::Rollback || self.ending.is_some_and(|state| state != DeploymentState::Live);
        let archive = self.archive_for(span.phase);
        let kept = Kept { archive: archive.folder(), goes_back };
        let configuration = (&self.configuration, configuration_file(self)?);
        let place = salt::Place::of(self.layout, self.host, &self.plan, configuration, &kept)?;
        let folder = self.layout.deployment(self.id()).join("salt").join(&recipe.name);
        let run = salt::Run::prepare(&folder, &place, act)?;
        Ok((run.program(self.program(span.phase)?), Some(run)))
    }

    /// The archive that recipes of a phase put aside into, or bring back from.
    fn archive_for(&self, phase: Phase) -> Archive {
        match self.ordered.order.source {
            // What comes back brings its own dumps; should that fail, this run's own are needed.
            Source::Archive { archive } if phase == Phase::Install => Archive::of(self.layout, archive),
            _ => Archive::of(self.layout, self.id()),
        }
    }

    /// A program of the project in its surroundings; only its path is missing.
    pub fn program(&self, phase: Phase) -> Result<Program, Failure> {
        let id = self.id();
        let archive = self.archive_for(phase);
        let mut env: Vec<(String, OsString)> =
            self.configuration.environment().into_iter().map(|(name, value)| (name, value.into())).collect();
        let mut set = |name: &str, value: OsString| env.push((name.to_owned(), value));
        set("CORPUS_CONFIGURATION", configuration_file(self)?.into());
        set("CORPUS_PROJECT", self.layout.project().as_str().into());
        set("CORPUS_ENVIRONMENT", self.plan.environment.as_str().into());
        set("CORPUS_PROJECT_ROOT", self.layout.tree().into());
        set("CORPUS_PILLAR_ROOT", self.layout.pillar().into());
        set("CORPUS_DATA", self.layout.data().into());
        set("CORPUS_USER", self.configuration.user()?.into());
        set("CORPUS_PHASE", phase.as_str().into());
        set("CORPUS_DEPLOYMENT", id.to_string().into());
        set("CORPUS_COMMIT", self.target.commit.as_ref().map_or("", CommitId::as_str).into());
        set("CORPUS_ARCHIVE", archive.data().into());
        if phase == Phase::Notify {
            let state = self.ending.map_or("", |state| state.as_str());
            set("CORPUS_STATE", state.into());
            set("CORPUS_REPORT", self.notify_path().into());
        }
        set(MARK, id.to_string().into());
        Ok(Program { path: PathBuf::new(), args: Vec::new(), env, folder: self.layout.tree(), stdin: None })
    }

    /// Makes checks at a moment.
    pub fn prover(&self, back: bool) -> Prover<'_> {
        let phase = if back { Phase::Rollback } else { Phase::Prove };
        let nothing =
            || Program { path: PathBuf::new(), args: vec![], env: vec![], folder: self.layout.tree(), stdin: None };
        Prover {
            plan: &self.plan,
            command: self.program(phase).unwrap_or_else(|_| nothing()),
            mark: self.id().to_string(),
            cancel: &self.cancel,
        }
    }
}

/// What Salt says of the first state that failed.
fn said(states: &[SaltState]) -> Option<String> {
    let failed = states.iter().find(|state| !state.ok)?;
    let comment = failed.comment.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    Some(format!("{} ({}): {comment}", failed.id, failed.function).chars().take(300).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(lines: &[(Stream, &str)]) -> u64 {
        let mut trail = Trail::default();
        for (number, (stream, text)) in (1..).zip(lines) {
            trail.take(number, *stream, text);
        }
        trail.failing().unwrap().0
    }

    #[test]
    fn the_line_to_read_first() {
        use Stream::{Err, Note, Out};
        let python = [
            (Out, "collecting"),
            (Err, "Traceback (most recent call last):"),
            (Err, "  File x"),
            (Err, "ModuleNotFoundError: no x"),
            (Out, "bye"),
            (Note, "sleep stayed behind"),
        ];
        assert_eq!(failing(&python), 4);
        assert_eq!(failing(&[(Out, "a"), (Out, "b"), (Out, " ")]), 2);
        assert_eq!(failing(&[(Out, "a"), (Err, "oops"), (Out, "b")]), 2);
        let salt = [(Out, "      Result: False"), (Out, "     Comment: x failed"), (Out, "      Result: False")];
        assert_eq!(failing(&salt), 1);
    }
}
