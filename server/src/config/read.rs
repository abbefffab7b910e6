//! Gathers the values of all keys from the file and the environment, and reads them typed.
//!
//! Nothing is taken half: every fault of the whole configuration is collected, and each says
//! the key, where its value came from, the value (unless secret) and what is expected.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use secrecy::SecretString;
use toml::{Table, Value};

use super::keys::{KEYS, Key, Kind, closest};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The configuration file.
    File(PathBuf),
    /// A section of its own in the configuration file.
    Section(PathBuf, String),
    /// An environment variable.
    Variable(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "in {}", path.display()),
            Self::Section(path, section) => write!(f, "in [{section}] of {}", path.display()),
            Self::Variable(name) => write!(f, "from the environment variable {name}"),
        }
    }
}

/// The given values by key, and the faults met on the way.
#[derive(Debug, Default)]
pub struct Reader {
    values: BTreeMap<&'static str, (Value, Source)>,
    faults: Vec<String>,
    /// Sections below another, `[dns.NAME]`, by their names; their keys are those of `[dns]`.
    sections: BTreeMap<String, Reader>,
}

impl Reader {
    /// Takes every value of a file.
    pub fn file(&mut self, path: &std::path::Path, table: Table) {
        for (name, value) in table {
            match value {
                Value::Table(section) => {
                    for (inner, value) in section {
                        if let (DNS, Value::Table(below)) = (name.as_str(), &value) {
                            self.section(path, &inner, below.clone());
                            continue;
                        }
                        self.put(&format!("{name}.{inner}"), value, Source::File(path.to_owned()));
                    }
                }
                value => self.put(&name, value, Source::File(path.to_owned())),
            }
        }
    }

    fn section(&mut self, path: &std::path::Path, name: &str, table: Table) {
        let mut reader = Reader::default();
        for (key, value) in table {
            let source = Source::Section(path.to_owned(), format!("{DNS}.{name}"));
            reader.put(&format!("{DNS}.{key}"), value, source);
        }
        self.sections.insert(name.to_owned(), reader);
    }

    /// The sections `[dns.NAME]`, each read by itself, with the faults that were met.
    pub fn each_section<T>(&mut self, mut read: impl FnMut(&str, &mut Reader) -> Option<T>) -> Vec<T> {
        let mut all = Vec::new();
        for (name, mut reader) in std::mem::take(&mut self.sections) {
            all.extend(read(&name, &mut reader));
            self.faults.extend(reader.faults.into_iter().map(|fault| format!("[{DNS}.{name}]: {fault}")));
        }
        all
    }

    fn put(&mut self, name: &str, value: Value, source: Source) {
        match Key::named(name) {
            Some(key) => {
                self.values.insert(key.name, (value, source));
            }
            None => self.unknown(name, closest(name, KEYS.iter().map(|key| key.name)).map(str::to_owned), &source),
        }
    }

    fn unknown(&mut self, name: &str, close: Option<String>, source: &Source) {
        let hint = close.map_or_else(String::new, |close| format!("; did you mean {close}?"));
        self.faults.push(format!("unknown key {name} {source}{hint}"));
    }

    /// Takes every value of the environment; `DATABASE_URL` stands for `CORPUS_DATABASE_URL`.
    /// An empty variable counts as not set.
    pub fn environment(&mut self, variables: impl Iterator<Item = (String, String)>) {
        let known: BTreeMap<String, &Key> = KEYS.iter().map(|key| (key.variable(), key)).collect();
        for (name, value) in variables.filter(|(_, value)| !value.is_empty()) {
            let wanted = if name == "DATABASE_URL" { "CORPUS_DATABASE_URL" } else { name.as_str() };
            if let Some(key) = known.get(wanted) {
                self.values.insert(key.name, (from_text(key.kind, value), Source::Variable(name)));
            } else if let Some(rest) = name.strip_prefix("CORPUS_").filter(|rest| !OTHERS.contains(rest)) {
                let close = closest(&format!("CORPUS_{rest}"), known.keys().map(String::as_str)).map(str::to_owned);
                self.unknown(&name, close, &Source::Variable(name.clone()));
            }
        }
    }

    /// Whether any key of a section was given.
    pub fn has_section(&self, section: &str) -> bool {
        self.has_section_but(section, "")
    }

    /// Whether any key of a section was given other than one.
    pub fn has_section_but(&self, section: &str, other: &str) -> bool {
        let is_of = |name: &&str| name.split_once('.').is_some_and(|(head, _)| head == section);
        self.values.keys().any(|name| is_of(name) && *name != other)
    }

    /// Whether a key was given.
    pub fn is_given(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value of a key, if given; a fault is kept, and counts as not given.
    pub fn optional<T: FromStr>(&mut self, name: &'static str) -> Option<T> {
        self.checked(name, |text| text.parse().ok())
    }

    /// Like [`Self::optional`], with a check of one's own.
    pub fn checked<T>(&mut self, name: &'static str, check: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let (value, _) = self.values.get(name)?;
        let taken = match value {
            Value::String(text) => check(text),
            Value::Boolean(_) | Value::Integer(_) if kind(name) != Kind::Text => check(&value.to_string()),
            _ => None,
        };
        if taken.is_none() {
            self.refuse(name);
        }
        taken
    }

    /// A list of values; not given is empty.
    pub fn list<T: FromStr>(&mut self, name: &'static str) -> Vec<T> {
        let Some((value, _)) = self.values.get(name) else { return Vec::new() };
        let parsed: Option<Vec<T>> = value
            .as_array()
            .and_then(|items| items.iter().map(|item| item.as_str().and_then(|text| text.parse().ok())).collect());
        parsed.unwrap_or_else(|| {
            self.refuse(name);
            Vec::new()
        })
    }

    /// A required value; the fault is kept when it is missing.
    pub fn required<T>(&mut self, name: &'static str, value: Option<T>) -> Option<T> {
        if value.is_none() && !self.values.contains_key(name) {
            self.faults.push(format!("{name} is missing: expected {}", expected(name)));
        }
        value
    }

    /// A secret given as a value or as a file that holds it (its last line end cut off), not both.
    pub fn secret(&mut self, name: &'static str, file: &'static str) -> Option<SecretString> {
        let path: Option<PathBuf> = self.optional(file);
        if path.is_some() && self.values.contains_key(name) {
            self.fault(format!("{name} and {file} are both given: leave one out"));
        }
        let direct = self.checked(name, |text| (!text.is_empty()).then(|| SecretString::from(text)));
        let Some(path) = path else { return direct };
        match std::fs::read_to_string(&path) {
            Ok(text) if !text.trim_end().is_empty() => Some(text.trim_end_matches(['\r', '\n']).into()),
            Ok(_) => {
                self.fault(format!("{file}: {} is empty", path.display()));
                None
            }
            Err(error) => {
                self.fault(format!("{file}: {} can't be read: {error}", path.display()));
                None
            }
        }
    }

    /// The files that keys name: what the configuration is incomplete without. What opens the backups is none of them:
    /// it must not lie in what it opens.
    pub fn named_files(&self) -> Vec<PathBuf> {
        let of = |reader: &Self| -> Vec<PathBuf> {
            let named = reader.values.iter().filter(|(name, _)| name.ends_with("_file") && !OWN_FILES.contains(name));
            named.filter_map(|(_, (value, _))| value.as_str().map(PathBuf::from)).collect()
        };
        let mut all = of(self);
        all.extend(self.sections.values().flat_map(of));
        all.sort();
        all.dedup();
        all
    }

    /// Keeps the fault that the value of a key is not what it takes.
    pub fn refuse(&mut self, name: &'static str) {
        let Some((value, source)) = self.values.get(name) else { return };
        let shown = match Key::named(name) {
            Some(key) if !key.secret => value.to_string(),
            _ => "(a secret, not shown)".to_owned(),
        };
        self.faults.push(format!("{name} = {shown} {source}: expected {}", expected(name)));
    }

    /// Keeps a fault that concerns more than one key.
    pub fn fault(&mut self, fault: String) {
        self.faults.push(fault);
    }

    /// All faults.
    pub fn into_faults(self) -> Vec<String> {
        self.faults
    }
}

/// Files that are saved by themselves, or must not be.
const OWN_FILES: &[&str] = &["backup.password_file", "seal_key_file"];

/// The section that has sections below it.
const DNS: &str = "dns";

/// Variables that begin with `CORPUS_` and belong to scripts, not to the server.
const OTHERS: &[&str] = &["LAB", "CONFIG"];

fn kind(name: &str) -> Kind {
    Key::named(name).map_or(Kind::Text, |key| key.kind)
}

fn expected(name: &str) -> &'static str {
    Key::named(name).map_or("", |key| key.expected)
}

/// A variable's text as the value a file would hold; what doesn't fit stays text and is refused when read.
fn from_text(kind: Kind, text: String) -> Value {
    match kind {
        Kind::List => Value::Array(text.split(',').map(|item| Value::String(item.trim().to_owned())).collect()),
        Kind::Text | Kind::Switch | Kind::Number => Value::String(text),
    }
}
