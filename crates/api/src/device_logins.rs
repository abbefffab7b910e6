//! Letting a program in that has no browser, such as the command line on a server: it shows a code, a
//! member types it where they are signed in, sees who asks, and decides (RFC 8628).
//!
//! How the program asks stands in no operation, since nobody is signed in there yet.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, Utc};
use corpus_domain::Invalid;
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::operation::{Grant, Meta, Operation, Read, Reply, Role, Scope, Write, get, post};
use crate::words::Days;

/// Shows which program waits under a code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetDeviceLogin {
    /// The code that the program shows.
    pub code: UserCode,
}
impl Operation for GetDeviceLogin {
    type Kind = Read;
    type Output = DeviceLogin;
    const META: Meta<Read> = get("get_device_login", "/device-logins/{code}").needs(Role::Member).token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Lets the program in: it gets a token of one's own, in the place of one of the same name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApproveDeviceLogin {
    /// The code that the program shows.
    pub code: UserCode,
    /// What its token is good for.
    pub scope: Grant,
    /// For how many days.
    pub days: Days,
}
impl Operation for ApproveDeviceLogin {
    type Kind = Write;
    type Output = DeviceLoginDecided;
    const META: Meta<Write> =
        post("approve_device_login", "/device-logins/{code}/approve").needs(Role::Member).token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Refuses the program, which is told so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefuseDeviceLogin {
    /// The code that the program shows.
    pub code: UserCode,
}
impl Operation for RefuseDeviceLogin {
    type Kind = Write;
    type Output = DeviceLoginDecided;
    const META: Meta<Write> =
        post("refuse_device_login", "/device-logins/{code}/refuse").needs(Role::Member).token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// A program that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceLogin {
    /// Its code.
    pub code: UserCode,
    /// What it says it is.
    pub client: String,
    /// The address that it asks from, of IPv6 the first half.
    pub network: String,
    /// What it wants its token to be good for.
    pub scope: Grant,
    /// Until when it waits.
    pub expires_at: DateTime<Utc>,
}
impl Reply for DeviceLogin {}

/// A program was let in or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceLoginDecided {
    /// What it said it is.
    pub client: String,
    /// Whether it was let in.
    pub approved: bool,
}
impl Reply for DeviceLoginDecided {}

/// The letters of a code: no vowel, so that no word comes of it (RFC 8628, 6.1).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Its length without the hyphen.
const LENGTH: usize = 8;

/// A code that is read from one screen and typed at another: `BCDF-GHJK`. Case, spaces and the hyphen
/// don't matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UserCode(String);

impl UserCode {
    /// One of random bytes, of which each makes a letter.
    pub fn of(random: [u8; LENGTH]) -> Self {
        let letter =
            |byte: u8| LETTERS.get(usize::from(byte) % LETTERS.len()).map_or('B', |letter| char::from(*letter));
        Self(random.into_iter().map(letter).collect())
    }

    /// The letters alone, as they are kept.
    pub fn letters(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.0.split_at_checked(LENGTH / 2).unwrap_or((&self.0, ""));
        write!(f, "{first}-{second}")
    }
}

impl FromStr for UserCode {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        let is_left_out = |c: char| c == '-' || c == ' ';
        let letters: String = given.chars().filter(|c| !is_left_out(*c)).map(|c| c.to_ascii_uppercase()).collect();
        if letters.len() == LENGTH && letters.bytes().all(|b| LETTERS.contains(&b)) {
            return Ok(Self(letters));
        }
        Err(Invalid::new("code", given, "the 8 letters that the program shows, such as BCDF-GHJK"))
    }
}

impl TryFrom<String> for UserCode {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

impl From<UserCode> for String {
    fn from(code: UserCode) -> Self {
        code.to_string()
    }
}

impl PartialSchema for UserCode {
    fn schema() -> RefOr<Schema> {
        let pattern = "^[BCDFGHJKLMNPQRSTVWXZbcdfghjklmnpqrstvwxz]{4}-?[BCDFGHJKLMNPQRSTVWXZbcdfghjklmnpqrstvwxz]{4}$";
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).examples(["BCDF-GHJK"]);
        text.description(Some("The code that a program shows")).into()
    }
}
impl ToSchema for UserCode {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_however_it_is_typed() {
        let code: UserCode = "bcdf ghjk".parse().unwrap();
        assert_eq!((code.to_string().as_str(), code.letters()), ("BCDF-GHJK", "BCDFGHJK"));
        assert_eq!(Ok(code), "BCDFGHJK".parse());
        for wrong in ["", "BCDF-GHJ", "BCDF-GHJKL", "ACDF-GHJK", "BCDF_GHJK", "BCDF-GHJÉ"] {
            assert!(wrong.parse::<UserCode>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn random_bytes_make_a_code() {
        let code = UserCode::of([0, 19, 20, 39, 255, 128, 7, 42]);
        assert_eq!(code.to_string().parse(), Ok(code));
    }
}
