//! A second look before something is taken away, without JavaScript.

use leptos::prelude::*;

/// A small button that opens a question and the button that does it.
pub fn confirm(word: &'static str, subject: &str, question: impl Into<String>, post: String) -> AnyView {
    confirm_at(word, subject, question, post, ().into_any())
}

/// The same, with what else the form says.
pub fn confirm_at(
    word: &'static str,
    subject: &str,
    question: impl Into<String>,
    post: String,
    hidden: AnyView,
) -> AnyView {
    let yes = format!("Yes, {}", word.to_lowercase());
    view! {
        <details class="confirm">
            <summary class="btn small" aria-label=format!("{word} {subject}")>{word}</summary>
            <form method="post" action=post>
                {hidden}
                <p>{question.into()}</p>
                <button class="btn danger">{yes}</button>
            </form>
        </details>
    }
    .into_any()
}
