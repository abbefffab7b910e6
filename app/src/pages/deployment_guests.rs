//! How a deployment goes on the guests of an environment that has several: each with its state
//! and the way to its part, for which of them the leader waits, and which did not go live.

use corpus_api::deployments::report::DeploymentFault;
use corpus_api::deployments::{Deployment, DeploymentPart};
use corpus_domain::{GuestName, Outcome, Phase};
use leptos::prelude::*;

use super::deployment_paths::{part_path, whole_path};
use crate::components::{Tone, card, count, notice, status, took, triggered_look};
use crate::form::sentence;

/// Every guest it goes live on; none when the environment has one guest.
pub fn guests_card(detail: &Deployment) -> Option<AnyView> {
    let one = &detail.line;
    let to_come = to_come(detail);
    if detail.followers.is_empty() && to_come.is_empty() {
        return None;
    }
    let leader = detail.leader.clone().or_else(|| one.leader.is_none().then(|| own(detail)));
    let leader = leader.map(|leader| item(detail, &leader, whole_path(one), true));
    let followers = detail
        .followers
        .iter()
        .map(|follower| item(detail, follower, part_path(one, &follower.guest), false))
        .collect_view();
    let next = to_come
        .iter()
        .map(|guest| view! { <li><div>{guest.to_string()}</div>{status(Tone::Off, "To come")}</li> })
        .collect_view();
    let right = view! { <span class="quiet">"all go live, or none"</span> };
    let body = view! { <ul class="items guests">{leader}{followers}{next}</ul> };
    Some(card("guests", "Guests", right.into_any(), body.into_any()))
}

/// The whole as what the leader did.
fn own(detail: &Deployment) -> DeploymentPart {
    let one = &detail.line;
    DeploymentPart {
        deployment: one.id,
        guest: one.guest_name.clone(),
        state: one.state,
        fault: one.fault.clone(),
        elapsed_ms: one.elapsed_ms,
    }
}

fn item(detail: &Deployment, on: &DeploymentPart, path: String, is_leader: bool) -> AnyView {
    let here = (on.deployment == detail.line.id).then_some("page");
    let role = is_leader.then(|| view! { <div class="quiet">"leader, pushed to"</div> });
    let fault = on.fault.as_deref().map(|text| {
        if is_of_another(detail, on, text) {
            // Whose fault it was stands beside that guest.
            view! { <div class="quiet">"could have gone live, and was put back with the rest"</div> }.into_any()
        } else {
            view! { <div class="small error">{sentence(text)}</div> }.into_any()
        }
    });
    let (tone, word) = triggered_look(on.state, detail.line.trigger);
    let time = on.elapsed_ms.filter(|_| on.state.is_over()).map(|ms| view! { <div class="quiet">{took(ms)}</div> });
    view! {
        <li>
            <div><a class="link" href=path aria-current=here>{on.guest.to_string()}</a>{role}{fault}</div>
            <div class="right">{status(tone, word)}{time}</div>
        </li>
    }
    .into_any()
}

/// Whether a guest aborted since another one, which the fault names, could not go live.
fn is_of_another(detail: &Deployment, on: &DeploymentPart, fault: &str) -> bool {
    detail.followers.iter().any(|follower| follower.deployment != on.deployment && names(fault, &follower.guest))
}

/// Whether a fault is that of a guest, as the job of their two-phase commit says it.
fn names(fault: &str, guest: &GuestName) -> bool {
    fault.strip_prefix(guest.as_str()).is_some_and(|after| after.starts_with(':'))
}

/// The followers that it comes to later, while it runs on the leader.
fn to_come(detail: &Deployment) -> Vec<&GuestName> {
    let begun = |guest: &GuestName| detail.followers.iter().any(|follower| follower.guest == *guest);
    let runs = detail.line.leader.is_none() && !detail.line.state.is_over();
    detail.guests.iter().filter(|guest| runs && !begun(guest)).collect()
}

/// While it is prepared: for which guests it waits.
pub fn waits_for(detail: &Deployment) -> Option<AnyView> {
    let one = &detail.line;
    let is_prepared =
        detail.report.as_ref()?.phases.iter().any(|phase| {
            phase.phase == Phase::Followers && phase.began_at.is_some() && phase.outcome == Outcome::Skipped
        });
    if one.state.is_over() || !is_prepared {
        return None;
    }
    let text = "Proven here. It goes live when every guest of the environment can, and on none otherwise.";
    let running =
        detail.followers.iter().rev().find(|follower| follower.deployment != one.id && !follower.state.is_over());
    let running = running.filter(|_| one.leader.is_none()).map(|follower| {
        let names: Vec<&str> = to_come(detail).into_iter().map(GuestName::as_str).collect();
        let then = (!names.is_empty()).then(|| format!(", then {}", names.join(", ")));
        view! { <span>"Now on "<a class="link" href=part_path(one, &follower.guest)>{follower.guest.to_string()}</a>{then}</span> }
    });
    let more = view! { <span>{text}</span>{running} };
    Some(notice(Tone::Busy, "Waiting for the other guests", more.into_any()))
}

/// The guest that a deployment failed on, when it could have gone live on this one.
pub fn refused_by<'a>(detail: &'a Deployment, fault: &DeploymentFault) -> Option<&'a DeploymentPart> {
    let named =
        |follower: &&DeploymentPart| follower.deployment != detail.line.id && names(&fault.message, &follower.guest);
    detail.followers.iter().filter(|_| fault.phase == Phase::Followers).find(named)
}

/// The followers that it did not go live on, though it did on the leader.
pub fn not_everywhere(detail: &Deployment) -> Option<AnyView> {
    use corpus_domain::DeploymentState::Live;
    let one = &detail.line;
    let missing: Vec<_> =
        detail.followers.iter().filter(|follower| follower.state.is_over() && follower.state != Live).collect();
    if one.leader.is_some() || one.state != Live || missing.is_empty() {
        return None;
    }
    let items = missing
        .iter()
        .map(|follower| {
            let why = follower.fault.as_deref().map(|text| format!(": {}", sentence(text)));
            view! { <span><a class="link" href=part_path(one, &follower.guest)>{follower.guest.to_string()}</a>{why}</span> }
        })
        .collect_view();
    let is_live = detail.live.as_ref().is_some_and(|live| live.deployment == one.id);
    let again = is_live.then_some("Deploying it again brings all guests to the same.");
    let text =
        format!("It is live on {}, but did not go live on {}.", one.guest_name, count(missing.len(), "follower"));
    let more = view! { <span>{text}</span>{items}<span>{again}</span> };
    Some(notice(Tone::Warn, "Not live everywhere", more.into_any()))
}
