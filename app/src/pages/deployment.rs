//! A deployment: what became of it, its phases and recipes, its log opened where it failed,
//! what is live now, the proofs, and what came with it.
//!
//! While it runs, the parts that change are looked at again every second (`islands::refresh`),
//! the log among them, which stays at its end.

use corpus_api::deployments::report::DeploymentFault;
use corpus_api::deployments::{Deploy, Deployment, DeploymentLine, DeploymentPart, GetDeploymentByNumber};
use corpus_api::environments::{GetEnvironment, LiveRelease, ProjectEnvironment};
use corpus_api::notices::NoticeOf;
use corpus_api::words::Number;
use corpus_domain::{CommitId, DeploymentState, Environment, Phase, ProjectName, Trigger, shown_actor};
use leptos::prelude::*;

use super::Asked;
use super::deployment_cards::{about, commits, live_now, proofs};
use super::deployment_guests::{guests_card, not_everywhere, refused_by, waits_for};
use super::deployment_log::{self, Log};
use super::deployment_paths::{deployment_path, line_path, part_guest, part_path, report_path, whole_path};
use super::deployment_phases::{other_phases, pipeline, recipes};
use super::deployment_test_cases::{self, Tests, tests_card};
use super::deployments::duration;
use super::environment_archives::archives_card;
use super::project_environments::again;
use super::projects::project_path;
use super::roll_back::{live_name, roll_back};
use crate::caller::Caller;
use crate::components::{
    Tone, action_at, at, card, commit, confirm_as, environment, error_summary, head, line_look, notice, shown_at,
    status,
};
use crate::form::{Result, sentence};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, (name, number): (&ProjectName, Number), asked: &Asked) -> Result<Page> {
    let guest = asked.query.get("guest").and_then(|guest| guest.parse().ok());
    let detail = caller.ask(GetDeploymentByNumber { project: name.clone(), number, guest }).await?;
    caller.saw(NoticeOf::Deployment(detail.line.id));
    let log = deployment_log::read(caller, &detail, &asked.query).await?;
    let tests = deployment_test_cases::read(caller, &detail.line, &asked.query).await?;
    let around = environment_of(caller, &detail.line).await?;
    let view = deployment_view(&detail, around.as_ref(), (&log, &tests), &asked.form);
    let page = match part_guest(&detail.line) {
        Some(guest) => Page::new("deployment", format!("{name} #{number} on {guest}"), view)
            .under(&format!("#{number}"), whole_path(&detail.line)),
        None => Page::new("deployment", format!("{name} #{number}"), view),
    };
    Ok(page.under("Deployments", "/deployments").in_state(Some(line_look(&detail.line).1)))
}

/// The environment that it was deployed to, for what can be done when it is over; none when that is gone.
async fn environment_of(caller: &Caller, one: &DeploymentLine) -> Result<Option<ProjectEnvironment>> {
    if one.leader.is_some() || !one.state.is_over() {
        return Ok(None);
    }
    match caller.ask(GetEnvironment { project: one.project.clone(), environment: one.environment }).await {
        Ok(found) => Ok(Some(found)),
        Err(problem) if problem.status == 404 => Ok(None),
        Err(problem) => Err(problem.into()),
    }
}

/// The view of plain values; `around` is its environment as it is now.
pub fn deployment_view(
    detail: &Deployment,
    around: Option<&ProjectEnvironment>,
    (log, tests): (&Log, &Tests),
    form: &crate::FormState,
) -> AnyView {
    let one = &detail.line;
    let report = detail.report.as_ref();
    let busy = (!one.state.is_over()).then_some("");
    let on = part_guest(one).map(|guest| format!(" on {guest}"));
    let title = view! { <a href=project_path(&one.project)>{one.project.to_string()}</a>{format!(" #{} ", one.number)}{environment(one.environment)}{on} };
    let below = view! { <span id="live-state" data-live="" data-busy=busy>{state(detail)}" "<span class="quiet">{what(one)}</span></span> };
    let actions = view! { <span class="actions" id="live-actions" data-live="">{actions(detail, around)}</span> };
    view! {
        {head(title.into_any(), below.into_any(), actions.into_any())}
        {error_summary(form)}
        <div class="stack" id="live-notices" data-live="">{fault(detail)}{waits_for(detail)}{not_everywhere(detail)}{warned(detail)}</div>
        <div id="live-pipeline" data-live="">{report.map(|report| pipeline(detail, report))}</div>
        <div class="cols">
            <div class="stack">
                <section class="card" id="recipes" aria-labelledby="recipes-heading">
                    <div id="live-recipes" data-live="">{recipes(one, report)}</div>
                    {deployment_log::part(one, log)}
                </section>
                <div id="live-tests" data-live="">{tests_card(one, tests)}</div>
                <div id="live-others" data-live="">{report.and_then(other_phases)}</div>
                <div id="live-commits" data-live="">{report.and_then(commits)}</div>
            </div>
            <div class="stack" id="live-about" data-live="">
                {guests_card(detail)}
                {card("live", if one.leader.is_some() { "What is live there now" } else { "What is live now" }, ().into_any(), live_now(detail))}
                {report.and_then(proofs)}
                {around.filter(|around| !around.archives.is_empty()).map(archives_card)}
                {card("about", "About", ().into_any(), about(detail))}
            </div>
        </div>
    }
    .into_any()
}

/// Its state; a rolled back one says to what, when that is still live.
fn state(detail: &Deployment) -> AnyView {
    let (tone, word) = line_look(&detail.line);
    let rolled_back = detail.line.state == DeploymentState::RolledBack && detail.line.trigger != Trigger::Drill;
    let back_to = detail.live.as_ref().filter(|_| rolled_back && is_newest(detail)).and_then(|live| live.number);
    status(tone, back_to.map_or_else(|| word.clone(), |number| format!("{word} to #{number}")))
}

/// Which commit, by whom, when, how long.
fn what(one: &DeploymentLine) -> AnyView {
    let subject = one.subject.clone().map(|text| format!(" “{text}”"));
    let commit = one.commit.as_ref().map(|id| view! { "commit "{commit(id)}{subject}", " });
    let by = match one.trigger {
        Trigger::Push => "pushed by",
        Trigger::Hand => "by hand by",
        Trigger::Restore => "restored by",
        Trigger::Drill => "a drill by",
    };
    let took = if one.state.is_over() { ", took " } else { ", for " };
    let took = (one.elapsed_ms.is_some() || !one.state.is_over()).then(|| view! { {took}{duration(one)} });
    view! { {commit}{format!("{by} {}, ", shown_actor(&one.by))}{at(one.ordered_at)}{took} }.into_any()
}

/// Whether nothing went live since. One that was given up told nothing: what is live must be an earlier one then.
fn is_newest(detail: &Deployment) -> bool {
    let id = |live: &LiveRelease| live.deployment;
    let Some(now) = &detail.live else { return false };
    let ended_with = match &detail.report {
        Some(report) => report.live.as_ref().map(id) == Some(now.deployment),
        None => now.number.is_none_or(|number| number < detail.line.number),
    };
    now.deployment == detail.line.id || ended_with
}

fn actions(detail: &Deployment, around: Option<&ProjectEnvironment>) -> AnyView {
    let one = &detail.line;
    let page = whole_path(one);
    let job = one
        .job
        .filter(|_| !one.state.is_over())
        .map(|job| view! { <a class="btn" href=format!("/jobs/{job}")>"Follow or cancel the job"</a> });
    let look =
        (!one.state.is_over()).then(|| view! { <a class="btn noscript" href=deployment_path(one)>"Look again"</a> });
    let report = detail
        .report
        .is_some()
        .then(|| view! { <a class="btn" href=report_path(one) download="">"Download report"</a> });
    if one.leader.is_some() {
        return view! { {look}{job}{report}<a class="btn" href=page>"The whole deployment"</a> }.into_any();
    }
    let may = detail.may_deploy && one.state.is_over();
    let back = around.filter(|_| is_newest(detail)).and_then(|around| roll_back(&around.summary));
    let again = one.commit.as_ref().filter(|_| may);
    // Deployed again as it was it would fail again, before anything is changed.
    let again = again.map(|commit| deploy_again(one, commit, cannot_archive(detail)));
    view! { {look}{job}{report}{back}{again} }.into_any()
}

/// Whether it failed since what was live could not archive itself.
fn cannot_archive(detail: &Deployment) -> bool {
    let fault = detail.report.as_ref().and_then(|report| report.fault.as_ref());
    fault.is_some_and(|fault| fault.phase == Phase::Archive && fault.recipe.is_some())
}

/// The button that deploys its commit to the same environment; to prod it is asked once.
fn deploy_again(one: &DeploymentLine, commit: &CommitId, plain_archive: bool) -> AnyView {
    let plain = plain_archive.then(|| view! { <input type="hidden" name="plain_archive" value="true"/> });
    let hidden = view! { {shown_at(&whole_path(one), "commit")}{plain}<input type="hidden" name="commit" value=commit.to_string()/> };
    let (post, hidden) = (to::<Deploy>(&[&one.project, &one.environment]), hidden.into_any());
    let word = if plain_archive {
        format!("Deploy {} without the archive recipe", commit.short())
    } else {
        again(Some(commit))
    };
    if one.environment == Environment::Prod {
        let question = format!(
            "This is prod of {}. Its visitors may notice; if the deployment fails, everything is put back.",
            one.project
        );
        return confirm_as("btn primary", &word, "to prod", question, post, hidden);
    }
    action_at(post, hidden, word, "btn primary", None)
}

/// Why it failed, and the way to the line that says so.
fn fault(detail: &Deployment) -> Option<AnyView> {
    let one = &detail.line;
    if one.state == DeploymentState::Superseded {
        let why = one.fault.as_deref().unwrap_or("A later one came while it waited.");
        return Some(notice(Tone::Off, "It never ran", view! { <span>{sentence(why)}</span> }.into_any()));
    }
    let fault = detail.report.as_ref().and_then(|report| report.fault.as_ref());
    let text = fault.map(|fault| fault.message.clone()).or_else(|| one.fault.clone())?;
    let refused = fault.and_then(|fault| refused_by(detail, fault));
    // The notice begins with the guest already.
    let text = refused.and_then(|follower| text.strip_prefix(&format!("{}: ", follower.guest))).unwrap_or(&text);
    let place = fault.map_or_else(|| "Failed".to_owned(), |fault| place(fault, refused));
    let line = fault.and_then(|fault| fault.line).map(|line| {
        // Whatever part of the log the page shows by now.
        view! { <a class="link" href=line_path(one, line)>{format!("log line {line}")}</a> }
    });
    let there = refused.map(|follower| {
        view! { <a class="link" href=part_path(one, &follower.guest)>{format!("What happened on {}", follower.guest)}</a> }
    });
    let hint = match one.state {
        DeploymentState::Broken => Some("Putting things back failed too: a person must look at the guest."),
        _ if cannot_archive(detail) => Some(
            "It is what is live that failed to archive itself. Without that its code and pillar are kept all the same, and no dump.",
        ),
        _ => None,
    };
    let drilled = (one.state, one.trigger) == (DeploymentState::RolledBack, Trigger::Drill);
    let (tone, place, hint) = match one.state {
        _ if drilled => {
            (Tone::Ok, "Drill passed".to_owned(), Some("It was broken on purpose, and everything was put back."))
        }
        state if state.is_over() => (Tone::Fail, place, hint),
        _ => (Tone::Warn, place, hint),
    };
    let stands = stands(detail).map(|text| view! { <span class="strong">{text}</span> });
    let more = view! { <span>{sentence(text)}</span>{there}{line}{hint.map(|hint| view! { <span class="strong">{hint}</span> })}{stands} };
    Some(notice(tone, place, more.into_any()))
}

/// What is odd about it, though it went on.
fn warned(detail: &Deployment) -> Option<AnyView> {
    let warnings = &detail.report.as_ref()?.warnings;
    let each = warnings.iter().map(|text| view! { <span>{sentence(text)}</span> }).collect_view();
    (!warnings.is_empty()).then(|| notice(Tone::Warn, "Was this meant?", each.into_any()))
}

/// What is live, now that it failed.
fn stands(detail: &Deployment) -> Option<String> {
    let live = detail.live.as_ref().map(live_name);
    match (detail.line.state, live) {
        (DeploymentState::RolledBack, Some(live)) if is_newest(detail) => Some(format!("{live} is live, as before.")),
        (DeploymentState::RolledBack, Some(live)) => Some(format!("{live} is live by now.")),
        (DeploymentState::RolledBack, None) => Some("Nothing is live, as before.".to_owned()),
        _ => None,
    }
}

/// Where it failed: on a follower, or in a phase of its own.
fn place(fault: &DeploymentFault, refused: Option<&DeploymentPart>) -> String {
    match (refused, &fault.recipe) {
        (Some(follower), _) => format!("Failed on {}", follower.guest),
        (None, Some(recipe)) => format!("Failed in {}, {recipe}", fault.phase),
        (None, None) => format!("Failed in {}", fault.phase),
    }
}
