//! The backups of a project: also those of guests that are gone, which can be had again as new ones.

use corpus_api::backups::{ListProjectBackups, ProjectBackup, ProjectBackups, RemoveProjectBackup};
use corpus_domain::{BackupState, ProjectName};
use leptos::prelude::*;

use super::Asked;
use super::guest_backups::state;
use super::projects::project_path;
use crate::caller::Caller;
use crate::components::{age, bytes, card, confirm_at, empty, environment, error_summary, head, next_page, stays_at};
use crate::form::{FormState, Result};
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
    let view = backups_view(project, &page, gone.is_some(), &asked.form);
    Ok(Page::new("project-backups", format!("Backups of {project}"), view)
        .under(project.as_str(), project_path(project)))
}

/// The view of plain values.
pub fn backups_view(project: &ProjectName, page: &ProjectBackups, only_gone: bool, form: &FormState) -> AnyView {
    let path = backups_path(project);
    let (here, other, word) = if only_gone {
        (format!("{path}?gone=true"), path.clone(), "Those of all guests")
    } else {
        (path.clone(), format!("{path}?gone=true"), "Those of guests that are gone")
    };
    let below = view! { <span class="quiet">{format!("They added {} to the project's repository. ", bytes(page.taken.0))}<a class="link" href=other>{word}</a></span> };
    view! {
        {head(format!("Backups of {project}").into_any(), below.into_any(), ().into_any())}
        {error_summary(form)}
        {card("backups", "Backups", ().into_any(), table(project, page))}
        {next_page(&here, page.next.as_ref())}
    }
    .into_any()
}

fn table(project: &ProjectName, page: &ProjectBackups) -> AnyView {
    if page.items.is_empty() {
        return empty("There is none", "They are taken on the page of a guest, by hand and by schedule.".into_any());
    }
    let rows = page.items.iter().map(|one| row(project, page.may_change, one)).collect_view();
    view! {
        <table class="rows" aria-label="Backups">
            <thead><tr><th>"Guest"</th><th>"Environment"</th><th>"What for"</th><th>"Of"</th><th class="num">"In it"</th><th>"State"</th><th></th></tr></thead>
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
    let change = (may_change && backup.state == BackupState::Ready).then(|| {
        let request = format!("/guests/new?project={project}&environment={}&backup={}", one.environment, backup.id);
        let remove = to::<RemoveProjectBackup>(&[project, &backup.id]);
        let about = format!("A new guest of {which}");
        view! {
            <a class="btn" href=request aria-label=about>"New guest"</a>
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
            <td data-label="State">{state(backup.state)}</td>
            <td class="actions">{change}</td>
        </tr>
    }
    .into_any()
}
