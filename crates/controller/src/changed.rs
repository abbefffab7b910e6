//! What is told to a person whose change came too late: who changed the same thing meanwhile, and what of it.
//!
//! Nothing is kept for it but the audit, which has each change with its time and who made it.

use std::collections::BTreeSet;
use std::fmt::Display;

use chrono::{DateTime, TimeDelta, Utc};
use corpus_api::Version;
use corpus_domain::{Environment, ProjectId, shown_actor};
use corpus_protocol::Mapping;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Error;
use crate::store::audit::{self, Done};

/// As many changes of a thing are looked back through, and as many of its keys are named.
const FEW: usize = 20;
/// What a person can do about it.
const NEXT: &str = "What you typed is kept here. Look at what is there now, and send it again.";

/// The same of what was to be undone: there is nothing that was typed.
pub fn nothing_undone(error: Error) -> Error {
    match error {
        Error::Changed(told) => Error::Changed(told.replace(NEXT, "So nothing was undone.")),
        other => other,
    }
}

/// Who made the last change of a thing, and what it was, which `told` reads from what the audit has of it.
pub async fn by_others(
    conn: &mut PgConnection,
    action: &'static str,
    subject: Uuid,
    told: impl FnOnce(&Value) -> Option<String>,
) -> Error {
    match audit::of(conn, action, subject, 1).await {
        Ok(done) => Error::Changed(match done.first() {
            Some(last) => {
                let what = told(&last.detail).map(|what| format!(": {what}")).unwrap_or_default();
                format!("Changed by {} {}{what}. {NEXT}", who([last]), ago(last.at))
            }
            None => format!("Changed meanwhile. {NEXT}"),
        }),
        Err(error) => error.into(),
    }
}

/// A part of what the audit has of a change.
pub fn read<T: DeserializeOwned>(detail: &Value, part: &str) -> Option<T> {
    T::deserialize(detail.get(part)?).ok()
}

/// What became of each part that was changed; none when none was.
pub fn parts<T: PartialEq + Display>(parts: impl IntoIterator<Item = (&'static str, T, T)>) -> Option<String> {
    let changed = parts.into_iter().filter(|(_, was, is)| was != is);
    let changed: Vec<String> = changed.map(|(name, was, is)| format!("{name} was {was} and is {is}")).collect();
    (!changed.is_empty()).then(|| changed.join(", "))
}

/// Who changed the settings of an environment since they were as `seen`, and which keys.
pub async fn settings(
    conn: &mut PgConnection,
    (project, environment): (ProjectId, Environment),
    seen: &Version,
    now: &Mapping,
) -> Error {
    let done = match audit::of(conn, "environment.configure", project.0, 4 * FEW).await {
        Ok(done) => done,
        Err(error) => return error.into(),
    };
    let of_it = |done: &&Done| done.detail.get("environment").and_then(Value::as_str) == Some(environment.as_str());
    let history: Vec<(&Done, Mapping)> = done.iter().filter(of_it).map(|done| (done, set_by(done))).collect();
    let since: Vec<&Done> =
        history.iter().take_while(|(_, set)| Version::of(set) != *seen).map(|(done, _)| *done).collect();
    let Some(last) = since.first() else { return Error::Changed(format!("Changed meanwhile. {NEXT}")) };
    let before = history.get(since.len()).map(|(_, set)| set.clone()).unwrap_or_default();
    Error::Changed(format!(
        "Changed by {} {}: {}. {NEXT}",
        who(since.iter().copied()),
        ago(last.at),
        told(&before, now)
    ))
}

fn set_by(done: &Done) -> Mapping {
    done.detail.get("settings").and_then(|set| serde_json::from_value(set.clone()).ok()).unwrap_or_default()
}

fn who<'a>(done: impl IntoIterator<Item = &'a Done>) -> String {
    let people: BTreeSet<String> = done.into_iter().map(|done| shown_actor(&done.actor)).collect();
    people.into_iter().collect::<Vec<_>>().join(" and ")
}

/// Which keys are not what they were.
fn told(before: &Mapping, now: &Mapping) -> String {
    let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let changed = keys.into_iter().filter_map(|key| match (before.get(key), now.get(key)) {
        (was, is) if was == is => None,
        (Some(_), None) => Some(format!("{key} is not set any more")),
        (None, Some(is)) => Some(format!("{key} is {}", short(is))),
        (was, is) => Some(format!("{key} was {} and is {}", short(was?), short(is?))),
    });
    let changed: Vec<String> = changed.take(FEW).collect();
    if changed.is_empty() { "and changed it back".to_owned() } else { changed.join(", ") }
}

/// A value in few words: what is nested is looked at below.
fn short(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => "another one".to_owned(),
        Value::String(text) => text.chars().take(60).collect(),
        value => value.to_string(),
    }
}

fn ago(at: DateTime<Utc>) -> String {
    let past: TimeDelta = Utc::now() - at;
    match (past.num_seconds(), past.num_minutes(), past.num_hours()) {
        (..60, ..) => "less than a minute ago".to_owned(),
        (_, 1, _) => "a minute ago".to_owned(),
        (_, minutes @ ..120, _) => format!("{minutes} minutes ago"),
        (.., hours @ ..48) => format!("{hours} hours ago"),
        _ => format!("{} days ago", past.num_days()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mapping(value: Value) -> Mapping {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_keys_that_changed_are_named() {
        let before = mapping(json!({ "archives": 3, "user": "www-data", "same": 1, "checks": [] }));
        let now = mapping(json!({ "archives": 5, "same": 1, "checks": [1], "hosts": ["a"] }));
        assert_eq!(
            told(&before, &now),
            "archives was 3 and is 5, checks was another one and is another one, hosts is another one, user is not set any more"
        );
        assert_eq!(told(&now, &now), "and changed it back");
        assert_eq!(ago(Utc::now() - TimeDelta::seconds(70)), "a minute ago");
    }
}
