//! Words of requests: for the operators who decide, and for who asked.

use corpus_domain::RequestState;
use url::Url;

use super::text::{Mail, Text, page};
use crate::mail::letter::RequestLetter;

pub fn made(letter: &RequestLetter, pages: &Url) -> Mail {
    let RequestLetter { title, asker, .. } = letter;
    let mut text = Text::default();
    text.line(&format!("{asker} asks for what takes an operator: {title}."));
    about(&mut text, letter, pages);
    text.mail(&format!("{asker} asks: {title}"), pages)
}

/// What of it is said among others, and its page.
pub fn made_line(letter: &RequestLetter) -> (String, String) {
    (format!("{} asks: {}", letter.asker, letter.title), path(letter))
}

pub fn decided(letter: &RequestLetter, pages: &Url) -> Mail {
    let mut text = Text::default();
    text.line(&format!("What you asked the operators for {}: {}.", outcome(letter.state), letter.title));
    about(&mut text, letter, pages);
    text.mail(&format!("Your request {}: {}", outcome(letter.state), letter.title), pages)
}

/// What of it is said among others, and its page.
pub fn decided_line(letter: &RequestLetter) -> (String, String) {
    let reason = letter.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    (format!("{} {}{reason}", letter.title, outcome(letter.state)), path(letter))
}

fn about(text: &mut Text, letter: &RequestLetter, pages: &Url) {
    text.gap();
    if let Some(reason) = &letter.reason {
        text.line(&format!("Why:  {reason}"));
        text.gap();
    }
    text.line(&page(pages, &path(letter)));
}

fn path(letter: &RequestLetter) -> String {
    format!("requests/{}", letter.request)
}

const fn outcome(state: RequestState) -> &'static str {
    match state {
        RequestState::Open => "waits for them",
        RequestState::Approved => "was approved",
        RequestState::Refused => "was refused",
        RequestState::Withdrawn => "was withdrawn",
        RequestState::Lapsed => "was not decided in time",
    }
}
