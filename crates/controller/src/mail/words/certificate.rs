//! Words of certificates that need somebody, for maintainers and operators.

use url::Url;

use super::own::at;
use super::text::{Mail, Text, page};
use crate::mail::letter::CertificateLetter;

pub fn ends(letter: &CertificateLetter, pages: &Url) -> Mail {
    let CertificateLetter { name, ends_at, .. } = letter;
    let mut text = Text::default();
    let when = ends_at.map_or_else(|| "soon".to_owned(), |end| format!("at {}", at(end)));
    text.line(&format!("The certificate of {name} ends {when}. Browsers refuse the site from then on."));
    text.gap();
    if letter.is_brought {
        text.line(
            "It was uploaded, so nobody renews it by itself: upload another one before that, or remove it to have",
        );
        text.line("one of the configured issuer.");
    } else {
        text.line("It should have been renewed by itself by now.");
    }
    why(letter, &mut text);
    text.line(&address(letter, pages));
    text.mail(&format!("The certificate of {name} ends soon"), pages)
}

/// What of it is said among others, and its page.
pub fn ends_line(letter: &CertificateLetter) -> (String, String) {
    let end = letter.ends_at.map(|end| format!(", at {}", at(end))).unwrap_or_default();
    (format!("{}{end}", letter.name), path(letter))
}

pub fn fails(letter: &CertificateLetter, pages: &Url) -> Mail {
    let name = &letter.name;
    let mut text = Text::default();
    text.line(&format!("For a day now no certificate can be had for {name}. It is tried again by itself."));
    text.gap();
    text.line(&match letter.ends_at {
        Some(end) => format!("The one that it has ends at {}.", at(end)),
        None => "It has none: browsers refuse the site by HTTPS.".to_owned(),
    });
    why(letter, &mut text);
    text.line(&address(letter, pages));
    text.mail(&format!("No certificate for {name}"), pages)
}

/// What of it is said among others, and its page.
pub fn fails_line(letter: &CertificateLetter) -> (String, String) {
    let why = letter.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
    (format!("{}{why}", letter.name), path(letter))
}

fn why(letter: &CertificateLetter, text: &mut Text) {
    text.gap();
    if let Some(problem) = &letter.problem {
        text.line(&format!("Why:  {problem}"));
        text.gap();
    }
}

fn path(letter: &CertificateLetter) -> String {
    format!("names/{}", letter.id)
}

fn address(letter: &CertificateLetter, pages: &Url) -> String {
    page(pages, &path(letter))
}
