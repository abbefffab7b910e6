//! What of a form is a secret: known by the name of its field, or seen in what was typed.
//!
//! A field that is a secret of one operation is one in every form: where a form is held up before it is known
//! which operation it is for, nothing is left to chance.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use corpus_api::input::{is_secret, object};
use corpus_api::tokens::TokenText;
use corpus_api::{Operation, Visitor};
use corpus_controller::ssh_keys::is_private;
use corpus_controller::tells_secret;

/// The password of the login form, which is no operation.
const PASSWORD: &str = "password";
/// How long the text of a token is.
const TOKEN: usize = 50;

/// The fields that are a secret of any operation.
static FIELDS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let mut fields = Secrets(BTreeSet::from([PASSWORD.to_owned()]));
    corpus_api::walk(&mut fields);
    fields.0
});

struct Secrets(BTreeSet<String>);

impl Visitor for Secrets {
    fn visit<O: Operation>(&mut self) {
        self.0.extend(object::<O>().properties.into_keys().filter(|name| is_secret::<O>(name)));
    }
}

/// Whether a page may show what was typed again, to who typed it: no secret, and neither a private key nor a
/// token that was pasted by mistake.
pub fn is_shown(field: &str, text: &str) -> bool {
    !FIELDS.contains(field) && !is_private(text) && !holds_token(text)
}

/// Whether what was typed may be kept: not if it tells what is called like a secret, in settings for one. The
/// operation refuses those so that they are kept nowhere.
pub fn is_kept(text: &str) -> bool {
    !tells_secret(text)
}

fn holds_token(text: &str) -> bool {
    let mut begins = text.match_indices("corpus_").map(|(at, _)| at);
    begins.any(|at| text.get(at..at + TOKEN).is_some_and(|token| token.parse::<TokenText>().is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_field_or_their_look() {
        let token = TokenText::of(&[7; 32]);
        for (field, text) in [
            ("password", "x"),
            ("name", "-----BEGIN OPENSSH PRIVATE KEY-----"),
            ("line", "PuTTY-User-Key-File-3: ssh-ed25519"),
            ("comment", &format!("mine is {}, keep it", token.expose())),
        ] {
            assert!(!is_shown(field, text), "{field}: {text}");
        }
        for text in ["", "ssh-ed25519 AAAA me@corpus_host", "corpus_short", "-----BEGIN SSH SIGNATURE-----", "corpus_é"]
        {
            assert!(is_shown("line", text), "{text}");
        }
        assert!(!is_kept("db:\n  password: x") && is_kept("archives: 3"));
    }
}
