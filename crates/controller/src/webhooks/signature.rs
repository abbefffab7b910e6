//! How a delivery is signed: HMAC-SHA256 over the time, a dot and the body, with the webhook's secret.

use std::fmt::Write as _;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;

/// A secret: `whsec_`, by which a scanner finds one that leaked, and 32 random bytes in base64url.
pub fn new_secret() -> SecretString {
    let bytes: [u8; 32] = rand::random();
    format!("whsec_{}", BASE64_URL_SAFE_NO_PAD.encode(bytes)).into()
}

/// The header `Corpus-Signature` of a body that is sent at this time, in seconds since 1970.
pub fn signature(secret: &SecretString, at: i64, body: &str) -> String {
    // A key of any length is taken.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()) else { return String::new() };
    mac.update(format!("{at}.").as_bytes());
    mac.update(body.as_bytes());
    let mut text = format!("t={at},v1=");
    for byte in mac.finalize().into_bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `printf '1767225600.{"event":"ping"}' | openssl dgst -sha256 -hmac whsec_test` prints it.
    #[test]
    fn a_signature_is_what_others_compute() {
        let made = signature(&"whsec_test".into(), 1_767_225_600, "{\"event\":\"ping\"}");
        assert_eq!(made, "t=1767225600,v1=5b59b136df00c5350ee706439afaa18c620dfed97d0e3bd5934a31e2db15ab78");
        assert_ne!(new_secret().expose_secret(), new_secret().expose_secret());
    }
}
