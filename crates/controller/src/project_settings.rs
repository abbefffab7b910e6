//! What is set for an environment at Corpus: a mapping that overrides the project's defaults,
//! and is overridden by the pillar.
//!
//! The keys of Corpus itself must be what they are for, so that a mistake shows at the form and
//! not in a deployment. No secret is taken: what is set here is kept and shown as it is.

use std::collections::BTreeMap;

use corpus_domain::{DnsName, Phase, SizeProfile, UnixUser};
use corpus_protocol::Mapping;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The longest text, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// The deepest nesting.
const MAX_DEPTH: usize = 16;
/// The longest that a phase or a check may be given, in seconds.
const MAX_SECONDS: u64 = 86_400;
/// Facts of the guest, which nobody sets.
const FACTS: [&str; 8] =
    ["api_version", "name", "environment", "root", "project_root", "pillar_root", "data", "ssh_identity"];
const SECRETS: [&str; 5] = ["password", "secret", "token", "key", "dsn"];

/// What an environment that says nothing lets its guests' storage grow to by itself: 20 GB.
const STORAGE_LIMIT: SizeProfile = SizeProfile::Large;

/// The largest size that a guest of the environment gets because its deployment tells that it needs it.
pub fn storage_limit(settings: &Mapping) -> SizeProfile {
    let set = settings.get("storage_limit").and_then(|value| SizeProfile::deserialize(value).ok());
    set.unwrap_or(STORAGE_LIMIT)
}

/// Reads a YAML or JSON mapping. The error is for the person who typed it.
pub fn parse(text: &str) -> Result<Mapping, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("The settings are longer than {} KiB.", MAX_BYTES >> 10));
    }
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    let value: Value = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location().map(|at| format!(" in line {}, column {}", at.line(), at.column()));
        format!("This is neither YAML nor JSON{}.", place.unwrap_or_default())
    })?;
    let mapping: Mapping = match value {
        Value::Null => Mapping::new(),
        Value::Object(mapping) => mapping.into_iter().collect(),
        _ => return Err("The settings are a mapping: lines of `key: value`.".to_owned()),
    };
    for (key, value) in &mapping {
        plain(key, value, 1)?;
        known(key, value)?;
    }
    Ok(mapping)
}

/// Whether a text gives a value to what is called like a secret, read or not: `api_key: x`, `{"password": 1}`, `DSN=x`.
pub fn tells_secret(text: &str) -> bool {
    let mut before: Vec<&str> = text.split([':', '=']).collect();
    before.pop();
    let name = |text: &str| {
        let text = text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
        text.rsplit(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-')).next().map(str::to_owned)
    };
    before.into_iter().filter_map(name).any(|name| secret_word(&name).is_some())
}

/// The word by which a key is that of a secret.
fn secret_word(key: &str) -> Option<&'static str> {
    let key = key.to_ascii_lowercase();
    SECRETS.into_iter().find(|word| key.contains(word))
}

/// Nothing is nested too deeply, and nothing is a secret.
fn plain(path: &str, value: &Value, depth: usize) -> Result<(), String> {
    if let Some(word) = secret_word(path.rsplit('.').next().unwrap_or_default()) {
        return Err(format!(
            "{path} looks like a secret ({word}), and settings are kept and shown as they are. Put it into the pillar."
        ));
    }
    if depth > MAX_DEPTH {
        return Err(format!("{path} is nested more than {MAX_DEPTH} deep."));
    }
    match value {
        Value::Object(inner) => {
            inner.iter().try_for_each(|(key, value)| plain(&format!("{path}.{key}"), value, depth + 1))
        }
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(at, value)| plain(&format!("{path}.{at}"), value, depth + 1))
        }
        _ => Ok(()),
    }
}

/// A key that means something to Corpus is what it should be.
fn known(key: &str, value: &Value) -> Result<(), String> {
    match key {
        fact if FACTS.contains(&fact) => Err(format!("{fact} is a fact of the guest; it can't be set.")),
        "user" => typed::<UnixUser>(key, value, "the name of an account").map(drop),
        "hosts" => typed::<Vec<DnsName>>(key, value, "a list of DNS names").map(drop),
        "branches" => {
            let branches = typed::<Vec<String>>(key, value, "a list of branches")?;
            let good = !branches.is_empty() && branches.iter().all(|branch| is_branch(branch));
            good.then_some(()).ok_or_else(|| "branches is a list of names of branches, with one at least.".to_owned())
        }
        "archives" => typed::<u64>(key, value, "a number from 0 to 100").and_then(|number| {
            (number <= 100).then_some(()).ok_or_else(|| "archives is a number from 0 to 100.".to_owned())
        }),
        "access" => typed::<BTreeMap<String, Vec<UnixUser>>>(key, value, "lists of accounts, read and write").and_then(
            |lists| {
                let known = lists.keys().all(|one| ["read", "write"].contains(&one.as_str()));
                known.then_some(()).ok_or_else(|| "access has the lists read and write, and no others.".to_owned())
            },
        ),
        "salt_roots" => typed::<Vec<String>>(key, value, "a list of folders").map(drop),
        "limits" => limits(value),
        "storage_limit" => typed::<SizeProfile>(key, value, "a size, such as large").map(drop),
        "checks" => typed::<Vec<Check>>(key, value, "a list, each with one of http, tcp, command")?
            .iter()
            .try_for_each(Check::is_one),
        _ => Ok(()),
    }
}

fn typed<T: DeserializeOwned>(key: &str, value: &Value, what: &str) -> Result<T, String> {
    T::deserialize(value).map_err(|error| match value {
        // Of what has parts, the error says which.
        Value::Array(_) | Value::Object(_) => format!("{key} is {what}: {error}."),
        _ => format!("{key} is {what}, and {} is not.", said(value)),
    })
}

/// A value as the person typed it, at most 80 characters of it.
fn said(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => format!("“{}”", text.chars().take(80).collect::<String>()),
        other => other.to_string(),
    }
}

fn is_branch(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/".contains(&b);
    (1..=100).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with(['-', '/', '.'])
        && !name.contains("..")
}

fn limits(value: &Value) -> Result<(), String> {
    let what = "a mapping of phases to seconds";
    for (phase, seconds) in typed::<BTreeMap<String, Value>>("limits", value, what)? {
        phase.parse::<Phase>().map_err(|error| format!("limits: {error}."))?;
        if !seconds.as_u64().is_some_and(|seconds| (1..=MAX_SECONDS).contains(&seconds)) {
            return Err(format!("limits.{phase} is a number of seconds from 1 to {MAX_SECONDS}."));
        }
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    http: Option<Http>,
    tcp: Option<u16>,
    command: Option<Vec<String>>,
    within: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Http {
    path: String,
    status: Option<u16>,
    #[serde(rename = "contains")]
    _contains: Option<String>,
    #[serde(rename = "host")]
    _host: Option<DnsName>,
}

impl Check {
    fn is_one(&self) -> Result<(), String> {
        let kinds = [self.http.is_some(), self.tcp.is_some(), self.command.is_some()];
        if kinds.iter().filter(|is| **is).count() != 1 {
            return Err("Each of checks has one of http, tcp, command.".to_owned());
        }
        if let Some(http) = &self.http {
            if !http.path.starts_with('/') {
                return Err(format!("checks: the path {:?} begins with /.", http.path));
            }
            if http.status.is_some_and(|status| !(100..=599).contains(&status)) {
                return Err("checks: an HTTP status is a number from 100 to 599.".to_owned());
            }
        }
        if self.tcp == Some(0) || self.command.as_ref().is_some_and(Vec::is_empty) {
            return Err("checks: a port is 1 to 65535, a command has a program at least.".to_owned());
        }
        if self.within.is_some_and(|within| !(1..=MAX_SECONDS).contains(&within)) {
            return Err(format!("checks: within is a number of seconds from 1 to {MAX_SECONDS}."));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_a_project_may_want() {
        for good in [
            "",
            "# nothing",
            "{}",
            "{\"archives\": 3, \"limits\": {\"install\": 60}}",
            "branches: [main, release/1.0]\nuser: www-data\nhosts: [www.example.org]",
            "checks:\n- http: {path: /health, status: 200, contains: ok, host: www.example.org}\n  within: 5\n- tcp: 80\n\
             - command: [/bin/true, x]",
            "database:\n  host: db\n  port: 5432",
        ] {
            parse(good).unwrap_or_else(|error| panic!("{good}: {error}"));
        }
    }

    #[test]
    fn a_secret_is_seen_in_what_can_not_be_read() {
        for told in ["a: [\n  API_KEY : x", "{\"db\": {\"password\": \"x\"", "export DSN=x", "'auth-token': x"] {
            assert!(tells_secret(told), "{told}");
        }
        for none in ["", "password", "archives: 3", "user: key", "- tcp: 80\n# the token", "name = x"] {
            assert!(!tells_secret(none), "{none}");
        }
    }

    #[test]
    fn refuses_what_is_wrong_and_says_where() {
        for (bad, why) in [
            ("a: [", "neither YAML nor JSON"),
            ("- a", "a mapping"),
            ("just text", "a mapping"),
            ("archives: many", "a number from 0 to 100, and “many” is not"),
            ("archives: 101", "0 to 100"),
            ("archives: -1", "archives"),
            ("branches: main", "branches"),
            ("branches: []", "branches"),
            ("branches: ['../x']", "branches"),
            ("branches: ['-x']", "branches"),
            ("user: '0; rm'", "user"),
            ("hosts: [nodots]", "hosts"),
            ("limits: {instal: 3}", "phase"),
            ("limits: {install: 0}", "limits.install"),
            ("limits: {install: many}", "limits.install is a number of seconds"),
            ("limits: {install: 999999}", "limits.install"),
            ("checks: [{}]", "one of http"),
            ("checks: [{tcp: 80, command: [x]}]", "one of http"),
            ("checks: [{tcp: 0}]", "1 to 65535"),
            ("checks: [{tcp: 80, within: 0}]", "within"),
            ("checks: [{http: {path: health}}]", "begins with /"),
            ("checks: [{http: {path: /, status: 1000}}]", "status"),
            ("checks: [{http: {path: /, stats: 200}}]", "stats"),
            ("root: /", "fact"),
            ("name: other", "fact"),
            ("database: {password: hush}", "pillar"),
            ("list: [{API_KEY: x}]", "pillar"),
        ] {
            let error = parse(bad).expect_err(bad);
            assert!(error.contains(why), "{bad}: {error}");
        }
        assert!(parse(&"a".repeat(MAX_BYTES + 1)).is_err());
        let deep = format!("a: {}1{}", "[".repeat(40), "]".repeat(40));
        assert!(parse(&deep).is_err());
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
                    d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e]\n\
                    g: [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";
        assert!(parse(bomb).is_err(), "it grew to gigabytes");
    }
}
