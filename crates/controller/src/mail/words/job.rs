//! Words of jobs.

use url::Url;

use super::own::at;
use super::text::{Mail, Text, page};
use crate::mail::letter::JobLetter;

pub fn job_failed(letter: &JobLetter, pages: &Url) -> Mail {
    let mut text = Text::default();
    text.line(&format!("{} failed. What it had done was undone.", letter.title));
    about(&mut text, letter, pages);
    text.mail(&format!("{} failed", letter.title), pages)
}

pub fn job_stuck(letter: &JobLetter, pages: &Url) -> Mail {
    let mut text = Text::default();
    match letter.stalled {
        None => {
            text.line(&format!("{} is stuck: what it had done could not be undone.", letter.title));
            text.line("An operator has it tried again, or gives it up, on its page.");
        }
        Some(since) => {
            text.line(&format!("{} goes on no more: nothing was heard of it since {}.", letter.title, at(since)));
            text.line("Its page says what it waits for, and cancels it.");
        }
    }
    about(&mut text, letter, pages);
    text.mail(&format!("{} is stuck", letter.title), pages)
}

fn about(text: &mut Text, letter: &JobLetter, pages: &Url) {
    text.gap();
    if let Some(reason) = &letter.reason {
        text.line(&format!("Why:  {reason}"));
        text.gap();
    }
    text.line(&page(pages, &format!("jobs/{}", letter.job)));
}

/// What of it is said among others, and its page.
pub fn job_line(letter: &JobLetter) -> (String, String) {
    let since = letter.stalled.map(|since| format!(", nothing heard since {}", at(since))).unwrap_or_default();
    let reason = letter.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    (format!("{}{since}{reason}", letter.title), format!("jobs/{}", letter.job))
}
