//! Backups of Corpus itself, for operators: whether there is a recent one, what became of the last, and taking one now.

use corpus_api::controller_backups::{
    ControllerBackup, ControllerBackups, ListControllerBackups, TakeControllerBackup,
};
use corpus_domain::ControllerBackupState;
use leptos::prelude::*;

use super::Asked;
use crate::age::took;
use crate::caller::Caller;
use crate::components::{
    Tone, age, at, bytes, card, code, empty, error_summary, facts, head, notice, status, stays_at,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

const PATH: &str = "/controller-backups";

/// Reads and shows them.
pub async fn load(caller: &Caller, asked: &Asked) -> Result<Page> {
    let backups = caller.ask(ListControllerBackups {}).await?;
    Ok(Page::new("controller-backups", "Backups of Corpus", backups_view(&backups, &asked.form)))
}

/// The view of plain values.
pub fn backups_view(backups: &ControllerBackups, form: &FormState) -> AnyView {
    let below = view! { <span class="quiet">"What opens the nodes, and whose guest is whose: without it nobody gets in"</span> };
    let Some(place) = &backups.place else {
        let how = view! {
            "Say in "<code>"[backup]"</code>" of the configuration where they are kept: "
            <a class="link" href="/docs/operating#back-up">"how"</a>"."
        };
        return view! {
            {head("Backups of Corpus".into_any(), below.into_any(), ().into_any())}
            <section class="card">{empty("None is taken", how.into_any())}</section>
        }
        .into_any();
    };
    let form_id = stays_at(PATH, "take");
    let now = view! {
        <form method="post" action={to::<TakeControllerBackup>(&[])}>
            {form_id}
            <button class="btn primary">"Back up now"</button>
        </form>
    };
    let restored = backups.restored.as_ref().map(|restored| {
        let more = view! {
            <span>"It is what it was "{at(restored.taken_at)}", since "{at(restored.restored_at)}". Compare what "<a class="link" href="/nodes">"nodes"</a>
                " have with what is expected of them, and end tokens that were ended since."</span>
        };
        notice(Tone::Warn, "Corpus was brought back from a backup", more.into_any())
    });
    let is_busy =
        |one: &ControllerBackup| matches!(one.state, ControllerBackupState::Wanted | ControllerBackupState::Running);
    let busy = backups.items.iter().any(is_busy).then_some("");
    let every = match backups.every_hours {
        None => "when somebody asks".to_owned(),
        Some(1) => "each hour".to_owned(),
        Some(hours) => format!("each {hours} hours"),
    };
    let newest = backups.newest_at.map_or_else(|| "none yet".into_any(), |at| age(at).into_any());
    let tone = if backups.is_old { status(Tone::Warn, "Old") } else { status(Tone::Ok, "Recent") };
    let about = facts(vec![
        ("Newest", view! { {newest}" "{tone} }.into_any()),
        ("Taken", every.into_any()),
        ("Kept in", code("place", place).into_any()),
    ]);
    view! {
        {head("Backups of Corpus".into_any(), below.into_any(), now.into_any())}
        {error_summary(form)}
        {restored}
        <div id="live-about" data-live="">{card("about", "Where it stands", ().into_any(), about)}</div>
        <div id="live-backups" data-live="" data-busy=busy>{card("backups", "Last taken", ().into_any(), table(&backups.items))}</div>
    }
    .into_any()
}

fn table(backups: &[ControllerBackup]) -> AnyView {
    if backups.is_empty() {
        return empty("None was taken yet", "The first is due within a minute, or when you ask.".into_any());
    }
    let rows = backups.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Backups">
            <thead><tr><th>"When"</th><th>"State"</th><th class="num">"Holds"</th><th class="num">"New in it"</th><th class="num">"Took"</th><th>"Asked by"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(one: &ControllerBackup) -> AnyView {
    let (tone, word) = match one.state {
        ControllerBackupState::Wanted => (Tone::Wait, "Wanted"),
        ControllerBackupState::Running => (Tone::Busy, "Being taken"),
        ControllerBackupState::Done => (Tone::Ok, "Done"),
        ControllerBackupState::Failed => (Tone::Fail, "Failed"),
    };
    let took = one.began_at.zip(one.ended_at).map(|(from, to)| took((to - from).num_milliseconds()));
    let why = one.error.clone().map(|text| view! { <div class="quiet wrap">{text}</div> });
    view! {
        <tr>
            <td data-label="When">{at(one.wanted_at)}</td>
            <td data-label="State" class="wrap">{status(tone, word)}{why}</td>
            <td data-label="Holds" class="num">{one.bytes.map(|size| bytes(size.0))}</td>
            <td data-label="New in it" class="num">{one.added_bytes.map(|size| bytes(size.0))}</td>
            <td data-label="Took" class="num">{took}</td>
            <td data-label="Asked by">{one.wanted_by.clone().unwrap_or_else(|| "nobody: it was time".to_owned())}</td>
        </tr>
    }
    .into_any()
}
