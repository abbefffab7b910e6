//! What letters say, whatever others wrote.

use corpus_domain::{DeploymentState, Environment};
use proptest::prelude::*;
use secrecy::SecretString;
use url::Url;
use uuid::Uuid;

use crate::mail::{DeploymentLetter, KeyLetter, Letter, Mailer, PlatformLetter};

fn pages() -> Url {
    "https://corpus.example.org".parse().unwrap()
}

pub fn failed() -> DeploymentLetter {
    DeploymentLetter {
        project: "shop".parse().unwrap(),
        environment: Environment::Prod,
        number: 12,
        guest: None,
        state: DeploymentState::RolledBack,
        by: "mia".to_owned(),
        commit: Some("0123456789abcdef0123456789abcdef01234567".parse().unwrap()),
        subject: Some("Sell umbrellas too".to_owned()),
        place: Some("install, 10_database.sls".to_owned()),
        fault: Some("exit status 1".to_owned()),
        line: Some("psycopg.OperationalError: connection refused".to_owned()),
        live: Some((Some("89abcdef0123456789abcdef0123456789abcdef".parse().unwrap()), Some(11))),
        failed_before: None,
    }
}

fn ready() -> PlatformLetter {
    PlatformLetter {
        project: "shop".parse().unwrap(),
        environment: Environment::Prod,
        guest: "www.shop.example.org".to_owned(),
        by: Some("mia".to_owned()),
        hosts: vec!["www.shop.example.org".to_owned()],
        ssh: Some("ssh -p 40001 sysadmin@node-01.example.net".to_owned()),
        git_url: Some("ssh://git@corpus.example.org:2222/shop/prod".to_owned()),
        pillar_url: Some("ssh://git@corpus.example.org:2222/shop/prod/pillar".to_owned()),
    }
}

#[test]
fn a_platform_is_ready() {
    let mail = Letter::PlatformReady(ready()).mail(&pages());
    insta::assert_snapshot!(format!("{}\n\n{}", mail.subject, mail.text));
}

#[test]
fn where_nothing_can_be_pushed_to_no_command_is_told() {
    let letter = PlatformLetter { git_url: None, pillar_url: None, ..ready() };
    let text = Letter::PlatformReady(letter).mail(&pages()).text;
    assert!(text.contains("ssh -p 40001") && !text.contains("git"), "{text}");
}

#[test]
fn a_deployment_failed() {
    let mail = Letter::Failed(failed()).mail(&pages());
    insta::assert_snapshot!(format!("{}\n\n{}", mail.subject, mail.text));
}

#[test]
fn a_deployment_is_not_live_everywhere() {
    let letter = DeploymentLetter { guest: Some("web-2.shop.example.org".parse().unwrap()), ..failed() };
    let mail = Letter::Failed(letter).mail(&pages());
    assert_eq!(mail.subject, "[shop prod] #12 failed and was put back on web-2.shop.example.org");
    assert!(mail.text.contains("by mia has failed on web-2.shop.example.org.\nIt is live on the leader."));
    assert!(mail.text.contains("/projects/shop/deployments/12?guest=web-2.shop.example.org\n"), "{}", mail.text);
}

#[test]
fn a_deployment_is_broken() {
    let letter = DeploymentLetter { state: DeploymentState::Broken, live: None, ..failed() };
    let mail = Letter::Failed(letter).mail(&pages());
    insta::assert_snapshot!(format!("{}\n\n{}", mail.subject, mail.text));
}

#[test]
fn it_works_again() {
    let letter = DeploymentLetter { state: DeploymentState::Live, failed_before: Some(11), ..failed() };
    let mail = Letter::Recovered(letter).mail(&pages());
    insta::assert_snapshot!(format!("{}\n\n{}", mail.subject, mail.text));
}

/// The header lines of the message as it goes to the relay, with continuations joined.
fn headers(letter: &Letter, to: &str) -> Vec<String> {
    let mailer = Mailer::new(&SecretString::from("smtp://127.0.0.1"), "corpus@example.org", &pages()).unwrap();
    let message = mailer.message(Uuid::nil(), to, letter).unwrap().formatted();
    let text = String::from_utf8(message).unwrap();
    let (head, _) = text.split_once("\r\n\r\n").unwrap();
    head.replace("\r\n ", " ").split("\r\n").map(str::to_owned).collect()
}

#[test]
fn the_headers() {
    let headers = headers(&Letter::Failed(failed()), "mia@example.org");
    let names: Vec<&str> = headers.iter().map(|line| line.split_once(':').unwrap().0).collect();
    let expected =
        ["Message-ID", "From", "To", "Subject", "Auto-Submitted", "Content-Type", "Content-Transfer-Encoding", "Date"];
    for name in expected {
        assert_eq!(names.iter().filter(|one| **one == name).count(), 1, "{name} in {headers:?}");
    }
    assert!(headers.contains(&"Message-ID: <00000000-0000-0000-0000-000000000000@example.org>".to_owned()));
    assert!(headers.contains(&"Auto-Submitted: auto-generated".to_owned()));
    assert!(headers.contains(&"To: mia@example.org".to_owned()));
}

#[test]
fn an_address_that_is_none_gets_nothing() {
    let mailer = Mailer::new(&SecretString::from("smtp://127.0.0.1"), "corpus@example.org", &pages()).unwrap();
    for address in
        ["", "mia", "mia@example.org\r\nBcc: all@example.org", "mia@example.org, tom@example.org", "Mia <m@x>"]
    {
        assert!(mailer.message(Uuid::nil(), address, &Letter::Failed(failed())).is_err(), "{address:?}");
    }
    let relay = Mailer::new(&SecretString::from("http://u:s3cret@h"), "corpus@example.org", &pages());
    let error = relay.err().unwrap();
    assert!(!format!("{error} {error:?}").contains("s3cret"));
}

proptest! {
    /// Whatever is written in commits, names and logs: no header of its own, no line of its own.
    #[test]
    fn nothing_gets_out_of_its_line(given in "(\\PC|\r|\n|\u{2028}|\u{202e}|: |Bcc: x@example.org|\r\n\r\n){0,40}") {
        let letter = DeploymentLetter {
            by: given.clone(),
            subject: Some(given.clone()),
            place: Some(given.clone()),
            fault: Some(given.clone()),
            line: Some(given),
            ..failed()
        };
        let plain = Letter::Failed(failed());
        let hostile = Letter::Failed(letter);
        prop_assert_eq!(hostile.mail(&pages()).text.lines().count(), plain.mail(&pages()).text.lines().count());
        let names = |letter: &Letter| -> Vec<String> {
            headers(letter, "mia@example.org").iter().map(|line| line.split(':').next().unwrap().to_owned()).collect()
        };
        prop_assert_eq!(names(&hostile), names(&plain));
    }
}

#[test]
fn a_key_has_moved() {
    let letter = KeyLetter {
        fingerprint: "SHA256:uNiVztksCsDhcc0u9e8BrrJXVGDI5N6cSzGCRBXbgSU".to_owned(),
        algorithm: "ED25519".to_owned(),
    };
    let mail = Letter::KeyMoved(letter).mail(&pages());
    assert_eq!(mail.subject, "An SSH key of yours is another account's now");
    assert!(mail.text.contains("\n  ED25519 SHA256:uNiVztksCsDhcc0u9e8BrrJXVGDI5N6cSzGCRBXbgSU\n"), "{}", mail.text);
    assert!(mail.text.contains("https://corpus.example.org/keys\n"), "{}", mail.text);
}
