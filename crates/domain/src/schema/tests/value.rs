//! Words, ids, numbers and objects.

use std::fmt::Display;
use std::str::FromStr;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Checked;

fn takes<T: DeserializeOwned>(value: &Value) -> bool {
    serde_json::from_value::<T>(value.clone()).is_ok()
}

/// A type of words: all are taken in text and JSON, no other is.
pub(super) fn words<T: FromStr + Display + DeserializeOwned>(of: &Checked<T>) {
    let words = of.schema["enum"].as_array().unwrap();
    let described = of.schema["description"].as_str().unwrap();
    for value in words {
        let word = value.as_str().unwrap();
        let taken = word.parse::<T>().ok().map(|taken| taken.to_string());
        assert!(taken.as_deref() == Some(word) && takes::<T>(value), "{} refuses {word}", of.name);
        assert!(described.contains(&format!("\n- `{word}`: ")), "{} doesn't say what {word} means", of.name);
    }
    assert!(of.schema["type"] == "string" && !words.is_empty(), "{}", of.name);
    assert!(!takes::<T>(&json!("no such word")), "{}", of.name);
}

/// An id.
pub(super) fn id<T: FromStr + DeserializeOwned>(of: &Checked<T>) {
    assert_eq!((&of.schema["type"], &of.schema["format"]), (&json!("string"), &json!("uuid")), "{}", of.name);
    let example = &of.schema["examples"][0];
    assert!(takes::<T>(example) && example.as_str().unwrap().parse::<T>().is_ok(), "{}", of.name);
    assert!(!takes::<T>(&json!("1")) && !takes::<T>(&json!(1)), "{}", of.name);
}

/// A number: its bounds are taken, what lies beyond them is not.
pub(super) fn number<T: DeserializeOwned + Serialize>(of: &Checked<T>) {
    assert_eq!(of.schema["type"], "integer", "{}", of.name);
    let whole = |key: &str| of.schema[key].as_u64().map(i128::from);
    let (min, max, step) = (whole("minimum").unwrap(), whole("maximum").unwrap(), whole("multipleOf").unwrap_or(1));
    for (number, allowed) in
        [(min - 1, false), (min, true), (min + step, true), (max - step, true), (max, true), (max + 1, false)]
    {
        let taken = serde_json::from_str::<T>(&number.to_string()).ok();
        assert_eq!(taken.is_some(), allowed, "{}: {number}", of.name);
        let shown = taken.map(|taken| serde_json::to_string(&taken).unwrap());
        assert!(shown.is_none_or(|shown| shown == number.to_string()), "{}: {number}", of.name);
    }
}

/// An object of a request: a field that it hasn't is refused.
pub(super) fn closed_object<T: DeserializeOwned>(of: &Checked<T>) {
    assert_eq!(of.schema["additionalProperties"], false, "{}", of.name);
    let mut one: serde_json::Map<String, Value> = serde_json::Map::new();
    one.insert("no_such_field".to_owned(), json!(1));
    let refused = serde_json::from_value::<T>(Value::Object(one)).err().unwrap();
    assert!(refused.to_string().starts_with("unknown field"), "{}: {refused}", of.name);
    object(of);
}

/// An object: what its fields may be stands on their types only, since serde holds nothing else.
pub(super) fn object<T>(of: &Checked<T>) {
    let fields = of.schema["properties"].as_object().unwrap();
    assert!(!fields.is_empty(), "{}", of.name);
    for (field, schema) in fields {
        for bound in ["maximum", "maxLength", "maxItems", "pattern", "enum"] {
            assert!(schema.get(bound).is_none(), "{}.{field} has {bound}", of.name);
        }
    }
}
