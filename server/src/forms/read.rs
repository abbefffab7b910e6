//! The fields of a form, and reading them as typed values with an error for each that is wrong.

use std::fmt::Display;
use std::str::FromStr;

use secrecy::SecretString;
use url::form_urlencoded;

use super::form::Rejection;

/// Fields that are never given back to a page.
const SECRETS: [&str; 2] = ["password", "comment_secret"];

/// The fields of a form as sent; a name may come more than once.
#[derive(Clone, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Reads a body of the type `application/x-www-form-urlencoded`.
    pub fn parse(body: &[u8]) -> Self {
        Self(form_urlencoded::parse(body).into_owned().collect())
    }

    /// All of them, as sent.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// The first value of a field, as sent.
    pub fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.as_str())
    }

    /// The first value of a field without the space around it, unless empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        Some(self.raw(name).trim()).filter(|text| !text.is_empty())
    }

    /// Every value of a field.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// A secret, as sent, unless empty.
    pub fn secret(&self, name: &str) -> Option<SecretString> {
        Some(self.raw(name)).filter(|text| !text.is_empty()).map(SecretString::from)
    }

    /// What a page may show again: no password, and no private key pasted by mistake.
    pub fn shown(&self) -> Vec<(String, String)> {
        let keep =
            |(name, value): &&(String, String)| !SECRETS.contains(&name.as_str()) && !value.contains("PRIVATE KEY");
        self.0.iter().filter(keep).cloned().collect()
    }
}

/// Reads fields one by one and keeps what is wrong with each.
pub struct Reading<'a> {
    fields: &'a Fields,
    errors: Vec<(&'static str, String)>,
}

impl<'a> Reading<'a> {
    /// Begins.
    pub const fn of(fields: &'a Fields) -> Self {
        Self { fields, errors: Vec::new() }
    }

    /// A field that must be filled in.
    pub fn required<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Option<T> {
        if self.fields.text(name).is_none() {
            self.error(name, "This field is needed.");
        }
        self.optional(name)
    }

    /// A field that may be empty.
    pub fn optional<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Option<T> {
        let text = self.fields.text(name)?;
        self.parse(name, text)
    }

    /// Every value of a field that comes more than once.
    pub fn several<T: FromStr<Err: Display>>(&mut self, name: &'static str) -> Vec<T> {
        let fields = self.fields;
        fields.all(name).filter_map(|text| self.parse(name, text)).collect()
    }

    fn parse<T: FromStr<Err: Display>>(&mut self, name: &'static str, text: &str) -> Option<T> {
        text.parse().map_err(|error: T::Err| self.error(name, error.to_string())).ok()
    }

    /// Keeps an error beside a field.
    pub fn error(&mut self, name: &'static str, message: impl Into<String>) {
        self.errors.push((name, message.into()));
    }

    /// Ends: the errors, if any.
    pub fn finish(self) -> Result<(), Rejection> {
        if self.errors.is_empty() { Ok(()) } else { Err(Rejection::Fields(self.errors)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corpus_domain::{Environment, HostName};

    #[test]
    fn errors_are_gathered_by_field() {
        let fields = Fields::parse(b"name=a%3Bb&environments=dev&environments=prod&port=x");
        let mut reading = Reading::of(&fields);
        assert!(reading.required::<HostName>("name").is_none());
        assert!(reading.optional::<u16>("port").is_none());
        assert!(reading.required::<HostName>("missing").is_none());
        assert_eq!(reading.several::<Environment>("environments"), [Environment::Dev, Environment::Prod]);
        let Err(Rejection::Fields(errors)) = reading.finish() else { panic!("no errors") };
        assert_eq!(errors.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["name", "port", "missing"]);
    }

    #[test]
    fn secrets_are_not_shown_again() {
        let fields = Fields::parse(b"name=x&password=hush&line=-----BEGIN+OPENSSH+PRIVATE+KEY-----");
        assert_eq!(fields.shown(), [("name".to_owned(), "x".to_owned())]);
        assert!(fields.secret("password").is_some() && fields.secret("other").is_none());
    }
}
