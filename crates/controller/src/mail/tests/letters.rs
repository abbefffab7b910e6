//! What letters say, whatever others wrote.

use chrono::DateTime;
use corpus_domain::{DeploymentState, DnsNameId, Environment, Grant, GuestId, JobId, NodeId, RequestId, RequestState};
use proptest::prelude::*;
use url::Url;
use uuid::Uuid;

use crate::mail::{
    AwayLetter, BackupLetter, BackupNeed, CertificateLetter, ClaimLetter, DeploymentLetter, Group, GuestLetter,
    JobLetter, KeyLetter, Letter, Mailer, NodeLetter, PlatformLetter, Relay, RequestLetter, TokenLetter, bundle,
};

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
    let mailer = Mailer::new(&Relay::of("smtp://127.0.0.1"), "corpus@example.org", &pages()).unwrap();
    let message = mailer.message(Uuid::nil(), to, &letter.mail(&pages())).unwrap().formatted();
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
    let mailer = Mailer::new(&Relay::of("smtp://127.0.0.1"), "corpus@example.org", &pages()).unwrap();
    for address in
        ["", "mia", "mia@example.org\r\nBcc: all@example.org", "mia@example.org, tom@example.org", "Mia <m@x>"]
    {
        assert!(mailer.message(Uuid::nil(), address, &Letter::Failed(failed()).mail(&pages())).is_err(), "{address:?}");
    }
    let relay = Mailer::new(&Relay::of("http://u:s3cret@h"), "corpus@example.org", &pages());
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

fn guest() -> GuestLetter {
    GuestLetter {
        guest: GuestId(Uuid::nil()),
        name: "www.shop.example.org".parse().unwrap(),
        project: "shop".parse().unwrap(),
        environment: Environment::Prod,
        ssh: Some("ssh -p 40001 sysadmin@node-01.example.net".to_owned()),
        git: Some("ssh://git@corpus.example.org:2222".to_owned()),
        hosts: vec!["www.shop.example.org".to_owned()],
        pushed_to: true,
    }
}

fn job() -> JobLetter {
    let reason = Some("the disk is full".to_owned());
    JobLetter { job: JobId(Uuid::nil()), title: "Create guest www on node-01".to_owned(), reason, stalled: None }
}

fn away() -> AwayLetter {
    AwayLetter {
        node: NodeId(Uuid::nil()),
        address: "node-01.example.net".parse().unwrap(),
        since: DateTime::UNIX_EPOCH,
        reason: Some("no route to host".to_owned()),
        is_host_key: false,
        guests: 12,
    }
}

/// One of each, so that no kind is forgotten here.
fn request(state: RequestState) -> RequestLetter {
    let (title, asker) = ("Guest www.example.org".to_owned(), "mia".to_owned());
    let reason = Some("There is no room before Monday.".to_owned());
    RequestLetter { request: RequestId(Uuid::nil()), title, asker, state, reason }
}

fn certificate(is_brought: bool) -> CertificateLetter {
    CertificateLetter {
        id: DnsNameId(Uuid::nil()),
        name: "shop.example.org".to_owned(),
        ends_at: is_brought.then_some(DateTime::UNIX_EPOCH),
        is_brought,
        problem: (!is_brought).then(|| "the directory can't be reached; it is tried again".to_owned()),
    }
}

fn backups(need: BackupNeed) -> BackupLetter {
    let problem = (need != BackupNeed::Unproven).then(|| "backup: exit status 1:\nno server".to_owned());
    let last_at = (need != BackupNeed::Late).then_some(DateTime::UNIX_EPOCH);
    BackupLetter { guest: GuestId(Uuid::nil()), name: "www.shop.example.org".parse().unwrap(), need, last_at, problem }
}

fn claim() -> ClaimLetter {
    ClaimLetter {
        name: "www.elsewhere.example".parse().unwrap(),
        guest: GuestId(Uuid::nil()),
        guest_name: "www.shop.example.org".parse().unwrap(),
        answered: vec!["198.51.100.1".to_owned()],
        leads: false,
        proven: true,
        problem: None,
    }
}

#[test]
fn a_claim_that_lapsed_says_what_was_missing() {
    let said = |leads, proven, problem: Option<&str>| {
        let problem = problem.map(str::to_owned);
        Letter::ClaimLapsed(ClaimLetter { leads, proven, problem, ..claim() }).mail(&pages()).text
    };
    assert!(said(false, false, Some("no resolver answers")).contains("nor the proof.\n"));
    assert!(said(false, false, Some("no resolver answers")).contains("Why:       no resolver answers\n"));
    let proof = said(true, false, None);
    assert!(proof.contains("did not answer the proof.") && !proof.contains("Leads to:"), "{proof}");
    assert!(said(true, true, Some("it is not free")).contains("could not be attached"));
}

fn one_of_each() -> Vec<Letter> {
    let address = "node-01.example.net".parse().unwrap();
    let environments = vec![Environment::Dev, Environment::Prod];
    let room = Some("12 GiB of memory".to_owned());
    let node = NodeLetter { node: NodeId(Uuid::nil()), address, environments, slots: 7, room };
    let token =
        TokenLetter { name: "Jenkins".to_owned(), scope: Grant::Deploy, ends_at: DateTime::UNIX_EPOCH, used_at: None };
    let key = KeyLetter { fingerprint: "SHA256:x".to_owned(), algorithm: "ED25519".to_owned() };
    vec![
        Letter::PlatformReady(ready()),
        Letter::Failed(failed()),
        Letter::Recovered(failed()),
        Letter::KeyMoved(key),
        Letter::GuestReady(guest()),
        Letter::NodeReady(node),
        Letter::NodeAway(away()),
        Letter::NodeBack(away()),
        Letter::JobFailed(job()),
        Letter::JobStuck(job()),
        Letter::TokenEnds(token),
        Letter::RequestMade(request(RequestState::Open)),
        Letter::RequestDecided(request(RequestState::Refused)),
        Letter::CertificateEnds(certificate(true)),
        Letter::CertificateFails(certificate(false)),
        Letter::BackupsNeedy(backups(BackupNeed::Late)),
        Letter::BackupsNeedy(backups(BackupNeed::Undumped)),
        Letter::BackupsNeedy(backups(BackupNeed::Unproven)),
        Letter::ClaimLapsed(claim()),
    ]
}

#[test]
fn what_a_member_waits_for() {
    let letters = one_of_each().into_iter().map(|letter| letter.mail(&pages()));
    let told: Vec<String> = letters.map(|mail| format!("{}\n\n{}", mail.subject, mail.text)).collect();
    insta::assert_snapshot!(told.join("\n=====\n"));
}

#[test]
fn several_are_one_letter() {
    let mut groups: Vec<Group> =
        one_of_each().into_iter().map(|letter| Group { first: vec![letter], count: 1 }).collect();
    groups[4] = Group { first: vec![Letter::GuestReady(guest()); 2], count: 200 };
    let mail = bundle::mail(&groups, &pages()).unwrap();
    insta::assert_snapshot!(format!("{}\n\n{}", mail.subject, mail.text));
    assert_eq!(bundle::mail(&groups[..1], &pages()).unwrap(), Letter::PlatformReady(ready()).mail(&pages()));
    assert_eq!(bundle::mail(&[], &pages()), None);
}

#[test]
fn without_names_or_a_repository_a_guest_is_ready_all_the_same() {
    let letter = Letter::GuestReady(GuestLetter { hosts: Vec::new(), pushed_to: false, ..guest() });
    let text = letter.mail(&pages()).text;
    assert!(text.contains("ssh -p 40001") && !text.contains("git@") && !text.contains("Web:"), "{text}");
}

/// What is kept is read by a later release, and a choice exists for all that one may choose.
#[test]
fn each_letter_is_read_as_it_was_kept() {
    for letter in one_of_each() {
        let kept = serde_json::to_value(&letter).unwrap();
        assert_eq!(serde_json::from_value::<Letter>(kept).unwrap(), letter);
        assert_eq!(letter.kind().is_none(), matches!(letter, Letter::KeyMoved(_)), "{letter:?}");
    }
}
