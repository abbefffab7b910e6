//! A member's public key: what is accepted, and why the rest is not.

use std::fmt;
use std::str::FromStr;

use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, EcdsaCurve, HashAlg, PublicKey};
use thiserror::Error;

/// The largest text that is looked at: an RSA key of 16384 bits takes 2.8 kB.
const MAX_INPUT: usize = 16 << 10;
/// The shortest RSA modulus that is accepted: 128 bits of strength (NIST SP 800-57 part 1, table 2).
const MIN_RSA_BITS: u32 = 3072;
/// The longest RSA modulus that sshd takes (`OPENSSL_RSA_MAX_MODULUS_BITS`).
const MAX_RSA_BITS: u32 = 16_384;
/// The longest comment that is kept, in characters.
const MAX_COMMENT: usize = 100;

/// The kinds of keys that are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAlgorithm {
    /// `ssh-ed25519`.
    Ed25519,
    /// `ssh-rsa`, 3072 bits or more.
    Rsa,
    /// `ecdsa-sha2-nistp256`, `-nistp384` or `-nistp521`.
    Ecdsa,
    /// Ed25519 in a security key.
    SkEd25519,
    /// ECDSA nistp256 in a security key.
    SkEcdsa,
}

impl KeyAlgorithm {
    /// The word that `ssh-keygen -l` prints in brackets.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ed25519 => "ED25519",
            Self::Rsa => "RSA",
            Self::Ecdsa => "ECDSA",
            Self::SkEd25519 => "ED25519-SK",
            Self::SkEcdsa => "ECDSA-SK",
        }
    }
}

impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a key was not accepted; the message is for the person who pasted it, and never repeats the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeyRefused {
    /// Nothing was pasted.
    #[error("paste a public key: the content of a file such as ~/.ssh/id_ed25519.pub")]
    Empty,
    /// A private key was pasted.
    #[error(
        "this is a private key: it was not stored, and nobody saw it. Paste the public key instead, from the file whose name ends in .pub"
    )]
    PrivateKey,
    /// More than any key.
    #[error("this is too long for a public key: paste one key, the content of a .pub file")]
    TooLong,
    /// More than one line.
    #[error("this has several lines: paste one key at a time, on one line")]
    SeveralLines,
    /// Something stands in front of the key.
    #[error(
        "this begins with options or other text: paste the key alone, beginning with ssh-ed25519, ssh-rsa or the like"
    )]
    Options,
    /// The RSA key is too short.
    #[error("this RSA key has {0} bits, and 3072 is the least: make a new key with ssh-keygen -t ed25519")]
    RsaTooShort(u32),
    /// The RSA key is longer than sshd accepts.
    #[error("this RSA key has {0} bits, and sshd takes 16384 at most: make a new key with ssh-keygen -t ed25519")]
    RsaTooLong(u32),
    /// A DSA key.
    #[error("DSA keys are no longer safe, and sshd refuses them: make a new key with ssh-keygen -t ed25519")]
    Dsa,
    /// A certificate.
    #[error("this is a certificate: paste the public key that it certifies, from the .pub file without -cert")]
    Certificate,
    /// A kind of key that is not known here.
    #[error("this kind of key is not known: ed25519, RSA of 3072 bits or more, ECDSA and security keys are")]
    UnknownAlgorithm,
    /// Not a key, or a damaged one.
    #[error("this is no public key, or only a part of one: paste the whole content of a .pub file")]
    NotAKey,
}

/// A member's public key that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberKey {
    algorithm: KeyAlgorithm,
    bits: u32,
    fingerprint: String,
    comment: String,
    line: String,
}

impl MemberKey {
    /// Its kind.
    pub fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// The size that `ssh-keygen -l` prints.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// `SHA256:` and 43 characters of base64, as `ssh-keygen -l` prints it.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// What the key's owner wrote behind it: printable, 100 characters at most, maybe empty.
    pub fn comment(&self) -> &str {
        &self.comment
    }

    /// The line for `authorized_keys(5)`: algorithm, base64, and the comment if there is one.
    pub fn line(&self) -> &str {
        &self.line
    }
}

impl FromStr for MemberKey {
    type Err = KeyRefused;

    fn from_str(given: &str) -> Result<Self, KeyRefused> {
        if is_private(given) {
            return Err(KeyRefused::PrivateKey);
        }
        if given.len() > MAX_INPUT {
            return Err(KeyRefused::TooLong);
        }
        let line = given.trim();
        let (name, base64, comment) = split(line)?;
        let key = PublicKey::from_openssh(&format!("{name} {base64}")).map_err(|_| KeyRefused::NotAKey)?;
        let (algorithm, bits) = judge(&key)?;
        let comment = printable(comment);
        let line = if comment.is_empty() { format!("{name} {base64}") } else { format!("{name} {base64} {comment}") };
        Ok(Self { algorithm, bits, fingerprint: key.fingerprint(HashAlg::Sha256).to_string(), comment, line })
    }
}

/// Whether the text is or holds a private key: PEM of any kind, or `PuTTY`'s `.ppk`. Whatever its
/// length, and even if the line breaks were lost on the way.
pub fn is_private(given: &str) -> bool {
    let text = given.to_ascii_uppercase();
    text.contains("PRIVATE KEY")
        || text.contains("PUTTY-USER-KEY-FILE")
        || text.contains("PRIVATE-LINES:")
        // The beginning of OpenSSH's own format ("openssh-key-v1") in base64, without its frame.
        || given.contains("b3BlbnNzaC1rZXktdjE")
}

/// The three parts of the line: algorithm, base64 and comment.
fn split(line: &str) -> Result<(&str, &str, &str), KeyRefused> {
    if line.is_empty() {
        return Err(KeyRefused::Empty);
    }
    if line.contains(['\n', '\r']) {
        return Err(KeyRefused::SeveralLines);
    }
    let (name, rest) = line.split_once([' ', '\t']).ok_or(KeyRefused::NotAKey)?;
    check_name(name, rest)?;
    let rest = rest.trim_start();
    let (base64, comment) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    Ok((name, base64, comment))
}

fn check_name(name: &str, rest: &str) -> Result<(), KeyRefused> {
    if name.ends_with("-cert-v01@openssh.com") {
        return Err(KeyRefused::Certificate);
    }
    match Algorithm::new(name) {
        Ok(Algorithm::Other(_)) | Err(_) if has_key(rest) => Err(KeyRefused::Options),
        Ok(Algorithm::Other(_)) => Err(KeyRefused::UnknownAlgorithm),
        Ok(_) => Ok(()),
        Err(_) => Err(KeyRefused::NotAKey),
    }
}

/// Whether a known algorithm's name stands somewhere as a word of its own.
fn has_key(text: &str) -> bool {
    text.split_ascii_whitespace()
        .any(|word| Algorithm::new(word).is_ok_and(|algorithm| !matches!(algorithm, Algorithm::Other(_))))
}

fn judge(key: &PublicKey) -> Result<(KeyAlgorithm, u32), KeyRefused> {
    match key.key_data() {
        KeyData::Ed25519(_) => Ok((KeyAlgorithm::Ed25519, 256)),
        KeyData::SkEd25519(_) => Ok((KeyAlgorithm::SkEd25519, 256)),
        KeyData::SkEcdsaSha2NistP256(_) => Ok((KeyAlgorithm::SkEcdsa, 256)),
        KeyData::Ecdsa(ecdsa) => Ok((KeyAlgorithm::Ecdsa, curve_bits(ecdsa.curve()))),
        KeyData::Rsa(rsa) => match rsa.key_size() {
            bits if bits < MIN_RSA_BITS => Err(KeyRefused::RsaTooShort(bits)),
            bits if bits > MAX_RSA_BITS => Err(KeyRefused::RsaTooLong(bits)),
            bits => Ok((KeyAlgorithm::Rsa, bits)),
        },
        KeyData::Dsa(_) => Err(KeyRefused::Dsa),
        KeyData::Certificate(_) => Err(KeyRefused::Certificate),
        _ => Err(KeyRefused::UnknownAlgorithm),
    }
}

const fn curve_bits(curve: EcdsaCurve) -> u32 {
    match curve {
        EcdsaCurve::NistP256 => 256,
        EcdsaCurve::NistP384 => 384,
        EcdsaCurve::NistP521 => 521,
    }
}

/// The comment without what could disturb a terminal, a page or a file: control and format
/// characters (which could turn the direction of text) are dropped.
fn printable(comment: &str) -> String {
    let kept = comment.chars().filter(|c| !c.is_control() && !is_format(*c)).take(MAX_COMMENT);
    kept.collect::<String>().trim().to_owned()
}

/// Invisible characters of Unicode's category Cf that matter here, and line separators.
const fn is_format(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
