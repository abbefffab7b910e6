//! The states of a guest: how its configuration is managed, how that is switched, and what its states came to last.

use corpus_api::deployments::report::SaltState;
use corpus_api::guests::{ApplyGuestStates, GetGuestStates, GuestStates, StatesRun, SwitchGuestMode};
use corpus_domain::{GuestId, GuestState, Mode};
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, card, empty, environment, error_summary, facts, head, picks, reason, status, stays_at, took,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows them.
pub async fn load(caller: &Caller, id: GuestId, form: &FormState) -> Result<Page> {
    let all = caller.ask(GetGuestStates { guest: id }).await?;
    let page = Page::new("guest-states", format!("States of {}", all.name), states_view(&all, form));
    Ok(page.under(all.name.as_str(), format!("/guests/{id}")).under("Guests", "/guests"))
}

fn path(all: &GuestStates) -> String {
    format!("/guests/{}/states", all.guest)
}

/// The view of plain values.
pub fn states_view(all: &GuestStates, form: &FormState) -> AnyView {
    let title = view! { "States of "<a href=format!("/guests/{}", all.guest)>{all.name.to_string()}</a>" "{environment(all.environment)} };
    let below = view! { <span class="quiet" id="live-mode" data-live="">{status(Tone::Ok, all.mode.as_str())}" "{means(all.mode)}{all.master.as_ref().map(|name| format!(" It is called {name}."))}</span> };
    let run = view! { <div id="live-run" data-live="">{last(all.last.as_ref())}</div> };
    let change = all.may_change.then(|| {
        view! {
            <div class="stack">
                {card("apply", "Apply", ().into_any(), apply(all, &form.of("apply")))}
                {card("mode", "Mode", ().into_any(), switch(all, &form.of("mode")))}
            </div>
        }
    });
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols"><div class="stack">{run}</div>{change}</div>
    }
    .into_any()
}

/// What a mode is, in a sentence.
const fn means(mode: Mode) -> &'static str {
    match mode {
        Mode::Masterless => {
            "Nothing of Salt goes on running: what lies in /srv/salt of the guest is applied when somebody asks."
        }
        Mode::Salt => {
            "A master of its own, which only it reaches, has what lies in /srv/salt of the guest, and a minion follows it."
        }
        Mode::Mastersalt => "A minion follows a master of the controller, which has what operators wrote.",
    }
}

fn apply(all: &GuestStates, form: &FormState) -> AnyView {
    if all.state != GuestState::Running {
        return empty("It does not run", "Start it first: its states are applied in it.".into_any());
    }
    let to = to::<ApplyGuestStates>(&[&all.guest]);
    let form = form.error_at("guest").map(|text| view! { <p class="error">{text.to_owned()}</p> });
    view! {
        <div class="body">
            <p class="quiet">"All that the top file of its mode names for it. Trying them changes nothing, and shows what is not as they say."</p>
            {form}
            <div class="actions">
                <form method="post" action=to.clone() class="inline">
                    {stays_at(&path(all), "apply")}
                    <input type="hidden" name="test" value="true"/>
                    <button class="btn">"Try them"</button>
                </form>
                <form method="post" action=to class="inline">
                    {stays_at(&path(all), "apply")}
                    <button class="btn primary">"Apply them"</button>
                </form>
            </div>
        </div>
    }
    .into_any()
}

fn switch(all: &GuestStates, form: &FormState) -> AnyView {
    if all.state != GuestState::Running {
        return empty("It does not run", "Start it first: it is the guest itself that switches.".into_any());
    }
    view! {
        <form method="post" action={to::<SwitchGuestMode>(&[&all.guest])} class="form body">
            {stays_at(&path(all), "mode")}
            {Field::new(form, "mode", "Managed by").suggest(all.mode.as_str()).hint("That which it has lays everything anew, which mends what was taken apart in the guest").select(picks(Mode::ALL.iter().map(|mode| mode.as_str())))}
            <div class="submit"><button class="btn">"Switch"</button><a class="link" href="/docs/states#modes">"What they are"</a></div>
        </form>
    }
    .into_any()
}

/// How a run ended, in a few words.
pub(super) fn outcome(failed: u64, changed: u64, test: bool) -> AnyView {
    let (tone, word) = match (failed, changed, test) {
        (0, 0, _) => (Tone::Ok, "As they say".to_owned()),
        (0, changed, true) => (Tone::Warn, format!("{changed} are not as they say")),
        (0, changed, false) => (Tone::Ok, format!("{changed} changed")),
        (failed, _, _) => (Tone::Fail, format!("{failed} failed")),
    };
    status(tone, word)
}

/// What states came to last, state by state.
pub(super) fn last(run: Option<&StatesRun>) -> AnyView {
    let Some(run) = run else {
        let how = "What they come to is shown here, state by state.";
        return card("run", "Last run", ().into_any(), empty("The states were not applied yet", how.into_any()));
    };
    let about = facts(vec![
        ("Outcome", outcome(run.failed, run.changed, run.test)),
        ("When", age(run.at)),
        ("Was", if run.test { "tried" } else { "applied" }.into_any()),
        ("Mode", run.mode.as_str().into_any()),
        ("States", run.ran.to_string().into_any()),
    ]);
    let shown = run.states.len();
    let rest = (run.ran > shown as u64).then(|| {
        let text =
            format!("{shown} of {} are shown: those that failed, those that changed something, then others.", run.ran);
        view! { <p class="quiet body">{text}</p> }
    });
    let table = if run.states.is_empty() {
        empty("No state is for it", "The top file of its mode names none for it, or is not there.".into_any())
    } else {
        let rows = run.states.iter().map(|state| row(state, run.test)).collect_view();
        view! {
            <table class="rows" aria-label="States">
                <thead><tr><th>"State"</th><th>"About"</th><th>"Came to"</th><th class="num">"Took"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    };
    card("run", "Last run", ().into_any(), view! { {about}{rest}{table} }.into_any())
}

fn row(state: &SaltState, test: bool) -> AnyView {
    let (tone, word) = match (state.ok, state.changed, test) {
        (false, _, _) => (Tone::Fail, "Failed"),
        (true, true, true) => (Tone::Warn, "Would change"),
        (true, true, false) => (Tone::Ok, "Changed"),
        (true, false, _) => (Tone::Off, "As it says"),
    };
    view! {
        <tr>
            <td data-label="State" class="wrap"><code>{state.function.clone()}</code><div class="quiet small">{state.id.clone()}</div></td>
            <td data-label="About" class="wrap">{state.name.clone()}</td>
            <td data-label="Came to" class="wrap">{status(tone, word)}{(!state.comment.is_empty()).then(|| reason(&state.comment))}</td>
            <td data-label="Took" class="num">{took(state.elapsed_ms)}</td>
        </tr>
    }
    .into_any()
}
