//! With real keys, made by `ssh-keygen` while the tests run.

#![expect(clippy::disallowed_methods, reason = "the real programs are what is tested against")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use secrecy::{ExposeSecret, SecretString};

use super::*;

/// Makes a key; returns the path of its private part, or `None` if this ssh-keygen can't.
fn keygen(folder: &Path, args: &[&str]) -> Option<PathBuf> {
    let path = folder.join(args.join("").replace('/', ""));
    let made = Command::new("ssh-keygen").args(["-q", "-N", "", "-f"]).arg(&path).args(args).status().unwrap();
    made.success().then_some(path)
}

fn public(path: &Path) -> String {
    fs::read_to_string(path.with_extension("pub")).unwrap()
}

fn refused(text: &str) -> KeyRefused {
    text.parse::<MemberKey>().unwrap_err()
}

#[test]
fn agrees_with_ssh_keygen_about_good_keys() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, bits) in
        [("ed25519", "256"), ("rsa", "3072"), ("rsa", "4096"), ("ecdsa", "256"), ("ecdsa", "384"), ("ecdsa", "521")]
    {
        let path = keygen(folder.path(), &["-t", kind, "-b", bits, "-C", "  alice@laptop  "]).unwrap();
        let key: MemberKey = public(&path).parse().unwrap();
        let listed = Command::new("ssh-keygen").arg("-lf").arg(&path).output().unwrap();
        let expected = format!("{} {} alice@laptop ({})", key.bits(), key.fingerprint(), key.algorithm());
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert_eq!(listed.split_whitespace().collect::<Vec<_>>().join(" "), expected);
        assert_eq!(key.comment(), "alice@laptop");
        assert_eq!(key.line(), public(&path).split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(key.line().parse::<MemberKey>().unwrap(), key);
    }
}

#[test]
fn takes_security_keys() {
    // From OpenSSH's own test suite (regress/unittests/sshkey/testdata).
    let ed25519 = "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAICFo/k5LU8863u66YC9eUO2170QduohPURkQnbLa/dczAAAABHNzaDo= sk";
    let key: MemberKey = ed25519.parse().unwrap();
    assert_eq!((key.algorithm(), key.bits()), (KeyAlgorithm::SkEd25519, 256));
    assert_eq!(key.line(), ed25519);
}

#[test]
fn a_private_key_is_recognised_and_never_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let mut private_keys = vec![
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: x\nPrivate-Lines: 1\nAAAAsecret\n".to_owned(),
    ];
    for args in [&["-t", "ed25519"][..], &["-t", "rsa", "-b", "2048", "-m", "PEM"], &["-t", "ecdsa", "-m", "PKCS8"]] {
        let text = fs::read_to_string(keygen(folder.path(), args).unwrap()).unwrap();
        private_keys.push(text.replace('\n', " "));
        private_keys.push(text.lines().filter(|line| !line.starts_with('-')).collect::<Vec<_>>().join("\n"));
        private_keys.push(format!("ssh-ed25519 AAAA {text}"));
        private_keys.push(format!("{}{text}", " ".repeat(100_000)));
        private_keys.push(text);
    }
    for text in private_keys {
        let error = refused(&text);
        if text.contains("PRIVATE") || text.contains("PuTTY") || text.starts_with("b3BlbnNz") {
            assert_eq!(error, KeyRefused::PrivateKey);
        }
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("secret") && text.lines().filter(|l| l.len() > 20).all(|line| !shown.contains(line)));
    }
    assert!(KeyRefused::PrivateKey.to_string().contains("not stored"));
    assert!(KeyRefused::PrivateKey.to_string().contains(".pub"));
}

/// Far more than any key has.
const MAX: usize = 1 << 20;

#[test]
fn weak_and_other_keys_are_refused_with_their_reason() {
    let folder = tempfile::tempdir().unwrap();
    let short = keygen(folder.path(), &["-t", "rsa", "-b", "2048"]).unwrap();
    assert_eq!(refused(&public(&short)), KeyRefused::RsaTooShort(2048));
    assert!(KeyRefused::RsaTooShort(2048).to_string().contains("2048"));
    if let Some(dsa) = keygen(folder.path(), &["-t", "dsa"]) {
        assert_eq!(refused(&public(&dsa)), KeyRefused::Dsa);
    }

    let good = keygen(folder.path(), &["-t", "ed25519", "-C", "x"]).unwrap();
    let line = public(&good);
    let line = line.trim();
    assert_eq!(refused(&format!("{line}\n{line}")), KeyRefused::SeveralLines);
    for options in ["command=\"reboot\"", "no-pty,command=\"a b\"", "# ", "restrict"] {
        assert_eq!(refused(&format!("{options} {line}")), KeyRefused::Options, "{options}");
    }
    for (bad, reason) in [
        ("", KeyRefused::Empty),
        (" \n ", KeyRefused::Empty),
        ("ssh-ed25519", KeyRefused::NotAKey),
        ("ssh-ed25519 AAAA", KeyRefused::NotAKey),
        ("hello there", KeyRefused::NotAKey),
        ("hello@example.org AAAA", KeyRefused::UnknownAlgorithm),
        (&line[..40], KeyRefused::NotAKey),
        (&line.replace("ssh-ed25519 ", "ssh-rsa "), KeyRefused::NotAKey),
        (&"a".repeat(MAX), KeyRefused::TooLong),
    ] {
        assert_eq!(refused(bad), reason, "{bad:.60}");
    }
}

#[test]
fn certificates_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let authority = keygen(folder.path(), &["-t", "ed25519"]).unwrap();
    let key = keygen(folder.path(), &["-t", "ecdsa"]).unwrap();
    let mut sign = Command::new("ssh-keygen");
    sign.args(["-q", "-I", "x", "-s"]).arg(&authority).arg(key.with_extension("pub"));
    assert!(sign.status().unwrap().success());
    let certificate = fs::read_to_string(folder.path().join("-tecdsa-cert.pub")).unwrap();
    assert_eq!(refused(&certificate), KeyRefused::Certificate);
    let disguised = certificate.replacen("-cert-v01@openssh.com", "", 1);
    assert_eq!(refused(&disguised), KeyRefused::Certificate);
}

#[test]
fn comments_are_made_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let path = keygen(folder.path(), &["-t", "ed25519", "-C", ""]).unwrap();
    let line = public(&path).trim().to_owned();
    assert_eq!(line.parse::<MemberKey>().unwrap().comment(), "");
    let key: MemberKey = format!("{line} \u{1b}[31mred\u{202e}\u{0}  é").parse().unwrap();
    assert_eq!(key.comment(), "[31mred  é");
    let key: MemberKey = format!("{line} {}", "x".repeat(5000)).parse().unwrap();
    assert_eq!(key.comment().len(), 100);
    assert_eq!(key.line().lines().count(), 1);
}

#[test]
fn host_keys_are_usable_and_their_private_part_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let key = generate_host_key().unwrap();
    let path = folder.path().join("host_key");
    fs::write(&path, &key.private).unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let public = Command::new("ssh-keygen").arg("-yf").arg(&path).output().unwrap();
    assert_eq!(String::from_utf8(public.stdout).unwrap().trim(), key.public.trim());
    assert!(!format!("{key:?}").contains("PRIVATE"));
    assert_ne!(generate_host_key().unwrap().private, key.private);
}

#[test]
fn passwords_are_random_and_hashed_as_crypt_wants_it() {
    let password = generate_password();
    assert_eq!(password.expose_secret().len(), 24);
    assert!(password.expose_secret().bytes().all(|b| b.is_ascii_alphanumeric() && !b"0O1lIio".contains(&b)));
    assert_ne!(password.expose_secret(), generate_password().expose_secret());

    let begin = Instant::now();
    let hash = unix_hash(&password).unwrap().0;
    assert!(begin.elapsed() < Duration::from_millis(500), "{:?}", begin.elapsed());
    println!("unix_hash: {:?}", begin.elapsed());
    let parts: Vec<&str> = hash.split('$').collect();
    assert_eq!((parts[1], parts[2], parts[3].len(), parts[4].len()), ("6", "rounds=5000", 16, 86), "{hash}");
    assert_eq!(crypt(&password, parts[3]), hash);
}

/// The same hash by another implementation.
fn crypt(password: &SecretString, salt: &str) -> String {
    let program = "use strict; print crypt($ARGV[0], $ARGV[1])";
    let output = Command::new("perl")
        .args(["-e", program, password.expose_secret(), &format!("$6$rounds=5000${salt}")])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

proptest! {
    #[test]
    fn garbage_is_refused_without_a_panic(text in "\\PC{0,300}") {
        prop_assert!(text.parse::<MemberKey>().is_err());
    }

    #[test]
    fn garbage_behind_a_good_name_is_refused(
        name in "ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp256|ssh-dss|sk-ssh-ed25519@openssh.com",
        body in "[A-Za-z0-9+/]{0,200}={0,2}",
    ) {
        let line = format!("{name} {body}");
        prop_assert!(line.parse::<MemberKey>().is_err());
    }
}
