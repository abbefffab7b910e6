//! Where the next page of a list begins.
//!
//! A cursor is the position of the last line that was shown, so what is added or removed meanwhile
//! neither repeats nor hides a line. It is good for the list and the order that gave it, and refused
//! elsewhere. It says nothing that its reader could not see, so it is not sealed.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::problem::Wrong;
use corpus_domain::Invalid;

const MAX_LENGTH: usize = 1_000;

/// Where the next page begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cursor(String);

impl Cursor {
    /// After `position` in `list`, which says the order too.
    pub fn after(list: &str, position: &impl Serialize) -> Self {
        let text = serde_json::to_string(&(list, position)).unwrap_or_default();
        Self(BASE64_URL_SAFE_NO_PAD.encode(text))
    }

    /// The position, if `list` gave it.
    pub fn position<T: DeserializeOwned>(&self, list: &str) -> Result<T, Wrong> {
        let wrong = || Wrong::new("cursor", "This cursor is of another list or order. Begin without one.");
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&self.0).map_err(|_| wrong())?;
        let (of, position): (String, T) = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
        if of == list { Ok(position) } else { Err(wrong()) }
    }
}

impl FromStr for Cursor {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_".contains(&b);
        let fits = (1..=MAX_LENGTH).contains(&given.len()) && given.bytes().all(plain);
        if fits {
            Ok(Self(given.to_owned()))
        } else {
            Err(Invalid::new("cursor", given, "what a page of the list gave"))
        }
    }
}

impl TryFrom<String> for Cursor {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<Cursor> for String {
    fn from(cursor: Cursor) -> Self {
        cursor.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialSchema for Cursor {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[A-Za-z0-9_-]{1,1000}$"));
        text.max_length(Some(MAX_LENGTH)).description(Some("Where the next page begins, as a page gave it")).into()
    }
}
impl ToSchema for Cursor {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_list() {
        let cursor = Cursor::after("guests by name", &("web", 7));
        assert_eq!(cursor.to_string().parse().as_ref(), Ok(&cursor));
        assert_eq!(cursor.position::<(String, u8)>("guests by name").unwrap(), ("web".to_owned(), 7));
        assert!(cursor.position::<(String, u8)>("nodes").is_err());
        assert!(cursor.position::<(u8, u8)>("guests by name").is_err(), "of another shape");
        let other: Cursor = "bm9uc2Vuc2U".parse().unwrap();
        assert!(other.position::<(String, u8)>("guests by name").is_err());
        assert!("a b".parse::<Cursor>().is_err() && "".parse::<Cursor>().is_err());
    }
}
