//! The JSON API's addresses: every GET of the server's own description. Ids in a path are those of the
//! same things that the pages are asked for; what has another parameter that must be given is left out, by name.

use serde_json::Value;

use crate::addresses::{Address, Sees, Things};

/// Where a server says what its JSON API has.
pub const DOCUMENT: &str = "/api/v1/openapi.json";

/// What goes on for minutes is no answer that can be measured.
const ENDLESS: &str = "/access/events";

/// What is asked for of a document, and the paths that are left out.
pub fn addresses(document: &Value, things: &Things) -> (Vec<Address>, Vec<String>) {
    let (mut found, mut left_out) = (Vec::new(), Vec::new());
    let base = document.pointer("/servers/0/url").and_then(Value::as_str).filter(|url| url.starts_with('/'));
    let base = base.unwrap_or_default().trim_end_matches('/');
    let paths = document.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten().filter(|(_, item)| item.get("get").is_some()) {
        match filled(document, path, item, things).filter(|_| !path.ends_with(ENDLESS)) {
            Some(filled) => {
                // A list ends with what it is a list of.
                let list = !path.ends_with('}');
                found.push(Address { name: path.clone(), path: format!("{base}{filled}"), sees: Sees::Everyone, list });
            }
            None => left_out.push(path.clone()),
        }
    }
    (found, left_out)
}

/// The path with its parameters; none when one of them is not known.
fn filled(document: &Value, path: &str, item: &Value, things: &Things) -> Option<String> {
    let parameters: Vec<&Value> = [item.get("parameters"), item.pointer("/get/parameters")]
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .flatten()
        .map(|one| resolved(document, one))
        .collect();
    let must = |one: &&&Value| {
        one.get("in").is_some_and(|place| place == "query") && one.get("required") == Some(&Value::Bool(true))
    };
    if parameters.iter().any(|one| must(&one)) {
        return None;
    }
    let mut before = "";
    let mut parts = Vec::new();
    for part in path.split('/') {
        let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        match name {
            None => parts.push(part.to_owned()),
            Some(name) => {
                let described = parameters.iter().find(|one| one.get("name").is_some_and(|known| known == name));
                let schema = described.and_then(|one| one.get("schema")).map(|schema| resolved(document, schema));
                let is_id = schema.and_then(|schema| schema.get("format")).is_some_and(|format| format == "uuid");
                parts.push(thing(before, is_id, things)?);
            }
        }
        before = part;
    }
    Some(parts.join("/"))
}

/// What is meant by a parameter after this part of a path.
fn thing(before: &str, is_id: bool, things: &Things) -> Option<String> {
    let word = match (before, is_id) {
        ("projects", false) => return Some("project2".to_owned()),
        ("environments", false) => return Some("dev".to_owned()),
        ("projects", true) => "project",
        ("nodes", _) => "node",
        ("guests", _) => "guest",
        ("deployments", true) => "deployment id",
        ("deployments", false) => "deployment",
        ("zones", _) => "zone",
        ("names", _) => "name",
        ("name-claims", _) => "name claim",
        ("jobs", _) => "job",
        _ => return None,
    };
    things.get(word).map(str::to_owned)
}

/// What a reference leads to within the document.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let reference = value.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    reference.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_get_is_asked_for_or_named() {
        let things = Things::of(&[("guest", "7"), ("project", "9"), ("deployment", "3")]);
        let id = json!({ "name": "id", "in": "path", "schema": { "$ref": "#/components/schemas/Id" } });
        let document = json!({
            "servers": [{ "url": "/api/v1" }],
            "paths": {
                "/guests": { "get": {}, "post": {} },
                "/guests/{id}": { "get": { "parameters": [id] } },
                "/guests/{id}/start": { "post": {} },
                "/projects/{id}": { "parameters": [id], "get": {} },
                "/projects/{name}/deployments/{number}": { "get": {} },
                "/search": { "get": { "parameters": [{ "name": "q", "in": "query", "required": true }] } },
                "/projects/{name}/environments/{environment}/access/events": { "get": {} },
                "/whatever/{id}": { "get": {} },
            },
            "components": { "schemas": { "Id": { "type": "string", "format": "uuid" } } },
        });
        let (found, left_out) = addresses(&document, &things);
        let paths: Vec<_> = found.iter().map(|one| (one.path.as_str(), one.list)).collect();
        let wanted = [
            ("/api/v1/guests", true),
            ("/api/v1/guests/7", false),
            ("/api/v1/projects/9", false),
            ("/api/v1/projects/project2/deployments/3", false),
        ];
        assert_eq!(paths, wanted);
        let events = "/projects/{name}/environments/{environment}/access/events";
        assert_eq!(left_out, [events, "/search", "/whatever/{id}"]);
    }
}
