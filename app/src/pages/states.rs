//! What the states of guests came to last, a page at a time; of a project also when they are seen to, and all of them at once.

use corpus_api::states::{
    ApplyAllStates, ApplyProjectStates, GetStatesSchedule, ListStates, SetStatesSchedule, StatesOfGuest, StatesPage,
    StatesSchedule,
};
use corpus_domain::{Environment, ProjectName, StatesEvery, StatesOutcome};
use leptos::prelude::*;

use super::Asked;
use super::guest_states::outcome;
use super::projects::project_path;
use crate::asked::{Query, address, asked, page_after};
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, any_of, at, card, check, empty, environment, error_summary, head, next_link, picks, status,
    stays_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

const PATH: &str = "/states";

/// Reads and shows those of all guests.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let page = caller.ask(asked::<ListStates>(&given.query)?).await?;
    let may_apply = caller.who.can::<ApplyAllStates>(None);
    let view = states_view(&page, &given.query, may_apply, &given.form);
    Ok(Page::new("states", "States of guests", view).under("Guests", "/guests"))
}

/// Reads and shows those of a project.
pub async fn load_project(caller: &Caller, project: &ProjectName, given: &Asked) -> Result<Page> {
    let schedule = caller.ask(GetStatesSchedule { project: project.clone() }).await?;
    let list = ListStates { project: Some(project.clone()), ..asked::<ListStates>(&given.query)? };
    let page = caller.ask(list).await?;
    let view = project_view(&page, &given.query, &schedule, &given.form);
    let page = Page::new("project-states", format!("States of {project}"), view);
    Ok(page.under(project.as_str(), project_path(project)).under("Projects", "/projects"))
}

/// The page of the states of a project's guests.
pub fn states_path(project: &ProjectName) -> String {
    format!("{}/states", project_path(project))
}

/// The view of plain values.
pub fn states_view(page: &StatesPage, query: &Query, may_apply: bool, form: &FormState) -> AnyView {
    let now = may_apply.then(|| {
        let form = form.of("apply");
        card("apply", "Those of all projects", ().into_any(), apply(to::<ApplyAllStates>(&[]), PATH, &form))
    });
    let list = view! { <div id="live-states" data-live="">{table(page, true)}</div> };
    view! {
        {head("States of guests".into_any(), only(PATH, query), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">
                {card("states", "Guests", ().into_any(), list.into_any())}
                {next_link(page_after(PATH, query, page.next.as_ref()))}
            </div>
            {now.map(|now| view! { <div class="stack">{now}</div> })}
        </div>
    }
    .into_any()
}

/// The view of plain values of a project's.
pub fn project_view(page: &StatesPage, query: &Query, schedule: &StatesSchedule, form: &FormState) -> AnyView {
    let (project, path) = (&schedule.project, states_path(&schedule.project));
    let title = view! { "States of "<a href=project_path(project)>{project.to_string()}</a> };
    let now = schedule.may_change.then(|| {
        let form = form.of("apply");
        card("apply", "Now", ().into_any(), apply(to::<ApplyProjectStates>(&[project]), &path, &form))
    });
    let list = view! { <div id="live-states" data-live="">{table(page, false)}</div> };
    view! {
        {head(title.into_any(), only(&path, query), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">
                {card("states", "Guests", ().into_any(), list.into_any())}
                {next_link(page_after(&path, query, page.next.as_ref()))}
            </div>
            <div class="stack">
                {now}
                {card("schedule", "By itself", ().into_any(), scheduled(schedule, &form.of("schedule")))}
            </div>
        </div>
    }
    .into_any()
}

/// The list with one outcome only.
fn only(path: &str, query: &Query) -> AnyView {
    let chosen = query.get("outcome").map(String::as_str).unwrap_or_default();
    let link = |word: &'static str, title: &'static str| {
        let current = (chosen == word).then_some("true");
        view! { <a class="link" href=address(path, query, Some(("outcome", word))) aria-current=current>{title}</a>" " }
    };
    let each = StatesOutcome::ALL.iter().map(|one| link(one.as_str(), word(*one))).collect_view();
    view! { <span class="quiet">"Show "{link("", "all")}{each}</span> }.into_any()
}

const fn word(outcome: StatesOutcome) -> &'static str {
    match outcome {
        StatesOutcome::Failed => "where one failed",
        StatesOutcome::Differs => "where something differs",
        StatesOutcome::Right => "as they say",
        StatesOutcome::Never => "not seen to yet",
    }
}

fn apply(to: String, page: &str, form: &FormState) -> AnyView {
    let environments = any_of(picks(Environment::ALL.iter().map(|one| one.as_str())));
    view! {
        <form method="post" action=to class="form body">
            {stays_at(page, "apply")}
            {Field::new(form, "environment", "Of environment").select(environments)}
            <p class="quiet">"Guests that run, a few at a time. Trying changes nothing, and shows what is not as the states say."</p>
            <div class="actions">
                <button class="btn" name="test" value="true">"Try all"</button>
                <button class="btn primary" name="test" value="false">"Apply all"</button>
            </div>
        </form>
    }
    .into_any()
}

/// How often, in words.
pub(super) const fn every(every: StatesEvery) -> &'static str {
    match every {
        StatesEvery::Never => "Never",
        StatesEvery::Hour => "Each hour",
        StatesEvery::Day => "Each day",
        StatesEvery::Week => "Each week",
    }
}

fn scheduled(schedule: &StatesSchedule, form: &FormState) -> AnyView {
    let next = schedule.next_at.map(|next| view! { <p class="quiet">"The next time: "{at(next)}</p> });
    if !schedule.may_change {
        let what = if schedule.test { ", only tried" } else { ", applied" };
        let what = if schedule.every == StatesEvery::Never { "" } else { what };
        return view! { <div class="body"><p>{format!("{}{what}.", every(schedule.every))}</p>{next}</div> }.into_any();
    }
    let choices = StatesEvery::ALL.iter().map(|one| (one.to_string(), every(*one).to_owned())).collect();
    view! {
        <form method="post" action={to::<SetStatesSchedule>(&[&schedule.project])} class="form body">
            {stays_at(&states_path(&schedule.project), "schedule")}
            <input type="hidden" name="version" value=form.version(&schedule.version)/>
            {Field::new(form, "every", "They are seen to").suggest(schedule.every.as_str()).select(choices)}
            {check(form, "test", "Only tried", "What is not as they say is shown, and stays", schedule.test)}
            {next}
            <div class="submit"><button class="btn">"Save"</button></div>
        </form>
    }
    .into_any()
}

fn table(page: &StatesPage, with_project: bool) -> AnyView {
    if page.items.is_empty() {
        return empty("No guest is here", "None matches, or there is none yet.".into_any());
    }
    let rows = page.items.iter().map(|one| row(one, with_project)).collect_view();
    let project = with_project.then(|| view! { <th>"Project"</th> });
    view! {
        <table class="rows" aria-label="States">
            <thead><tr><th>"Guest"</th>{project}<th>"Environment"</th><th>"Mode"</th><th>"Came to"</th><th>"When"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(one: &StatesOfGuest, with_project: bool) -> AnyView {
    let project = with_project.then(|| {
        view! { <td data-label="Project"><a class="link" href=project_path(&one.project)>{one.project.to_string()}</a></td> }
    });
    let (came_to, when) = match one.last {
        Some(last) => {
            let what = if last.test { "tried" } else { "applied" };
            let when = view! { {age(last.at)}<div class="quiet small">{what}</div> };
            (outcome(last.failed, last.changed, last.test), when.into_any())
        }
        None => (status(Tone::Off, "Not seen to yet"), ().into_any()),
    };
    let waits = one.asked_at.map(|_| view! { <div>{status(Tone::Busy, "Waits for its turn")}</div> });
    view! {
        <tr>
            <td data-label="Guest" class="wrap"><a class="link" href=format!("/guests/{}/states", one.guest)>{one.name.to_string()}</a></td>
            {project}
            <td data-label="Environment">{environment(one.environment)}</td>
            <td data-label="Mode">{one.mode.as_str()}</td>
            <td data-label="Came to" class="wrap">{came_to}{waits}</td>
            <td data-label="When" class="quiet">{when}</td>
        </tr>
    }
    .into_any()
}
