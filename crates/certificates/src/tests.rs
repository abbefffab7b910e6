//! What is taken and what is refused, with certificates made here.

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use corpus_domain::CertifiedName;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
};
use secrecy::{ExposeSecret, SecretString};
use time::OffsetDateTime;

use crate::{Authority, Material, MaterialError};

fn name(text: &str) -> CertifiedName {
    text.parse().unwrap()
}

fn at(when: DateTime<Utc>) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(when.timestamp()).unwrap()
}

fn params(names: &[&str], called: &str) -> CertificateParams {
    let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
    params.distinguished_name.push(DnType::CommonName, called);
    params.not_before = at(Utc::now() - TimeDelta::days(1));
    params.not_after = at(Utc::now() + TimeDelta::days(30));
    params
}

fn issuer(called: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = params(&[], called);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn read(chain: &str, key: &str) -> Result<Material, MaterialError> {
    Material::read(chain, &SecretString::from(key), Utc::now())
}

/// A self-signed one.
fn own(change: impl FnOnce(&mut CertificateParams)) -> (String, String) {
    let (mut params, key) = (params(&["www.example.org"], "own"), KeyPair::generate().unwrap());
    change(&mut params);
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

#[test]
fn a_chain_with_its_key_is_read() {
    let (issuer, key) = (issuer("Some issuer"), KeyPair::generate().unwrap());
    let leaf = params(&["www.example.org", "*.example.org", "10.0.0.1"], "www").signed_by(&key, &issuer).unwrap();
    let chain = format!("a word of the issuer\n{}\n{}", leaf.pem(), issuer.pem());
    let material = read(&chain, &key.serialize_pem()).unwrap();
    assert_eq!(material.names, [name("www.example.org"), name("*.example.org")]);
    assert_eq!(material.issuer, "Some issuer");
    assert_eq!(material.chain.matches("BEGIN CERTIFICATE").count(), 2);
    assert!(!material.chain.contains("a word"), "only blocks are served");
    let pem = material.pem();
    assert!(pem.expose_secret().starts_with("-----BEGIN CERTIFICATE-----\n"));
    assert!(pem.expose_secret().ends_with("-----END PRIVATE KEY-----\n"));
    assert!(pem.expose_secret().lines().all(|line| !line.is_empty() && line.len() <= 64));
    assert_eq!(material.digest().len(), 64);
    assert!(!format!("{material:?}").contains("PRIVATE"), "a key is not shown");
    // What was kept is read again as the same.
    let again = Material::read(&material.chain, &material.key, Utc::now()).unwrap();
    assert_eq!(again.digest(), material.digest());
}

#[test]
fn keys_of_other_kinds_are_read() {
    for algorithm in [&PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let chain = params(&["www.example.org"], "own").self_signed(&key).unwrap().pem();
        read(&chain, &key.serialize_pem()).unwrap();
    }
}

#[test]
fn a_key_in_the_form_of_its_kind_becomes_pkcs8() {
    // What `openssl ecparam -genkey` writes is inside what rcgen writes: the OCTET STRING after version and algorithm.
    let key = KeyPair::generate().unwrap();
    let chain = params(&["www.example.org"], "own").self_signed(&key).unwrap().pem();
    let pkcs8 = key.serialize_der();
    let at = pkcs8.windows(2).position(|two| two == [0x04, 0x6d]).expect("an OCTET STRING of 109 bytes");
    let sec1 = crate::pem::block("EC PRIVATE KEY", &pkcs8[at + 2..at + 2 + 0x6d]);
    let material = read(&chain, &sec1).unwrap();
    assert!(material.key.expose_secret().starts_with("-----BEGIN PRIVATE KEY-----"));
    read(&chain, material.key.expose_secret()).unwrap();
}

#[test]
fn what_is_over_or_has_not_begun_is_refused() {
    let ended = (Utc::now() - TimeDelta::hours(1)).trunc_subsecs(0);
    let (chain, key) = own(|params| params.not_after = at(ended));
    let refused = read(&chain, &key).unwrap_err();
    assert_eq!(refused, MaterialError::Expired(ended));
    assert!(refused.to_string().contains("UTC: get a new one"), "{refused}");
    let (chain, key) = own(|params| params.not_before = at(Utc::now() + TimeDelta::hours(1)));
    assert!(matches!(read(&chain, &key), Err(MaterialError::NotYet(_))));
}

#[test]
fn another_key_is_refused() {
    let ((chain, _), (_, key)) = (own(|_| {}), own(|_| {}));
    let refused = read(&chain, &key).unwrap_err();
    assert_eq!(refused, MaterialError::OtherKey);
    assert!(refused.is_of_key() && !MaterialError::NoNames.is_of_key());
}

#[test]
fn rubbish_is_refused() {
    let (chain, key) = own(|_| {});
    assert_eq!(read("", &key).unwrap_err(), MaterialError::NoCertificate);
    assert_eq!(read("hello", &key).unwrap_err(), MaterialError::NoCertificate);
    assert_eq!(read(&key, &key).unwrap_err(), MaterialError::NoCertificate);
    assert_eq!(read(&crate::pem::block("CERTIFICATE", b"hello"), &key).unwrap_err(), MaterialError::Unreadable(1));
    assert_eq!(read(&chain, "hello").unwrap_err(), MaterialError::NoKey);
    assert_eq!(read(&chain, &chain).unwrap_err(), MaterialError::NoKey);
    assert_eq!(read(&chain, &crate::pem::block("PRIVATE KEY", b"hello")).unwrap_err(), MaterialError::KeyUnreadable);
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    assert_eq!(read(&chain, locked).unwrap_err(), MaterialError::EncryptedKey);
    assert_eq!(read(&chain.repeat(200), &key).unwrap_err(), MaterialError::TooLarge);
}

#[test]
fn a_chain_in_another_order_is_refused() {
    let (issuer, key) = (issuer("Some issuer"), KeyPair::generate().unwrap());
    let leaf = params(&["www.example.org"], "www").signed_by(&key, &issuer).unwrap();
    let reversed = format!("{}{}", issuer.pem(), leaf.pem());
    assert_eq!(read(&reversed, &key.serialize_pem()).unwrap_err(), MaterialError::LeafNotFirst);
    let other = self::issuer("Another issuer");
    let wrong = format!("{}{}", leaf.pem(), other.pem());
    assert_eq!(read(&wrong, &key.serialize_pem()).unwrap_err(), MaterialError::Order(2));
}

#[test]
fn what_browsers_do_not_take_is_refused() {
    let (chain, key) = own(|params| params.subject_alt_names.clear());
    assert_eq!(read(&chain, &key).unwrap_err(), MaterialError::NoNames);
    let (chain, key) = own(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]);
    assert_eq!(read(&chain, &key).unwrap_err(), MaterialError::NotForServers);
}

#[test]
fn a_wildcard_covers_one_label() {
    let (chain, key) = own(|params| params.subject_alt_names = self::params(&["*.example.org"], "").subject_alt_names);
    let material = read(&chain, &key).unwrap();
    for (asked, covered) in [
        ("www.example.org", true),
        ("*.example.org", true),
        ("example.org", false),
        ("a.www.example.org", false),
        ("*.www.example.org", false),
    ] {
        assert_eq!(material.covers(&name(asked)), covered, "{asked}");
    }
    let (chain, key) = own(|_| {});
    assert!(!read(&chain, &key).unwrap().covers(&name("*.example.org")), "one name is no wildcard");
}

#[test]
fn the_next_one_is_due_at_two_thirds() {
    let authority = Authority::make("corpus", Utc::now()).unwrap();
    let material = authority.sign(&[name("www.example.org")], Utc::now(), TimeDelta::days(90)).unwrap();
    let life = material.not_after - material.not_before;
    assert_eq!(material.renew_at(0.0), material.not_before + life / 3 * 2);
    assert_eq!((material.renew_at(1.0) - material.renew_at(0.0)).num_hours(), (life / 20).num_hours());
    assert_eq!(material.renew_at(7.0), material.renew_at(1.0));
}

#[test]
fn an_authority_is_the_same_when_it_is_read_again() {
    let made = Authority::make("corpus.example.org", Utc::now()).unwrap();
    let read = Authority::read(made.certificate(), &made.key()).unwrap();
    assert_eq!(read.fingerprint(), made.fingerprint());
    assert_eq!(read.fingerprint().len(), 32 * 3 - 1);
    let names = [name("*.example.org"), name("example.org")];
    let material = read.sign(&names, Utc::now(), TimeDelta::days(90)).unwrap();
    assert_eq!(material.names, names);
    assert_eq!(material.issuer, "corpus.example.org certificate authority");
    // A chain that begins with it is refused where it is not first; with it behind, the issuers fit.
    let chain = format!("{}{}", material.chain, made.certificate());
    Material::read(&chain, &material.key, Utc::now()).unwrap();
    let other = Authority::make("corpus.example.org", Utc::now()).unwrap();
    assert!(Authority::read(made.certificate(), &other.key()).is_err(), "another's key");
    assert!(!format!("{made:?}").contains("PRIVATE"));
}

#[test]
fn nothing_outlives_its_authority() {
    let then = Utc::now() - TimeDelta::days(20 * 365 - 10);
    let old = Authority::make("corpus", then).unwrap();
    let material = old.sign(&[name("www.example.org")], Utc::now(), TimeDelta::days(90)).unwrap();
    assert_eq!(material.not_after, old.not_after());
    let ended = Authority::make("corpus", Utc::now() - TimeDelta::days(21 * 365)).unwrap();
    assert!(ended.sign(&[name("www.example.org")], Utc::now(), TimeDelta::days(90)).is_err());
}

#[test]
fn each_is_signed_by_its_authority_for_servers_only() {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    use x509_parser::prelude::{FromDer, X509Certificate};
    let authority = Authority::make("corpus", Utc::now()).unwrap();
    let material = authority.sign(&[name("www.example.org")], Utc::now(), TimeDelta::days(90)).unwrap();
    let leaf = CertificateDer::from_pem_slice(material.chain.as_bytes()).unwrap();
    let root = CertificateDer::from_pem_slice(authority.certificate().as_bytes()).unwrap();
    let (_, leaf) = X509Certificate::from_der(&leaf).unwrap();
    let (_, root) = X509Certificate::from_der(&root).unwrap();
    leaf.verify_signature(Some(root.public_key())).unwrap();
    assert!(root.is_ca() && !leaf.is_ca());
    let usage = leaf.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && !usage.client_auth && !usage.any);
}
