//! Texts: their patterns against their parsers.

use std::fmt::Display;
use std::str::FromStr;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::string::string_regex;
use regex::Regex;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::Checked;

/// What stands in a text instead of, or between, what did: of each kind that a parser may look for.
const OTHERS: [char; 19] =
    ['a', 'f', 'Z', '0', '1', '2', '5', '9', '-', '.', '_', ':', '/', '[', ' ', '\n', '\0', 'é', '日'];

struct Pattern {
    whole: Regex,
    inner: String,
    max: usize,
}

impl Pattern {
    fn of<T>(of: &Checked<T>) -> Self {
        assert_eq!(of.schema["type"], "string", "{}", of.name);
        let pattern = of.schema["pattern"].as_str().unwrap();
        let inner = pattern.strip_prefix('^').and_then(|rest| rest.strip_suffix('$')).unwrap().to_owned();
        let max = of.schema["maxLength"].as_u64().unwrap();
        Self { whole: Regex::new(pattern).unwrap(), inner, max: usize::try_from(max).unwrap() }
    }

    fn allows(&self, text: &str) -> bool {
        self.whole.is_match(text) && text.chars().count() <= self.max
    }

    /// Texts that the schema allows.
    fn texts(&self) -> impl Strategy<Value = String> + use<> {
        let max = self.max;
        string_regex(&self.inner).unwrap().prop_filter("too long", move |text| text.chars().count() <= max)
    }
}

/// A type whose schema allows all that the type shows.
pub(super) fn exact<T: FromStr + Display + DeserializeOwned>(of: &Checked<T>) {
    let pattern = Pattern::of(of);
    allowed_is_taken(of, &pattern);
    shown_is_allowed(of, &pattern, |_| false);
}

/// A type whose schema refuses some of what the type shows: `example`, and what else matches `gap`.
pub(super) fn stricter<T: FromStr + Display + DeserializeOwned>(of: &Checked<T>, (example, gap): (&str, &str)) {
    let (pattern, gap) = (Pattern::of(of), Regex::new(gap).unwrap());
    let shown = example.parse::<T>().ok().unwrap().to_string();
    assert!(!pattern.allows(&shown) && gap.is_match(&shown), "{}: there is no gap at {example}", of.name);
    allowed_is_taken(of, &pattern);
    shown_is_allowed(of, &pattern, |shown| gap.is_match(shown));
}

fn allowed_is_taken<T: FromStr + Display + DeserializeOwned>(of: &Checked<T>, pattern: &Pattern) {
    let check = |text: &str| {
        let shown = text.parse::<T>().ok().map(|taken| taken.to_string());
        assert!(shown.is_some_and(|shown| pattern.allows(&shown)), "{} refuses {text:?} or shows another", of.name);
        assert!(serde_json::from_value::<T>(json!(text)).is_ok(), "{} refuses {text:?} in JSON", of.name);
    };
    let examples: Vec<String> = serde_json::from_value(of.schema["examples"].clone()).unwrap();
    assert!(!examples.is_empty() && examples.iter().all(|example| pattern.allows(example)), "{}", of.name);
    // What a pattern seldom makes alone.
    let blanks = ('\0'..='\u{ffff}').filter(|c| c.is_whitespace() || c.is_control()).map(String::from);
    for text in examples.into_iter().chain(blanks.filter(|blank| pattern.allows(blank))) {
        check(&text);
    }
    proptest!(ProptestConfig::with_cases(512), |(text in pattern.texts())| check(&text));
}

fn shown_is_allowed<T: FromStr + Display>(of: &Checked<T>, pattern: &Pattern, is_known: impl Fn(&str) -> bool) {
    let others = prop::sample::select(&OTHERS[..]);
    proptest!(|(text in pattern.texts(), at: Index, other in others, how in any::<(bool, bool)>())| {
        if let Ok(taken) = changed(&text, at, other, how).parse::<T>() {
            let shown = taken.to_string();
            prop_assert!(pattern.allows(&shown) || is_known(&shown), "{} shows {shown}", of.name);
        }
    });
}

/// The text with one character more, another one, or one less.
fn changed(text: &str, at: Index, other: char, (adds, removes): (bool, bool)) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let at = at.index(chars.len() + 1);
    if removes && at < chars.len() {
        chars.remove(at);
    }
    if adds {
        chars.insert(at, other);
    }
    chars.into_iter().collect()
}
