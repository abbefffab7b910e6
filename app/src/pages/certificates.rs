//! The certificates that are served, for operators: the one that ends first first.

use chrono::Utc;
use corpus_api::certificates::{CertificateLine, CertificatePage, ListCertificates, Nearness};
use leptos::prelude::*;

use super::Asked;
use super::name::path;
use super::name_certificate::{nearness, source_words};
use crate::asked::{Query, asked, page_after};
use crate::caller::Caller;
use crate::components::{at, empty, head, next_link, reason};
use crate::form::Result;
use crate::layout::Page;

/// Its address.
const PATH: &str = "/certificates";

/// Reads and shows them.
pub async fn load(caller: &Caller, given: &Asked) -> Result<Page> {
    let page = caller.ask(asked::<ListCertificates>(&given.query)?).await?;
    Ok(Page::new("certificates", "Certificates", certificates_view(&page, &given.query)))
}

/// The view of plain values.
pub fn certificates_view(page: &CertificatePage, query: &Query) -> AnyView {
    let below = view! { <span class="quiet">"The one that ends first first"</span> };
    let body = if page.items.is_empty() {
        empty("No certificate is served", "A name that is attached to a guest has one: it stands here.".into_any())
    } else {
        let rows = page.items.iter().map(row).collect_view();
        view! {
            <table class="rows" aria-label="Certificates">
                <thead><tr><th>"Name"</th><th>"State"</th><th>"Ends"</th><th>"Signed by"</th><th>"Project"</th></tr></thead>
                <tbody>{rows}</tbody>
            </table>
        }
        .into_any()
    };
    let root = view! { <a class="btn" href="/certificates/root.pem" download="corpus-root.pem">"Download root"</a> };
    view! {
        {head("Certificates".into_any(), below.into_any(), root.into_any())}
        <section class="card" id="live-certificates" data-live="">{body}</section>
        {next_link(page_after(PATH, query, page.next.as_ref()))}
    }
    .into_any()
}

fn row(line: &CertificateLine) -> AnyView {
    let near = Nearness::of(line.not_before, line.not_after, Utc::now());
    let project = line.project.to_string();
    view! {
        <tr>
            <td data-label="Name"><a class="link" href=path(line.name)>{line.shown()}</a></td>
            <td data-label="State">{nearness(near)}{line.problem.as_deref().map(reason)}</td>
            <td data-label="Ends">{at(line.not_after)}</td>
            <td data-label="Signed by" class="wrap">{line.issuer.clone()}<div class="quiet small">{source_words(line.source)}</div></td>
            <td data-label="Project"><a class="link" href=format!("/projects/{project}")>{project.clone()}</a></td>
        </tr>
    }
    .into_any()
}
