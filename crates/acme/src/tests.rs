//! Against a real directory.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use corpus_domain::CertifiedName;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::{ExposeSecret, SecretString};

use crate::pebble_server::{Behaviour, PebbleServer};
use crate::{Account, AcmeError, Directory, DirectorySettings, Order, ProofKind, new_key};

const LIMIT: Duration = Duration::from_secs(20);

fn names(names: &[&str]) -> Vec<CertifiedName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

async fn account(pebble: &PebbleServer) -> Account {
    Directory::new(pebble.settings()).unwrap().sign_up().await.unwrap().0
}

/// Jobs hold these over what they wait for.
#[test]
fn what_waits_can_be_sent() {
    fn sends<T: Send>(_: T) {}
    fn all(directory: &Directory, account: &Account, order: &mut Order, names: &[CertifiedName], key: &SecretString) {
        sends(directory.sign_up());
        sends(directory.sign_in(key));
        sends(account.order(names, None));
        sends(account.renewal(""));
        sends(order.proofs(ProofKind::Http01));
        sends(order.ready(ProofKind::Http01));
        sends(order.validated(ProofKind::Http01, LIMIT));
        sends(order.finalize(names, key, LIMIT));
    }
    let _ = all;
}

/// Has the certificates' names proven by HTTP.
async fn prove(pebble: &PebbleServer, order: &mut Order) -> Result<(), AcmeError> {
    for proof in order.proofs(ProofKind::Http01).await? {
        pebble.answer(&proof.token, &proof.answer);
    }
    order.ready(ProofKind::Http01).await?;
    order.validated(ProofKind::Http01, LIMIT).await
}

#[tokio::test]
async fn a_certificate_is_issued_by_http() {
    let pebble = PebbleServer::start();
    let directory = Directory::new(pebble.settings()).unwrap();
    let (_, kept) = directory.sign_up().await.unwrap();
    let account = directory.sign_in(&kept).await.unwrap();
    let (names, key) = (names(&["www.example.org", "example.org"]), new_key().unwrap());
    let mut order = account.order(&names, None).await.unwrap();
    let url = order.url().to_owned();
    assert!(!order.is_validated());
    prove(&pebble, &mut order).await.unwrap();
    let chain = order.finalize(&names, &key, LIMIT).await.unwrap();
    let certificates = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(certificates.len(), 2, "{chain}");
    // Whoever was stopped in between asks the same order again.
    let mut again = account.resume(&url).await.unwrap();
    assert!(again.is_validated());
    assert!(again.proofs(ProofKind::Http01).await.unwrap().is_empty());
    again.ready(ProofKind::Http01).await.unwrap();
    again.validated(ProofKind::Http01, LIMIT).await.unwrap();
    assert_eq!(again.finalize(&names, &key, LIMIT).await.unwrap(), chain);
    assert_eq!(account.renewal(&chain).await.unwrap(), None, "this directory has no such thing");
}

#[tokio::test]
async fn a_wildcard_is_issued_by_dns() {
    let pebble = PebbleServer::start();
    let account = account(&pebble).await;
    let names = names(&["*.pages.example.org"]);
    let mut order = account.order(&names, None).await.unwrap();
    let by_http = order.proofs(ProofKind::Http01).await.unwrap_err();
    assert!(matches!(by_http, AcmeError::ProofNotOffered { .. }) && !by_http.is_transient(), "{by_http}");
    let proofs = order.proofs(ProofKind::Dns01).await.unwrap();
    assert_eq!(proofs.iter().map(|proof| proof.name.as_str()).collect::<Vec<_>>(), ["pages.example.org"]);
    for proof in &proofs {
        pebble.set_txt(&proof.name, &proof.txt).await;
    }
    order.ready(ProofKind::Dns01).await.unwrap();
    order.validated(ProofKind::Dns01, LIMIT).await.unwrap();
    order.finalize(&names, &new_key().unwrap(), LIMIT).await.unwrap();
}

#[tokio::test]
async fn a_name_that_does_not_lead_here_is_told() {
    let pebble = PebbleServer::start();
    let account = account(&pebble).await;
    let mut order = account.order(&names(&["www.example.org"]), None).await.unwrap();
    order.ready(ProofKind::Http01).await.unwrap();
    let error = order.validated(ProofKind::Http01, LIMIT).await.unwrap_err();
    assert!(matches!(&error, AcmeError::ValidationFailed { name, .. } if name == "www.example.org"), "{error:?}");
    assert!(!error.is_transient(), "somebody must do something");
    let said = error.to_string();
    assert!(said.contains("404") && said.contains("to no other host"), "{said}");
    let mut again = account.resume(order.url()).await.unwrap();
    let error = again.finalize(&names(&["www.example.org"]), &new_key().unwrap(), LIMIT).await.unwrap_err();
    assert!(matches!(error, AcmeError::OrderInvalid { .. }), "{error:?}");
}

#[tokio::test]
async fn refused_nonces_are_asked_for_again() {
    let pebble = PebbleServer::start_with(Behaviour { refuses_nonces: 20, ..Behaviour::default() });
    let directory = Directory::new(pebble.settings()).unwrap();
    let asked = || pebble.log().lines().filter(|line| line.contains("POST /sign-me-up")).count();
    let (mut rounds, mut issued) = (0, 0);
    // Until one was refused, and then asked for again.
    while asked() <= rounds || issued == 0 {
        assert!(rounds < 40, "none was refused: {}", pebble.log());
        rounds += 1;
        let tried = async {
            let (account, _) = directory.sign_up().await?;
            let names = names(&["www.example.org"]);
            let mut order = account.order(&names, None).await?;
            prove(&pebble, &mut order).await?;
            order.finalize(&names, &new_key()?, LIMIT).await
        };
        match tried.await {
            Ok(_) => issued += 1,
            // Three refusals in a row, one time in a hundred.
            Err(error) => assert!(error.is_transient() && error.to_string().contains("nonce"), "{error}"),
        }
    }
}

#[tokio::test]
async fn accounts_are_bound_to_external_ones() {
    let pebble = PebbleServer::start_with(Behaviour { binds_accounts: true, ..Behaviour::default() });
    Directory::new(pebble.settings()).unwrap().sign_up().await.unwrap();
    let refused = |settings: DirectorySettings| async move {
        let error = Directory::new(settings).unwrap().sign_up().await.err().unwrap();
        assert!(matches!(error, AcmeError::AccountRefused { .. }) && !error.is_transient(), "{error:?}");
    };
    refused(DirectorySettings { eab: None, ..pebble.settings() }).await;
    let mut other = pebble.settings();
    other.eab.as_mut().unwrap().key = SecretString::from("c2VjcmV0".to_owned());
    refused(other.clone()).await;
    other.eab.as_mut().unwrap().key = SecretString::from("not base64!".to_owned());
    assert!(matches!(Directory::new(other).unwrap_err(), AcmeError::ExternalKeyInvalid));
}

#[tokio::test]
async fn a_directory_that_has_forgotten_us_gets_another_account() {
    let (first, second) = (PebbleServer::start(), PebbleServer::start());
    let (_, kept) = Directory::new(first.settings()).unwrap().sign_up().await.unwrap();
    let settings = second.settings();
    // As if the first one had been set up anew.
    let kept = kept.expose_secret().replace(&first.api.to_string(), &second.api.to_string());
    let directory = Directory::new(settings).unwrap();
    let account = directory.sign_in(&SecretString::from(kept)).await.unwrap();
    let error = account.order(&names(&["www.example.org"]), None).await.err().unwrap();
    assert!(error.is_of_lost_account() && error.is_transient(), "{error:?}");
    let unreadable = directory.sign_in(&SecretString::from("{}".to_owned())).await.err().unwrap();
    assert!(unreadable.is_of_lost_account(), "{unreadable:?}");
}

#[tokio::test]
async fn a_directory_that_is_down_or_another_is_told() {
    let mut pebble = PebbleServer::start();
    let settings = pebble.settings();
    let untrusted = DirectorySettings { root: None, ..settings.clone() };
    let error = Directory::new(untrusted).unwrap().sign_up().await.err().unwrap();
    assert!(matches!(error, AcmeError::Unreachable { .. }), "its certificate is nobody's: {error:?}");
    let missing = DirectorySettings { root: Some("/nowhere.pem".into()), ..settings.clone() };
    assert!(matches!(Directory::new(missing).unwrap_err(), AcmeError::RootUnreadable { .. }));
    pebble.stop();
    let error = Directory::new(settings).unwrap().sign_up().await.err().unwrap();
    assert!(matches!(error, AcmeError::Unreachable { .. }) && error.is_transient(), "{error:?}");
}

/// What a directory that answers this to everything does to us.
async fn with_answer(answer: impl Into<String>) -> AcmeError {
    let answer: String = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let directory = format!("http://{}/dir", listener.local_addr().unwrap()).parse().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().take(3).flatten() {
            let _ = stream.read(&mut [0; 2048]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    let settings = DirectorySettings { directory, contact: None, eab: None, root: None };
    Directory::new(settings).unwrap().sign_up().await.err().unwrap()
}

#[tokio::test]
async fn rubbish_and_limits_are_told() {
    let error = with_answer("HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>").await;
    assert!(matches!(error, AcmeError::NotUnderstood(_)) && !error.is_transient(), "{error:?}");
    let long = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", " ".repeat(300_000));
    let error = with_answer(long).await;
    assert!(matches!(error, AcmeError::NotUnderstood(None)), "it is not read to its end: {error:?}");
    let error = with_answer(
        "HTTP/1.1 429 Too Many\r\nRetry-After: 90\r\nContent-Length: 46\r\nConnection: close\r\n\r\n\
         {\"type\":\"rateLimited\",\"detail\":\"too many today\"}",
    )
    .await;
    assert_eq!(error.retry_after(), Some(Duration::from_secs(90)), "{error:?}");
    assert!(error.is_transient(), "{error}");
    let error = with_answer("HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy").await;
    assert!(matches!(error, AcmeError::Failing { status: 503, .. }) && error.is_transient(), "{error:?}");
    let error = with_answer("gibberish\r\n\r\n").await;
    assert!(matches!(error, AcmeError::Unreachable { .. }), "{error:?}");
}
