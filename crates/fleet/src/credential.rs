//! How the controller proves to a host who it is.

use secrecy::SecretString;

use super::key::ControlKey;

/// A way to log in.
#[derive(Debug, Clone)]
pub enum Credential {
    /// The controller's own key.
    Key(ControlKey),
    /// A password that a person gave for this one login, to install the key.
    Password(SecretString),
}
