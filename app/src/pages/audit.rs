//! The audit: who did what to what, when, by which door.

use corpus_api::audit::{AuditEntry, AuditPage, ExportAudit, ListAudit};
use corpus_api::logins::{ListRefusedLogins, RefusedLogin};
use corpus_api::{Principal, input};
use corpus_domain::{Door, ExportFormat, ViewedList, shown_actor};
use leptos::prelude::*;

use super::Asked;
use crate::asked::{Listing, address, page_after};
use crate::caller::Caller;
use crate::components::{Field, Filters, at, card, empty, head, next_link, shown_at};
use crate::form::Result;
use crate::layout::Page;
use crate::to::to;

/// Reads and shows a page of it.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let asked = Listing::ask::<ListAudit>(caller, ViewedList::Audit, given.query.clone(), &given.form).await?;
    let (page, listing) = asked;
    let is_whole = !listing.is_filtered(&[]) && !listing.query.contains_key("cursor");
    let refused =
        if is_whole && caller.who.ops { caller.ask(ListRefusedLogins::default()).await?.items } else { Vec::new() };
    Ok(Page {
        status: listing.status(),
        ..Page::new("audit", "Audit", audit_view(&caller.who, &page, &refused, &listing))
    })
}

/// The view of plain values.
pub fn audit_view(who: &Principal, page: &AuditPage, refused: &[RefusedLogin], listing: &Listing) -> AnyView {
    let rows = &page.items;
    let what = if who.ops {
        "Every change and every revealed secret"
    } else {
        "What concerns your projects, and what you did"
    };
    let below = view! { <span class="quiet">{format!("{what}; nothing here can be changed")}</span> };
    let body = match rows.as_slice() {
        [] if listing.is_filtered(&[]) => {
            empty("Nothing matches", view! { <a class="link" href="/audit">"Show all"</a> }.into_any())
        }
        [] => empty("Nothing here", "Nothing was done yet, or there is no further page.".into_any()),
        rows => table(rows),
    };
    view! {
        {head("Audit".into_any(), below.into_any(), export(listing).into_any())}
        {filters(listing)}
        <section class="card">{body}</section>
        {next_link(page_after("/audit", &listing.query, page.next.as_ref()))}
        {(!refused.is_empty()).then(|| card("refused-logins", "Refused logins", ().into_any(), refused_table(refused)))}
    }
    .into_any()
}

/// The file has what is asked, all of it. It is saved by the browser, and the page stays.
fn export(listing: &Listing) -> Option<AnyView> {
    let fields = input::fields::<ExportAudit>().unwrap_or_default();
    let asked = listing.query.iter().filter(|(name, text)| fields.contains(&name.as_str()) && !text.trim().is_empty());
    let asked = asked.map(|(name, text)| view! { <input type="hidden" name=name.clone() value=text.clone()/> });
    let button = |format: ExportFormat, word: &'static str| {
        view! { <button class="btn" name="format" value=format.as_str()>{word}</button> }
    };
    listing.filter.errors.is_empty().then(|| {
        view! {
            <form method="post" action={to::<ExportAudit>(&[])} target="_self" class="export">
                {shown_at(&address("/audit", &listing.query, None), "export")}
                {asked.collect_view()}
                {button(ExportFormat::Csv, "Export as CSV")}
                {button(ExportFormat::JsonLines, "As JSON lines")}
            </form>
        }
        .into_any()
    })
}

fn filters(listing: &Listing) -> AnyView {
    let form = &listing.filter;
    let fields = vec![
        Field::new(form, "actor", "Who").input(),
        Field::new(form, "action", "What").placeholder("guest, or guest.destroy").input(),
        Field::new(form, "subject", "To what").input(),
        Field::new(form, "project", "Project").input(),
        Field::new(form, "from", "From").placeholder("2027-03-31").input(),
        Field::new(form, "until", "Until").placeholder("2027-03-31").input(),
        Field::new(form, "q", "More has").input(),
    ];
    let orders = Some(&[("newest", "Newest first"), ("oldest", "Oldest first")][..]);
    let filters = Filters { list: ViewedList::Audit, label: "Audit", fields, hidden: &[], beside: &["sort"], orders };
    filters.view(listing)
}

fn table(rows: &[AuditEntry]) -> AnyView {
    let rows = rows
        .iter()
        .map(|row| {
            view! {
                <tr>
                    <td data-label="When" class="quiet">{at(row.at)}</td>
                    <td data-label="Who">{shown_actor(&row.actor)}</td>
                    <td data-label="By" class="wrap quiet">{door(row)}</td>
                    <td data-label="What"><code>{row.action.clone()}</code></td>
                    <td data-label="To what" class="wrap">{row.subject.clone()}</td>
                    <td data-label="Project">{row.project.clone()}</td>
                    <td data-label="More" class="wrap quiet">{Some(more(&row.detail)).filter(|text| !text.is_empty())}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Audit">
            <thead><tr><th>"When"</th><th>"Who"</th><th>"By"</th><th>"What"</th><th>"To what"</th><th>"Project"</th><th>"More"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// By which door, and with which token.
fn door(row: &AuditEntry) -> String {
    let door = match row.door {
        Some(Door::Page) => "page",
        Some(Door::Api) => "API",
        Some(Door::Git) => "git",
        Some(Door::Job) => "job",
        Some(Door::CommandLine) => "command line",
        Some(Door::Corpus) => "Corpus",
        None => "not recorded",
    };
    row.token.as_ref().map_or_else(|| door.to_owned(), |token| format!("{door}, token {token}"))
}

/// Counted by the hour; what was typed that is no login of an account here is not kept.
fn refused_table(rows: &[RefusedLogin]) -> AnyView {
    let rows = rows
        .iter()
        .map(|row| {
            let login = if row.login.is_empty() { "no account here".to_owned() } else { row.login.clone() };
            let network = if row.network.is_empty() { "several".to_owned() } else { row.network.clone() };
            view! {
                <tr>
                    <td data-label="Login">{login}</td>
                    <td data-label="From"><code>{network}</code></td>
                    <td data-label="Why">{row.reason.clone()}</td>
                    <td data-label="How often">{row.count}</td>
                    <td data-label="First" class="quiet">{at(row.first_at)}</td>
                    <td data-label="Last" class="quiet">{at(row.last_at)}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Refused logins">
            <thead><tr><th>"Login"</th><th>"From"</th><th>"Why"</th><th>"How often"</th><th>"First"</th><th>"Last"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

/// The details as `name value`, joined by commas.
fn more(detail: &serde_json::Value) -> String {
    let Some(detail) = detail.as_object() else { return String::new() };
    let word = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    detail
        .iter()
        .map(|(name, value)| format!("{} {}", name.replace('_', " "), word(value)))
        .collect::<Vec<_>>()
        .join(", ")
}
