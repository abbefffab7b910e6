//! The audit: who did what to what, when.

use std::collections::BTreeMap;

use corpus_api::audit::{AuditEntry, AuditPage, ListAudit};
use corpus_api::logins::{ListRefusedLogins, RefusedLogin};
use leptos::prelude::*;

use crate::caller::Caller;
use crate::components::{at, card, empty, head, next_page};
use crate::form::Result;
use crate::layout::Page;

/// Reads and shows a page of it.
pub async fn load(caller: &Caller, query: &BTreeMap<String, String>) -> Result<Page> {
    let cursor = query.get("cursor").map(|text| text.parse()).transpose().unwrap_or_default();
    let is_first = cursor.is_none();
    let page = caller.ask(ListAudit { cursor, ..ListAudit::default() }).await?;
    let refused = if is_first { caller.ask(ListRefusedLogins::default()).await?.items } else { Vec::new() };
    Ok(Page::new("audit", "Audit", audit_view(&page, &refused)))
}

/// The view of plain values.
pub fn audit_view(page: &AuditPage, refused: &[RefusedLogin]) -> AnyView {
    let rows = &page.items;
    let below =
        view! { <span class="quiet">"Every change and every revealed secret; nothing here can be changed"</span> };
    let body =
        if rows.is_empty() { empty("Nothing here", "There is no further page.".into_any()) } else { table(rows) };
    view! {
        {head("Audit".into_any(), below.into_any(), ().into_any())}
        <section class="card">{body}</section>
        {next_page("/audit", page.next.as_ref())}
        {(!refused.is_empty()).then(|| card("refused-logins", "Refused logins", ().into_any(), refused_table(refused)))}
    }
    .into_any()
}

fn table(rows: &[AuditEntry]) -> AnyView {
    let rows = rows
        .iter()
        .map(|row| {
            view! {
                <tr>
                    <td data-label="When" class="quiet">{at(row.at)}</td>
                    <td data-label="Who">{row.actor.clone()}</td>
                    <td data-label="What"><code>{row.action.clone()}</code></td>
                    <td data-label="To what" class="wrap">{row.subject.clone()}</td>
                    <td data-label="More" class="wrap quiet">{more(&row.detail)}</td>
                </tr>
            }
        })
        .collect_view();
    view! {
        <table class="rows" aria-label="Audit">
            <thead><tr><th>"When"</th><th>"Who"</th><th>"What"</th><th>"To what"</th><th>"More"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
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
