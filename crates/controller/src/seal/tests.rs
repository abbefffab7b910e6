//! What opens, and what must not.

use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;
use secrecy::{ExposeSecret, SecretString};

use super::*;

fn keys(lines: &str) -> SealKeys {
    SealKeys::parse(&SecretString::from(lines.to_owned()), "the test").unwrap()
}

const OLD: &str = "00000001 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const NEW: &str = "00000002 ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";

fn secret(text: &str) -> SecretString {
    SecretString::from(text.to_owned())
}

#[test]
fn a_sealed_value_opens_for_its_own_purpose_only() {
    let keys = keys(OLD);
    let purpose = Purpose::of("guest-password", Uuid::from_u128(1));
    let sealed = keys.seal(&secret("hunter2"), &purpose).unwrap();
    assert_eq!(keys.open(&sealed, &purpose).unwrap().expose_secret(), "hunter2");
    for other in [Purpose::of("guest-password", Uuid::from_u128(2)), Purpose::control_key()] {
        assert!(matches!(keys.open(&sealed, &other), Err(SealError::Broken)));
    }
    assert_ne!(sealed, keys.seal(&secret("hunter2"), &purpose).unwrap(), "the nonce is random");
}

#[test]
fn rotation_keeps_everything_readable() {
    let purpose = Purpose::control_key();
    let sealed = keys(OLD).seal(&secret("private"), &purpose).unwrap();
    assert!(matches!(keys(NEW).open(&sealed, &purpose), Err(SealError::KeyUnknown(_))));

    let both = keys(&format!("# the new one first\n{NEW}\n{OLD}\n"));
    assert_eq!(both.open(&sealed, &purpose).unwrap().expose_secret(), "private");
    let resealed = both.reseal(&sealed, &purpose).unwrap().unwrap();
    assert_eq!(resealed.key_id(), both.key_id());
    assert!(both.reseal(&resealed, &purpose).unwrap().is_none());
    assert_eq!(keys(NEW).open(&resealed, &purpose).unwrap().expose_secret(), "private");
}

#[test]
fn the_key_file_is_made_once_and_for_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seal.key");
    let first = SealKeys::load_or_create(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(SealKeys::load_or_create(&path).unwrap().key_id(), first.key_id());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");

    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
    assert!(matches!(SealKeys::load_or_create(&path), Err(SealError::TooOpen { mode: 0o640, .. })));
    let nowhere = folder.path().join("missing/seal.key");
    assert!(matches!(SealKeys::load_or_create(&nowhere), Err(SealError::File { .. })));
}

#[test]
fn servers_that_start_together_agree_on_one_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seal.key");
    let ids: Vec<KeyId> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| SealKeys::load_or_create(&path).unwrap().key_id())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "{ids:?}");
}

#[test]
fn bad_keys_are_refused_without_being_shown() {
    for bad in
        ["00000001", "1 AAEC", "zzzzzzzz AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "00000001 AAECAwQ=", "", "#"]
    {
        let error = SealKeys::parse(&secret(bad), "the test").unwrap_err();
        assert!(!format!("{error:?} {error}").contains("AAEC"), "{error}");
    }
    assert!(SealKeys::parse(&secret(&format!("{OLD},{OLD}")), "the test").is_err(), "one id twice");
    assert!(!format!("{:?}", keys(OLD)).contains("AAEC"));
}

proptest! {
    #[test]
    fn whatever_is_sealed_opens_again(text in "\\PC{0,200}") {
        let (keys, purpose) = (keys(OLD), Purpose::control_key());
        let stored = keys.seal(&secret(&text), &purpose).unwrap().to_bytes();
        let opened = keys.open(&Sealed::from_bytes(&stored).unwrap(), &purpose).unwrap();
        prop_assert_eq!(opened.expose_secret(), text);
    }

    #[test]
    fn no_byte_can_be_changed(text in "\\PC{1,50}", at in any::<prop::sample::Index>(), flip in 1_u8..) {
        let (keys, purpose) = (keys(OLD), Purpose::control_key());
        let mut stored = keys.seal(&secret(&text), &purpose).unwrap().to_bytes();
        let at = at.index(stored.len());
        stored[at] ^= flip;
        prop_assert!(Sealed::from_bytes(&stored).and_then(|sealed| keys.open(&sealed, &purpose)).is_err());
    }

    #[test]
    fn no_byte_can_be_cut_off(length in 0_usize..46) {
        let (keys, purpose) = (keys(OLD), Purpose::control_key());
        let stored = keys.seal(&secret("x"), &purpose).unwrap().to_bytes();
        prop_assert_eq!(stored.len(), 46);
        prop_assert!(Sealed::from_bytes(&stored[..length]).and_then(|sealed| keys.open(&sealed, &purpose)).is_err());
    }
}
