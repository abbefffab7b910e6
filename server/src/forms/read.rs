//! The fields of a form, as they were sent and as they are shown again.

use secrecy::SecretString;
use url::form_urlencoded;

use super::secrets::is_shown;

/// The fields of a form as sent; a name may come more than once.
#[derive(Clone, Default)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    /// Those that were sent before.
    pub const fn of(pairs: Vec<(String, String)>) -> Self {
        Self(pairs)
    }

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

    /// A secret, as sent, unless empty.
    pub fn secret(&self, name: &str) -> Option<SecretString> {
        Some(self.raw(name)).filter(|text| !text.is_empty()).map(SecretString::from)
    }

    /// What a page may show again: no secret, whether meant as one or pasted by mistake.
    pub fn shown(&self) -> Vec<(String, String)> {
        self.0.iter().filter(|(name, value)| is_shown(name, value)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown_again() {
        let fields = Fields::parse(b"name=x&password=hush&line=-----BEGIN+OPENSSH+PRIVATE+KEY-----");
        assert_eq!(fields.shown(), [("name".to_owned(), "x".to_owned())]);
        assert!(fields.secret("password").is_some() && fields.secret("other").is_none());
    }
}
