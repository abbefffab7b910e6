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
    confirm_as("btn small", word, subject, question, post, hidden)
}

/// The same, as a button of this class.
pub fn confirm_as(
    class: &'static str,
    word: &str,
    subject: &str,
    question: impl Into<String>,
    post: String,
    hidden: AnyView,
) -> AnyView {
    let word = word.to_owned();
    // Only the first letter: a commit or a name in it stays as it is.
    let yes = word.char_indices().nth(1).map_or_else(String::new, |(at, _)| word[at..].to_owned());
    let yes = format!("Yes, {}{yes}", word.chars().next().unwrap_or_default().to_lowercase());
    let label = if subject.is_empty() { word.clone() } else { format!("{word} {subject}") };
    view! {
        <details class="confirm">
            <summary class=class aria-label=label>{word}</summary>
            <form method="post" action=post>
                {hidden}
                <p>{question.into()}</p>
                <button class="btn danger">{yes}</button>
            </form>
        </details>
    }
    .into_any()
}
