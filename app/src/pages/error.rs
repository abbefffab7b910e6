//! The page that stands where another one should, in the same look.

use leptos::prelude::*;

use crate::form::Failure;
use crate::layout::Page;

/// What happened, and where to go from there.
pub fn page(failure: &Failure) -> Page {
    let retry = matches!(failure.status, 429 | 500..).then(|| view! { <a class="btn" href="">"Try again"</a> });
    let body = view! {
        <section class="card failure">
            <p class="num quiet">{failure.status.to_string()}</p>
            <h1>{failure.title.clone()}</h1>
            <p>{failure.message.clone()}</p>
            <p class="actions">{retry}<a class="btn" href="/">"Go to the overview"</a></p>
        </section>
    };
    Page { status: failure.status, ..Page::new("error", failure.title.clone(), body.into_any()) }
}
