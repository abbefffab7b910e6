//! A guest: how to enter it, its names, its settings, and what was done with it.

use corpus_api::Operation;
use corpus_api::guests::{GetGuest, Guest, GuestPasswordRevealed, RestartGuest, StartGuest, StopGuest};
use corpus_api::jobs::JobLine;
use corpus_api::lxc_lines::{AllowedLine, ListLxcLines};
use corpus_api::notices::NoticeOf;
use corpus_api::quotas::{GetQuota, ProjectQuota};
use corpus_api::undoes::{ListUndoes, UndoLine, Undoable};
use corpus_api::zones::{ListZones, Zone};
use corpus_domain::{Environment, GuestId, GuestState};
use leptos::prelude::*;

use super::guest_limits::limits;
use super::guest_parts::{about, connect, host_key, names, storage};
use super::guest_settings::settings;
use super::guests::last_known;
use super::jobs::{guest_jobs, history, progress};
use super::{Asked, not_created, undo};
use crate::age::span;
use crate::caller::Caller;
use crate::components::{
    Tone, action_at, card, confirm_as, environment, error_summary, guest_look, guest_status, head, notice, since,
    stays_at,
};
use crate::form::{Answered, FormState, Result, sentence};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows it.
pub async fn load(caller: &Caller, id: GuestId, asked: &Asked) -> Result<Page> {
    let guest = match caller.ask(GetGuest { guest: id }).await {
        Ok(guest) => guest,
        Err(missing) => return not_created::guest(caller, id, missing.into()).await,
    };
    let zones = caller.ask(ListZones::default()).await?.items;
    let quota = caller.ask(GetQuota { project: guest.line.project.clone() }).await?;
    let lines = caller.ask(ListLxcLines {}).await?.items;
    let jobs = guest_jobs(caller, id).await?;
    // How the last one ended stands on the page.
    if let Some(last) = jobs.first().filter(|job| job.state.is_over()) {
        caller.saw(NoticeOf::Job(last.id));
    }
    let asks = ListUndoes { of: Some(Undoable::Name), guest: Some(id), ..ListUndoes::default() };
    let undoes = undo::few(caller, asks).await?;
    let revealed: Option<GuestPasswordRevealed> = asked.answered.as_ref().and_then(Answered::read);
    let password = revealed.filter(|revealed| revealed.guest == id).map(|revealed| revealed.password);
    let (form, password) = (&asked.form, password.as_deref());
    let asks = guest.may_change && !caller.who.ops;
    let shown = Shown {
        guest: &guest,
        zones: &zones,
        quota: &quota,
        lines: &lines,
        jobs: &jobs,
        undoes: &undoes,
        asks,
        form,
        password,
    };
    let state = guest.line.job.map(|_| guest_look(guest.line.state).1);
    let page = Page::new("guest", guest.line.name.to_string(), guest_view(&shown));
    Ok(page.under("Guests", "/guests").in_state(state))
}

/// What the page is made of.
pub struct Shown<'a> {
    /// The guest.
    pub guest: &'a Guest,
    /// The zones that names can be in.
    pub zones: &'a [Zone],
    /// What its project has taken of its quota.
    pub quota: &'a ProjectQuota,
    /// The lines that operators allow its configuration.
    pub lines: &'a [AllowedLine],
    /// Its jobs, the newest first.
    pub jobs: &'a [JobLine],
    /// What of it can be undone.
    pub undoes: &'a [UndoLine],
    /// Whether who looks asks the operators for what they may not do.
    pub asks: bool,
    /// A form that came back.
    pub form: &'a FormState,
    /// Its password, when it was just asked for.
    pub password: Option<&'a str>,
}

/// The view of plain values.
pub fn guest_view(shown: &Shown<'_>) -> AnyView {
    let (guest, line) = (shown.guest, &shown.guest.line);
    let busy = line.job.is_some().then_some("");
    let below = view! { <span id="live-state" data-live="" data-busy=busy>{guest_status(line)}" "<span class="quiet">{place(guest)}</span></span> };
    let title = view! { {line.name.to_string()}" "{environment(line.environment)} };
    view! {
        {head(title.into_any(), below.into_any(), view! { <span class="actions" id="live-actions" data-live="">{actions(guest)}</span> }.into_any())}
        {error_summary(shown.form)}
        {undo::offered(shown.undoes, &path(guest))}
        <div class="stack" id="live-notices" data-live="">{failed(guest)}{drifted(guest)}{progress(shown.jobs)}</div>
        <div class="cols">
            <div class="stack">
                {host_key(guest)}
                {connect(guest, shown.password)}
                {names(guest, shown.zones, shown.quota, shown.form, shown.asks)}
                {settings(guest, shown.lines, &shown.form.of("settings"))}
            </div>
            <div class="stack">
                {about(guest)}
                {limits(guest, shown.quota, &shown.form.of("limits"))}
                {storage(guest, shown.quota, shown.form)}
                <div id="live-history" data-live="">{card("history", "History", ().into_any(), history(shown.jobs))}</div>
            </div>
        </div>
        <div class="at-end" id="live-end" data-live="">{move_link(guest)}{destroy_link(guest)}</div>
    }
    .into_any()
}

fn place(guest: &Guest) -> AnyView {
    let line = &guest.line;
    let node = view! { "on "<a class="link" href=format!("/nodes/{}", line.node)>{line.node_title()}</a> };
    let up = match (line.state, guest.uptime_s) {
        (GuestState::Running, Some(seconds)) => {
            format!(", up {}", span(i64::try_from(seconds).unwrap_or(i64::MAX))).into_any()
        }
        _ => view! { ", since "{since(line.state_since)} }.into_any(),
    };
    let old = last_known(line).map(|age| view! { ", "{age} });
    view! { {node}{up}{old} }.into_any()
}

fn failed(guest: &Guest) -> Option<AnyView> {
    let reason = guest.state_reason.clone().filter(|_| guest.line.state == GuestState::Failed)?;
    Some(notice(Tone::Fail, "Failed", view! { <span>{sentence(&reason)}</span> }.into_any()))
}

/// What of it was not as it should be when its node was last checked.
fn drifted(guest: &Guest) -> Option<AnyView> {
    let first = guest.drift.first().filter(|_| is_settled(guest))?;
    let texts: Vec<&str> = guest.drift.iter().map(|one| one.text.as_str()).collect();
    let more = view! {
        <span>{sentence(&texts.join("; "))}</span>
        <span class="quiet">"for "{since(first.since)}"; an operator can repair its node"</span>
    };
    Some(notice(Tone::Warn, "Not as it should be", more.into_any()))
}

/// Whether nothing is on its way with it.
pub const fn is_settled(guest: &Guest) -> bool {
    matches!(guest.line.state, GuestState::Running | GuestState::Stopped)
}

fn actions(guest: &Guest) -> AnyView {
    let state = guest.line.state;
    let power = guest.may_operate.then(|| {
        let start = (state != GuestState::Running).then(|| button::<StartGuest>(guest, "Start", GuestState::Stopped));
        let stop = (state != GuestState::Stopped).then(|| button::<StopGuest>(guest, "Stop", GuestState::Running));
        let restart =
            (state != GuestState::Stopped).then(|| button::<RestartGuest>(guest, "Restart", GuestState::Running));
        view! { {start}{restart}{stop} }
    });
    view! { {power}{destroy_link(guest)} }.into_any()
}

fn move_link(guest: &Guest) -> Option<AnyView> {
    let moves = guest.may_move && is_settled(guest);
    moves.then(|| view! { <a class="btn" href=format!("{}/move", path(guest))>"Move to another node"</a> }.into_any())
}

fn destroy_link(guest: &Guest) -> Option<AnyView> {
    (guest.may_change && guest.line.state != GuestState::Destroying)
        .then(|| view! { <a class="btn danger" href=format!("{}/destroy", path(guest))>"Destroy guest"</a> }.into_any())
}

fn button<O: Operation>(guest: &Guest, word: &'static str, from: GuestState) -> AnyView {
    let busy = guest.line.job.map(|_| "A job is on this guest".to_owned());
    let why_not = busy.or_else(|| (guest.line.state != from).then(|| format!("It is not {from}")));
    let (post, hidden) = (to::<O>(&[&guest.line.id]), stays_at(&path(guest), "power"));
    match interruption(guest).filter(|_| from == GuestState::Running && why_not.is_none()) {
        Some(question) => confirm_as("btn", word, guest.line.name.as_str(), question, post, hidden),
        None => action_at(post, hidden, word, "btn", why_not),
    }
}

/// What stopping it interrupts, if it is of prod: then it is asked once.
pub fn interruption(guest: &Guest) -> Option<String> {
    let names: Vec<&str> = guest.names.iter().take(3).map(|name| name.name.as_str()).collect();
    let more = if guest.names.len() > names.len() { " and others" } else { "" };
    let who = match names.as_slice() {
        [] => "What runs on it".to_owned(),
        names => format!("{}{more}", names.join(", ")),
    };
    let prod = format!("This is prod of {}. {who} will not answer until it runs again.", guest.line.project);
    (guest.line.environment == Environment::Prod).then_some(prod)
}

/// The page of a guest.
pub fn path(guest: &Guest) -> String {
    format!("/guests/{}", guest.line.id)
}
