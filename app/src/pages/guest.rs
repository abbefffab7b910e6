//! A guest: how to enter it, its names, its settings, and what was done with it.

use corpus_controller::authz::{Operation, Principal};
use corpus_controller::jobs::JobRow;
use corpus_controller::views::{GuestView, ZoneView};
use corpus_controller::{Controller, Result};
use corpus_domain::{EnvironmentState, GuestId, GuestState};
use leptos::prelude::*;

use super::Asked;
use super::guest_limits::limits;
use super::guest_parts::{about, connect, enlarge, names, settings};
use super::guests::last_known;
use super::jobs::{guest_jobs, history, progress};
use crate::age::span;
use crate::components::{Tone, action, card, environment, error_summary, guest_status, head, notice, since};
use crate::form::{FormState, Revealed, sentence};
use crate::layout::Page;

/// Reads and shows it.
pub async fn load(controller: &Controller, principal: &Principal, id: GuestId, asked: &Asked) -> Result<Page> {
    let guest = controller.guest(principal, id).await?;
    let zones = controller.zones(principal).await?;
    let jobs = guest_jobs(controller, principal, id).await?;
    let environment = controller.environment_on_guest(principal, id).await?;
    let shown = Shown {
        guest: &guest,
        environment,
        zones: &zones,
        jobs: &jobs,
        form: &asked.form,
        revealed: asked.revealed.as_ref(),
    };
    Ok(Page::new("guest", guest.name.to_string(), guest_view(principal, &shown)).under("Guests", "/guests"))
}

/// What the page is made of.
pub struct Shown<'a> {
    /// The guest.
    pub guest: &'a GuestView,
    /// The state of the environment that stands on it, and whether it is its first guest; none when none does.
    pub environment: Option<(EnvironmentState, bool)>,
    /// The zones that names can be in.
    pub zones: &'a [ZoneView],
    /// Its jobs, the newest first.
    pub jobs: &'a [JobRow],
    /// A form that came back.
    pub form: &'a FormState,
    /// Its password, when it was just asked for.
    pub revealed: Option<&'a Revealed>,
}

/// The view of plain values.
pub fn guest_view(principal: &Principal, shown: &Shown<'_>) -> AnyView {
    let guest = shown.guest;
    let busy = guest.job.is_some().then_some("");
    let below = view! { <span id="live-state" data-live="" data-busy=busy>{guest_status(guest)}" "<span class="quiet">{place(guest)}</span></span> };
    let title = view! { {guest.name.to_string()}" "{environment(guest.environment)} };
    view! {
        {head(title.into_any(), below.into_any(), view! { <span class="actions" id="live-actions" data-live="">{actions(principal, guest)}</span> }.into_any())}
        {error_summary(shown.form)}
        <div class="stack" id="live-notices" data-live="">{failed(guest)}{drifted(guest)}{progress(shown.jobs)}</div>
        <div class="cols">
            <div class="stack">
                {connect(principal, guest, shown.revealed)}
                {names(principal, guest, shown.zones, &shown.form.of("names"))}
                {settings(guest)}
            </div>
            <div class="stack">
                {about(guest, shown.environment)}
                {limits(principal, guest, &shown.form.of("limits"))}
                {enlarge(principal, guest, &shown.form.of("enlarge"))}
                <div id="live-history" data-live="">{card("history", "History", ().into_any(), history(shown.jobs))}</div>
            </div>
        </div>
    }
    .into_any()
}

fn place(guest: &GuestView) -> AnyView {
    let node =
        view! { "on "<a class="link" href=format!("/nodes/{}", guest.node_id)>{guest.node_address.to_string()}</a> };
    let up = match (guest.state, guest.uptime_s) {
        (GuestState::Running, Some(seconds)) => {
            format!(", up {}", span(i64::try_from(seconds).unwrap_or(i64::MAX))).into_any()
        }
        _ => view! { ", since "{since(guest.state_since)} }.into_any(),
    };
    let old = last_known(guest).map(|age| view! { ", "{age} });
    view! { {node}{up}{old} }.into_any()
}

fn failed(guest: &GuestView) -> Option<AnyView> {
    let reason = guest.state_reason.clone().filter(|_| guest.state == GuestState::Failed)?;
    Some(notice(Tone::Fail, "Failed", view! { <span>{sentence(&reason)}</span> }.into_any()))
}

/// What of it was not as it should be when its node was last checked.
fn drifted(guest: &GuestView) -> Option<AnyView> {
    let settled = matches!(guest.state, GuestState::Running | GuestState::Stopped);
    let first = guest.drift.first().filter(|_| settled)?;
    let texts: Vec<&str> = guest.drift.iter().map(|one| one.text.as_str()).collect();
    let more = view! {
        <span>{sentence(&texts.join("; "))}</span>
        <span class="quiet">"for "{since(first.since)}"; an operator can repair its node"</span>
    };
    Some(notice(Tone::Warn, "Not as it should be", more.into_any()))
}

fn actions(principal: &Principal, guest: &GuestView) -> AnyView {
    let busy = guest.job.is_some().then(|| "A job is on this guest".to_owned());
    let power = principal.may(Operation::GuestPower, Some(guest.project_id)).then(|| {
        let button = |verb: &str, word: &'static str, from: GuestState| {
            let why_not = busy.clone().or_else(|| (guest.state != from).then(|| format!("It is not {from}")));
            action(format!("/guests/{}/{verb}", guest.id), word, "btn", why_not)
        };
        let start = (guest.state != GuestState::Running).then(|| button("start", "Start", GuestState::Stopped));
        let stop = (guest.state != GuestState::Stopped).then(|| button("stop", "Stop", GuestState::Running));
        let restart = (guest.state != GuestState::Stopped).then(|| button("restart", "Restart", GuestState::Running));
        view! { {start}{restart}{stop} }
    });
    let destroy = (principal.may(Operation::GuestDestroy, Some(guest.project_id))
        && guest.state != GuestState::Destroying)
        .then(|| view! { <a class="btn danger" href=format!("/guests/{}/destroy", guest.id)>"Destroy"</a> });
    view! { {power}{destroy} }.into_any()
}
