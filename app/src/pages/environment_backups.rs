//! Backups of an environment: what each of its guests would be brought back to as of a moment, how far these are apart, and
//! bringing all of them back.
//!
//! What is brought back is what is shown: the form says the moment of the latest backup of the list, so that one that is
//! taken while somebody looks is not among them.

use corpus_api::environments::backups::{
    ChosenBackup, EnvironmentBackup, EnvironmentBackups, ListEnvironmentBackups, RestoreEnvironment,
};
use corpus_api::words::When;
use corpus_domain::{Environment, ProjectName};
use leptos::prelude::*;

use super::Asked;
use super::environment::question;
use super::guest_backups::{dumped, tried};
use super::project_environments::environment_path;
use crate::age::span;
use crate::asked::{Query, address, page_after, typed};
use crate::caller::Caller;
use crate::components::{
    Field, Tone, age, at, bytes, card, check, count, empty, environment, error_summary, guest_state_status, head,
    next_link, notice, shown_at, status,
};
use crate::form::{FormState, Result};
use crate::layout::Page;
use crate::to::to;

/// What of them is shown.
pub struct Shown<'a> {
    /// A page of them.
    pub all: &'a EnvironmentBackups,
    /// As of when, as it was typed, with what is wrong with it.
    pub filter: &'a FormState,
    /// What was sent before.
    pub form: &'a FormState,
}

/// Reads and shows them.
pub async fn load(caller: &Caller, (project, which): (&ProjectName, Environment), asked: &Asked) -> Result<Page> {
    let given = asked.query.get("at").map_or("", |text| text.trim());
    let mut filter = typed(&asked.query);
    let as_of = match given.parse::<When>() {
        Ok(as_of) => Some(as_of),
        Err(_) if given.is_empty() => None,
        Err(wrong) => {
            filter = filter.error("at", wrong.to_string()).status(422);
            None
        }
    };
    let (project_name, cursor) = (project.clone(), asked.cursor());
    let list = ListEnvironmentBackups { project: project_name, environment: which, at: as_of, cursor, limit: None };
    let all = caller.ask(list).await?;
    let view = backups_view(&Shown { all: &all, filter: &filter, form: &asked.form });
    let page = question("environment-backups", format!("Backups of {project} {which}"), project, which, view);
    Ok(Page { status: if filter.status == 0 { page.status } else { filter.status }, ..page })
}

/// The page of an environment's backups.
fn backups_path(all: &EnvironmentBackups) -> String {
    format!("{}/backups", environment_path(&all.project, all.environment))
}

/// The query that shows what is shown, but for the page.
fn query(filter: &FormState) -> Query {
    let as_of = filter.value("at").filter(|text| !text.trim().is_empty());
    as_of.map(|text| ("at".to_owned(), text.to_owned())).into_iter().collect()
}

/// The view of plain values.
pub fn backups_view(shown: &Shown<'_>) -> AnyView {
    let Shown { all, filter, form } = *shown;
    let (path, query) = (backups_path(all), query(filter));
    let here = address(&path, &query, None);
    let title = view! { "Backups of "<a href=environment_path(&all.project, all.environment)>{all.project.to_string()}</a>" "{environment(all.environment)} };
    let below = view! { <span class="quiet">"What each of its guests would be brought back to, so that all are as they were at about the same time."</span> };
    let wrong = if filter.errors.is_empty() { form } else { filter };
    let right = view! { <span class="quiet">{format!("{} of {} have one", all.backed_up, guests(all.guests))}</span> };
    let list = view! { <div id="live-backups" data-live="">{apart(all)}{table(all)}</div> };
    view! {
        {head(title.into_any(), below.into_any(), ().into_any())}
        {error_summary(wrong)}
        {all.problem.clone().map(|problem| notice(Tone::Warn, "None is brought back", view! { <span>{problem}</span> }.into_any()))}
        {as_of(&path, filter)}
        {card("backups", "Its guests", right.into_any(), list.into_any())}
        {next_link(page_after(&path, &query, all.next.as_ref()))}
        {filter.errors.is_empty().then(|| restore(all, &here, &form.of("restore")))}
    }
    .into_any()
}

fn guests(number: u64) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), "guest")
}

/// As of when they are shown.
fn as_of(path: &str, filter: &FormState) -> AnyView {
    let all = (!query(filter).is_empty()).then(|| view! { <a class="btn" href=path.to_owned()>"As of now"</a> });
    view! {
        <form method="get" action=path.to_owned() class="filters" role="search" aria-label="As of when">
            {Field::new(filter, "at", "As of").placeholder("2027-03-31").hint("A day or an instant, such as 2027-03-31T18:00:00Z").input()}
            <div class="actions"><button class="btn">"Show"</button>{all}</div>
        </form>
    }
    .into_any()
}

/// How far the moments are apart, for all pages together.
fn apart(all: &EnvironmentBackups) -> Option<AnyView> {
    let (earliest, latest) = all.earliest.zip(all.latest)?;
    let said = if all.backed_up == 1 {
        view! { "It is of "{at(latest)}"." }.into_any()
    } else {
        let apart = span((latest - earliest).num_seconds());
        view! { "The first is of "{at(earliest)}", the last of "{at(latest)}": they are "{apart}" apart." }.into_any()
    };
    Some(view! { <p class="body">{said}</p> }.into_any())
}

fn table(all: &EnvironmentBackups) -> AnyView {
    if all.items.is_empty() {
        return empty(
            "No guest is in it",
            "Backups are taken on the page of a guest, by hand and by schedule.".into_any(),
        );
    }
    let rows = all.items.iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Its guests">
            <thead><tr><th>"Guest"</th><th>"Now"</th><th>"Backup of"</th><th class="num">"In it"</th><th>"State"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row(one: &EnvironmentBackup) -> AnyView {
    let (of, size, state) = match &one.backup {
        None => (status(Tone::Warn, "None"), None, None),
        Some(backup) => (taken(backup), backup.bytes.map(|size| bytes(size.0)), Some(known(backup))),
    };
    view! {
        <tr>
            <td data-label="Guest" class="wrap"><a class="link" href=format!("/guests/{}/backups", one.guest)>{one.name.to_string()}</a></td>
            <td data-label="Now">{guest_state_status(one.state)}</td>
            <td data-label="Backup of" class="wrap">{of}</td>
            <td data-label="In it" class="num">{size}</td>
            <td data-label="State">{state}</td>
        </tr>
    }
    .into_any()
}

fn taken(backup: &ChosenBackup) -> AnyView {
    let comment = backup.comment.as_ref().map(|comment| view! { <div class="quiet small">{comment.to_string()}</div> });
    view! { {at(backup.taken_at)}" "<span class="quiet">{age(backup.taken_at)}</span>{comment} }.into_any()
}

/// What is known of whether it is good for anything.
fn known(backup: &ChosenBackup) -> AnyView {
    let never = backup.proof.is_none().then(|| view! { <span class="quiet">"Not tried"</span> });
    view! { {backup.dump.as_ref().map(dumped)}{backup.proof.as_ref().map(tried)}{never} }.into_any()
}

/// The question before all of them are brought back; its answer is the second click.
fn restore(all: &EnvironmentBackups, here: &str, form: &FormState) -> Option<AnyView> {
    let latest = all.latest.filter(|_| all.may_change && all.problem.is_none())?;
    if all.guests > u64::from(all.most) {
        let more = format!("{} guests at most are brought back at once: bring these back one by one.", all.most);
        return Some(notice(Tone::Off, "There are too many", view! { <span>{more}</span> }.into_any()));
    }
    let lacking = all.guests.saturating_sub(all.backed_up);
    let without = (lacking > 0).then(|| {
        let label = if lacking == 1 {
            "The guest without a backup stays as it is"
        } else {
            "Guests without a backup stay as they are"
        };
        check(form, "without", label, "Without this, none is brought back while one has no backup", false)
    });
    let post = to::<RestoreEnvironment>(&[&all.project, &all.environment]);
    let summary = format!("Restore {} {}", all.project, all.environment);
    let body = view! {
        <div class="body">
            <details class="confirm" open=form.was_sent()>
                <summary class="btn" aria-label=summary>"Restore"</summary>
                <form method="post" action=post>
                    {shown_at(here, "restore")}
                    <input type="hidden" name="at" value=String::from(When::Instant(latest))/>
                    {without}
                    <p>{format!("{} become what they were then: all that they wrote since is gone for good. Each is stopped only while its files change places. One that does not come up is as it is now, and the others go on.", guests(all.backed_up))}</p>
                    <button class="btn danger">"Yes, restore"</button>
                </form>
            </details>
        </div>
    };
    Some(card("restore", "Bring them back", ().into_any(), body.into_any()))
}
