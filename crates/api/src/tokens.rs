//! Members' own API tokens: what programs ask with, in the name of their member.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use corpus_domain::{Invalid, TokenId};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::Cursor;
use crate::operation::{Grant, Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::{Day, Days, Label, Limit};

/// Lists one's own tokens that are not revoked, the newest first.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListTokens {
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListTokens {
    type Kind = Read;
    type Output = TokenPage;
    const META: Meta<Read> = get("list_tokens", "/tokens").needs(Role::Member);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Makes a token. Its text is in the answer, and nowhere afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateToken {
    /// What it is for; one's other tokens have other names.
    pub name: Label,
    /// What it is good for.
    pub scope: Grant,
    /// For how many days it is good; either this is given or `until`.
    pub days: Option<Days>,
    /// The last day on which it is good, by UTC, within a year.
    pub until: Option<Day>,
    /// Whether it takes the place of one's token of the same name, which is revoked then; no unless said.
    pub replace: Option<bool>,
}
impl Operation for CreateToken {
    type Kind = Write;
    type Output = NewToken;
    const META: Meta<Write> = post("create_token", "/tokens").needs(Role::Member).token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// Revokes one of one's own tokens, at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RevokeToken {
    /// Which.
    pub token: TokenId,
}
impl Operation for RevokeToken {
    type Kind = Write;
    type Output = TokenRevoked;
    const META: Meta<Write> = delete("revoke_token", "/tokens/{token}").needs(Role::Member).robots().token(Grant::All);
    fn scope(&self) -> Scope {
        Scope::Own
    }
}

/// A token, without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Its id.
    pub id: TokenId,
    /// What it is for.
    pub name: String,
    /// What it is good for.
    pub scope: Grant,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// Until when it is good.
    pub expires_at: DateTime<Utc>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

crate::page!(
    /// A page of tokens.
    TokenPage, Token
);

/// A token that was just made.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// Its id.
    pub id: TokenId,
    /// What it is for.
    pub name: String,
    /// What it is good for.
    pub scope: Grant,
    /// Until when it is good.
    pub expires_at: DateTime<Utc>,
    /// Its text, for `Authorization: Bearer`. It is shown only now.
    pub token: TokenText,
}
impl Reply for NewToken {
    const STATUS: u16 = 201;
    const SECRET: bool = true;
}

/// A token was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenRevoked {
    /// Which.
    pub token: TokenId,
}
impl Reply for TokenRevoked {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some("/tokens".to_owned())
    }
}

/// The random bytes of a token.
pub type TokenBytes = [u8; 32];

/// The text of a token: `corpus_`, by which a scanner finds one that leaked, and its bytes in base64url.
/// Shown in no log.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct TokenText(SecretString);

impl TokenText {
    const PREFIX: &str = "corpus_";

    /// Of random bytes.
    pub fn of(bytes: &TokenBytes) -> Self {
        Self(format!("{}{}", Self::PREFIX, BASE64_URL_SAFE_NO_PAD.encode(bytes)).into())
    }

    /// The text, for who uses it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// The random bytes of a text, if it is one of a token.
    pub fn bytes(text: &str) -> Option<TokenBytes> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.strip_prefix(Self::PREFIX)?).ok()?;
        bytes.try_into().ok()
    }
}

impl FromStr for TokenText {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        // What was given is not repeated.
        let wrong = || Invalid::new("token", "…", "corpus_ and 43 letters, digits, hyphens and underscores");
        Self::bytes(given).map(|_| Self(given.into())).ok_or_else(wrong)
    }
}

impl TryFrom<String> for TokenText {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        given.parse()
    }
}

/// It is answered once.
impl Serialize for TokenText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose_secret())
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl PartialSchema for TokenText {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Password);
        let text = ObjectBuilder::new().schema_type(Type::String).format(Some(format));
        let text = text.pattern(Some("^corpus_[A-Za-z0-9_-]{43}$"));
        text.description(Some("The text of a token, for Authorization: Bearer")).into()
    }
}
impl ToSchema for TokenText {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_that_of_its_bytes() {
        let bytes = [0xA5; 32];
        let text = TokenText::of(&bytes);
        assert_eq!(text.expose().len(), "corpus_".len() + 43);
        assert_eq!(TokenText::bytes(text.expose()), Some(bytes));
        assert_eq!(format!("{text:?}"), "…");
    }

    #[test]
    fn what_is_no_token_is_refused_and_not_repeated() {
        let one = TokenText::of(&[0; 32]).expose().to_owned();
        let end = one.len() - 1;
        // The last letter has bits to spare: another one there is no second text of the same bytes.
        for wrong in
            ["", "corpus_", "hush", &one.replace("corpus", "Corpus"), &one[..end], &format!("{}B", &one[..end])]
        {
            assert_eq!(TokenText::bytes(wrong), None, "{wrong}");
        }
        assert!(!"corpus_hush".parse::<TokenText>().unwrap_err().to_string().contains("hush"));
    }
}
