//! Every text of a line, wherever it stands, and every list.

use corpus_domain::{is_harmful, plain};
use serde_json::{Map, Value};

/// The longest text, in characters; what has a shorter bound gets it by its meaning.
const MAX_TEXT: usize = 16 << 10;
/// The longest key of a mapping.
const MAX_KEY: usize = 256;
/// The longest list or mapping.
const MAX_ITEMS: usize = 10_000;

/// Cleans and cuts all that is in the value.
pub(super) fn clean(value: &mut Value) {
    match value {
        Value::String(text) => shorten(text, MAX_TEXT),
        Value::Array(items) => {
            items.truncate(MAX_ITEMS);
            items.iter_mut().for_each(clean);
        }
        Value::Object(entries) => {
            if entries.len() > MAX_ITEMS || entries.keys().any(|key| key.len() > MAX_KEY || key.contains(is_harmful)) {
                *entries = with_plain_keys(std::mem::take(entries));
            }
            entries.values_mut().for_each(clean);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn shorten(text: &mut String, longest: usize) {
    if text.contains(is_harmful) {
        *text = plain(text).into_owned();
    }
    if text.len() > longest
        && let Some((end, _)) = text.char_indices().nth(longest)
    {
        text.truncate(end);
        text.push('…');
    }
}

fn with_plain_keys(entries: Map<String, Value>) -> Map<String, Value> {
    let cleaned = entries.into_iter().take(MAX_ITEMS).map(|(mut key, value)| {
        shorten(&mut key, MAX_KEY);
        (key, value)
    });
    cleaned.collect()
}
