//! A relay over TLS: who it is is checked, a password is never sent in the open, and each refusal says what it is.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use secrecy::SecretString;
use sqlx::PgPool;
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;
use uuid::Uuid;

use super::queue::{MIA, a_minute_later, all_is_sent, ends, queued, to, world};
use super::sink::{Offers, Sink};
use crate::mail::{Mail, MailError, Mailer, Relay};

const PASSWORD: &str = "s3cret pass";

/// An authority, and a certificate of it for one address.
struct Authority {
    folder: TempDir,
}

#[expect(clippy::disallowed_methods, reason = "certificates for tests are made by openssl")]
fn openssl(args: &[&str], folder: &Path) {
    let done = Command::new("openssl").args(args).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{args:?}\n{}", String::from_utf8_lossy(&done.stderr));
}

impl Authority {
    fn new(address: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        // Of the same name as another, its signature would be what is wrong.
        let subject = format!("/CN=test authority {}", Uuid::now_v7());
        let ca = ["req", "-x509", "-days", "2", "-subj", &subject, "-keyout", "ca.key", "-out", "ca.pem"];
        let is_ca = ["-addext", "basicConstraints=critical,CA:TRUE"];
        openssl(&[&ca[..], &ec, &is_ca].concat(), folder.path());
        openssl(
            &[&["req", "-subj", "/CN=relay", "-keyout", "key.pem", "-out", "csr"][..], &ec].concat(),
            folder.path(),
        );
        std::fs::write(folder.path().join("ext"), format!("subjectAltName=IP:{address}\nbasicConstraints=CA:FALSE\n"))
            .unwrap();
        let sign = ["x509", "-req", "-days", "2", "-CAcreateserial", "-in", "csr", "-CA", "ca.pem", "-CAkey", "ca.key"];
        openssl(&[&sign[..], &["-extfile", "ext", "-out", "cert.pem"]].concat(), folder.path());
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn acceptor(&self) -> TlsAcceptor {
        let certificates = CertificateDer::pem_file_iter(self.file("cert.pem")).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(self.file("key.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_no_client_auth().with_single_cert(certificates, key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

fn relay(scheme: &str, sink: &Sink, authority: &Authority) -> Relay {
    let login = Some(("corpus".to_owned(), SecretString::from(PASSWORD)));
    let ca_file = Some(authority.file("ca.pem"));
    Relay { starttls: scheme == "smtp", login, ca_file, ..Relay::of(&format!("{scheme}://{}", sink.address)) }
}

fn mailer(relay: &Relay) -> Mailer {
    Mailer::new(relay, "corpus@example.org", &"http://c.test".parse().unwrap()).unwrap()
}

/// What a relay like this answers, without a queue.
async fn refusal(relay: &Relay) -> MailError {
    let mail = Mail { subject: "x".to_owned(), text: "x".to_owned() };
    mailer(relay).send(Uuid::nil(), "mia@example.org", &mail).await.unwrap_err()
}

fn plain() -> String {
    STANDARD.encode(format!("\0corpus\0{PASSWORD}"))
}

#[sqlx::test(migrations = "../../migrations")]
async fn letters_go_over_tls_from_the_start_and_by_starttls(pool: PgPool) {
    world(&pool).await;
    let authority = Authority::new("127.0.0.1");
    let offered = [("smtps", Offers::Tls(authority.acceptor())), ("smtp", Offers::StartTls(authority.acceptor()))];
    for (number, (scheme, offers)) in (1..).zip(offered) {
        let sink = Sink::offering(offers).await;
        *sink.login.lock().unwrap() = Some(plain());
        ends(&pool, number, MIA, "push", "rolled_back").await;
        all_is_sent(&pool, &mailer(&relay(scheme, &sink, &authority))).await;
        let letters = sink.letters();
        assert_eq!(letters.len(), 1, "{scheme}");
        assert!(letters[0].over_tls, "{scheme}");
        assert_eq!(letters[0].login.as_deref(), Some(plain().as_str()), "{scheme}");
        assert_eq!(letters[0].to, ["RCPT TO:<mia@example.org>"]);
    }
}

#[sqlx::test(migrations = "../../migrations")]
async fn a_refused_password_is_said_and_the_letter_is_kept(pool: PgPool) {
    world(&pool).await;
    let authority = Authority::new("127.0.0.1");
    let sink = Sink::offering(Offers::StartTls(authority.acceptor())).await;
    *sink.login.lock().unwrap() = Some("another".to_owned());
    for number in 1..=2 {
        ends(&pool, number, MIA, "push", "rolled_back").await;
    }
    let mailer = mailer(&relay("smtp", &sink, &authority));
    all_is_sent(&pool, &mailer).await;
    assert_eq!((sink.letters().len(), queued(&pool).await), (0, vec![to("mia", "failed"); 2]));
    let error: String = sqlx::query_scalar("select error from mail_letters").fetch_one(&pool).await.unwrap();
    assert!(error.contains("refused the login") && error.contains("535"), "{error}");
    assert!(!error.contains(PASSWORD) && !error.contains(&plain()), "{error}");
    *sink.login.lock().unwrap() = None;
    a_minute_later(&pool).await;
    all_is_sent(&pool, &mailer).await;
    assert_eq!(sink.letters().len(), 1, "both in one letter");
}

#[tokio::test]
async fn a_relay_without_starttls_hears_no_password_and_no_letter() {
    let authority = Authority::new("127.0.0.1");
    let sink = Sink::offering(Offers::Plain).await;
    let error = refusal(&relay("smtp", &sink, &authority)).await;
    assert!(matches!(error, MailError::NoStartTls) && error.is_of_relay(), "{error}");
    let heard = sink.heard.lock().unwrap().clone();
    let said = |word: &str| heard.iter().any(|line| line.starts_with(word));
    assert!(said("EHLO") && !said("AUTH") && !said("MAIL"), "{heard:?}");
}

#[tokio::test]
async fn a_certificate_of_somebody_else_or_for_somebody_else_is_not_accepted() {
    let (ours, others, elsewhere) =
        (Authority::new("127.0.0.1"), Authority::new("127.0.0.1"), Authority::new("192.0.2.1"));
    for scheme in ["smtps", "smtp"] {
        let offer = |authority: &Authority| match scheme {
            "smtps" => Offers::Tls(authority.acceptor()),
            _ => Offers::StartTls(authority.acceptor()),
        };
        for (server, trusted, says) in
            [(&others, &ours, "UnknownIssuer"), (&elsewhere, &elsewhere, "not valid for name")]
        {
            let sink = Sink::offering(offer(server)).await;
            let error = refusal(&relay(scheme, &sink, trusted)).await;
            assert!(matches!(error, MailError::Certificate(_)), "{scheme}: {error}");
            assert!(error.to_string().contains(says), "{scheme}: {error}");
            let heard = sink.heard.lock().unwrap().clone();
            assert!(!heard.iter().any(|line| line.starts_with("AUTH")), "{heard:?}");
        }
        // The authorities of the system vouch for neither.
        let sink = Sink::offering(offer(&ours)).await;
        let error = refusal(&Relay { ca_file: None, ..relay(scheme, &sink, &ours) }).await;
        assert!(matches!(error, MailError::Certificate(_)), "{scheme}: {error}");
    }
}

#[tokio::test]
async fn a_relay_that_does_not_answer_or_speaks_no_tls() {
    let authority = Authority::new("127.0.0.1");
    let sink = Sink::start().await;
    let gone = relay("smtps", &sink, &authority);
    let error = refusal(&gone).await;
    assert!(matches!(error, MailError::Tls(_) | MailError::Unreachable(_)), "{error}");
    drop(sink);
    let error = refusal(&gone).await;
    assert!(matches!(error, MailError::Unreachable(_)), "{error}");
}

#[test]
fn a_password_goes_over_tls_or_nowhere() {
    let with_login =
        |url: &str| Relay { login: Some(("corpus".to_owned(), SecretString::from(PASSWORD))), ..Relay::of(url) };
    for url in ["smtp://mail.example.org", "smtp://192.0.2.1:25"] {
        assert!(matches!(with_login(url).check(), Err(MailError::PasswordInTheOpen { .. })), "{url}");
        assert!(Relay::of(url).check().is_ok(), "without a password: {url}");
        assert!(Relay { starttls: true, ..with_login(url) }.check().is_ok(), "{url}");
    }
    let in_url = Relay::of("smtp://corpus:s3cret@mail.example.org").check().unwrap_err();
    assert!(!format!("{in_url} {in_url:?}").contains("s3cret"));
    for url in ["smtp://127.0.0.1", "smtp://localhost:2525", "smtp://[::1]", "smtp://h?tls=required", "smtps://h"] {
        assert!(with_login(url).check().is_ok(), "{url}");
    }
    for url in ["smtp://h?tls=opportunistic", "smtp://h?a=b", "http://h", "smtp://", "mail"] {
        assert!(matches!(Relay::of(url).check(), Err(MailError::Relay)), "{url}");
    }
}

#[test]
fn authorities_that_are_none_stop_the_start() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("ca.pem");
    let mailer = || {
        let relay = Relay { ca_file: Some(path.clone()), ..Relay::of("smtps://h") };
        Mailer::new(&relay, "corpus@example.org", &"http://c.test".parse().unwrap()).err().unwrap().to_string()
    };
    assert!(mailer().contains("mail.ca_file"), "{}", mailer());
    std::fs::write(&path, "no certificate").unwrap();
    assert!(mailer().contains("no certificate in PEM form"), "{}", mailer());
}
