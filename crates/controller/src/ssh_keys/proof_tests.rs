//! Proofs by the real `ssh-keygen -Y sign`.

#![expect(clippy::disallowed_methods, reason = "the real programs are what is tested against")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{NAMESPACE, ProofRefused, proof_text, verify_proof};

fn keygen(folder: &Path, name: &str, args: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let made = Command::new("ssh-keygen").args(["-q", "-N", "", "-f"]).arg(&path).args(args).status().unwrap();
    assert!(made.success());
    path
}

fn line(key: &Path) -> String {
    std::fs::read_to_string(key.with_extension("pub")).unwrap().trim().to_owned()
}

/// What the command on the page prints, with this namespace and more options.
pub fn sign(key: &Path, text: &str, namespace: &str, more: &[&str]) -> String {
    let mut signing = Command::new("ssh-keygen");
    signing.args(["-Y", "sign", "-n", namespace]).args(more).arg("-f").arg(key);
    let mut signing = signing.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    signing.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let done = signing.wait_with_output().unwrap();
    assert!(done.status.success());
    String::from_utf8(done.stdout).unwrap()
}

fn text() -> String {
    proof_text("nonce", "SHA256:abc", &"mia".parse().unwrap(), "corpus.example.org")
}

#[test]
fn keys_of_all_kinds_prove_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let kinds: [&[&str]; 7] = [
        &["-t", "ed25519"],
        &["-t", "rsa", "-b", "3072"],
        &["-t", "rsa", "-b", "4096"],
        &["-t", "rsa", "-b", "8192"],
        &["-t", "ecdsa", "-b", "256"],
        &["-t", "ecdsa", "-b", "384"],
        &["-t", "ecdsa", "-b", "521"],
    ];
    for (number, kind) in kinds.iter().enumerate() {
        let key = keygen(folder.path(), &format!("key{number}"), kind);
        let signature = sign(&key, &text(), NAMESPACE, &[]);
        verify_proof(&signature, &text(), &line(&key)).unwrap_or_else(|refused| panic!("{kind:?}: {refused}"));
        // As browsers send what was pasted, and with what a terminal had around it.
        let pasted = format!("\r\n  {}\r\n", signature.replace('\n', "\r\n"));
        verify_proof(&pasted, &text(), &line(&key)).unwrap();
        let sha256 = sign(&key, &format!("{}\n", text()), NAMESPACE, &["-O", "hashalg=sha256"]);
        verify_proof(&sha256, &text(), &line(&key)).unwrap();
    }
}

#[test]
fn what_proves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (mine, other) =
        (keygen(folder.path(), "mine", &["-t", "ed25519"]), keygen(folder.path(), "other", &["-t", "rsa"]));
    let check = |signature: &str| verify_proof(signature, &text(), &line(&mine)).unwrap_err();
    assert_eq!(check(&sign(&other, &text(), NAMESPACE, &[])), ProofRefused::OtherKey);
    assert_eq!(check(&sign(&mine, &text(), "git", &[])), ProofRefused::Namespace);
    assert_eq!(check(&sign(&mine, &text().replace("mia", "eve"), NAMESPACE, &[])), ProofRefused::OtherText);
    let good = sign(&mine, &text(), NAMESPACE, &[]);
    assert_eq!(check(""), ProofRefused::Empty);
    assert_eq!(check("rubbish"), ProofRefused::NotASignature);
    assert_eq!(check(&good[..good.len() / 2]), ProofRefused::NotASignature);
    assert_eq!(check(&"A".repeat(1 << 20)), ProofRefused::NotASignature);
    let private = std::fs::read_to_string(&mine).unwrap();
    assert_eq!(check(&private), ProofRefused::PrivateKey);
    let body: String = good.lines().filter(|line| !line.starts_with('-')).collect();
    for at in [10, body.len() / 2, body.len() - 9] {
        let mut broken = body.clone();
        broken.replace_range(at..=at, if &body[at..=at] == "A" { "B" } else { "A" });
        let lines: Vec<&str> = broken.as_bytes().chunks(70).map(|part| std::str::from_utf8(part).unwrap()).collect();
        let broken = format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", lines.join("\n"));
        verify_proof(&broken, &text(), &line(&mine)).unwrap_err();
    }
}

#[test]
fn a_security_key_must_have_been_touched() {
    use hardware::{security_key, signature};
    let key = security_key();
    verify_proof(&signature(&key, &text(), 1), &text(), &key.line).unwrap();
    assert_eq!(verify_proof(&signature(&key, &text(), 0), &text(), &key.line), Err(ProofRefused::NotTouched));
    assert_eq!(verify_proof(&signature(&key, "x", 1), &text(), &key.line), Err(ProofRefused::OtherText));
}

/// A security key of our own making: what the hardware signs, signed by an ordinary key.
mod hardware {
    use russh::keys::ssh_key::{HashAlg, LineEnding, Signature, SshSig, public};
    use russh::keys::{Algorithm, PrivateKey, PublicKey};
    use sha2::{Digest, Sha256};

    use super::NAMESPACE;

    pub struct SecurityKey {
        private: PrivateKey,
        public: public::KeyData,
        pub line: String,
    }

    pub fn security_key() -> SecurityKey {
        let private = crate::nodes::testing::sshd::new_host_key();
        let plain = private.public_key().key_data().ed25519().unwrap().to_owned();
        let public = public::KeyData::SkEd25519(public::SkEd25519::from(plain));
        let line = PublicKey::from(public.clone()).to_openssh().unwrap();
        SecurityKey { private, public, line }
    }

    pub fn signature(key: &SecurityKey, text: &str, flags: u8) -> String {
        let message = SshSig::signed_data(NAMESPACE, HashAlg::Sha512, text.as_bytes()).unwrap();
        let trailer = [flags, 0, 0, 0, 7];
        let signed = [&Sha256::digest("ssh:")[..], &trailer[..], &Sha256::digest(message)[..]].concat();
        let plain = russh::keys::signature::Signer::<Signature>::sign(&key.private, &signed);
        let bytes = [plain.as_bytes(), &trailer[..]].concat();
        let whole = Signature::new(Algorithm::SkEd25519, bytes).unwrap();
        SshSig::new(key.public.clone(), NAMESPACE, HashAlg::Sha512, whole).unwrap().to_pem(LineEnding::LF).unwrap()
    }
}
