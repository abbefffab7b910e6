//! The guests of an environment: the first, which is pushed to and leads, and the others, which
//! deploy what it does. Says where something else is live than on the first, and what to do.
//!
//! With one guest there is nothing to tell apart, and nothing of this is shown.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::project_views::{EnvironmentView, OtherGuestView, ProjectSummary};
use corpus_domain::{DnsName, EnvironmentState, GuestId, GuestState, JobId};
use leptos::prelude::*;

use super::project_environments::{deploy_again, environment_path};
use crate::components::{Tone, card, count, guest_state_status, is_behind, is_everywhere, notice, status};
use crate::form::sentence;

/// Where a guest other than the first is asked to be taken from its environment.
pub fn leave_path(project: &ProjectSummary, one: &EnvironmentView, guest: GuestId) -> String {
    format!("{}/guests/{guest}/remove", environment_path(&project.name, one.environment))
}

/// The card of an environment that has several.
pub fn guests_card(principal: &Principal, project: &ProjectSummary, one: &EnvironmentView) -> Option<AnyView> {
    let may = principal.may(Operation::EnvironmentRemove, Some(project.id));
    let others = one.others.iter().map(|other| {
        let leave = may.then(|| {
            let label = format!("Remove {} from {}", other.guest, one.environment);
            view! { <a class="btn small danger" href=leave_path(project, one, other.guest_id) aria-label=label>"Remove"</a> }
        });
        view! { <li data-guest=other.guest.to_string()><div>{about_other(one, other)}</div>{leave}</li> }.into_any()
    });
    let first = view! { <li data-guest=one.guest.to_string()><div>{about_first(one)}</div></li> }.into_any();
    let items: Vec<AnyView> = std::iter::once(first).chain(others).collect();
    let right = view! { <span class="quiet">"all go live, or none"</span> };
    (!one.others.is_empty())
        .then(|| card("guests", "Guests", right.into_any(), view! { <ul class="items guests">{items}</ul> }.into_any()))
}

/// The same as lines, for where it is one fact of many.
pub fn guest_lines(one: &EnvironmentView) -> AnyView {
    let others = one.others.iter().map(|other| view! { <li>{about_other(one, other)}</li> }).collect_view();
    view! { <ul class="lines guests"><li>{about_first(one)}</li>{others}</ul> }.into_any()
}

fn about_first(one: &EnvironmentView) -> AnyView {
    let live = match (one.guest_state, &one.live) {
        (GuestState::Running, Some(_)) => status(Tone::Ok, live_word(one.live_number)),
        (GuestState::Running, None) => status(Tone::Off, "Nothing live yet"),
        (state, _) => guest_state_status(state),
    };
    view! {
        {guest_link(one.guest_id, one.guest.as_str())}
        <div class="state">{live}<span class="quiet small">"pushed to, leads"</span></div>
        {reached(&one.hosts)}
    }
    .into_any()
}

fn about_other(one: &EnvironmentView, other: &OtherGuestView) -> AnyView {
    let down = (other.guest_state != GuestState::Running).then(|| guest_state_status(other.guest_state));
    let reason = other
        .state_reason
        .as_deref()
        .filter(|_| other.state == EnvironmentState::Failed)
        .map(|text| view! { <div class="small error">{sentence(text)}</div> });
    let job = other.job.filter(|job| one.job != Some(*job)).map(job_link);
    view! {
        {guest_link(other.guest_id, other.guest.as_str())}
        <div class="state">{other_status(one, other)}{down}</div>
        {reached(&other.hosts)}
        {reason}
        {job}
    }
    .into_any()
}

fn guest_link(id: GuestId, name: &str) -> AnyView {
    view! { <a class="link" href=format!("/guests/{id}")>{name.to_owned()}</a> }.into_any()
}

fn job_link(job: JobId) -> AnyView {
    view! { <div class="small"><a class="link" href=format!("/jobs/{job}")>"Follow its job"</a></div> }.into_any()
}

fn reached(hosts: &[DnsName]) -> Option<AnyView> {
    let links = hosts
        .iter()
        .enumerate()
        .map(|(at, host)| {
            let comma = (at > 0).then_some(", ");
            view! { {comma}<a class="link" href=format!("http://{host}/")>{host.to_string()}</a> }
        })
        .collect_view();
    (!hosts.is_empty()).then(|| view! { <div class="quiet small">"reached at "{links}</div> }.into_any())
}

fn live_word(number: Option<i64>) -> String {
    number.map_or_else(|| "Live".to_owned(), |number| format!("Live: #{number}"))
}

/// What of it is live on another guest, beside what is on the first.
fn other_status(one: &EnvironmentView, other: &OtherGuestView) -> AnyView {
    match other.state {
        EnvironmentState::SettingUp => status(Tone::Busy, "Setting up"),
        EnvironmentState::Failed => status(Tone::Fail, "Failed"),
        EnvironmentState::Leaving => status(Tone::Busy, "Being removed"),
        EnvironmentState::Ready if !is_behind(one, other) => match &other.live {
            Some(_) => status(Tone::Ok, live_word(other.live_number)),
            None => status(Tone::Off, "Nothing live yet"),
        },
        EnvironmentState::Ready => {
            let moves = one.job.is_some() || other.job.is_some();
            status(if moves { Tone::Busy } else { Tone::Warn }, behind_word(one, other))
        }
    }
}

/// `Behind: #6`; ahead only when the first lost what it had.
fn behind_word(one: &EnvironmentView, other: &OtherGuestView) -> String {
    match (one.live_number, other.live_number, &other.live) {
        (_, _, None) => "Behind: nothing live".to_owned(),
        (Some(first), Some(here), _) if here < first => format!("Behind: #{here}"),
        (_, Some(here), _) => format!("Not the same: #{here}"),
        (_, None, Some(_)) => "Not the same".to_owned(),
    }
}

/// What is live where, when that is not the same everywhere, and what to do.
pub fn not_everywhere(principal: &Principal, project: &ProjectSummary, one: &EnvironmentView) -> Option<AnyView> {
    if is_everywhere(one) {
        return None;
    }
    let behind: Vec<_> = one.others.iter().filter(|other| is_behind(one, other)).collect();
    let first = match one.live_number {
        Some(number) if one.live.is_some() => format!("#{number} is live on {}", one.guest),
        _ if one.live.is_some() => format!("{} is live", one.guest),
        _ => format!("Nothing is live on {}", one.guest),
    };
    let elsewhere: Vec<String> = behind.iter().map(|other| elsewhere(other)).collect();
    let text = format!("{first}; {}.", elsewhere.join("; "));
    let down: Vec<&str> = behind
        .iter()
        .filter(|other| other.guest_state != GuestState::Running)
        .map(|other| other.guest.as_str())
        .collect();
    let todo = if down.is_empty() {
        let again = deploy_again(principal, project, one, "btn small");
        view! { <span>"Deploy again brings all of them to the same."</span>{again} }.into_any()
    } else {
        let text = format!(
            "Start {}, or take {} from the environment; then deploy again.",
            down.join(", "),
            if down.len() == 1 { "it" } else { "them" }
        );
        view! { <span>{text}</span> }.into_any()
    };
    Some(notice(Tone::Warn, "Not live everywhere", view! { <span>{text}</span>{todo} }.into_any()))
}

fn elsewhere(other: &OtherGuestView) -> String {
    match (other.live_number, &other.live) {
        (Some(number), Some(_)) => format!("{} has #{number}", other.guest),
        (None, Some(_)) => format!("{} has something else", other.guest),
        (_, None) => format!("{} has nothing", other.guest),
    }
}

/// Others that could not be set up: none of them is deployed to.
pub fn failed_others(one: &EnvironmentView) -> Option<AnyView> {
    let failed: Vec<&str> = one
        .others
        .iter()
        .filter(|other| other.state == EnvironmentState::Failed)
        .map(|other| other.guest.as_str())
        .collect();
    let text = format!(
        "{} deployed to. Remove it from the environment and add it again.",
        match failed.len() {
            1 => format!("{} is not", failed.join(", ")),
            _ => format!("{} are not", failed.join(", ")),
        }
    );
    let what = format!("{} failed", count(failed.len(), "guest"));
    (!failed.is_empty()).then(|| notice(Tone::Fail, what, view! { <span>{text}</span> }.into_any()))
}
