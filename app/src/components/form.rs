//! What stands around the fields of a form.

use leptos::prelude::*;

use crate::form::{FormState, sentence};

/// All errors of a form, each a link to its field; nothing when there are none.
pub fn error_summary(form: &FormState) -> AnyView {
    if form.errors.is_empty() && form.message.is_none() {
        return ().into_any();
    }
    let message = form.message.as_deref().map(|text| view! { <p>{sentence(text)}</p> });
    let links = form
        .errors
        .iter()
        .map(|(field, text)| view! { <li><a href=format!("#f-{field}")>{sentence(text)}</a></li> })
        .collect_view();
    let list = (!form.errors.is_empty()).then(|| view! { <ul>{links}</ul> });
    view! {
        <div class="errors" id="error-summary" role="alert" tabindex="-1" autofocus="">
            <h2>"This was not accepted"</h2>
            {message}
            {list}
        </div>
    }
    .into_any()
}

/// A form that is one button.
pub fn action(post: String, word: &'static str, class: &'static str, disabled: Option<String>) -> AnyView {
    let off = disabled.is_some();
    view! {
        <form method="post" action=post class="inline">
            <button class=class disabled=off title=disabled>{word}</button>
        </form>
    }
    .into_any()
}
