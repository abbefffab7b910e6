//! The backups of a project: also those of guests that are gone, which can be had again as new ones.

use corpus_api::backups::{
    BackupKeyRevealed, BackupsChecked, CheckBackups, ListProjectBackups, ProjectBackup, ProjectBackups,
    RemoveProjectBackup, RevealBackupKey,
};
use corpus_domain::{BackupState, ProjectName};
use leptos::prelude::*;

use super::Asked;
use super::guest_backups::{dumped, state, tried};
use super::projects::project_path;
use crate::caller::Caller;
use crate::components::{
    Tone, action_at, age, bytes, card, confirm_at, copied, empty, environment, error_summary, facts, head, next_page,
    notice, shown_at, status, stays_at,
};
use crate::form::{Answered, FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// The page of a project's backups.
pub fn backups_path(project: &ProjectName) -> String {
    format!("{}/backups", project_path(project))
}

/// Reads and shows them.
pub async fn load(caller: &Caller, project: &ProjectName, asked: &Asked) -> Result<Page> {
    let gone = asked.query.get("gone").is_some_and(|gone| gone == "true").then_some(true);
    let ask = ListProjectBackups { project: project.clone(), gone, cursor: asked.cursor(), limit: None };
    let page = caller.ask(ask).await?;
    let key: Option<BackupKeyRevealed> = asked.answered.as_ref().and_then(Answered::read);
    let key = key.filter(|key| key.project == *project);
    let view =
        backups_view(&Shown { project, page: &page, only_gone: gone.is_some(), key: key.as_ref(), form: &asked.form });
    Ok(Page::new("project-backups", format!("Backups of {project}"), view)
        .under(project.as_str(), project_path(project)))
}

/// What of them is shown.
pub struct Shown<'a> {
    /// The project.
    pub project: &'a ProjectName,
    /// A page of them.
    pub page: &'a ProjectBackups,
    /// Whether these are only those of guests that are gone.
    pub only_gone: bool,
    /// What opens their repository, where it was just asked for.
    pub key: Option<&'a BackupKeyRevealed>,
    /// What was sent before.
    pub form: &'a FormState,
}

/// The view of plain values.
pub fn backups_view(shown: &Shown<'_>) -> AnyView {
    let Shown { project, page, only_gone, key, form } = *shown;
    let path = backups_path(project);
    let (here, other, word) = if only_gone {
        (format!("{path}?gone=true"), path.clone(), "Those of all guests")
    } else {
        (path.clone(), format!("{path}?gone=true"), "Those of guests that are gone")
    };
    let below = view! { <span class="quiet">{format!("The project's repository takes {}. ", bytes(page.taken.0))}<a class="link" href=other>{word}</a></span> };
    view! {
        {head(format!("Backups of {project}").into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {page.check.as_ref().and_then(damage)}
        {card("backups", "Backups", ().into_any(), table(project, page))}
        {next_page(&here, page.next.as_ref())}
        {(page.may_change && !(page.items.is_empty() && page.check.is_none())).then(|| repository(project, page.check.as_ref(), key))}
    }
    .into_any()
}

fn damage(check: &BackupsChecked) -> Option<AnyView> {
    let damage = check.damage.as_ref()?;
    let more = view! { <span>{format!("Some backups can't be brought back whole: {damage}. ")}<a class="link" href="/docs/backups#whether-they-are-whole">"What to do"</a></span> };
    Some(notice(Tone::Fail, "Damaged", more.into_any()))
}

/// Whether what lies there is whole, and what opens it.
fn repository(project: &ProjectName, check: Option<&BackupsChecked>, key: Option<&BackupKeyRevealed>) -> AnyView {
    let here = backups_path(project);
    let state = match check {
        None => "not yet".into_any(),
        Some(BackupsChecked { at, damage: None }) => {
            view! { {status(Tone::Ok, "Whole")}" "<span class="quiet">{age(*at)}</span> }.into_any()
        }
        Some(BackupsChecked { at, .. }) => {
            view! { {status(Tone::Fail, "Damaged")}" "<span class="quiet">{age(*at)}</span> }.into_any()
        }
    };
    let now = action_at(to::<CheckBackups>(&[project]), stays_at(&here, "check"), "Check now", "btn small", None);
    let opens = match key {
        Some(BackupKeyRevealed { repository, password, .. }) => view! {
            {copied("repository-password", "the password", password.clone())}
            <div class="quiet small">{format!("restic -r PLACE/{repository}, where PLACE is what operators say")}</div>
        }
        .into_any(),
        None => view! {
            <code aria-label="hidden">"••••••••••••••••"</code>
            <form method="post" action={to::<RevealBackupKey>(&[project])} class="inline">
                {shown_at(&here, "key")}
                <button class="copy always">"Reveal, recorded in the audit log"</button>
            </form>
        }
        .into_any(),
    };
    let body = facts(vec![("Checked", view! { {state}" "{now} }.into_any()), ("Password", opens)]);
    card("repository", "Their repository", ().into_any(), body)
}

fn table(project: &ProjectName, page: &ProjectBackups) -> AnyView {
    if page.items.is_empty() {
        return empty("There is none", "They are taken on the page of a guest, by hand and by schedule.".into_any());
    }
    let rows = page.items.iter().map(|one| row(project, page.may_change, one)).collect_view();
    view! {
        <table class="rows" aria-label="Backups">
            <thead><tr><th>"Guest"</th><th>"Environment"</th><th>"What for"</th><th>"Of"</th><th class="num">"In it"</th><th>"State"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(project: &ProjectName, may_change: bool, one: &ProjectBackup) -> AnyView {
    let ProjectBackup { guest, name, backup, .. } = one;
    let guest = if one.gone {
        view! { {name.to_string()}<div class="quiet small">"is gone"</div> }.into_any()
    } else {
        view! { <a class="link" href=format!("/guests/{guest}/backups")>{name.to_string()}</a> }.into_any()
    };
    let nameless = if backup.by.is_some() { "No comment" } else { "By schedule" };
    let called = backup.comment.as_ref().map_or_else(|| nameless.to_owned(), ToString::to_string);
    let taken = backup.taken_at.unwrap_or(backup.asked_at);
    let which = format!("that of {name} of {}", taken.format("%F %R UTC"));
    let look = (one.may_read && backup.state == BackupState::Ready).then(|| {
        let within = super::backup_files::Backup { project, id: backup.id };
        view! { <a class="btn small" href=within.path() aria-label=format!("Files of {which}")>"Files"</a> }
    });
    let change = (may_change && backup.state == BackupState::Ready).then(|| {
        let request = format!("/guests/new?project={project}&environment={}&backup={}", one.environment, backup.id);
        let remove = to::<RemoveProjectBackup>(&[project, &backup.id]);
        let about = format!("A new guest of {which}");
        view! {
            <a class="btn small" href=request aria-label=about>"New guest"</a>
            {confirm_at("Delete", &which, "It can't be brought back.".to_owned(), remove, stays_at(&backups_path(project), "backups"))}
        }
    });
    view! {
        <tr>
            <td data-label="Guest" class="wrap">{guest}</td>
            <td data-label="Environment">{environment(one.environment)}</td>
            <td data-label="What for" class="wrap">{called}<div class="quiet small">{backup.by.clone()}</div></td>
            <td data-label="Of" class="quiet">{age(taken)}</td>
            <td data-label="In it" class="num">{backup.bytes.map(|size| bytes(size.0))}</td>
            <td data-label="State">{state(backup.state)}{backup.dump.as_ref().map(dumped)}{backup.proof.as_ref().map(tried)}</td>
            <td class="actions">{look}{change}</td>
        </tr>
    }
    .into_any()
}
