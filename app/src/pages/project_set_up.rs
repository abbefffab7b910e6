//! The form that gives a project's free guest an environment: one that is not there yet, or a
//! further guest of one that is. What can't be chosen now is named, with what to do about it.

use corpus_api::Principal;
use corpus_api::environments::{EnvironmentSummary, SetUpEnvironment};
use corpus_api::projects::{FreeGuest, Project};
use corpus_domain::{Environment, EnvironmentState, GuestName, GuestState};
use leptos::prelude::*;

use super::guests;
use super::projects::project_path;
use crate::components::{Field, card, empty, stays_at};
use crate::form::FormState;
use crate::to::to;

/// The form, among those of the page.
pub const SET_UP: &str = "environment";

/// What a free guest can become.
enum Use<'a> {
    /// The leader of an environment that is not there yet.
    New,
    /// A further guest of one that is.
    Another,
    /// Neither, as long as the environment is as it is.
    NotNow(&'a EnvironmentSummary),
}

/// The card with the form; where to get a guest when none is free.
pub fn set_up(who: &Principal, project: &Project, form: &FormState) -> Option<AnyView> {
    if !project.may_change {
        return None;
    }
    let there = |which: Environment| project.environments.iter().find(|one| one.environment == which);
    let becomes = |free: &FreeGuest| there(free.environment).map_or(Use::New, of_one_that_is_there);
    let uses: Vec<(&FreeGuest, Use<'_>)> = project.free_guests.iter().map(|free| (free, becomes(free))).collect();
    let missing: Vec<&str> =
        Environment::ALL.iter().filter(|which| there(**which).is_none()).map(|which| which.as_str()).collect();
    let title = if missing.is_empty() { "Add a guest" } else { "Set up an environment" };
    let body = if uses.is_empty() { none_free(who, project, &missing) } else { choices(project, &uses, form) };
    Some(card("set-up", title, ().into_any(), body))
}

fn of_one_that_is_there(one: &EnvironmentSummary) -> Use<'_> {
    let is_ready = one.leader.state == EnvironmentState::Ready && one.leader.guest_state == GuestState::Running;
    if is_ready { Use::Another } else { Use::NotNow(one) }
}

/// The request of a guest for the project: of the first environment that is not there yet.
pub fn request_path(project: &Project) -> String {
    let there = |which: &&Environment| project.environments.iter().any(|one| one.environment == **which);
    let environment = Environment::ALL.iter().find(|which| !there(which)).unwrap_or(&Environment::Dev);
    format!("/guests/new?project={}&environment={environment}", project.name)
}

fn none_free(who: &Principal, project: &Project, missing: &[&str]) -> AnyView {
    let request = || {
        let link = view! { " "<a class="link" href=request_path(project)>"Request a guest"</a> };
        guests::may_request(who, 1).then_some(link)
    };
    if missing.is_empty() {
        let text = "To run an environment on several guests, request another guest of it; it can be added here then.";
        return view! { <p class="body quiet">{text}{request()}</p> }.into_any();
    }
    let text = format!("An environment stands on a guest of this project: request one for {}.", missing.join(", "));
    empty("No guest of this project is free", view! { {text}{request()} }.into_any())
}

fn choices(project: &Project, uses: &[(&FreeGuest, Use<'_>)], form: &FormState) -> AnyView {
    let has = |wanted: fn(&Use<'_>) -> bool| uses.iter().any(|(_, one)| wanted(one));
    let (new, another) = (has(|one| matches!(one, Use::New)), has(|one| matches!(one, Use::Another)));
    let options: Vec<(String, String)> = uses.iter().filter_map(|(free, one)| option(free, one)).collect();
    let fields = (!options.is_empty()).then(|| {
        let mut hint = Vec::new();
        if new {
            hint.push("A new environment gets its repositories, and can be pushed to in seconds.");
        }
        if another {
            hint.push("Another guest becomes a follower: it gets what is live, and from then on each push goes live on all guests of the environment, or on none.");
        }
        // The one there is, or what is chosen.
        let word = match (uses, new) {
            ([(free, _)], true) => format!("Set up {}", free.environment),
            (_, true) => "Set up the environment".to_owned(),
            ([(free, _)], false) => format!("Add it to {}", free.environment),
            (_, false) => "Add the guest".to_owned(),
        };
        view! {
            <form method="post" action={to::<SetUpEnvironment>(&[&project.name])} class="body row">
                {stays_at(&project_path(&project.name), SET_UP)}
                {Field::new(form, "guest", "Guest").required().hint(hint.join(" ")).select(options)}
                <button class="btn primary">{word}</button>
            </form>
        }
    });
    let not_now = uses
        .iter()
        .filter_map(|(free, one)| match one {
            Use::NotNow(environment) => Some(view! { <p class="body quiet">{why_not(&free.name, environment)}</p> }),
            Use::New | Use::Another => None,
        })
        .collect_view();
    view! { {fields}{not_now} }.into_any()
}

fn option(free: &FreeGuest, becomes: &Use<'_>) -> Option<(String, String)> {
    let FreeGuest { guest, name, environment: which } = free;
    let text = match becomes {
        Use::New => format!("{which}: {name}, a new environment"),
        Use::Another => format!("{which}: {name}, another guest of it"),
        Use::NotNow(_) => return None,
    };
    Some((guest.to_string(), text))
}

/// What must be so before a guest can be added.
fn why_not(guest: &GuestName, one: &EnvironmentSummary) -> AnyView {
    let which = one.environment;
    let leader = &one.leader;
    let what = match leader.state {
        EnvironmentState::SettingUp => format!("{which} is still being set up; it can be added in a moment."),
        EnvironmentState::Leaving => format!("{which} is being removed; it can be set up on this guest then."),
        EnvironmentState::Failed => format!("{which} failed: remove it and set it up again first."),
        EnvironmentState::Ready => {
            let link = view! { <a class="link" href=format!("/guests/{}", leader.guest)>{leader.name.to_string()}</a> };
            return view! { {format!("{guest} is free, but the leader of {which}, ")}{link}{format!(", is {}: start it, then another one can be added.", leader.guest_state)} }.into_any();
        }
    };
    format!("{guest} is free, but {what}").into_any()
}
