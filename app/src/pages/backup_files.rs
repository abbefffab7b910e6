//! What is in a backup: a folder of it at a time, the way to it, and what of it can be fetched.
//!
//! Names are what a guest called its files. What is fetched is sent by a form, since it stands in the audit; the browser
//! saves it, and the page stays.

use corpus_api::backup_files::{BackupFile, BackupFiles, FetchBackupFile, ListBackupFiles};
use corpus_domain::{BackupId, FileKind, FilePath, ProjectName};
use leptos::prelude::*;

use super::Asked;
use super::project_backups::backups_path;
use crate::asked::{Query, address, asked, page_after};
use crate::caller::Caller;
use crate::components::{age, at, bytes, card, empty, environment, error_summary, head, next_link, shown_at};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// A backup of a project.
#[derive(Debug, Clone, Copy)]
pub struct Backup<'a> {
    /// Whose.
    pub project: &'a ProjectName,
    /// Which.
    pub id: BackupId,
}

impl Backup<'_> {
    /// The page of what is in it, at its root.
    pub fn path(self) -> String {
        format!("{}/{}/files", backups_path(self.project), self.id)
    }

    /// The same at a folder.
    fn at(self, folder: &FilePath) -> String {
        address(&self.path(), &Query::new(), Some(("path", folder.as_str())))
    }

    fn fetch(self, here: &FilePath, what: &FilePath, word: &'static str, label: String) -> AnyView {
        view! {
            <form method="post" action={to::<FetchBackupFile>(&[self.project, &self.id])} target="_self" class="inline">
                {shown_at(&self.at(here), "fetch")}
                <input type="hidden" name="path" value=what.to_string()/>
                <button class="btn" aria-label=label>{word}</button>
            </form>
        }
        .into_any()
    }
}

/// Reads and shows them.
pub async fn load(caller: &Caller, (project, id): (&ProjectName, BackupId), given: &Asked) -> Result<Page> {
    let mut query = given.query.clone();
    query.extend([("project".to_owned(), project.to_string()), ("backup".to_owned(), id.to_string())]);
    let files = caller.ask(asked::<ListBackupFiles>(&query)?).await?;
    let title = format!("{} in a backup of {}", files.path, files.name);
    let view = files_view(Backup { project, id }, &files, &given.form);
    let page = Page::new("backup-files", title, view);
    Ok(page.under("Backups", backups_path(project)).under(project.as_str(), super::projects::project_path(project)))
}

/// The view of plain values.
pub fn files_view(backup: Backup<'_>, files: &BackupFiles, form: &FormState) -> AnyView {
    let below = view! {
        {environment(files.environment)}
        " "
        <span class="quiet">"A backup of "{files.name.to_string()}{files.taken_at.map(|taken| view! { ", of "{age(taken)} })}</span>
    };
    let all = backup.fetch(&files.path, &files.path, "Fetch as .tar", format!("Fetch as .tar: {}", files.path));
    let here = Query::from([("path".to_owned(), files.path.to_string())]);
    view! {
        {head(format!("Files of {}", files.name).into_any(), below.into_any(), all)}
        {error_summary(form)}
        {card("files", "Files", trail(backup, &files.path), table(backup, files))}
        {next_link(page_after(&backup.path(), &here, files.next.as_ref()))}
    }
    .into_any()
}

/// The way to the folder: each folder on it is a link, and the last is where one is.
fn trail(backup: Backup<'_>, folder: &FilePath) -> AnyView {
    let last = folder.names().count();
    let root = FilePath::root();
    let all = std::iter::once((root, "/")).chain(folder.steps());
    let steps = all.enumerate().map(|(depth, (at, name))| {
        let step = if depth == last {
            view! { <span aria-current="page">{name.to_owned()}</span> }.into_any()
        } else {
            view! { <a class="link" href=backup.at(&at)>{name.to_owned()}</a> }.into_any()
        };
        view! { {(depth > 1).then_some(" / ")}{(depth == 1).then_some(" ")}{step} }
    });
    view! { <nav aria-label="Folders" class="wrap" data-calm="">{steps.collect_view()}</nav> }.into_any()
}

fn table(backup: Backup<'_>, files: &BackupFiles) -> AnyView {
    if files.items.is_empty() {
        return empty("Nothing is here", "The folder is empty, or there is no further page.".into_any());
    }
    let rows = files.items.iter().map(|one| row(backup, &files.path, one)).collect_view();
    view! {
        <table class="rows" aria-label="Files">
            <thead><tr><th>"Name"</th><th>"Kind"</th><th class="num">"Size"</th><th>"Mode"</th><th>"Owner"</th><th>"Changed"</th><th><span class="unseen">"Actions"</span></th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(backup: Backup<'_>, folder: &FilePath, one: &BackupFile) -> AnyView {
    let name = match (&one.path, one.kind) {
        (Some(path), FileKind::Folder) => {
            view! { <a class="link" href=backup.at(path)>{one.name.clone()}"/"</a> }.into_any()
        }
        _ => view! { {one.name.clone()} }.into_any(),
    };
    let target = one.target.clone().map(|target| view! { <div class="quiet small">"to "{target}</div> });
    let fetch = match (&one.path, one.kind) {
        (Some(path), FileKind::Folder) => {
            backup.fetch(folder, path, "Fetch as .tar", format!("Fetch as .tar: {}", one.name))
        }
        (Some(path), _) => backup.fetch(folder, path, "Fetch", format!("Fetch {}", one.name)),
        (None, FileKind::Folder | FileKind::File) => {
            view! { <span class="quiet small">"Its name can't be asked for: it comes with its folder"</span> }
                .into_any()
        }
        (None, FileKind::Link | FileKind::Other) => ().into_any(),
    };
    view! {
        <tr>
            <td data-label="Name" class="wrap">{name}{target}</td>
            <td data-label="Kind" class="quiet">{word(one.kind)}</td>
            <td data-label="Size" class="num">{one.bytes.map(|size| bytes(size.0))}</td>
            <td data-label="Mode"><code>{one.mode.clone()}</code></td>
            <td data-label="Owner" class="quiet">{format!("{}:{}", one.uid, one.gid)}</td>
            <td data-label="Changed" class="quiet">{at(one.modified_at)}</td>
            <td class="actions">{fetch}</td>
        </tr>
    }
    .into_any()
}

const fn word(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Folder => "Folder",
        FileKind::File => "File",
        FileKind::Link => "Link",
        FileKind::Other => "Other",
    }
}
