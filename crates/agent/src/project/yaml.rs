//! YAML of projects: pillars, defaults, values of settings.
//!
//! What a parser quotes may be a secret, so only the place of an error is told.

use std::path::Path;

use corpus_protocol::Mapping;
use serde_json::Value;

use crate::failure::Failure;
use crate::files;

/// Reads a file that is a mapping; nothing when there is no such file.
pub fn read(path: &Path, name: &str) -> Result<Mapping, Failure> {
    let Some(text) = files::read(path)? else { return Ok(Mapping::new()) };
    parse(&text, name)
}

/// Parses YAML text that is a mapping.
pub fn parse(text: &str, name: &str) -> Result<Mapping, Failure> {
    let template = ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)) || text.starts_with("#!");
    if template {
        return Err(Failure::Invalid(format!("{name} is a template: it must be plain YAML, without jinja")));
    }
    let line = |error: &serde_saphyr::Error| {
        error.location().map_or_else(String::new, |at| format!(" in line {}, column {}", at.line(), at.column()))
    };
    let value = parse_value(text).map_err(|error| Failure::Invalid(format!("{name} is no YAML{}", line(&error))))?;
    match value {
        Value::Null => Ok(Mapping::new()),
        Value::Object(mapping) => Ok(mapping.into_iter().collect()),
        _ => Err(Failure::Invalid(format!("{name} must be a mapping: `key: value` lines"))),
    }
}

/// Parses any YAML text, by the rules of YAML 1.2 for what is a boolean.
pub fn parse_value(text: &str) -> Result<Value, serde_saphyr::Error> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options)
}
