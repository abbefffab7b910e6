//! Validated text: the one error and the two macros that the other types are made with.
//!
//! A declaration says all there is to say of a type, what an API tells of it too.

use thiserror::Error;

/// A value that is not what its field takes. The message names the field, what was
/// given (shortened), and what is expected, so that it can stand beside a form field.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what} {given:?} is not valid: {expected}")]
pub struct Invalid {
    /// The kind of value, as a person says it: "host name".
    pub what: &'static str,
    /// What was given, at most 80 characters of it.
    pub given: String,
    /// What would have been accepted.
    pub expected: &'static str,
}

impl Invalid {
    /// Builds the error, shortening `given` to 80 characters.
    pub fn new(what: &'static str, given: &str, expected: &'static str) -> Self {
        let mut short: String = given.chars().take(80).collect();
        if short.len() < given.len() {
            short.push('…');
        }
        Self { what, given: short, expected }
    }
}

/// Declares a string type whose only constructor is `FromStr`, with a normalizing check. What it
/// normalizes has at most `max` characters.
macro_rules! text_type {
    (
        $(#[$($doc:tt)*])* $name:ident, $what:literal, $expected:expr,
        pattern: $pattern:expr, max: $max:literal, example: $example:literal, $check:expr
    ) => {
        $(#[$($doc)*])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The value as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::text::Invalid;
            fn from_str(given: &str) -> Result<Self, Self::Err> {
                let check: fn(&str) -> Option<String> = $check;
                let checked = check(given).filter(|text| text.chars().count() <= $max);
                checked.map(Self).ok_or_else(|| $crate::text::Invalid::new($what, given, $expected))
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::text::Invalid;
            fn try_from(given: String) -> Result<Self, Self::Error> {
                given.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        $crate::schema::schema!($name, text($crate::schema::doc_text!($([$($doc)*])*), $pattern, $max, $example));
    };
}

/// Declares an enum with one word per variant, the same in SQL, JSON, URLs and pages. A word of before,
/// after a `|`, is still read: it is in what was stored then.
macro_rules! word_enum {
    (
        $(#[$($doc:tt)*])* $name:ident, $what:literal,
        { $($(#[$($vdoc:tt)*])* $variant:ident = $word:literal $(| $former:literal)*),+ $(,)? }
    ) => {
        $(#[$($doc)*])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        pub enum $name { $($(#[$($vdoc)*])* $variant),+ }

        impl $name {
            /// Every value, in the order of the design.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::text::Invalid;
            fn from_str(given: &str) -> Result<Self, Self::Err> {
                match given {
                    $($word $(| $former)* => Ok(Self::$variant),)+
                    _ => Err($crate::text::Invalid::new($what, given, concat!("one of:" $(, " ", $word)+))),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = $crate::text::Invalid;
            fn try_from(given: String) -> Result<Self, Self::Error> {
                given.parse()
            }
        }

        impl From<$name> for &'static str {
            fn from(value: $name) -> &'static str {
                value.as_str()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        $crate::schema::schema!($name, words(
            $crate::schema::doc_text!($([$($doc)*])*),
            &[$(($word, $crate::schema::doc_text!($([$($vdoc)*])*))),+]
        ));
    };
}

pub(crate) use {text_type, word_enum};
