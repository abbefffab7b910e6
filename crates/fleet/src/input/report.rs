//! What a deployment's journal and report may be at most. A report is written down again with
//! every batch of lines while the deployment runs, so its size in all is bounded too.

use std::collections::BTreeSet;

use corpus_domain::plain_line;
use corpus_protocol::{
    DeploymentEvent, Entry, MAX_STATES, Millis, PhaseReport, Proof, RecipeReport, Report, SaltState, StatesRun,
};

use super::answer::{LINE, NAME, SENTENCE, cut};

/// Nothing takes longer than that: 31 days.
const LONGEST_MS: u64 = 31 * 86_400_000;
/// The year 2200; a moment beyond is none.
const LATEST_MS: Millis = 7_258_118_400_000;
/// The agent tells no more of what came with a deployment.
const MOST_COMMITS: usize = 50;
/// A project keeps up to 100 archives (`archives` of its settings).
pub(super) const MOST_ARCHIVES: usize = 200;
const MOST_PROOFS: usize = 200;
/// What is odd about a tree is told in a few sentences.
const MOST_WARNINGS: usize = 20;
/// Recipes of a phase: a project has some dozens.
const MOST_RECIPES: usize = 200;
/// States of all recipes of a report together: Salt has some hundreds for a large project.
const MOST_STATES: usize = 2_000;
/// States of one guest.
const MOST_RAN: u64 = 1_000_000;

/// Bounds a line of a journal.
pub(super) fn entry(entry: &mut Entry) {
    time(&mut entry.at_ms);
    match &mut entry.event {
        DeploymentEvent::Waiting { what: text } | DeploymentEvent::Warned { text } => {
            *text = plain_line(text, SENTENCE);
        }
        DeploymentEvent::Begun { commits, .. } => of_commits(commits),
        DeploymentEvent::PhaseBegun { .. }
        | DeploymentEvent::NeedsRoom { .. }
        | DeploymentEvent::LeavesBalance { .. } => {}
        DeploymentEvent::RecipeBegun { name, .. } => *name = plain_line(name, NAME),
        DeploymentEvent::Line { text, .. } => *text = plain_line(text, LINE),
        DeploymentEvent::RecipeEnded { recipe, .. } => of_recipe(recipe, &mut { MOST_STATES }),
        DeploymentEvent::Proved { proof } => of_proof(proof),
        DeploymentEvent::PhaseEnded { elapsed_ms, .. } => span(elapsed_ms),
        DeploymentEvent::Ended { report } => whole(report),
    }
}

/// Bounds the whole of a deployment.
pub(super) fn whole(report: &mut Report) {
    [&mut report.ordered_ms, &mut report.began_ms, &mut report.ended_ms].into_iter().for_each(time);
    report.by = plain_line(&report.by, NAME);
    of_commits(&mut report.commits);
    of_phases(&mut report.phases);
    report.proofs.truncate(MOST_PROOFS);
    report.proofs.iter_mut().for_each(of_proof);
    report.warnings.truncate(MOST_WARNINGS);
    report.warnings.iter_mut().for_each(|text| *text = plain_line(text, SENTENCE));
    report.archives.truncate(MOST_ARCHIVES);
    report.archives.iter_mut().for_each(|archive| time(&mut archive.at_ms));
    if let Some(live) = &mut report.live {
        time(&mut live.since_ms);
    }
    if let Some(fault) = &mut report.fault {
        cut(&mut fault.message, LINE);
        fault.recipe.iter_mut().for_each(|recipe| cut(recipe, NAME));
    }
    report.failed_tree.iter_mut().for_each(|tree| cut(tree, SENTENCE));
}

/// Each phase once, the first that is told.
fn of_phases(phases: &mut Vec<PhaseReport>) {
    let mut seen = BTreeSet::new();
    phases.retain(|one| seen.insert(one.phase));
    let mut states = MOST_STATES;
    for phase in phases {
        phase.began_ms.iter_mut().for_each(time);
        span(&mut phase.elapsed_ms);
        phase.recipes.truncate(MOST_RECIPES);
        phase.recipes.iter_mut().for_each(|recipe| of_recipe(recipe, &mut states));
    }
}

fn of_recipe(recipe: &mut RecipeReport, room: &mut usize) {
    recipe.name = plain_line(&recipe.name, NAME);
    recipe.reason.iter_mut().for_each(|why| cut(why, SENTENCE));
    span(&mut recipe.elapsed_ms);
    recipe.states.truncate(*room);
    *room -= recipe.states.len();
    of_states(&mut recipe.states);
}

/// Bounds what all states of a guest came to: no more were told than ran.
pub(super) fn states_run(run: &mut StatesRun) {
    run.states.truncate(MAX_STATES);
    of_states(&mut run.states);
    run.ran = run.ran.min(MOST_RAN);
    run.failed = run.failed.min(run.ran);
    run.changed = run.changed.min(run.ran);
}

fn of_states(states: &mut [SaltState]) {
    for SaltState { id, function, name, comment, elapsed_ms, .. } in states {
        for text in [id, function, name] {
            cut(text, NAME);
        }
        cut(comment, SENTENCE);
        span(elapsed_ms);
    }
}

fn of_proof(Proof { check, seen, elapsed_ms, .. }: &mut Proof) {
    *check = plain_line(check, SENTENCE);
    *seen = plain_line(seen, SENTENCE);
    span(elapsed_ms);
}

fn of_commits(commits: &mut Vec<corpus_protocol::Commit>) {
    commits.truncate(MOST_COMMITS);
    for commit in commits {
        commit.subject = plain_line(&commit.subject, NAME);
        commit.author = plain_line(&commit.author, NAME);
        time(&mut commit.at_ms);
    }
}

pub(super) fn span(elapsed_ms: &mut u64) {
    *elapsed_ms = (*elapsed_ms).min(LONGEST_MS);
}

pub(super) fn time(at: &mut Millis) {
    *at = (*at).min(LATEST_MS);
}
