//! The phases of a deployment and what their recipes did.

use chrono::{DateTime, TimeDelta, Utc};
use corpus_api::deployments::report::{DeploymentReport, PhaseReport, RecipeReport, SaltState};
use corpus_api::deployments::{Deployment, DeploymentLine};
use corpus_domain::{DeploymentState, Outcome, Phase};
use leptos::prelude::*;

use super::deployment_paths::line_path;
use crate::components::{Tone, count, empty, outcome_status, since, status, took};

/// How a phase stands, also while the deployment runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Done,
    Failed,
    Running,
    Undone,
    NotRun,
}

impl Standing {
    fn of(report: &DeploymentReport, phase: &PhaseReport) -> Self {
        let over = report.state.is_over();
        match phase.outcome {
            Outcome::Failed => Self::Failed,
            Outcome::Done if phase.phase == Phase::Rollback => Self::Undone,
            Outcome::Done => Self::Done,
            Outcome::Skipped if !over && phase.began_at.is_some() => Self::Running,
            Outcome::Skipped => Self::NotRun,
        }
    }

    const fn class(self) -> &'static str {
        match self {
            Self::Done => "ok",
            Self::Failed => "fail",
            Self::Running => "busy",
            Self::Undone => "undo",
            Self::NotRun => "wait",
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Running => "running",
            Self::Undone => "put back",
            Self::NotRun => "not run",
        }
    }
}

/// One segment a phase, as wide as its share of the time.
pub fn pipeline(detail: &Deployment, report: &DeploymentReport) -> AnyView {
    let whole: u64 = report.phases.iter().map(|phase| phase.elapsed_ms).sum::<u64>().max(1);
    let rolled_back = report.phases.iter().any(|phase| phase.phase == Phase::Rollback && phase.began_at.is_some());
    let known = |which: Phase| report.phases.iter().find(|phase| phase.phase == which);
    let shown = |which: Phase| match which {
        Phase::Rollback => rolled_back,
        Phase::Followers => is_two_phase(detail) || known(which).is_some_and(|phase| phase.began_at.is_some()),
        _ => true,
    };
    let items = Phase::ALL
        .iter()
        .filter(|which| shown(**which))
        .map(|which| known(*which).map_or_else(|| to_come(report, *which), |phase| segment(report, phase, whole)))
        .collect_view();
    view! { <ol class="pipeline" aria-label="Phases">{items}</ol> }.into_any()
}

/// Whether it commits in two phases, on several guests, as far as is known. Of one that is over it
/// does not count how many guests its environment has by now.
fn is_two_phase(detail: &Deployment) -> bool {
    let (part, over) = (detail.line.leader.is_some(), detail.line.state.is_over());
    part || !detail.followers.is_empty() || (!over && !detail.guests.is_empty())
}

fn to_come(report: &DeploymentReport, which: Phase) -> AnyView {
    let word = if report.state.is_over() { "not run" } else { "to come" };
    view! { <li class="wait t1" data-phase=which.as_str()><b>{which.as_str()}</b><span>{word}</span></li> }.into_any()
}

fn segment(report: &DeploymentReport, phase: &PhaseReport, whole: u64) -> AnyView {
    let standing = Standing::of(report, phase);
    let share = (phase.elapsed_ms.saturating_mul(20) / whole).clamp(1, 20);
    let failed = phase
        .recipes
        .iter()
        .find(|recipe| recipe.outcome == Outcome::Failed)
        .map(|recipe| format!(" at {}", recipe.name));
    let text = match standing {
        Standing::NotRun => "not run".into_any(),
        Standing::Running => view! { "running for "{phase.began_at.map(since)} }.into_any(),
        Standing::Done => took(phase.elapsed_ms).into_any(),
        Standing::Undone | Standing::Failed => {
            format!("{}, {}{}", took(phase.elapsed_ms), standing.word(), failed.unwrap_or_default()).into_any()
        }
    };
    let class = format!("{} t{share}", standing.class());
    view! { <li class=class data-phase=phase.phase.as_str()><b>{phase.phase.as_str()}</b><span>{text}</span></li> }
        .into_any()
}

/// The phase to look at first: the one that failed, the one that runs, or install.
fn focus(report: &DeploymentReport) -> Option<&PhaseReport> {
    let of = |which: Phase| report.phases.iter().find(|phase| phase.phase == which);
    let failed = report.fault.as_ref().and_then(|fault| of(fault.phase));
    let running = || report.phases.iter().rev().find(|phase| Standing::of(report, phase) == Standing::Running);
    failed.or_else(running).or_else(|| of(Phase::Install))
}

/// The recipes of the phase to look at first, as the head of the card with the log.
pub fn recipes(one: &DeploymentLine, report: Option<&DeploymentReport>) -> AnyView {
    let Some((report, phase)) = report.and_then(|report| focus(report).map(|phase| (report, phase))) else {
        let title = if one.state == DeploymentState::Waiting { "Waiting" } else { "Log" };
        return view! { <header><h2 id="recipes-heading">{title}</h2></header> }.into_any();
    };
    view! {
        <header><h2 id="recipes-heading">{phase.phase.as_str()}</h2><span class="right quiet">{summary(report, phase)}</span></header>
        {list(one, phase)}
    }
    .into_any()
}

fn summary(report: &DeploymentReport, phase: &PhaseReport) -> String {
    let recipes = count(phase.recipes.len(), "recipe");
    let failed = phase.recipes.iter().filter(|recipe| recipe.outcome == Outcome::Failed).count();
    match Standing::of(report, phase) {
        Standing::Running if phase.phase != Phase::Followers => format!("{recipes} so far"),
        _ if phase.phase == Phase::Followers => "on the followers".to_owned(),
        _ if failed > 0 => format!("{recipes}, {failed} failed"),
        Standing::NotRun => "not run".to_owned(),
        _ => recipes,
    }
}

fn list(one: &DeploymentLine, phase: &PhaseReport) -> AnyView {
    if phase.phase == Phase::Followers {
        let text = "The followers of the environment deploy the same; all go live, or none.";
        return view! { <p class="body quiet">{text}</p> }.into_any();
    }
    if phase.recipes.is_empty() {
        return empty("No recipe", "Files in .salt or .corpus of the project run here.".into_any());
    }
    let items = phase.recipes.iter().enumerate().map(|(at, recipe)| item(one, recipe, since_when(one, phase, at)));
    let items = items.collect_view();
    view! { <ul class="steps">{items}</ul> }.into_any()
}

/// Since when a recipe runs, if it does: of a phase that is not over, the one that has no outcome yet. It began
/// when those before it had ended.
fn since_when(one: &DeploymentLine, phase: &PhaseReport, at: usize) -> Option<DateTime<Utc>> {
    let recipe = phase.recipes.get(at)?;
    let runs = !one.state.is_over() && phase.outcome == Outcome::Skipped && recipe.outcome == Outcome::Skipped;
    let before: u64 = phase.recipes.iter().take(at).map(|recipe| recipe.elapsed_ms).sum();
    let began = phase.began_at.filter(|_| runs && at + 1 == phase.recipes.len())?;
    Some(began + TimeDelta::milliseconds(i64::try_from(before).unwrap_or_default()))
}

fn item(one: &DeploymentLine, recipe: &RecipeReport, running: Option<DateTime<Utc>>) -> AnyView {
    let reason = recipe.reason.clone().map(|text| view! { <div class="error">{text}</div> });
    let first = recipe.failing_line.or(recipe.first_line);
    let lines = first.map(|line| {
        let path = line_path(one, line);
        view! { " "<a class="link small" href=path>{format!("log line {line}")}</a> }
    });
    let states = (!recipe.states.is_empty()).then(|| salt(&recipe.states));
    view! {
        <li data-recipe=recipe.name.clone()>
            {running.map_or_else(|| outcome_status(recipe.outcome), |_| status(Tone::Busy, "Running"))}
            <div><code>{recipe.name.clone()}</code>{lines}{reason}{states}</div>
            <span class="quiet num">{how_long(recipe, running)}</span>
        </li>
    }
    .into_any()
}

/// How long it took, or runs; of one that was not run, nothing.
fn how_long(recipe: &RecipeReport, running: Option<DateTime<Utc>>) -> AnyView {
    match (running, recipe.outcome) {
        (Some(began), _) => since(began),
        (None, Outcome::Skipped) => ().into_any(),
        (None, _) => took(recipe.elapsed_ms).into_any(),
    }
}

/// Salt's own result, per state; open when one of them failed.
fn salt(states: &[SaltState]) -> AnyView {
    let failed = states.iter().filter(|state| !state.ok).count();
    let changed = states.iter().filter(|state| state.changed).count();
    let title = format!("{}, {changed} changed, {failed} failed", count(states.len(), "state"));
    let rows = states.iter().map(salt_row).collect_view();
    view! {
        <details class="more salt" open=failed.gt(&0)>
            <summary>{title}</summary>
            <table class="rows" aria-label="Salt states">
                <thead><tr><th>"State"</th><th>"Result"</th><th>"Function"</th><th>"Comment"</th><th class="num">"Took"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </details>
    }
    .into_any()
}

fn salt_row(state: &SaltState) -> AnyView {
    let result = match (state.ok, state.changed) {
        (false, _) => status(Tone::Fail, "Failed"),
        (true, true) => status(Tone::Ok, "Changed"),
        (true, false) => status(Tone::Off, "As it was"),
    };
    let name = (state.name != state.id).then(|| view! { <div class="quiet small">{state.name.clone()}</div> });
    view! {
        <tr>
            <td data-label="State" class="wrap">{state.id.clone()}{name}</td>
            <td data-label="Result">{result}</td>
            <td data-label="Function"><code>{state.function.clone()}</code></td>
            <td data-label="Comment" class="wrap">{state.comment.clone()}</td>
            <td data-label="Took" class="num quiet">{took(state.elapsed_ms)}</td>
        </tr>
    }
    .into_any()
}

/// What the other phases ran, when that is more than what is built in.
pub fn other_phases(report: &DeploymentReport) -> Option<AnyView> {
    let first = focus(report).map(|phase| phase.phase);
    let own = |phase: &&PhaseReport| Some(phase.phase) != first && !phase.recipes.is_empty();
    let items: Vec<AnyView> = report
        .phases
        .iter()
        .filter(own)
        .flat_map(|phase| phase.recipes.iter().map(move |recipe| (phase.phase, recipe)))
        .map(|(phase, recipe)| {
            let reason = recipe.reason.clone().map(|text| view! { <div class="error">{text}</div> });
            let states = (!recipe.states.is_empty()).then(|| salt(&recipe.states));
            view! {
                <li>
                    {outcome_status(recipe.outcome)}
                    <div>{format!("{phase} ")}<code>{recipe.name.clone()}</code>{reason}{states}</div>
                    <span class="quiet num">{how_long(recipe, None)}</span>
                </li>
            }
            .into_any()
        })
        .collect();
    let total = items.len();
    (total > 0).then(|| {
        crate::components::card(
            "other-phases",
            "Other phases",
            view! { <span class="quiet">{count(total, "recipe")}</span> }.into_any(),
            view! { <ul class="steps">{items}</ul> }.into_any(),
        )
    })
}
