//! The API, to read: what the description says, as pages of ours.
//!
//! The description (`/api/v1/openapi.json`) is for programs. A person who writes a Jenkins job needs the
//! list of operations, and of one of them its fields, its answers and a request to copy. That is read from
//! the same description here, so it can't say something else.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use leptos::prelude::*;
use serde_json::Value;

use crate::components::{card, copied, head};
use crate::form::{Failure, Result};
use crate::layout::Page;

/// Where the API begins.
const PREFIX: &str = "/api/v1";

static DESCRIPTION: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(corpus_api::openapi::openapi(PREFIX)).unwrap_or_default());

/// An operation, as it is described.
struct Described {
    method: String,
    path: &'static str,
    about: &'static Value,
}

impl Described {
    fn id(&self) -> &'static str {
        text(self.about, "operationId")
    }
}

fn text(of: &'static Value, key: &str) -> &'static str {
    of.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn all() -> impl Iterator<Item = Described> {
    let paths = DESCRIPTION.get("paths").and_then(Value::as_object).into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, about)| Described { method: method.to_uppercase(), path, about })
    })
}

/// The list of all operations.
pub fn load() -> Page {
    let mut groups: BTreeMap<&str, Vec<Described>> = BTreeMap::new();
    for one in all() {
        let tag = one.about.pointer("/tags/0").and_then(Value::as_str).unwrap_or_default();
        groups.entry(tag).or_default().push(one);
    }
    let groups = groups.into_iter().map(|(tag, mut operations)| {
        operations.sort_by_key(|one| (one.path, one.method.clone()));
        let rows = operations.iter().map(row).collect_view();
        view! {
            <section class="card" aria-label=tag>
                <header><h2>{tag}</h2></header>
                <table class="rows" aria-label=tag>
                    <thead><tr><th>"Operation"</th><th>"Request"</th><th>"What it does"</th></tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </section>
        }
    });
    let about = DESCRIPTION
        .get("info")
        .map_or("", |info| text(info, "description"))
        .split("\n\n")
        .map(paragraph)
        .collect_view();
    let file = view! { <a class="btn" href=format!("{PREFIX}/openapi.json")>"OpenAPI"</a> };
    let below = view! { <span class="quiet">"Everything that the pages can do, for programs"</span> };
    let body = view! {
        {head("API".into_any(), below.into_any(), file.into_any())}
        <section class="card" aria-label="About"><div class="body prose">{about}</div></section>
        <div class="stack">{groups.collect_view()}</div>
    };
    Page::new("api", "API", body.into_any())
}

fn row(one: &Described) -> AnyView {
    view! {
        <tr>
            <td data-label="Operation"><a href=format!("/api/{}", one.id())>{one.id()}</a></td>
            <td data-label="Request" class="wrap"><code>{format!("{} {}", one.method, one.path)}</code></td>
            <td data-label="What it does" class="wrap quiet">{text(one.about, "summary")}</td>
        </tr>
    }
    .into_any()
}

/// A paragraph of the description: bold words between pairs of stars, code between backticks.
fn paragraph(text: &'static str) -> AnyView {
    let marked = |part: &'static str, at: usize| match at % 2 {
        0 => part.into_any(),
        _ => view! { <code>{part}</code> }.into_any(),
    };
    let code = |text: &'static str| text.split('`').enumerate().map(|(at, part)| marked(part, at)).collect_view();
    let bold = text.split("**").enumerate().map(|(at, part)| match at % 2 {
        0 => code(part).into_any(),
        _ => view! { <b>{code(part)}</b> }.into_any(),
    });
    view! { <p>{bold.collect_view()}</p> }.into_any()
}

/// One operation.
pub fn load_one(id: &str) -> Result<Page> {
    let message = || "The API has no such operation.".to_owned();
    let none = || Failure { status: 404, title: "Not found".to_owned(), message: message() };
    let one = all().find(|one| one.id() == id).ok_or_else(none)?;
    let about = text(one.about, "description").split("\n\n").map(paragraph).collect_view();
    let below = view! { <code>{format!("{} {PREFIX}{}", one.method, one.path)}</code> };
    let fields = fields(&one);
    let ask = (!fields.is_empty()).then(|| card("fields", "What is asked", ().into_any(), table(fields)));
    let body = view! {
        {head(one.id().into_any(), below.into_any(), ().into_any())}
        <div class="stack">
            <section class="card" aria-label="About"><div class="body prose">{about}</div></section>
            {ask}
            {card("answers", "What comes back", ().into_any(), answers(&one))}
            {card("example", "A request to copy", ().into_any(), view! { <div class="body">{copied("curl", "the request", example(&one))}</div> }.into_any())}
        </div>
    };
    Ok(Page::new("api-operation", one.id(), body.into_any()).under("API", "/api"))
}

/// A field, where it travels, what it takes and what is said of it.
struct Field {
    name: &'static str,
    place: &'static str,
    needed: bool,
    schema: &'static Value,
}

fn fields(one: &Described) -> Vec<Field> {
    let parameters = one.about.get("parameters").and_then(Value::as_array).into_iter().flatten();
    let parameters = parameters.map(|parameter| Field {
        name: text(parameter, "name"),
        place: text(parameter, "in"),
        needed: parameter.get("required").and_then(Value::as_bool).unwrap_or_default(),
        schema: parameter.get("schema").unwrap_or(&Value::Null),
    });
    let body = one.about.pointer("/requestBody/content/application~1json/schema").map(resolved);
    let body = body.map(|body| members(body, "body")).unwrap_or_default();
    parameters.chain(body).collect()
}

/// The members of an object.
fn members(object: &'static Value, place: &'static str) -> Vec<Field> {
    let needed = object.get("required").and_then(Value::as_array);
    let needed = |name: &str| needed.is_some_and(|all| all.iter().any(|one| one == name));
    let all = object.get("properties").and_then(Value::as_object).into_iter().flatten();
    all.map(|(name, schema)| Field { name, place, needed: needed(name), schema }).collect()
}

/// What a schema refers to.
fn resolved(schema: &'static Value) -> &'static Value {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix('#'));
    name.and_then(|pointer| DESCRIPTION.pointer(pointer)).unwrap_or(schema)
}

/// A schema without the possibility of null.
fn plain(schema: &'static Value) -> &'static Value {
    let some = schema
        .get("oneOf")
        .and_then(Value::as_array)
        .and_then(|all| all.iter().find(|one| text(one, "type") != "null"));
    resolved(some.unwrap_or(schema))
}

/// What a value looks like, in a few words.
fn kind(schema: &'static Value) -> String {
    let found = plain(schema);
    if let Some(words) = found.get("enum").and_then(Value::as_array) {
        return words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | ");
    }
    let of = match found.get("type") {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).find(|one| *one != "null").unwrap_or_default(),
        Some(Value::String(one)) => one,
        _ => "",
    };
    let format = text(found, "format");
    match of {
        "array" => format!("list of {}", found.get("items").map(kind).unwrap_or_default()),
        "integer" => match (found.get("minimum"), found.get("maximum")) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            _ => "whole number".to_owned(),
        },
        _ if !format.is_empty() => format.to_owned(),
        other => other.to_owned(),
    }
}

fn said(schema: &'static Value) -> &'static str {
    match text(schema, "description") {
        "" => text(plain(schema), "description"),
        own => own,
    }
}

fn table(fields: Vec<Field>) -> AnyView {
    let row = |field: Field| {
        let needed = if field.needed { "needed" } else { "" };
        view! {
            <tr>
                <td data-label="Field"><code>{field.name}</code></td>
                <td data-label="Where" class="quiet">{field.place}</td>
                <td data-label="Takes" class="wrap">{kind(field.schema)}</td>
                <td data-label="" class="quiet">{needed}</td>
                <td data-label="What it is" class="wrap quiet">{said(field.schema)}</td>
            </tr>
        }
    };
    let rows = fields.into_iter().map(row).collect_view();
    view! {
        <table class="rows" aria-label="Fields">
            <thead><tr><th>"Field"</th><th>"Where"</th><th>"Takes"</th><th><span class="sr">"Needed"</span></th><th>"What it is"</th></tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn answers(one: &Described) -> AnyView {
    let all = one.about.get("responses").and_then(Value::as_object).into_iter().flatten();
    let (good, bad): (Vec<_>, Vec<_>) = all.partition(|(status, _)| status.starts_with('2'));
    let good = good.into_iter().map(|(status, answer)| {
        let content = answer.get("content").and_then(Value::as_object).and_then(|all| all.values().next());
        let schema = content.and_then(|content| content.get("schema")).map(resolved);
        let members = schema.map(|schema| members(schema, "")).unwrap_or_default();
        view! {
            <div class="body"><b>{status.clone()}</b>" "{text(answer, "description")}</div>
            {(!members.is_empty()).then(|| table(members))}
        }
    });
    let bad = bad
        .into_iter()
        .map(|(status, answer)| view! { <li><b>{status.clone()}</b>" "{text(answer, "description")}</li> });
    view! { {good.collect_view()}<div class="body"><p class="quiet">"Or a problem (RFC 9457):"</p><ul class="plain">{bad.collect_view()}</ul></div> }
        .into_any()
}

/// A request with curl; what is to be filled in stands in capitals.
fn example(one: &Described) -> String {
    let fields = fields(one);
    let path = one.path.replace('{', "$").replace('}', "").to_uppercase();
    let path: String = one
        .path
        .split('/')
        .zip(path.split('/'))
        .map(|(part, loud)| if part.starts_with('{') { loud } else { part })
        .collect::<Vec<_>>()
        .join("/");
    let mut words = vec![format!("curl -H \"Authorization: Bearer $TOKEN\" -X {}", one.method)];
    for header in fields.iter().filter(|field| field.place == "header" && field.needed) {
        words.push(format!("-H '{}: \"VERSION\"'", header.name));
    }
    let body: Vec<String> = fields
        .iter()
        .filter(|field| field.place == "body" && field.needed)
        .map(|field| format!("\"{}\": …", field.name))
        .collect();
    if fields.iter().any(|field| field.place == "body") {
        words.push(format!("-H 'Content-Type: application/json' -d '{{{}}}'", body.join(", ")));
    }
    words.push(format!("\"$CORPUS{PREFIX}{path}\""));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_page() {
        let mut seen = 0;
        for one in all() {
            assert!(load_one(one.id()).is_ok(), "{}", one.id());
            assert!(
                fields(&one).iter().all(|field| !kind(field.schema).is_empty()),
                "{}: a field takes nothing",
                one.id()
            );
            seen += 1;
        }
        assert!(seen > 5, "{seen}");
        assert!(load_one("nothing").is_err());
    }

    #[test]
    fn a_request_to_copy() {
        let one = all().find(|one| one.id() == "abandon_job").unwrap();
        let asked = "curl -H \"Authorization: Bearer $TOKEN\" -X POST -H 'Content-Type: application/json' -d '{\"comment\": …}' \"$CORPUS/api/v1/jobs/$JOB/abandon\"";
        assert_eq!(example(&one), asked);
    }
}
