//! Proving that one has the private key of a public one: a text of ours, signed by `ssh-keygen -Y sign`.
//!
//! Public keys are public, so whoever adds one first may not be its owner. The text names the key,
//! the account that it is to come to and this Corpus, and holds a nonce: a signature of it is worth
//! nothing anywhere else, and who is asked to sign it for somebody reads what for.

use corpus_domain::ActorName;
use russh::keys::ssh_key::{Error as KeyError, SshSig};
use russh::keys::{Algorithm, PublicKey};
use thiserror::Error;

use super::member::is_private;

/// What signatures for Corpus are for, as `ssh-keygen -n` takes it: those for git or mail are others.
pub const NAMESPACE: &str = "corpus";
/// The largest text that is looked at: a signature by an RSA key of 16384 bits takes 6 kB.
const MAX_INPUT: usize = 16 << 10;
/// The bit by which a security key says that somebody touched it (`SSH_SK_USER_PRESENCE_REQD`).
const TOUCHED: u8 = 1;
/// Behind a security key's signature: the flags, and a counter of 32 bits.
const SECURITY_KEY_TRAILER: usize = 5;

/// Why a signature proves nothing; the message is for the person who pasted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProofRefused {
    /// Nothing was pasted.
    #[error("paste what the command printed, from BEGIN SSH SIGNATURE to END SSH SIGNATURE")]
    Empty,
    /// A private key was pasted.
    #[error(
        "this is a private key: it was not stored, and nobody saw it. Paste the signature that the command printed"
    )]
    PrivateKey,
    /// Not a signature, or a damaged one.
    #[error(
        "this is no signature, or only a part of one: paste all lines, from BEGIN SSH SIGNATURE to END SSH SIGNATURE"
    )]
    NotASignature,
    /// Signed for something else.
    #[error("this signature is for something else: sign with -n corpus, as the command does")]
    Namespace,
    /// Signed by another key.
    #[error("this was signed by another key: give the command, behind -f, the file of the key that you add")]
    OtherKey,
    /// RSA with SHA-1.
    #[error("this was signed with SHA-1, which is no longer safe: sign with the ssh-keygen of OpenSSH 8.2 or later")]
    Weak,
    /// A security key that nobody touched.
    #[error("nobody touched the security key when this was signed: sign again and touch it")]
    NotTouched,
    /// The key did not sign this text.
    #[error("this is not a signature of the text shown here: copy the command as it is, and run it again")]
    OtherText,
}

/// The text to be signed: one line that a shell takes in single quotes.
pub fn text(nonce: &str, fingerprint: &str, login: &ActorName, corpus: &str) -> String {
    let plain = |c: &char| c.is_ascii_graphic() && !matches!(c, '\'' | '\\');
    let corpus: String = corpus.chars().filter(plain).collect();
    format!("I move my SSH key {fingerprint} to the account {login} of Corpus at {corpus}: {nonce}")
}

/// Whether the pasted signature is one of the text, by the key of this line.
pub fn verify(given: &str, text: &str, line: &str) -> Result<(), ProofRefused> {
    if is_private(given) {
        return Err(ProofRefused::PrivateKey);
    }
    let signature = read(given)?;
    let key = PublicKey::from_openssh(line).map_err(|_| ProofRefused::OtherKey)?;
    if signature.algorithm() == (Algorithm::Rsa { hash: None }) {
        return Err(ProofRefused::Weak);
    }
    // A shell, or an editor, may have put the end of a line behind the text.
    let mut refused = ProofRefused::OtherText;
    for ending in ["", "\n", "\r\n"] {
        match key.verify(NAMESPACE, format!("{text}{ending}").as_bytes(), &signature) {
            Ok(()) => return touched(&signature),
            Err(KeyError::Namespace) => refused = ProofRefused::Namespace,
            Err(KeyError::PublicKey) => refused = ProofRefused::OtherKey,
            Err(_) => {}
        }
    }
    Err(refused)
}

fn read(given: &str) -> Result<SshSig, ProofRefused> {
    let given = given.trim().replace("\r\n", "\n");
    if given.is_empty() {
        return Err(ProofRefused::Empty);
    }
    if given.len() > MAX_INPUT {
        return Err(ProofRefused::NotASignature);
    }
    SshSig::from_pem(format!("{given}\n")).map_err(|_| ProofRefused::NotASignature)
}

/// A security key that signs without a touch may be worked by any program.
fn touched(signature: &SshSig) -> Result<(), ProofRefused> {
    if !matches!(signature.algorithm(), Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256) {
        return Ok(());
    }
    let bytes = signature.signature_bytes();
    let flags = bytes.len().checked_sub(SECURITY_KEY_TRAILER).and_then(|at| bytes.get(at));
    if flags.is_some_and(|flags| flags & TOUCHED != 0) { Ok(()) } else { Err(ProofRefused::NotTouched) }
}
