//! Status is a shape and a word, never colour alone.

use corpus_domain::Environment;
use leptos::prelude::*;

/// What kind of state a word names; each has its own shape and colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it should be: a disc.
    Ok,
    /// Something is being done: a turning ring.
    Busy,
    /// It waits for its turn: a dotted ring.
    Wait,
    /// Look at it soon: a triangle.
    Warn,
    /// Broken: a diamond.
    Fail,
    /// At rest: an empty ring.
    Off,
}

impl Tone {
    const fn class(self) -> &'static str {
        match self {
            Self::Ok => "status ok",
            Self::Busy => "status busy",
            Self::Wait => "status wait",
            Self::Warn => "status warn",
            Self::Fail => "status fail",
            Self::Off => "status off",
        }
    }
}

/// A shape and a word.
pub fn status(tone: Tone, word: impl Into<String>) -> AnyView {
    view! { <span class=tone.class()>{word.into()}</span> }.into_any()
}

/// The tag of an environment.
pub fn environment(environment: Environment) -> AnyView {
    let class = if environment == Environment::Prod { "tag prod" } else { "tag" };
    view! { <span class=class>{environment.as_str()}</span> }.into_any()
}

/// The tags of several.
pub fn environments(all: &[Environment]) -> AnyView {
    let tags = all.iter().map(|one| environment(*one)).collect_view();
    view! { <span class="tags">{tags}</span> }.into_any()
}

/// A bar with its percentage; `label` says of what.
pub fn meter(percent: u8, label: &str) -> AnyView {
    let percent = percent.min(100);
    let class = if percent >= 85 { "bar hot" } else { "bar" };
    view! {
        <span class="metered">
            <svg class="meter" width="64" height="6" viewBox="0 0 100 6" preserveAspectRatio="none" role="img"
                aria-label=format!("{label} {percent}%")>
                <rect class="track" width="100" height="6"></rect>
                <rect class=class width=percent.to_string() height="6"></rect>
            </svg>
            <span class="num">{format!("{percent}%")}</span>
        </span>
    }
    .into_any()
}
