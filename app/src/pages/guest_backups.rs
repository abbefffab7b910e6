//! The backups of a guest: what it can be had again from, when its node is gone too, and what that costs.

use corpus_api::backups::{
    Backup, BackupDump, BackupProof, BackupSchedule, Backups, GetBackupSchedule, ListBackups, ProveBackup,
    RemoveBackup, RestoreBackup, SetBackupSchedule, TakeBackup,
};
use corpus_domain::{BackupEvery, BackupState, GuestId};
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, at, bytes, card, check, confirm_at, empty, error_summary, head, notice, status, stays_at, took,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// Reads and shows them.
pub async fn load(caller: &Caller, id: GuestId, form: &FormState) -> Result<Page> {
    let all = caller.ask(ListBackups { guest: id }).await?;
    let schedule = caller.ask(GetBackupSchedule { guest: id }).await?;
    let view = backups_view(&all, &schedule, form);
    let page = Page::new("guest-backups", format!("Backups of {}", all.name), view);
    Ok(page.under(all.name.as_str(), format!("/guests/{id}")).under("Guests", "/guests"))
}

fn path(all: &Backups) -> String {
    format!("/guests/{}/backups", all.guest)
}

/// The view of plain values.
pub fn backups_view(all: &Backups, schedule: &BackupSchedule, form: &FormState) -> AnyView {
    let title = view! { "Backups of "<a href=format!("/guests/{}", all.guest)>{all.name.to_string()}</a> };
    let below = view! { <span class="quiet">"Each is all files of the guest of one moment, encrypted, and kept elsewhere than on its node."</span> };
    let count = view! { <span class="quiet">{format!("{} of {}", all.items.len(), all.most)}</span> };
    let list = view! { <div id="live-backups" data-live="">{proven(all)}{table(all)}</div> };
    let takes = all.may_take && all.problem.is_none();
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {all.problem.clone().map(|problem| notice(Tone::Warn, "None is taken", view! { <span>{problem}</span> }.into_any()))}
        {undumped(all)}
        {all.unproven.clone().map(|why| notice(Tone::Fail, "Don't rely on them", view! { <span>{why}</span> }.into_any()))}
        {card("backups", "Backups", count.into_any(), list.into_any())}
        <div class="envs">
            {takes.then(|| card("take", "Take one", ().into_any(), take(all, &form.of("take"))))}
            {card("schedule", "By schedule", ().into_any(), scheduled(all, schedule, &form.of("schedule")))}
        </div>
    }
    .into_any()
}

/// When it was last shown that they are good for something.
fn proven(all: &Backups) -> AnyView {
    match all.proven {
        Some(last) => {
            let took = took(last.took_ms);
            view! { <p class="body">{status(Tone::Ok, "Proven")}" "<span class="quiet">"It was last had back "{age(last.at)}", as it was "{age(last.taken_at)}". That took "{took}"."</span></p> }.into_any()
        }
        None if all.items.is_empty() => ().into_any(),
        None => view! { <p class="body">{status(Tone::Warn, "Not proven")}" "<span class="quiet">"It was not tried yet whether the guest can be had back from one."</span></p> }.into_any(),
    }
}

fn take(all: &Backups, form: &FormState) -> AnyView {
    let cost = if all.at_once {
        "The guest goes on meanwhile."
    } else {
        "The guest stands still while its files are copied on its node: some seconds for each GB, less where the node's file system shares what is copied."
    };
    view! {
        <form method="post" action={to::<TakeBackup>(&[&all.guest])} class="form body">
            {stays_at(&path(all), "take")}
            {Field::new(form, "comment", "What for").hint("Such as: before the move").input()}
            <p class="quiet">{cost}</p>
            <div class="submit"><button class="btn primary">"Take a backup"</button></div>
        </form>
    }
    .into_any()
}

fn scheduled(all: &Backups, schedule: &BackupSchedule, form: &FormState) -> AnyView {
    let next = match (&schedule.problem, schedule.next_at) {
        (Some(problem), _) => view! { <p>{status(Tone::Warn, "Not taken")}" "{problem.clone()}</p> }.into_any(),
        (None, Some(next)) => view! { <p class="quiet">"The next one: "{at(next)}</p> }.into_any(),
        (None, None) => ().into_any(),
    };
    let tries = match (&schedule.prove_problem, schedule.prove_at) {
        (Some(problem), _) => view! { <p>{status(Tone::Warn, "Not tried")}" "{problem.clone()}</p> }.into_any(),
        (None, Some(next)) => view! { <p class="quiet">"It is tried next: "{at(next)}</p> }.into_any(),
        (None, None) => ().into_any(),
    };
    let word = |every: BackupEvery| match every {
        BackupEvery::Never => "Never",
        BackupEvery::Day => "Each day",
        BackupEvery::Week => "Each week",
    };
    if !all.may_change || all.problem.is_some() {
        let kept = (schedule.every != BackupEvery::Never).then(|| format!(", the last {} are kept", schedule.keep));
        let proves = if schedule.prove { " The latest one is tried each week." } else { "" };
        let told = format!("{}{}.{proves}", word(schedule.every), kept.unwrap_or_default());
        return view! { <div class="body"><p>{told}</p>{next}{tries}</div> }.into_any();
    }
    let choices = BackupEvery::ALL.iter().map(|every| (every.to_string(), word(*every).to_owned())).collect();
    view! {
        <form method="post" action={to::<SetBackupSchedule>(&[&all.guest])} class="form body">
            {stays_at(&path(all), "schedule")}
            <input type="hidden" name="version" value=form.version(&schedule.version)/>
            {Field::new(form, "every", "One is taken").suggest(schedule.every.as_str()).select(choices)}
            {Field::new(form, "keep", "So many are kept").suggest(schedule.keep.to_string()).hint("1 to 90; those that somebody took stay beside them").input()}
            {next}
            {check(form, "prove", "Try the latest one each week", "A guest is made of it where there is room, cut off from everything, and looked at; then it is removed", schedule.prove)}
            {tries}
            <div class="submit"><button class="btn">"Save"</button></div>
        </form>
    }
    .into_any()
}

fn table(all: &Backups) -> AnyView {
    if all.items.is_empty() {
        return empty("There is none", "A snapshot goes with the guest's node; a backup does not.".into_any());
    }
    let rows = all.items.iter().map(|one| row(all, one)).collect_view();
    view! {
        <table class="rows" aria-label="Backups">
            <thead><tr><th>"What for"</th><th>"Of"</th><th class="num">"In it"</th><th class="num">"New"</th><th class="num">"Took"</th><th>"State"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(all: &Backups, one: &Backup) -> AnyView {
    let nameless = if one.by.is_some() { "No comment" } else { "By schedule" };
    let called = one.comment.as_ref().map_or_else(|| nameless.to_owned(), ToString::to_string);
    let taken = one.taken_at.unwrap_or(one.asked_at);
    let which =
        one.comment.as_ref().map_or_else(|| format!("that of {}", taken.format("%F %R UTC")), ToString::to_string);
    let change = (all.may_change && one.state == BackupState::Ready).then(|| {
        let question = format!(
            "{} is what it was then: all that it wrote since is gone for good. It is stopped only while the files change places. If it does not come up, it is as it is now.",
            all.name
        );
        let restore = to::<RestoreBackup>(&[&all.guest, &one.id]);
        let remove = to::<RemoveBackup>(&[&all.guest, &one.id]);
        let request = format!("/guests/new?project={}&environment={}&backup={}", all.project, all.environment, one.id);
        let another = (all.problem.is_none() && all.may_change).then(|| view! { <a class="btn small" href=request aria-label=format!("A new guest of {which}")>"New guest"</a> });
        view! {
            {another}
            {all.problem.is_none().then(|| prove(all, one, &which))}
            {all.problem.is_none().then(|| confirm_at("Restore", &which, question, restore, stays_at(&path(all), "backups")))}
            {confirm_at("Delete", &which, "It can't be brought back.".to_owned(), remove, stays_at(&path(all), "backups"))}
        }
    });
    let look = (all.may_read && one.state == BackupState::Ready).then(|| {
        let backup = super::backup_files::Backup { project: &all.project, id: one.id };
        view! { <a class="btn small" href=backup.path() aria-label=format!("Files of {which}")>"Files"</a> }
    });
    let files = one.files.map(|files| view! { <div class="quiet small">{format!("{files} files")}</div> });
    view! {
        <tr>
            <td data-label="What for" class="wrap">{called}<div class="quiet small">{one.by.clone()}</div></td>
            <td data-label="Of" class="quiet">{age(taken)}</td>
            <td data-label="In it" class="num">{one.bytes.map(|size| bytes(size.0))}{files}</td>
            <td data-label="New" class="num">{one.added_bytes.map(|size| bytes(size.0))}</td>
            <td data-label="Took" class="num">{one.took_ms.map(took)}</td>
            <td data-label="State">{state(one.state)}{one.dump.as_ref().map(dumped)}{one.proof.as_ref().map(tried)}</td>
            <td class="actions">{look}{change}</td>
        </tr>
    }
    .into_any()
}

/// Has it tried; that changes nothing, so nobody is asked twice.
fn prove(all: &Backups, one: &Backup, which: &str) -> AnyView {
    if one.proof.as_ref().is_some_and(|proof| proof.ended_at.is_none()) {
        return ().into_any();
    }
    view! {
        <form method="post" action={to::<ProveBackup>(&[&all.guest, &one.id])}>
            {stays_at(&path(all), "backups")}
            <button class="btn small" aria-label=format!("Try {which}")>"Try"</button>
        </form>
    }
    .into_any()
}

/// Whether the latest one has what its project was to dump for it.
fn undumped(all: &Backups) -> Option<AnyView> {
    let last = all.items.iter().find(|one| one.state == BackupState::Ready)?;
    let problem = last.dump.as_ref()?.problem.clone()?;
    let told = view! { <span>"The latest one has the guest's files only: "{problem}"."</span> };
    Some(notice(Tone::Warn, "Nothing was dumped", told.into_any()).into_any())
}

/// What its project dumped for it.
pub(super) fn dumped(dump: &BackupDump) -> AnyView {
    match &dump.problem {
        None => view! { <div class="quiet small">{format!("With dumps of {}", bytes(dump.bytes.0))}</div> }.into_any(),
        Some(problem) => view! { <div>{status(Tone::Warn, "Nothing dumped")}<details class="small"><summary>"Why"</summary>{problem.clone()}</details></div> }.into_any(),
    }
}

/// What came of trying it.
pub(super) fn tried(proof: &BackupProof) -> AnyView {
    let (tone, word) = match proof.passed {
        None => (Tone::Busy, "Being tried"),
        Some(true) => (Tone::Ok, "Proven"),
        Some(false) => (Tone::Fail, "Failed when tried"),
    };
    let told = proof.told.clone().map(|told| {
        let lines = told.lines().map(|line| view! { <li>{line.to_owned()}</li> }).collect_view();
        view! { <details class="small"><summary>"What was seen"</summary><ul class="plain">{lines}</ul></details> }
    });
    view! { <div>{status(tone, word)}" "<span class="quiet small">{age(proof.ended_at.unwrap_or(proof.began_at))}</span>{told}</div> }
        .into_any()
}

/// What it is good for.
pub(super) fn state(state: BackupState) -> AnyView {
    let (tone, word) = match state {
        BackupState::Taking => (Tone::Busy, "Being taken"),
        BackupState::Ready => (Tone::Ok, "Ready"),
        BackupState::Removing => (Tone::Busy, "Being deleted"),
    };
    status(tone, word).into_any()
}
