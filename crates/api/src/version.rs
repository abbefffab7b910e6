//! Which version of something is meant: what `ETag` and `If-Match` say.
//!
//! Two people who change the same thing must not undo each other unseen. So what can be set has a
//! version, and who sets it says which one they saw. The version is a digest of the value itself: it
//! can't be forgotten to be counted up, and setting back what was is the same version again.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use corpus_domain::Invalid;

/// A version: 16 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(String);

impl Version {
    /// Of a value.
    pub fn of(value: &impl Serialize) -> Self {
        // Maps of JSON values are sorted, so equal values are equal texts.
        let text = serde_json::to_value(value).map(|value| value.to_string()).unwrap_or_default();
        Self(format!("{:016x}", fnv(text.as_bytes())))
    }
}

/// FNV-1a, 64 bits: versions are compared with the one that is there, so nobody gains by a collision.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

impl FromStr for Version {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let fits = given.len() == 16 && given.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if fits {
            Ok(Self(given.to_owned()))
        } else {
            Err(Invalid::new("version", given, "16 hexadecimal digits, as an ETag gave them"))
        }
    }
}

impl TryFrom<String> for Version {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialSchema for Version {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9a-f]{16}$"));
        text.examples(["0123456789abcdef"]).description(Some("Which version is meant, as an ETag says it")).into()
    }
}
impl ToSchema for Version {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_of_the_value() {
        let one = Version::of(&serde_json::json!({ "a": 1, "b": 2 }));
        assert_eq!(one, Version::of(&serde_json::json!({ "b": 2, "a": 1 })));
        assert_ne!(one, Version::of(&serde_json::json!({ "a": 1, "b": 3 })));
        assert_eq!(one.to_string().parse(), Ok(one));
        assert!("0123456789ABCDEF".parse::<Version>().is_err());
    }
}
