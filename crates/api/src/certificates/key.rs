//! The private key of a certificate, as it is sent: several lines, and a secret.

use std::fmt;
use std::str::FromStr;

use corpus_domain::Invalid;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The private key of a certificate, as PEM: sent, sealed, and shown nowhere; not repeated when it is refused.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct PrivateKeyText(SecretString);

/// The most characters of one.
const MAX_KEY: usize = 16 << 10;
const KEY_EXPECTED: &str = "a private key as PEM, 16384 characters at most";

impl PrivateKeyText {
    /// The key, for who uses it.
    pub const fn secret(&self) -> &SecretString {
        &self.0
    }
}
impl TryFrom<String> for PrivateKeyText {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        let plain = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        if (1..=MAX_KEY).contains(&given.chars().count()) && given.chars().all(plain) {
            Ok(Self(given.into()))
        } else {
            Err(Invalid::new("private key", "…", KEY_EXPECTED))
        }
    }
}
impl FromStr for PrivateKeyText {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        given.to_owned().try_into()
    }
}
/// Clients send it.
impl Serialize for PrivateKeyText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose_secret())
    }
}
impl fmt::Debug for PrivateKeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
impl PartialSchema for PrivateKeyText {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Password);
        let text = ObjectBuilder::new().schema_type(Type::String).format(Some(format));
        let text = text
            .min_length(Some(1))
            .max_length(Some(MAX_KEY))
            .pattern(Some(r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$"));
        text.description(Some(KEY_EXPECTED)).into()
    }
}
impl ToSchema for PrivateKeyText {}
