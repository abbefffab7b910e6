//! Words of claims of names from elsewhere that have lapsed, for who claimed them.

use url::Url;

use super::text::{Mail, Text, page};
use crate::mail::letter::ClaimLetter;

pub fn lapsed(letter: &ClaimLetter, pages: &Url) -> Mail {
    let ClaimLetter { name, guest_name, .. } = letter;
    let mut text = Text::default();
    text.line(&format!("The claim of {name} for {guest_name} has lapsed: {}.", missing(letter)));
    text.gap();
    if !letter.answered.is_empty() && !letter.leads {
        text.line(&format!("Leads to:  {}", letter.answered.join(", ")));
    }
    if let Some(problem) = &letter.problem {
        text.line(&format!("Why:       {problem}"));
    }
    text.gap();
    text.line("The name can be claimed again, with another proof: the TXT record that you made is worth nothing now.");
    text.line(&page(pages, &path(letter)));
    text.mail(&format!("The claim of {name} has lapsed"), pages)
}

/// What of it is said among others, and its page.
pub fn lapsed_line(letter: &ClaimLetter) -> (String, String) {
    (format!("{} for {}: {}", letter.name, letter.guest_name, missing(letter)), path(letter))
}

/// Which of what it takes was not there when it was looked last.
fn missing(letter: &ClaimLetter) -> &'static str {
    match (letter.leads, letter.proven) {
        (false, false) => "the world answered neither that it leads to the guest's node alone, nor the proof",
        (false, true) => "the world did not answer that it leads to the guest's node alone",
        (true, false) => "the world did not answer the proof",
        (true, true) => "it could not be attached",
    }
}

/// The claim is gone, and its page with it: it is claimed again on that of the guest.
fn path(letter: &ClaimLetter) -> String {
    format!("guests/{}", letter.guest)
}
