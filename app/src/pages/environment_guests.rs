//! The guests of an environment: the leader, which is pushed to, and the followers, which deploy
//! what it does. Says where something else is live than on the leader, and what to do.
//!
//! With one guest there is nothing to tell apart, and nothing of this is shown.

use corpus_api::environments::{EnvironmentGuest, EnvironmentSummary, LiveRelease};
use corpus_api::seen::Reached;
use corpus_domain::{DnsName, EnvironmentState, GuestId, GuestRole, GuestState, JobId};
use leptos::prelude::*;

use super::project_environments::{deploy_again, environment_path};
use crate::components::{
    Tone, card, count, guest_state_status, is_behind, is_everywhere, notice, seen_look, site_evidence, status,
};
use crate::form::sentence;

/// Where a follower is asked to be taken from its environment.
pub fn leave_path(one: &EnvironmentSummary, guest: GuestId) -> String {
    format!("{}/guests/{guest}/remove", environment_path(&one.project, one.environment))
}

/// The card of an environment that has several.
pub fn guests_card(one: &EnvironmentSummary) -> Option<AnyView> {
    let followers = one.followers.iter().map(|follower| {
        let leave = one.may_change.then(|| {
            let label = format!("Remove guest {} from {}", follower.name, one.environment);
            view! { <a class="btn small danger" href=leave_path(one, follower.guest) aria-label=label>"Remove guest"</a> }
        });
        view! { <li data-guest=follower.name.to_string()><div>{about_follower(one, follower)}</div>{leave}</li> }
            .into_any()
    });
    let leader = view! { <li data-guest=one.leader.name.to_string()><div>{about_leader(one)}</div></li> }.into_any();
    let items: Vec<AnyView> = std::iter::once(leader).chain(followers).collect();
    let right = view! { <span class="quiet">"all go live, or none"</span> };
    (!one.followers.is_empty())
        .then(|| card("guests", "Guests", right.into_any(), view! { <ul class="items guests">{items}</ul> }.into_any()))
}

/// The same as lines, for where it is one fact of many.
pub fn guest_lines(one: &EnvironmentSummary) -> AnyView {
    let followers =
        one.followers.iter().map(|follower| view! { <li>{about_follower(one, follower)}</li> }).collect_view();
    view! { <ul class="lines guests"><li>{about_leader(one)}</li>{followers}</ul> }.into_any()
}

fn about_leader(one: &EnvironmentSummary) -> AnyView {
    let leader = &one.leader;
    let live = match (leader.guest_state, &leader.live) {
        (GuestState::Running, None) => status(Tone::Off, "Nothing live yet"),
        (state, None) => guest_state_status(state),
        (_, Some(live)) => reached_status(leader, GuestRole::Leader, live),
    };
    view! {
        {guest_link(leader.guest, leader.name.as_str())}
        <div class="state">{live}<span class="quiet small">"leader, pushed to"</span></div>
        {reached(&leader.hosts)}
        {leader.site.as_ref().map(site_evidence)}
    }
    .into_any()
}

fn about_follower(one: &EnvironmentSummary, follower: &EnvironmentGuest) -> AnyView {
    let told = follower.state == EnvironmentState::Ready && follower.live.is_some() && !is_behind(one, follower);
    let down = (follower.guest_state != GuestState::Running && !told).then(|| guest_state_status(follower.guest_state));
    let reason = follower
        .state_reason
        .as_deref()
        .filter(|_| follower.state == EnvironmentState::Failed)
        .map(|text| view! { <div class="small error">{sentence(text)}</div> });
    let job = follower.job.filter(|job| one.leader.job != Some(*job)).map(job_link);
    view! {
        {guest_link(follower.guest, follower.name.as_str())}
        <div class="state">{follower_status(one, follower)}{down}</div>
        {reached(&follower.hosts)}
        {follower.site.as_ref().map(site_evidence)}
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

/// What is live on a guest, if it is reached there; if not, why not.
fn reached_status(guest: &EnvironmentGuest, role: GuestRole, live: &LiveRelease) -> AnyView {
    match guest.seen(role).filter(|seen| seen.reached != Reached::Live).as_ref().map(seen_look) {
        Some((tone, word)) => status(tone, word),
        None => status(Tone::Ok, live_word(live.number)),
    }
}

/// What of it is live on a follower, beside what is on the leader.
fn follower_status(one: &EnvironmentSummary, follower: &EnvironmentGuest) -> AnyView {
    match follower.state {
        EnvironmentState::SettingUp => status(Tone::Busy, "Setting up"),
        EnvironmentState::Failed => status(Tone::Fail, "Failed"),
        EnvironmentState::Leaving => status(Tone::Busy, "Being removed"),
        EnvironmentState::Ready if !is_behind(one, follower) => match &follower.live {
            Some(live) => reached_status(follower, GuestRole::Follower, live),
            None => status(Tone::Off, "Nothing live yet"),
        },
        EnvironmentState::Ready => {
            let moves = one.leader.job.is_some() || follower.job.is_some();
            status(if moves { Tone::Busy } else { Tone::Warn }, behind_word(one, follower))
        }
    }
}

/// `Behind: #6`; ahead only when the leader lost what it had.
fn behind_word(one: &EnvironmentSummary, follower: &EnvironmentGuest) -> String {
    let Some(live) = &follower.live else { return "Behind: nothing live".to_owned() };
    let leader = one.leader.live.as_ref().and_then(|live| live.number);
    match (leader, live.number) {
        (Some(leader), Some(here)) if here < leader => format!("Behind: #{here}"),
        (_, Some(here)) => format!("Not the same: #{here}"),
        (_, None) => "Not the same".to_owned(),
    }
}

/// What is live where, when that is not the same everywhere, and what to do.
pub fn not_everywhere(one: &EnvironmentSummary) -> Option<AnyView> {
    if is_everywhere(one) {
        return None;
    }
    let behind: Vec<_> = one.followers.iter().filter(|follower| is_behind(one, follower)).collect();
    let name = &one.leader.name;
    let leader = match one.leader.live.as_ref().map(|live| live.number) {
        Some(Some(number)) => format!("#{number} is live on {name}"),
        Some(None) => format!("{name} is live"),
        None => format!("Nothing is live on {name}"),
    };
    let elsewhere: Vec<String> = behind.iter().map(|follower| elsewhere(follower)).collect();
    let text = format!("{leader}; {}.", elsewhere.join("; "));
    let down: Vec<&str> = behind
        .iter()
        .filter(|follower| follower.guest_state != GuestState::Running)
        .map(|follower| follower.name.as_str())
        .collect();
    let todo = if down.is_empty() {
        let again = deploy_again(one, "btn small");
        view! { <span>"Deploying it again brings all of them to the same."</span>{again} }.into_any()
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

fn elsewhere(follower: &EnvironmentGuest) -> String {
    match follower.live.as_ref().map(|live| live.number) {
        Some(Some(number)) => format!("{} has #{number}", follower.name),
        Some(None) => format!("{} has something else", follower.name),
        None => format!("{} has nothing", follower.name),
    }
}

/// Followers that could not be set up: none of them is deployed to.
pub fn failed_followers(one: &EnvironmentSummary) -> Option<AnyView> {
    let failed: Vec<&str> = one
        .followers
        .iter()
        .filter(|follower| follower.state == EnvironmentState::Failed)
        .map(|follower| follower.name.as_str())
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
