//! Times, and values to copy.
//!
//! A time is rendered as its age at the moment of rendering with the exact UTC time in the
//! title; in the browser the age ticks and the title turns local (`islands::clock`).

use chrono::{DateTime, Utc};
use corpus_domain::CommitId;
use leptos::prelude::*;

use crate::age;

const EXACT: &str = "%Y-%m-%d %H:%M:%S UTC";

fn time(at: DateTime<Utc>, kind: &'static str, text: String) -> AnyView {
    let machine = at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    view! { <time datetime=machine title=at.format(EXACT).to_string() data-time=kind>{text}</time> }.into_any()
}

fn seconds_since(at: DateTime<Utc>) -> i64 {
    (Utc::now() - at).num_seconds()
}

/// `4 s ago`.
pub fn age(at: DateTime<Utc>) -> AnyView {
    time(at, "age", age::ago(seconds_since(at)))
}

/// `4 s`: since when something is so.
pub fn since(at: DateTime<Utc>) -> AnyView {
    time(at, "since", age::span(seconds_since(at)))
}

/// `15:04:05`, for a moment of today; local in the browser.
pub fn clock(at: DateTime<Utc>) -> AnyView {
    time(at, "clock", at.format("%H:%M:%S").to_string())
}

/// `2026-11-21 10:42:31 UTC`; local in the browser.
pub fn at(at: DateTime<Utc>) -> AnyView {
    time(at, "at", at.format(EXACT).to_string())
}

/// A value in the fixed-width face, `what` for tests and tools.
pub fn code(what: &'static str, value: impl Into<String>) -> AnyView {
    view! { <code data-value=what>{value.into()}</code> }.into_any()
}

/// A value with a button that copies it; the button shows once the browser can do it.
pub fn copied(what: &'static str, label: &'static str, value: impl Into<String>) -> AnyView {
    let value = value.into();
    view! {
        <span class="copied">
            <code data-value=what title=value.clone()>{value.clone()}</code>
            <button type="button" class="copy sign" data-copy=value aria-label=format!("Copy {label}") inner_html=SHEETS></button>
        </span>
    }
    .into_any()
}

/// The sign of copying: two sheets, one before the other.
pub const SHEETS: &str = "<svg width=\"14\" height=\"14\" viewBox=\"0 0 16 16\" fill=\"none\" stroke=\"currentColor\" \
    stroke-width=\"1.5\" aria-hidden=\"true\"><rect x=\"5.5\" y=\"5.5\" width=\"8\" height=\"8\" rx=\"1.5\"></rect>\
    <path d=\"M10.5 3.5V3A1.5 1.5 0 0 0 9 1.5H3A1.5 1.5 0 0 0 1.5 3v6A1.5 1.5 0 0 0 3 10.5h.5\"></path></svg>";

/// Why something is so, as tables say it: two lines of it, and all of it when it is opened.
pub fn reason(text: &str) -> AnyView {
    if text.chars().count() <= TWO_LINES {
        return view! { <div class="quiet reason">{text.to_owned()}</div> }.into_any();
    }
    view! { <details class="quiet reason clamp"><summary title=text.to_owned()>{text.to_owned()}</summary></details> }
        .into_any()
}

/// As much fits into two lines wherever a reason stands.
const TWO_LINES: usize = 60;

/// A number of things: "1 zone", "2 zones".
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// `77b02de`, with the whole id in its title.
pub fn commit(id: &CommitId) -> AnyView {
    view! { <code title=id.to_string()>{id.short().to_owned()}</code> }.into_any()
}

/// How long something took, from what the guest measured.
pub fn took(milliseconds: u64) -> String {
    age::took(i64::try_from(milliseconds).unwrap_or(i64::MAX))
}

/// What a copy takes on a disk: `312 kB`, `4.2 MB`, `1.3 GB`.
pub fn bytes(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} bytes"),
        1_000..1_000_000 => format!("{} kB", number / 1_000),
        1_000_000..1_000_000_000 => format!("{}.{} MB", number / 1_000_000, number % 1_000_000 / 100_000),
        _ => format!("{}.{} GB", number / 1_000_000_000, number % 1_000_000_000 / 100_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(
            [bytes(12), bytes(312_400), bytes(4_250_000), bytes(1_300_000_000)],
            ["12 bytes", "312 kB", "4.2 MB", "1.3 GB"]
        );
    }
}
