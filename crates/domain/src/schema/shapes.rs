//! The shapes of schemas: text, one of some words, an id, a number; and their descriptions, which are
//! the doc comments of the types.

use utoipa::Number;
use utoipa::openapi::KnownFormat;
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};

fn described(kind: Type, description: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(kind).description(Some(description.trim()))
}

/// Text that matches a regular expression (ECMA-262) and has at most so many characters.
pub(crate) fn text(description: &str, pattern: impl Into<String>, max: usize, example: &str) -> ObjectBuilder {
    described(Type::String, description).pattern(Some(pattern)).max_length(Some(max)).examples([example])
}

/// One of some words, each with what it means.
pub(crate) fn words(description: &str, words: &[(&str, &str)]) -> ObjectBuilder {
    let meanings = words.iter().map(|(word, meaning)| format!("\n- `{word}`: {}", meaning.trim()));
    let description = format!("{}\n{}", description.trim(), meanings.collect::<String>());
    described(Type::String, &description).enum_values(Some(words.iter().map(|(word, _)| *word)))
}

/// A UUID.
pub(crate) fn id(description: &str) -> ObjectBuilder {
    described(Type::String, description)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Uuid)))
        .examples(["0197a3c0-5d1e-7c32-9b1f-2f6f0c9d4e11"])
}

/// A whole number from `min` to `max`.
pub(crate) fn number(description: &str, min: impl Into<u64>, max: impl Into<u64>) -> ObjectBuilder {
    described(Type::Integer, description).minimum(Some(bound(min.into()))).maximum(Some(bound(max.into())))
}

/// A bound; where it is larger than the machine counts, the schema is stricter.
pub(crate) fn bound(number: u64) -> Number {
    Number::UInt(usize::try_from(number).unwrap_or(usize::MAX))
}

/// The text of doc comments, so that a schema says what the documentation does.
macro_rules! doc_text {
    ($([$($attribute:tt)*])*) => { concat!($($crate::schema::doc_line!($($attribute)*)),*) };
}

/// The text of one attribute, if it is a doc comment.
macro_rules! doc_line {
    (doc = $text:literal) => {
        $text
    };
    ($($other:tt)*) => {
        ""
    };
}

pub(crate) use {doc_line, doc_text};
