//! The snapshots of a guest: what it can be brought back to, and what that costs.

use corpus_api::snapshots::{
    GetSnapshotSchedule, ListSnapshots, RemoveSnapshot, RestoreSnapshot, SetSnapshotSchedule, Snapshot, SnapshotBefore,
    SnapshotSchedule, Snapshots, TakeSnapshot,
};
use corpus_domain::{GuestId, SnapshotEvery, SnapshotState};
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{Field, Tone, age, at, bytes, card, confirm_at, empty, error_summary, head, status, stays_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows them.
pub async fn load(caller: &Caller, id: GuestId, form: &FormState) -> Result<Page> {
    let all = caller.ask(ListSnapshots { guest: id }).await?;
    let schedule = caller.ask(GetSnapshotSchedule { guest: id }).await?;
    let view = snapshots_view(&all, &schedule, form);
    let page = Page::new("guest-snapshots", format!("Snapshots of {}", all.name), view);
    Ok(page.under(all.name.as_str(), format!("/guests/{id}")).under("Guests", "/guests"))
}

fn path(all: &Snapshots) -> String {
    format!("/guests/{}/snapshots", all.guest)
}

/// The view of plain values.
pub fn snapshots_view(all: &Snapshots, schedule: &SnapshotSchedule, form: &FormState) -> AnyView {
    let title = view! { "Snapshots of "<a href=format!("/guests/{}", all.guest)>{all.name.to_string()}</a> };
    let below = view! { <span class="quiet">"Each is the guest's files of one moment, kept on its node. They go with the guest, and with the node's disk: they are no backup."</span> };
    let count = view! { <span class="quiet">{format!("{} of {}", all.items.len(), all.most)}</span> };
    let list = view! { <div id="live-snapshots" data-live="">{table(all)}</div> };
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        <div class="cols">
            <div class="stack">{card("snapshots", "Snapshots", count.into_any(), list.into_any())}</div>
            <div class="stack">
                {all.may_take.then(|| card("take", "Take one", ().into_any(), take(all, &form.of("take"))))}
                {card("schedule", "By itself", ().into_any(), scheduled(all, schedule, &form.of("schedule")))}
            </div>
        </div>
    }
    .into_any()
}

fn take(all: &Snapshots, form: &FormState) -> AnyView {
    let cost = if all.at_once {
        "It is there at once."
    } else {
        "The guest stands still while its files are copied: some seconds for each GB, less where the node's file system shares what is copied."
    };
    view! {
        <form method="post" action={to::<TakeSnapshot>(&[&all.guest])} class="form body">
            {stays_at(&path(all), "take")}
            {Field::new(form, "comment", "What for").hint("Such as: before the upgrade").input()}
            <p class="quiet">{cost}</p>
            <div class="submit"><button class="btn primary">"Take a snapshot"</button></div>
        </form>
    }
    .into_any()
}

fn scheduled(all: &Snapshots, schedule: &SnapshotSchedule, form: &FormState) -> AnyView {
    let next = match (&schedule.problem, schedule.next_at) {
        (Some(problem), _) => view! { <p>{status(Tone::Warn, "Not taken")}" "{problem.clone()}</p> }.into_any(),
        (None, Some(next)) => view! { <p class="quiet">"The next one: "{at(next)}</p> }.into_any(),
        (None, None) => ().into_any(),
    };
    let word = |every: SnapshotEvery| match every {
        SnapshotEvery::Never => "Never",
        SnapshotEvery::Hour => "Each hour",
        SnapshotEvery::Day => "Each day",
        SnapshotEvery::Week => "Each week",
    };
    if !all.may_change {
        let kept = (schedule.every != SnapshotEvery::Never).then(|| format!(", the last {} are kept", schedule.keep));
        let told = format!("{}{}.", word(schedule.every), kept.unwrap_or_default());
        let before = schedule.deployments.map(|kept| format!("Before each deployment, the last {kept} are kept."));
        return view! { <div class="body"><p>{told}</p>{before.map(|told| view! { <p>{told}</p> })}{next}</div> }
            .into_any();
    }
    let before = schedule.deployments.map(|kept| kept.to_string()).unwrap_or_default();
    let choices = SnapshotEvery::ALL.iter().map(|every| (every.to_string(), word(*every).to_owned())).collect();
    view! {
        <form method="post" action={to::<SetSnapshotSchedule>(&[&all.guest])} class="form body">
            {stays_at(&path(all), "schedule")}
            <input type="hidden" name="version" value=form.version(&schedule.version)/>
            {Field::new(form, "every", "One is taken").suggest(schedule.every.as_str()).select(choices)}
            {Field::new(form, "keep", "So many are kept").suggest(schedule.keep.to_string()).hint("1 to 12; those that somebody took stay beside them").input()}
            {Field::new(form, "deployments", "Before each deployment").suggest(before).hint("How many of these are kept, 1 to 12; empty: none is taken. Where none can be taken, nothing is deployed").input()}
            {next}
            <div class="submit"><button class="btn">"Save"</button></div>
        </form>
    }
    .into_any()
}

fn table(all: &Snapshots) -> AnyView {
    if all.items.is_empty() {
        return empty("There is none", "Take one before something that may go wrong.".into_any());
    }
    let rows = all.items.iter().map(|one| row(all, one)).collect_view();
    view! {
        <table class="rows" aria-label="Snapshots">
            <thead><tr><th>"What for"</th><th>"Of"</th><th class="num">"In it"</th><th>"State"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(all: &Snapshots, one: &Snapshot) -> AnyView {
    let called = called(one);
    let taken = one.taken_at.unwrap_or(one.asked_at);
    let which =
        one.comment.as_ref().map_or_else(|| format!("that of {}", taken.format("%F %R UTC")), ToString::to_string);
    let request = format!("/guests/new?project={}&environment={}&snapshot={}", all.project, all.environment, one.id);
    let change = (all.may_change && one.state == SnapshotState::Ready).then(|| {
        let question = format!(
            "{} is stopped, and is what it was then. All that it wrote since is gone for good. If it does not come up, it is as it is now.",
            all.name
        );
        let restore = to::<RestoreSnapshot>(&[&all.guest, &one.id]);
        let remove = to::<RemoveSnapshot>(&[&all.guest, &one.id]);
        view! {
            <a class="btn small" href=request aria-label=format!("A new guest of {which}")>"New guest"</a>
            {confirm_at("Restore", &which, question, restore, stays_at(&path(all), "snapshots"))}
            {confirm_at("Delete", &which, "It can't be brought back.".to_owned(), remove, stays_at(&path(all), "snapshots"))}
        }
    });
    view! {
        <tr>
            <td data-label="What for" class="wrap">{called}<div class="quiet small">{one.by.clone()}</div></td>
            <td data-label="Of" class="quiet">{age(taken)}</td>
            <td data-label="In it" class="num">{one.bytes.map(|size| bytes(size.0))}</td>
            <td data-label="State">{state(one.state)}</td>
            <td class="actions">{change}</td>
        </tr>
    }
    .into_any()
}

/// What it is for.
fn called(one: &Snapshot) -> AnyView {
    let nameless = match (one.before, &one.by) {
        (Some(SnapshotBefore { deployment, number: Some(number) }), _) => {
            let href = format!("/deployments/{deployment}");
            return view! { "Before "<a class="link" href=href>{format!("deployment #{number}")}</a> }.into_any();
        }
        (Some(_), _) => "Before a deployment that did not begin",
        (None, Some(_)) => "No comment",
        (None, None) => "By schedule",
    };
    one.comment.as_ref().map_or_else(|| nameless.to_owned(), ToString::to_string).into_any()
}

fn state(state: SnapshotState) -> AnyView {
    let (tone, word) = match state {
        SnapshotState::Taking => (Tone::Busy, "Being taken"),
        SnapshotState::Ready => (Tone::Ok, "Ready"),
        SnapshotState::Restoring => (Tone::Busy, "Being restored"),
        SnapshotState::Removing => (Tone::Busy, "Being deleted"),
    };
    status(tone, word).into_any()
}
