//! Words of what is a member's own: their keys and tokens.

use chrono::{DateTime, Utc};
use url::Url;

use super::text::{Mail, Text, page};
use crate::mail::letter::{KeyLetter, TokenLetter};

pub fn key_moved(letter: &KeyLetter, pages: &Url) -> Mail {
    let mut text = Text::default();
    text.line("An SSH key that was yours at Corpus is another account's now:");
    text.gap();
    text.line(&format!("  {} {}", letter.algorithm, letter.fingerprint));
    text.gap();
    text.line("Whoever has that account proved to have the private key, by a signature. If that is you, with an");
    text.line("account of another name, all is well. If not, somebody else has your private key: make a new one,");
    text.line("take the old one from every place that knows it, and tell the operators; the audit says who it was.");
    text.line("The old key does not let you in any more, neither at Corpus nor at your guests.");
    text.gap();
    text.line(&page(pages, "keys"));
    text.mail("An SSH key of yours is another account's now", pages)
}

/// What of it is said among others, and its page.
pub fn key_line(letter: &KeyLetter) -> (String, String) {
    (format!("{} {}: tell the operators unless it was you", letter.algorithm, letter.fingerprint), "keys".to_owned())
}

pub fn token_ends(letter: &TokenLetter, pages: &Url) -> Mail {
    let mut text = Text::default();
    text.line(&format!(
        "Your token {} ends at {}. What uses it is refused from then on.",
        letter.name,
        at(letter.ends_at)
    ));
    text.gap();
    text.line(&format!("Good for:   {}", letter.scope));
    text.line(&format!("Last used:  {}", letter.used_at.map_or_else(|| "never".to_owned(), at)));
    text.gap();
    text.line("Make a new one, and give it to what uses this one, before that.");
    text.line(&page(pages, "tokens"));
    text.mail(&format!("Your token {} ends soon", letter.name), pages)
}

/// What of it is said among others, and its page.
pub fn token_line(letter: &TokenLetter) -> (String, String) {
    (format!("{}, at {}", letter.name, at(letter.ends_at)), "tokens".to_owned())
}

/// A time, for people anywhere.
pub fn at(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M UTC").to_string()
}
