//! What was found by a name: the palette of the browser as a page, for who has no wasm. Below it stands what
//! is written about the words that were looked for.

use corpus_api::search::{Found, Hit, Search};
use leptos::prelude::*;

use super::docs;
use crate::asked::{Query, address, asked, typed};
use crate::caller::Caller;
use crate::components::{Field, card, count, empty, head};
use crate::docs::{all, search::search};
use crate::form::Result;
use crate::layout::Page;

/// Sections of the documentation that are shown.
const SECTIONS: usize = 3;

/// Finds what the query says, if it says anything.
pub async fn load(caller: &Caller, query: &Query) -> Result<Page> {
    let wanted = query.get("q").is_some_and(|text| !text.trim().is_empty());
    let found = if wanted { Some(caller.ask(asked::<Search>(query)?).await?) } else { None };
    Ok(Page::new("search", "Search", search_view(query, found.as_ref())))
}

/// The view of plain values.
pub fn search_view(query: &Query, found: Option<&Found>) -> AnyView {
    let below = "Guests, projects, compute nodes, DNS names; deployments by project and number, or by commit";
    let body = match found.map(|found| found.items.as_slice()) {
        None => ().into_any(),
        Some([]) => card("found", "Found", ().into_any(), empty("Nothing is called so", ().into_any())),
        Some(hits) => {
            let hits = hits.iter().map(line).collect_view();
            card("found", "Found", ().into_any(), view! { <ul class="hits">{hits}</ul> }.into_any())
        }
    };
    view! {
        {head("Search".into_any(), view! { <span class="quiet">{below}</span> }.into_any(), ().into_any())}
        <form method="get" action="/search" class="filters" role="search" aria-label="Everything">
            {Field::new(&typed(query), "q", "Name has").input()}
            <div class="actions"><button class="btn">"Search"</button></div>
        </form>
        {body}
        {written(query)}
    }
    .into_any()
}

fn written(query: &Query) -> Option<AnyView> {
    let question = query.get("q")?;
    let hits = search(all(), question, SECTIONS);
    let path = address("/docs", &Query::new(), Some(("q", question)));
    let whole = view! { <a class="quiet" href=path>{count(hits.number, "section")}</a> };
    (hits.number > 0).then(|| card("written", "In the documentation", whole.into_any(), docs::list(&hits.first)))
}

fn line(hit: &Hit) -> AnyView {
    view! { <li><a href=hit.path.clone()>{hit.name.clone()}</a><span class="quiet">{hit.detail.clone()}</span><span class="quiet kind">{hit.kind.word()}</span></li> }
        .into_any()
}
