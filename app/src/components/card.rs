//! Headings, cards, lists of facts, notices, and what stands where nothing is yet.

use leptos::prelude::*;

use super::status::{Tone, status};

/// The head of a page: its heading, a line below it, and what can be done.
pub fn head(title: AnyView, below: AnyView, actions: AnyView) -> AnyView {
    view! {
        <div class="head">
            <div>
                <h1>{title}</h1>
                <div class="below">{below}</div>
            </div>
            <div class="actions">{actions}</div>
        </div>
    }
    .into_any()
}

/// A card with a heading, something at its right, and a body that brings its own padding.
pub fn card(id: &'static str, title: &'static str, right: AnyView, body: AnyView) -> AnyView {
    let heading = format!("{id}-heading");
    view! {
        <section class="card" id=id aria-labelledby=heading.clone()>
            <header><h2 id=heading.clone()>{title}</h2><div class="right">{right}</div></header>
            {body}
        </section>
    }
    .into_any()
}

/// A name and what stands behind it.
pub type Fact = (&'static str, AnyView);

/// A list of facts.
pub fn facts(all: Vec<Fact>) -> AnyView {
    let rows = all.into_iter().map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }).collect_view();
    view! { <dl class="facts">{rows}</dl> }.into_any()
}

/// What stands in a card where nothing is yet: why, and what to do next.
pub fn empty(title: &'static str, next: AnyView) -> AnyView {
    view! { <div class="empty"><p class="strong">{title}</p><p class="quiet">{next}</p></div> }.into_any()
}

/// A notice above the page: what, more of it, and where to go.
pub fn notice(tone: Tone, what: impl Into<String>, more: AnyView) -> AnyView {
    let class = match tone {
        Tone::Fail => "banner fail",
        Tone::Busy => "banner busy",
        Tone::Ok => "banner ok",
        Tone::Warn => "banner",
        Tone::Wait | Tone::Off => "banner off",
    };
    view! { <div class=class role="status">{status(tone, what)}<div class="more">{more}</div></div> }.into_any()
}

/// The way to the next page of a list, if there is one, and back to its beginning.
pub fn next_page(path: &str, next: Option<&corpus_api::Cursor>) -> Option<AnyView> {
    let sign = if path.contains('?') { '&' } else { '?' };
    next_link(next.map(|cursor| format!("{path}{sign}cursor={cursor}")))
}

/// The same, of its whole address.
pub fn next_link(next: Option<String>) -> Option<AnyView> {
    let next = next?;
    Some(
        view! { <nav class="pager" aria-label="Pages"><a class="btn" href=next rel="next">"Next page"</a></nav> }
            .into_any(),
    )
}
