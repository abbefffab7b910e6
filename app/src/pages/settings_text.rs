//! A configuration as the YAML that a person edits, and as text in a table.
//!
//! Mappings are blocks, everything else is JSON, which YAML reads as it is. What is set at
//! Corpus holds no secret, the controller takes none, and tells none of what a guest told.

use std::collections::BTreeMap;

use serde_json::Value;

/// The text of a whole mapping; empty for an empty one.
pub fn yaml(mapping: &BTreeMap<String, Value>) -> String {
    let mut text = String::new();
    for (key, value) in mapping {
        entry(&mut text, 0, key, value);
    }
    text
}

fn entry(text: &mut String, depth: usize, key: &str, value: &Value) {
    let indent = "  ".repeat(depth);
    let name = if is_plain(key) { key.to_owned() } else { Value::from(key).to_string() };
    let line = match value {
        Value::Object(inner) if !inner.is_empty() => {
            text.extend([indent.as_str(), &name, ":\n"]);
            for (key, value) in inner {
                entry(text, depth + 1, key, value);
            }
            return;
        }
        Value::String(word) if is_plain(word) => word.clone(),
        value => value.to_string(),
    };
    text.extend([indent.as_str(), &name, ": ", &line, "\n"]);
}

/// Whether a word needs no quotes: no number, and none that YAML reads as something else.
fn is_plain(word: &str) -> bool {
    let special = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
        && !special.contains(&word.to_ascii_lowercase().as_str())
}

/// A value in one line, for a table.
pub fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_edited_as_yaml() {
        let mapping: BTreeMap<String, Value> = serde_json::from_value(serde_json::json!({
            "archives": 5,
            "database": {"host": "db.example.org", "empty": {}, "odd name": "no"},
            "checks": [{"http": {"path": "/"}}],
        }))
        .expect("a mapping");
        assert_eq!(
            yaml(&mapping),
            "archives: 5\n\
             checks: [{\"http\":{\"path\":\"/\"}}]\n\
             database:\n  empty: {}\n  host: db.example.org\n  \"odd name\": \"no\"\n"
        );
    }
}
