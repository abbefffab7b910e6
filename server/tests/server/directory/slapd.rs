//! A slapd of its own for each test: a tree with people and groups, TLS only for members.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corpus_server::config::Ldap;
use tempfile::TempDir;

const BASE: &str = "dc=example,dc=org";

pub struct Slapd {
    folder: TempDir,
    child: Child,
    pub port: u16,
    tls_port: u16,
}

impl Drop for Slapd {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub fn free_port() -> u16 {
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

/// Starts one on two ports that are free.
fn listen(dir: &Path) -> (Child, [u16; 2]) {
    let ports = [free_port(), free_port()];
    let child = Command::new("/usr/sbin/slapd")
        .arg("-f")
        .arg(dir.join("slapd.conf"))
        .arg("-h")
        .arg(format!("ldap://127.0.0.1:{} ldaps://127.0.0.1:{}", ports[0], ports[1]))
        .args(["-d", "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    (child, ports)
}

impl Slapd {
    pub fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let dir = folder.path();
        fs::create_dir(dir.join("db")).unwrap();
        certificates(dir, "good");
        certificates(dir, "other");
        fs::write(dir.join("slapd.conf"), configuration(dir)).unwrap();
        let (child, [port, tls_port]) = listen(dir);
        let mut this = Self { folder, child, port, tls_port };
        let mut tries = 1;
        while !this.fill() {
            assert!(tries < 5, "slapd ends as soon as it is started");
            tries += 1;
            (this.child, [this.port, this.tls_port]) = listen(this.folder.path());
        }
        this
    }

    /// Fills it, unless it ended: whoever opens a connection meanwhile may have got the port that was free.
    fn fill(&mut self) -> bool {
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
                return true;
            }
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(Instant::now() < limit, "{}", String::from_utf8_lossy(&added.stderr));
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The same as a section of the configuration file.
    pub fn section(&self) -> String {
        let Ldap { url, ca_file, bind_dn, people_base, groups_base, .. } = self.settings();
        format!(
            "[ldap]\nurl = '{url}'\nca_file = '{}'\nbind_dn = '{bind_dn}'\nbind_password = 'service'\n\
             people_base = '{people_base}'\ngroups_base = '{groups_base}'\n\
             disabled_filter = '(employeeType=disabled)'\ncheck_s = 1\n",
            ca_file.unwrap().display()
        )
    }

    /// Changes the tree as its administrator.
    pub fn change(&self, ldif: &str) {
        let file = self.folder.path().join("change.ldif");
        fs::write(&file, ldif).unwrap();
        run(Command::new("ldapmodify")
            .args(["-x", "-D", "cn=admin,dc=example,dc=org", "-w", "secret", "-H"])
            .arg(format!("ldap://127.0.0.1:{}", self.port))
            .arg("-f")
            .arg(&file));
    }

    /// Ends it; its tree stays, and nothing answers any more.
    pub fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn settings(&self) -> Ldap {
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
            check: Duration::from_secs(1),
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
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
