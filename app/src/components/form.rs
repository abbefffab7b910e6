//! What stands around the fields of a form.

use leptos::prelude::*;

use super::field::field_id;
use crate::form::{FormState, sentence};

/// What is said of a form that is shown again: all errors, each a link to its field; nothing when there are none.
pub fn error_summary(form: &FormState) -> AnyView {
    if form.errors.is_empty() && form.message.is_none() {
        return ().into_any();
    }
    let message = form.message.as_deref().map(|text| view! { <p>{sentence(text)}</p> });
    let links = form
        .errors
        .iter()
        .map(
            |(field, text)| view! { <li><a href=format!("#{}", field_id(&form.form, field))>{sentence(text)}</a></li> },
        )
        .collect_view();
    let title = if form.was_held_up() { "This was not sent" } else { "This was not accepted" };
    let list = (!form.errors.is_empty()).then(|| view! { <ul>{links}</ul> });
    view! {
        <div class="errors" id="error-summary" role="alert" tabindex="-1" autofocus="">
            <h2>{title}</h2>
            {message}
            {list}
        </div>
    }
    .into_any()
}

/// A form that is one button.
pub fn action(post: String, word: &'static str, class: &'static str, disabled: Option<String>) -> AnyView {
    action_at(post, ().into_any(), word, class, disabled)
}

/// The same, with what else the form says.
pub fn action_at(
    post: String,
    hidden: AnyView,
    word: impl Into<String>,
    class: &'static str,
    disabled: Option<String>,
) -> AnyView {
    let word = word.into();
    let off = disabled.is_some();
    view! {
        <form method="post" action=post class="inline">
            {hidden}
            <button class=class disabled=off title=disabled>{word}</button>
        </form>
    }
    .into_any()
}

/// In a form: the page that shows it, which is shown again when it is refused, and which of its forms it is.
pub fn shown_at(page: &str, form: &str) -> AnyView {
    view! {
        <input type="hidden" name="_page" value=page.to_owned()/>
        <input type="hidden" name="_form" value=form.to_owned()/>
    }
    .into_any()
}

/// In a form that asks again: the job that could not do it before.
pub fn instead_of(form: &FormState) -> Option<AnyView> {
    let job = form.value("instead_of")?.to_owned();
    Some(view! { <input type="hidden" name="instead_of" value=job/> }.into_any())
}

/// In a form: the page that shows it, to which one comes back in any case.
pub fn stays_at(page: &str, form: &str) -> AnyView {
    view! { {shown_at(page, form)}<input type="hidden" name="_next" value=page.to_owned()/> }.into_any()
}
