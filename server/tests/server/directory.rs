//! Login against a real slapd.

mod slapd;
mod watch;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use corpus_domain::ProjectRole;
use corpus_server::config::Ldap;
use corpus_server::login::{Directory, Refusal};
use secrecy::SecretString;
use slapd::{Slapd, free_port};

async fn try_login(settings: Ldap, login: &str, password: &str) -> Result<corpus_server::login::Person, Refusal> {
    crate::support::install_crypto();
    let password = SecretString::from(password);
    Directory::new(settings).unwrap().sign_in(&login.parse().unwrap(), &password).await
}

#[tokio::test]
async fn people_sign_in_with_their_roles() {
    let slapd = Slapd::start();
    let alice = try_login(slapd.settings(), "Alice", "wonder").await.unwrap();
    assert_eq!((alice.login.as_str(), alice.display_name.as_str(), alice.ops), ("alice", "Alice Able", true));
    assert_eq!(alice.mail.as_deref(), Some("alice@example.org"));
    let bob = try_login(slapd.settings(), "bob", "builder").await.unwrap();
    let mut roles: Vec<_> = bob.roles.iter().map(|(project, role)| (project.as_str(), *role)).collect();
    roles.sort_unstable();
    assert_eq!((bob.ops, roles), (false, vec![("blog", ProjectRole::Maintainer), ("shop", ProjectRole::Developer)]));
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let slapd = Slapd::start();
    let refusal = |login: &'static str, password: &'static str| {
        let settings = slapd.settings();
        async move { try_login(settings, login, password).await.unwrap_err() }
    };
    assert!(matches!(refusal("alice", "wrong").await, Refusal::WrongPassword));
    assert!(matches!(refusal("alice", "").await, Refusal::WrongPassword), "an empty password would bind anonymously");
    assert!(matches!(refusal("nobody", "wonder").await, Refusal::WrongPassword));
    assert!(matches!(refusal("carol", "gone").await, Refusal::Disabled));
    assert!(
        matches!(refusal("carol", "wrong").await, Refusal::WrongPassword),
        "that it is disabled is not told to others"
    );
    assert!(matches!(refusal("double", "twice").await, Refusal::Ambiguous));
}

#[tokio::test]
async fn the_groups_of_a_project_are_found_by_its_name() {
    use corpus_controller::ProjectGroups;
    let slapd = Slapd::start();
    crate::support::install_crypto();
    let directory = Directory::new(slapd.settings()).unwrap();
    for (project, there) in [("blog", true), ("shop", true), ("sho", false), ("shop-front", false), ("nothing", false)]
    {
        assert_eq!(directory.has_groups(&project.parse().unwrap()).await.unwrap(), there, "{project}");
    }
    let url = format!("ldaps://127.0.0.1:{}", free_port()).parse().unwrap();
    let down = Directory::new(Ldap { url, ..slapd.settings() }).unwrap();
    assert!(down.has_groups(&"nothing".parse().unwrap()).await.is_err(), "down is not the same as none");
}

#[tokio::test]
async fn start_tls_works_too() {
    let slapd = Slapd::start();
    let mut settings = slapd.settings();
    settings.url = format!("ldap://127.0.0.1:{}", slapd.port).parse().unwrap();
    settings.starttls = true;
    assert!(try_login(settings.clone(), "bob", "builder").await.is_ok());
    settings.ca_file = Some(slapd.file("other-ca.pem"));
    assert!(matches!(try_login(settings, "bob", "builder").await, Err(Refusal::DirectoryDown(_))));
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    let slapd = Slapd::start();
    for ca_file in [Some(slapd.file("other-ca.pem")), None] {
        let settings = Ldap { ca_file, ..slapd.settings() };
        assert!(matches!(try_login(settings, "bob", "builder").await, Err(Refusal::DirectoryDown(_))));
    }
}

#[tokio::test]
async fn what_the_configuration_gets_wrong_is_no_wrong_password() {
    let slapd = Slapd::start();
    let wrong_service = Ldap { bind_password: "nonsense".into(), ..slapd.settings() };
    assert!(matches!(try_login(wrong_service, "bob", "builder").await, Err(Refusal::Misconfigured(_))));
    let wrong_base = Ldap { people_base: "ou=none,dc=example,dc=org".to_owned(), ..slapd.settings() };
    assert!(matches!(try_login(wrong_base, "bob", "builder").await, Err(Refusal::Misconfigured(_))));
    let no_file = Ldap { ca_file: Some(slapd.file("none.pem")), ..slapd.settings() };
    assert!(Directory::new(no_file).is_err());
}

#[tokio::test]
async fn a_directory_that_is_down_or_silent_is_told_in_time() {
    let slapd = Slapd::start();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for port in [free_port(), silent.local_addr().unwrap().port()] {
        let url = format!("ldaps://127.0.0.1:{port}").parse().unwrap();
        let start = Instant::now();
        let answer = try_login(Ldap { url, ..slapd.settings() }, "bob", "builder").await;
        assert!(matches!(answer, Err(Refusal::DirectoryDown(_))), "{answer:?}");
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}

/// An unknown login must not be told from a wrong password by the time it takes: both bind.
#[tokio::test]
async fn unknown_and_wrong_take_about_the_same_time() {
    let slapd = Slapd::start();
    let mut times = [Duration::ZERO; 2];
    for _ in 0..10 {
        for (login, time) in ["alice", "nobody"].into_iter().zip(&mut times) {
            let start = Instant::now();
            try_login(slapd.settings(), login, "wrong").await.unwrap_err();
            *time += start.elapsed();
        }
    }
    let [wrong, unknown] = times.map(|time| time.as_secs_f64());
    assert!((0.4..2.5).contains(&(unknown / wrong)), "wrong {wrong:.3} s, unknown {unknown:.3} s");
}

#[sqlx::test(migrations = "../migrations")]
async fn the_local_realm_works_while_the_directory_is_down(pool: sqlx::PgPool) {
    let more = format!(
        "[ldap]\nurl = 'ldaps://127.0.0.1:{}'\nbind_dn = 'cn=x'\nbind_password = 'x'\npeople_base = 'x'\ngroups_base = 'x'\n",
        free_port()
    );
    let server = crate::support::Running::start(&pool, &more).await;
    let down = server.sign_in("", "bob", "builder").await;
    assert_eq!(down.status().as_u16(), 503);
    assert!(down.text().await.unwrap().contains("local accounts still work"));
    assert_eq!(server.sign_in("", "admin", &server.admin).await.status().as_u16(), 303);
    server.stop().await;
}
