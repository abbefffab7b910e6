//! How a deployment goes on the guests of an environment that has several: each with its state
//! and the way to its part, for which of them the first waits, and which did not go live.

use corpus_controller::project_views::{DeploymentDetail, OnGuestView};
use corpus_domain::{GuestName, Outcome, Phase};
use corpus_protocol::Fault;
use leptos::prelude::*;

use super::deployment_paths::{part_path, whole_path};
use crate::components::{Tone, card, count, deployment_status, notice, status, took};
use crate::form::sentence;

/// Every guest it goes live on; none when the environment has one guest.
pub fn guests_card(detail: &DeploymentDetail) -> Option<AnyView> {
    let one = &detail.summary;
    let to_come = to_come(detail);
    if detail.others.is_empty() && to_come.is_empty() {
        return None;
    }
    let first = detail.first.clone().or_else(|| one.leader.is_none().then(|| own(detail)));
    let leads = first.map(|first| item(detail, &first, whole_path(one), true));
    let others =
        detail.others.iter().map(|other| item(detail, other, part_path(one, &other.guest), false)).collect_view();
    let next = to_come
        .iter()
        .map(|guest| view! { <li><div>{guest.to_string()}</div>{status(Tone::Off, "To come")}</li> })
        .collect_view();
    let right = view! { <span class="quiet">"all go live, or none"</span> };
    let body = view! { <ul class="items guests">{leads}{others}{next}</ul> };
    Some(card("guests", "Guests", right.into_any(), body.into_any()))
}

/// The whole as what the first guest did.
fn own(detail: &DeploymentDetail) -> OnGuestView {
    let one = &detail.summary;
    OnGuestView {
        id: one.id,
        guest: one.guest.clone(),
        state: one.state,
        fault: one.fault.clone(),
        elapsed_ms: one.elapsed_ms,
    }
}

fn item(detail: &DeploymentDetail, on: &OnGuestView, path: String, leads: bool) -> AnyView {
    let here = (on.id == detail.summary.id).then_some("page");
    let leads = leads.then(|| view! { <div class="quiet">"pushed to, leads"</div> });
    let fault = on.fault.as_deref().map(|text| {
        if is_of_another(detail, on, text) {
            // Whose fault it was stands beside that guest.
            view! { <div class="quiet">"could have gone live, and went back with the others"</div> }.into_any()
        } else {
            view! { <div class="small error">{sentence(text)}</div> }.into_any()
        }
    });
    let time = on.elapsed_ms.filter(|_| on.state.is_over()).map(|ms| view! { <div class="quiet">{took(ms)}</div> });
    view! {
        <li>
            <div><a class="link" href=path aria-current=here>{on.guest.to_string()}</a>{leads}{fault}</div>
            <div class="right">{deployment_status(on.state)}{time}</div>
        </li>
    }
    .into_any()
}

/// Whether a guest went back since another one, which the fault names, could not go live.
fn is_of_another(detail: &DeploymentDetail, on: &OnGuestView, fault: &str) -> bool {
    detail.others.iter().any(|other| other.id != on.id && names(fault, &other.guest))
}

/// Whether a fault is that of a guest, as the job that has them go live together says it.
fn names(fault: &str, guest: &GuestName) -> bool {
    fault.strip_prefix(guest.as_str()).is_some_and(|after| after.starts_with(':'))
}

/// The guests that it comes to later, while it runs on the first.
fn to_come(detail: &DeploymentDetail) -> Vec<&GuestName> {
    let begun = |guest: &GuestName| detail.others.iter().any(|other| other.guest == *guest);
    let runs = detail.summary.leader.is_none() && !detail.summary.state.is_over();
    detail.guests.iter().filter(|guest| runs && !begun(guest)).collect()
}

/// While it holds for other guests: which.
pub fn waits_for(detail: &DeploymentDetail) -> Option<AnyView> {
    let one = &detail.summary;
    let holds = detail
        .report
        .as_ref()?
        .phases
        .iter()
        .any(|phase| phase.phase == Phase::Others && phase.began_ms.is_some() && phase.outcome == Outcome::Skipped);
    if one.state.is_over() || !holds {
        return None;
    }
    let text = "Proven here. It goes live when every guest of the environment can, and on none otherwise.";
    let running = detail.others.iter().rev().find(|other| other.id != one.id && !other.state.is_over());
    let running = running.filter(|_| one.leader.is_none()).map(|other| {
        let names: Vec<&str> = to_come(detail).into_iter().map(GuestName::as_str).collect();
        let then = (!names.is_empty()).then(|| format!(", then {}", names.join(", ")));
        view! { <span>"Now on "<a class="link" href=part_path(one, &other.guest)>{other.guest.to_string()}</a>{then}</span> }
    });
    let more = view! { <span>{text}</span>{running} };
    Some(notice(Tone::Busy, "Waiting for the other guests", more.into_any()))
}

/// The guest that a deployment failed on, when it could have gone live on this one.
pub fn refused_by<'a>(detail: &'a DeploymentDetail, fault: &Fault) -> Option<&'a OnGuestView> {
    let named = |other: &&OnGuestView| other.id != detail.summary.id && names(&fault.message, &other.guest);
    detail.others.iter().filter(|_| fault.phase == Phase::Others).find(named)
}

/// The guests that it did not go live on, though it did on the first.
pub fn not_everywhere(detail: &DeploymentDetail) -> Option<AnyView> {
    use corpus_domain::DeploymentState::Live;
    let one = &detail.summary;
    let missing: Vec<_> = detail.others.iter().filter(|other| other.state.is_over() && other.state != Live).collect();
    if one.leader.is_some() || one.state != Live || missing.is_empty() {
        return None;
    }
    let items = missing
        .iter()
        .map(|other| {
            let why = other.fault.as_deref().map(|text| format!(": {}", sentence(text)));
            view! { <span><a class="link" href=part_path(one, &other.guest)>{other.guest.to_string()}</a>{why}</span> }
        })
        .collect_view();
    let is_live = detail.live.as_ref().is_some_and(|(live, _)| live.deployment == one.id);
    let again = is_live.then_some("Deploy again brings all guests to the same.");
    let text = format!("It is live on {}, but did not go live on {}.", one.guest, count(missing.len(), "other guest"));
    let more = view! { <span>{text}</span>{items}<span>{again}</span> };
    Some(notice(Tone::Warn, "Not live everywhere", more.into_any()))
}
