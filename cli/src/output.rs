//! What is printed: tables for people, JSON for programs.

use std::io::Write as _;

use futures::StreamExt;
use serde_json::{Map, Value};

use crate::exit::{Exit, Failure};

/// The columns of a list, where not all of them are wanted, by the type of its page; after a dot stands what is within one.
const COLUMNS: &[(&str, &[&str])] = &[
    ("JobPage", &["id", "state", "title", "by", "created_at"]),
    ("AuditPage", &["at", "actor", "door", "action", "subject", "project"]),
    ("GuestPage", &["id", "name", "state", "project", "environment", "node_address"]),
    (
        "TrafficPoint",
        &["at", "requests", "status_2xx", "status_3xx", "status_4xx", "status_5xx", "bytes_out", "p50_ms", "p95_ms"],
    ),
    ("TrafficError", &["at", "status", "took_ms", "cause", "name", "method", "path"]),
    ("NodePage", &["id", "address", "state", "reachability", "free_slots"]),
    ("EnvironmentBackups", &["name", "state", "backup.taken_at", "backup.bytes", "backup.id"]),
    ("EnvironmentRestoring", &["name", "taken_at", "backup", "job"]),
];
/// A cell is cut there.
const WIDEST: usize = 60;

/// Copies a file to standard output as it comes. One that breaks off is a failure: what was printed is a part.
pub async fn copy(response: reqwest::Response) -> Result<Exit, Failure> {
    let (mut bytes, mut out) = (response.bytes_stream(), std::io::stdout().lock());
    while let Some(chunk) = bytes.next().await {
        let chunk =
            chunk.map_err(|_| Failure::new(Exit::Refused, "the file broke off: what was printed is a part of it"))?;
        out.write_all(&chunk)?;
    }
    out.flush()?;
    Ok(Exit::Done)
}

/// Prints an answer of the type of that name.
pub fn print(of: &str, answer: &Value, json: bool) {
    if json {
        println!("{}", serde_json::to_string_pretty(answer).unwrap_or_default());
        return;
    }
    if of == "Traffic" {
        print!("{}", traffic(answer));
        return;
    }
    match answer.get("items").and_then(Value::as_array) {
        Some(items) => {
            print!("{}", table(of, items));
            if let Some(next) = answer.get("next").and_then(Value::as_str) {
                eprintln!("There is more: --cursor {next}");
            }
        }
        None => print!("{}", facts(answer, "")),
    }
}

/// What was counted: its points as a table, all together as facts, and what failed last as another table.
fn traffic(answer: &Value) -> String {
    let list = |name: &str| answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let point = |point: &Value| {
        let at = point.get("at").into_iter().map(|at| ("at".to_owned(), at.clone()));
        let counts = point.get("counts").and_then(Value::as_object).into_iter().flatten();
        Value::Object(at.chain(counts.map(|(name, value)| (name.clone(), value.clone()))).collect())
    };
    let is_busy = |point: &Value| point.get("requests").and_then(Value::as_u64) > Some(0);
    let points: Vec<Value> = list("points").iter().map(point).filter(is_busy).collect();
    let errors = list("errors");
    let mut rest = answer.as_object().cloned().unwrap_or_default();
    rest.retain(|name, _| !["points", "errors"].contains(&name.as_str()));
    let mut text = if points.is_empty() { String::new() } else { table("TrafficPoint", &points) };
    text.push_str(&facts(&Value::Object(rest), ""));
    if !errors.is_empty() {
        text.push_str(&table("TrafficError", &errors));
    }
    text
}

fn table(of: &str, items: &[Value]) -> String {
    let chosen = COLUMNS
        .iter()
        .find(|(page, _)| *page == of)
        .map(|(_, columns)| columns.iter().map(|one| (*one).to_owned()).collect());
    let columns: Vec<String> = chosen.unwrap_or_else(|| plain_columns(items));
    let cell = |item: &Value, column: &String| {
        item.pointer(&format!("/{}", column.replace('.', "/"))).map_or(String::new(), short)
    };
    let mut rows =
        vec![columns.iter().map(|column| column.to_uppercase().replace(['_', '.'], " ")).collect::<Vec<_>>()];
    rows.extend(items.iter().map(|item| columns.iter().map(|column| cell(item, column)).collect()));
    let width =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// What lines have that is no list and no mapping.
fn plain_columns(items: &[Value]) -> Vec<String> {
    let first = items.first().and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    first.into_iter().filter(|(_, value)| !value.is_object() && !value.is_array()).map(|(name, _)| name).collect()
}

fn short(value: &Value) -> String {
    let text = text(value);
    if text.chars().count() <= WIDEST { text } else { text.chars().take(WIDEST - 1).chain(['…']).collect() }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.replace('\n', " "),
        other => other.to_string(),
    }
}

/// `name: value`, a line each, what is within further in.
fn facts(value: &Value, indent: &str) -> String {
    let Value::Object(fields) = value else { return format!("{indent}{}\n", text(value)) };
    let fact = |(name, value): (&String, &Value)| match value {
        Value::Null => String::new(),
        Value::Object(_) => format!("{indent}{name}:\n{}", facts(value, &format!("{indent}  "))),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            let items = items.iter().map(|item| facts(item, &format!("{indent}    ")));
            format!("{indent}{name}:\n{}", items.map(|item| item.replacen("    ", "  - ", 1)).collect::<String>())
        }
        Value::Array(items) => format!("{indent}{name}: {}\n", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        plain => format!("{indent}{name}: {}\n", text(plain)),
    };
    fields.iter().map(fact).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_is_as_wide_as_it_must_be() {
        let items =
            [json!({ "name": "a", "state": "running", "tags": [] }), json!({ "name": "longer", "state": null })];
        assert_eq!(table("", &items), "NAME    STATE\na       running\nlonger\n");
        let backups = [
            json!({ "name": "db", "state": "running", "backup": { "id": "x", "taken_at": "03:00", "bytes": 7 } }),
            json!({ "name": "web", "state": "stopped", "backup": null }),
        ];
        let expected = "NAME  STATE    BACKUP TAKEN AT  BACKUP BYTES  BACKUP ID\n\
                        db    running  03:00            7             x\n\
                        web   stopped\n";
        assert_eq!(table("EnvironmentBackups", &backups), expected);
    }

    #[test]
    fn what_was_counted_is_a_table_without_its_empty_points() {
        let point = |at: &str, requests| json!({ "at": at, "counts": { "requests": requests, "p95_ms": 30 } });
        let answer = json!({
            "points": [point("10:00", 0), point("10:15", 7)], "totals": { "requests": 7 },
            "errors": [{ "at": "10:16", "status": 502, "path": "/a" }],
        });
        let text = traffic(&answer);
        assert!(
            text.contains("10:15  7") && !text.contains("10:00") && text.contains("totals:\n  requests: 7"),
            "{text}"
        );
        assert!(
            text.lines().last().is_some_and(|line| line.starts_with("10:16  502") && line.ends_with("/a")),
            "{text}"
        );
    }

    #[test]
    fn a_thing_is_told_fact_by_fact() {
        let thing =
            json!({ "name": "a", "none": null, "in": { "x": 1 }, "list": [1, 2], "steps": [{ "a": 1, "b": 2 }] });
        assert_eq!(facts(&thing, ""), "in:\n  x: 1\nlist: 1, 2\nname: a\nsteps:\n  - a: 1\n    b: 2\n");
    }
}
