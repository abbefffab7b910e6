//! Words of nodes, for operators.

use url::Url;

use super::own::at;
use super::text::{Mail, Text, page};
use crate::mail::letter::{AwayLetter, NodeLetter};

pub fn node_ready(letter: &NodeLetter, pages: &Url) -> Mail {
    let mut text = Text::default();
    text.line(&format!("Node {} is ready and takes guests.", letter.address));
    text.gap();
    let environments: Vec<&str> = letter.environments.iter().map(|one| one.as_str()).collect();
    text.line(&format!("Environments:  {}", environments.join(", ")));
    text.line(&format!("Slots:         {} more guests of size small", letter.slots));
    if let Some(room) = &letter.room {
        text.line(&format!("Room:          {room}"));
    }
    text.gap();
    text.line(&page(pages, &format!("nodes/{}", letter.node)));
    text.mail(&format!("Node {} is ready", letter.address), pages)
}

/// What of it is said among others, and its page.
pub fn ready_line(letter: &NodeLetter) -> (String, String) {
    (format!("{}: {} slots", letter.address, letter.slots), format!("nodes/{}", letter.node))
}

pub fn node_away(letter: &AwayLetter, pages: &Url) -> Mail {
    let AwayLetter { address, since, .. } = letter;
    let mut text = Text::default();
    if letter.is_host_key {
        text.line(&format!(
            "Node {address} shows another host key since {}. Corpus does not speak with it.",
            at(*since)
        ));
        text.line("Either the host was set up anew, or somebody else answers in its place: compare the fingerprint");
        text.line("on the host itself before you accept it.");
    } else {
        text.line(&format!("Node {address} does not answer since {}.", at(*since)));
    }
    text.gap();
    if let Some(reason) = &letter.reason {
        text.line(&format!("Why:     {reason}"));
    }
    text.line(&format!("Guests:  {}; they may run all the same", letter.guests));
    text.gap();
    text.line(&page(pages, &format!("nodes/{}", letter.node)));
    let what = if letter.is_host_key { "shows another host key" } else { "does not answer" };
    text.mail(&format!("Node {address} {what}"), pages)
}

/// What of it is said among others, and its page.
pub fn away_line(letter: &AwayLetter) -> (String, String) {
    let what = if letter.is_host_key { " shows another host key" } else { "" };
    let reason = letter.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    (format!("{}{what}, since {}{reason}", letter.address, at(letter.since)), format!("nodes/{}", letter.node))
}

pub fn node_back(letter: &AwayLetter, pages: &Url) -> Mail {
    let mut text = Text::default();
    text.line(&format!("Node {} answers again since {}.", letter.address, at(letter.since)));
    text.gap();
    text.line(&page(pages, &format!("nodes/{}", letter.node)));
    text.mail(&format!("Node {} answers again", letter.address), pages)
}

/// What of it is said among others, and its page.
pub fn back_line(letter: &AwayLetter) -> (String, String) {
    (format!("{}, since {}", letter.address, at(letter.since)), format!("nodes/{}", letter.node))
}
