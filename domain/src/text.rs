//! Validated text: the one error and the two macros that the other types are made with.

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

/// Declares a string type whose only constructor is `FromStr`, with a normalizing check.
macro_rules! text_type {
    ($(#[$doc:meta])* $name:ident, $what:literal, $expected:expr, $check:expr) => {
        $(#[$doc])*
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
                check(given).map(Self).ok_or_else(|| $crate::text::Invalid::new($what, given, $expected))
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
    };
}

/// Declares an enum with one word per variant, the same in SQL, JSON, URLs and pages.
macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident, $what:literal, { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "&'static str")]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

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
                    $($word => Ok(Self::$variant),)+
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
    };
}

pub(crate) use {text_type, word_enum};
