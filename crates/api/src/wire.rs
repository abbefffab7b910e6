//! An operation as a request: the other way round of what a door does.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::operation::{Method, Operation, Place};

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct Wire {
    /// Its method.
    pub method: Method,
    /// Path and query, without the prefix of a door.
    pub target: String,
    /// The header `If-Match`.
    pub if_match: Option<String>,
    /// What is sent as JSON.
    pub body: Option<Value>,
}

/// The request of an operation.
pub fn wire<O: Operation>(operation: &O) -> Wire {
    let meta = O::META.plain();
    let (mut target, mut query) = (meta.path.to_owned(), form_urlencoded::Serializer::new(String::new()));
    let (mut if_match, mut body) = (None, Map::new());
    let Ok(Value::Object(fields)) = serde_json::to_value(operation) else {
        unreachable!("an operation is a plain struct: the list's test holds it");
    };
    for (name, value) in fields {
        match (meta.place(&name), value) {
            (_, Value::Null) => {}
            (Place::Path, value) => {
                target =
                    target.replace(&format!("{{{name}}}"), &utf8_percent_encode(&text(&value), SEGMENT).to_string());
            }
            (Place::Query, Value::Array(values)) => {
                query.extend_pairs(values.iter().map(|value| (&name, text(value))));
            }
            (Place::Query, value) => {
                query.append_pair(&name, &text(&value));
            }
            (Place::IfMatch, value) => if_match = Some(format!("\"{}\"", text(&value))),
            (Place::Body, value) => {
                body.insert(name, value);
            }
        }
    }
    let query = query.finish();
    if !query.is_empty() {
        target = format!("{target}?{query}");
    }
    let has_body = matches!(meta.method, Method::Post | Method::Put);
    Wire { method: meta.method, target, if_match, body: has_body.then_some(Value::Object(body)) }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
