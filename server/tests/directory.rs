//! Login against a real slapd.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may fail loudly")]
#![allow(clippy::disallowed_methods, reason = "the test runs slapd and openssl")]

mod support;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corpus_domain::ProjectRole;
use corpus_server::config::Ldap;
use corpus_server::login::{Directory, Refusal};
use secrecy::SecretString;
use tempfile::TempDir;

const BASE: &str = "dc=example,dc=org";

struct Slapd {
    folder: TempDir,
    child: Child,
    port: u16,
    tls_port: u16,
}

impl Drop for Slapd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn run(command: &mut Command) {
    let done = command.stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&done.stderr));
}

/// An authority, and a certificate of it for 127.0.0.1.
fn certificates(folder: &Path, name: &str) {
    let at = |end: &str| folder.join(format!("{name}{end}"));
    let openssl = || Command::new("openssl");
    let ec = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    run(openssl()
        .args(["req", "-x509", "-days", "2", "-subj", "/CN=test authority"])
        .args(ec)
        .args(["-addext", "basicConstraints=critical,CA:TRUE"])
        .arg("-keyout")
        .arg(at("-ca.key"))
        .arg("-out")
        .arg(at("-ca.pem")));
    run(openssl()
        .args(["req", "-subj", "/CN=127.0.0.1"])
        .args(ec)
        .arg("-keyout")
        .arg(at(".key"))
        .arg("-out")
        .arg(at(".csr")));
    fs::write(at(".ext"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n").unwrap();
    run(openssl()
        .args(["x509", "-req", "-days", "2", "-CAcreateserial"])
        .arg("-in")
        .arg(at(".csr"))
        .arg("-CA")
        .arg(at("-ca.pem"))
        .arg("-CAkey")
        .arg(at("-ca.key"))
        .arg("-extfile")
        .arg(at(".ext"))
        .arg("-out")
        .arg(at(".pem")));
}

impl Slapd {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let dir = folder.path();
        fs::create_dir(dir.join("db")).unwrap();
        certificates(dir, "good");
        certificates(dir, "other");
        fs::write(dir.join("slapd.conf"), configuration(dir)).unwrap();
        let (port, tls_port) = (free_port(), free_port());
        let child = Command::new("/usr/sbin/slapd")
            .arg("-f")
            .arg(dir.join("slapd.conf"))
            .arg("-h")
            .arg(format!("ldap://127.0.0.1:{port} ldaps://127.0.0.1:{tls_port}"))
            .args(["-d", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let this = Self { folder, child, port, tls_port };
        this.fill();
        this
    }

    fn fill(&self) {
        let ldif = self.folder.path().join("tree.ldif");
        fs::write(&ldif, TREE).unwrap();
        let limit = Instant::now() + Duration::from_secs(10);
        loop {
            let added = Command::new("ldapadd")
                .args(["-x", "-D", "cn=admin,dc=example,dc=org", "-w", "secret", "-H"])
                .arg(format!("ldap://127.0.0.1:{}", self.port))
                .arg("-f")
                .arg(&ldif)
                .output()
                .unwrap();
            if added.status.success() {
                return;
            }
            assert!(Instant::now() < limit, "{}", String::from_utf8_lossy(&added.stderr));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn settings(&self) -> Ldap {
        Ldap {
            url: format!("ldaps://127.0.0.1:{}", self.tls_port).parse().unwrap(),
            starttls: false,
            ca_file: Some(self.file("good-ca.pem")),
            bind_dn: "cn=corpus,dc=example,dc=org".to_owned(),
            bind_password: "service".into(),
            people_base: format!("ou=people,{BASE}"),
            people_filter: "(&(objectClass=inetOrgPerson)(uid={login}))".to_owned(),
            disabled_filter: Some("(employeeType=disabled)".to_owned()),
            groups_base: format!("ou=groups,{BASE}"),
            groups_filter: "(&(objectClass=groupOfNames)(member={dn}))".to_owned(),
            ops_group: "corpus-ops".to_owned(),
            project_group_pattern: "project-{project}-{role}s".parse().unwrap(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn configuration(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        "include /etc/ldap/schema/core.schema\ninclude /etc/ldap/schema/cosine.schema\n\
         include /etc/ldap/schema/inetorgperson.schema\nmodulepath /usr/lib/ldap\nmoduleload back_mdb\n\
         pidfile {dir}/slapd.pid\nTLSCertificateFile {dir}/good.pem\nTLSCertificateKeyFile {dir}/good.key\n\
         TLSCACertificateFile {dir}/good-ca.pem\ndatabase mdb\nmaxsize 104857600\nsuffix \"{BASE}\"\n\
         rootdn \"cn=admin,{BASE}\"\nrootpw secret\ndirectory {dir}/db\nindex objectClass,uid eq\n\
         access to attrs=userPassword by anonymous auth by * none\naccess to * by users read by anonymous auth\n"
    )
}

const TREE: &str = "\
dn: dc=example,dc=org\nobjectClass: dcObject\nobjectClass: organization\no: Example\ndc: example\n
dn: cn=corpus,dc=example,dc=org\nobjectClass: organizationalRole\nobjectClass: simpleSecurityObject\ncn: corpus\nuserPassword: service\n
dn: ou=people,dc=example,dc=org\nobjectClass: organizationalUnit\nou: people\n
dn: ou=more,ou=people,dc=example,dc=org\nobjectClass: organizationalUnit\nou: more\n
dn: ou=groups,dc=example,dc=org\nobjectClass: organizationalUnit\nou: groups\n
dn: uid=alice,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: alice\ncn: Alice\nsn: A\ndisplayName: Alice Able\nmail: alice@example.org\nuserPassword: wonder\n
dn: uid=bob,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: bob\ncn: Bob\nsn: B\nuserPassword: builder\n
dn: uid=carol,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: carol\ncn: Carol\nsn: C\nemployeeType: disabled\nuserPassword: gone\n
dn: cn=d1,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: double\ncn: d1\nsn: D\nuserPassword: twice\n
dn: cn=d2,ou=more,ou=people,dc=example,dc=org\nobjectClass: inetOrgPerson\nuid: double\ncn: d2\nsn: D\nuserPassword: twice\n
dn: cn=corpus-ops,ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: corpus-ops\nmember: uid=alice,ou=people,dc=example,dc=org\n
dn: cn=project-shop-developers,ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: project-shop-developers\nmember: uid=bob,ou=people,dc=example,dc=org\n
dn: cn=project-blog-maintainers,ou=groups,dc=example,dc=org\nobjectClass: groupOfNames\ncn: project-blog-maintainers\nmember: uid=bob,ou=people,dc=example,dc=org\n";

async fn try_login(settings: Ldap, login: &str, password: &str) -> Result<corpus_server::login::Person, Refusal> {
    support::install_crypto();
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
    let server = support::Running::start(&pool, &more).await;
    let down = server.sign_in("", "bob", "builder").await;
    assert_eq!(down.status().as_u16(), 503);
    assert!(down.text().await.unwrap().contains("local accounts still work"));
    assert_eq!(server.sign_in("", "admin", &server.admin).await.status().as_u16(), 303);
    server.stop().await;
}
