//! Mappings of any depth: how one is laid over another, where each leaf comes from, which are secret.

use std::collections::BTreeMap;

use corpus_domain::Origin;
use serde_json::Value;

/// A shorter secret would black out too much that is none.
const MIN_SECRET: usize = 4;
const SECRET_WORDS: [&str; 5] = ["password", "secret", "token", "key", "dsn"];

/// Whether values below this key are secrets.
pub fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| key.contains(word))
}

/// Lays a value over another; mappings are merged, anything else is replaced.
pub fn merge(below: &mut Value, above: Value, path: &str, origin: Origin, origins: &mut BTreeMap<String, Origin>) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) if !above.is_empty() => {
            if below.is_empty() {
                origins.remove(path);
            }
            for (key, value) in above {
                let path = format!("{path}.{key}");
                if let Some(below) = below.get_mut(&key) {
                    merge(below, value, &path, origin, origins);
                } else {
                    mark(&value, &path, origin, origins);
                    below.insert(key, value);
                }
            }
        }
        (below, above) => {
            let inner = format!("{path}.");
            origins.retain(|key, _| key != path && !key.starts_with(&inner));
            mark(&above, path, origin, origins);
            *below = above;
        }
    }
}

/// Records the origin of each leaf.
pub fn mark(value: &Value, path: &str, origin: Origin, origins: &mut BTreeMap<String, Origin>) {
    walk(&mut vec![path], value, &mut |path, _| {
        origins.insert(path.join("."), origin);
    });
}

/// Tells each leaf below: what is no mapping, or an empty one.
pub fn walk<'a>(path: &mut Vec<&'a str>, value: &'a Value, tell: &mut dyn FnMut(&[&str], &Value)) {
    match value {
        Value::Object(mapping) if !mapping.is_empty() => {
            for (key, value) in mapping {
                path.push(key);
                walk(path, value, tell);
                path.pop();
            }
        }
        leaf => tell(path, leaf),
    }
}

/// The texts of a secret; each line of one that has several.
pub fn texts(value: &Value, secrets: &mut Vec<String>) {
    let mut add = |text: &str| {
        let lines = text.lines().map(str::trim);
        secrets.extend(lines.filter(|line| line.len() >= MIN_SECRET).map(str::to_owned));
    };
    match value {
        Value::String(text) => add(text),
        Value::Number(number) => add(&number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| texts(value, secrets)),
        Value::Object(values) => values.values().for_each(|value| texts(value, secrets)),
        Value::Null | Value::Bool(_) => {}
    }
}
