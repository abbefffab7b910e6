//! The controller is lost and brought back, as an operator does it: by the program itself, on real files, a real
//! database and a real repository.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use corpus_server::config::Settings;
use corpus_server::own_backup;
use corpus_server::serve::Server;
use sqlx::PgPool;
use tempfile::TempDir;

use crate::support::{install_crypto, url_of};

/// A machine with a controller on it: what is below `machine` is lost with it.
struct Machine {
    at: TempDir,
    pool: PgPool,
}

impl Machine {
    fn new(pool: &PgPool) -> Self {
        let this = Self { at: TempDir::new().unwrap(), pool: pool.clone() };
        for folder in ["machine/site/pkg", "machine/hooks/node"] {
            std::fs::create_dir_all(this.path(folder)).unwrap();
        }
        this.write("machine/site/pkg/corpus.css", "body{}", 0o644);
        this.write("machine/site/hash.txt", "js: 0123456789\nwasm: abcdef0123\n", 0o644);
        this.write("machine/agent", "no agent", 0o755);
        this.write("machine/ldap.password", "swordfish", 0o600);
        this.write("machine/hooks/node/after-link.sh", "#!/bin/sh\n", 0o755);
        this.write("password", "correct horse\n", 0o600);
        let at = |name: &str| this.path(name).display().to_string();
        let config = format!(
            "listen = '127.0.0.1:0'\ndatabase_url = '{}'\nsite_folder = '{}'\ndata_folder = '{}'\nagent_binary = '{}'\n\
             hooks_folder = '{}'\n[backup]\nplace = '{}'\npassword_file = '{}'\n[ldap]\nurl = 'ldaps://127.0.0.1:1'\n\
             bind_dn = 'cn=corpus'\nbind_password_file = '{}'\npeople_base = 'dc=x'\ngroups_base = 'dc=x'\n",
            url_of(&pool.connect_options()),
            at("machine/site"),
            at("machine/data"),
            at("machine/agent"),
            at("machine/hooks"),
            at("repository"),
            at("password"),
            at("machine/ldap.password"),
        );
        this.write("machine/corpus.toml", &config, 0o640);
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.at.path().join(name)
    }

    fn write(&self, name: &str, text: &str, mode: u32) {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Starts the server, which opens its own keys by the seal key, and ends it.
    async fn serves(&self) {
        let path = self.path("machine/corpus.toml");
        let table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        let settings = Settings::from_parts(Some((path.as_path(), table)), std::iter::empty()).unwrap();
        Server::start(settings).await.unwrap().run(async {}).await.unwrap();
    }

    /// Runs the program: what it prints, or says against it.
    fn run(args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_corpus-server"));
        let done = command.args(args).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
    }

    fn with_config(&self, command: &str) -> Result<String, String> {
        Self::run(&["--config", self.path("machine/corpus.toml").to_str().unwrap(), command])
    }

    fn restore(&self) -> Result<String, String> {
        let (place, password) = (self.path("repository"), self.path("password"));
        Self::run(&["restore", "--from", place.to_str().unwrap(), "--password-file", password.to_str().unwrap()])
    }

    async fn statement(&self, statement: &'static str) {
        sqlx::raw_sql(statement).execute(&self.pool).await.unwrap();
    }

    async fn count(&self, statement: &'static str) -> i64 {
        sqlx::query_scalar(statement).fetch_one(&self.pool).await.unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        std::fs::metadata(self.path(name)).unwrap().mode() & 0o777
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[sqlx::test(migrations = "../migrations")]
async fn a_lost_controller_is_brought_back(pool: PgPool) {
    install_crypto();
    let machine = Machine::new(&pool);
    machine.serves().await;
    machine.statement("insert into projects (id, name, created_at) values (gen_random_uuid(), 'atlas', now())").await;
    machine.statement("insert into tower_sessions values ('ended-later', '{}', now() + interval '1 day')").await;
    assert_eq!(machine.with_config("list-backups").unwrap_err().matches("no repository").count(), 1);
    let taken = machine.with_config("backup").unwrap();
    assert!(taken.starts_with("Backup "), "{taken}");
    machine.statement("insert into projects (id, name, created_at) values (gen_random_uuid(), 'later', now())").await;
    // As a server leaves it that is killed in the middle.
    std::fs::create_dir_all(machine.path("machine/data/backup-dead")).unwrap();
    machine.write("machine/data/backup-dead/database.dump", "half", 0o600);
    machine.with_config("backup").unwrap();
    assert_eq!(machine.with_config("list-backups").unwrap().lines().count(), 2);
    machine.with_config("check-backups").unwrap();
    let left: Vec<_> =
        std::fs::read_dir(machine.path("machine/data")).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left, ["seal.key"], "nothing is left of taking it");

    let seal = read(&machine.path("machine/data/seal.key"));
    std::fs::remove_dir_all(machine.path("machine")).unwrap();
    machine.statement("drop schema public cascade; create schema public").await;
    let said = machine.restore().unwrap();
    assert!(said.contains("machine/corpus.toml") && said.contains("signs in again"), "{said}");
    assert_eq!(read(&machine.path("machine/data/seal.key")), seal);
    assert_eq!((machine.mode("machine/data/seal.key"), machine.mode("machine/corpus.toml")), (0o600, 0o640));
    assert_eq!(machine.mode("machine/hooks/node/after-link.sh"), 0o755);
    assert_eq!(read(&machine.path("machine/ldap.password")), b"swordfish");
    assert_eq!(machine.count("select count(*) from projects where name in ('atlas', 'later')").await, 2);
    assert_eq!(machine.count("select count(*) from tower_sessions").await, 0, "a session came back");
    std::fs::create_dir_all(machine.path("machine/site/pkg")).unwrap();
    machine.write("machine/site/hash.txt", "js: 0123456789\nwasm: abcdef0123\n", 0o644);
    machine.write("machine/agent", "no agent", 0o755);
    machine.serves().await;

    let again = machine.restore().unwrap_err();
    assert!(again.contains("the database is not empty"), "{again}");
    assert_eq!(machine.count("select count(*) from projects where name in ('atlas', 'later')").await, 2);
    machine.write("machine/data/seal.key", "another key", 0o600);
    let other = machine.restore().unwrap_err();
    assert!(other.contains("seal.key") && other.contains("move them away"), "{other}");
    assert_eq!(read(&machine.path("machine/data/seal.key")), b"another key");
}

#[sqlx::test(migrations = "../migrations")]
async fn what_keeps_a_backup_from_being_taken_is_said(pool: PgPool) {
    install_crypto();
    let machine = Machine::new(&pool);
    machine.serves().await;
    machine.write("password", "correct horse\n", 0o644);
    let open = machine.with_config("backup").unwrap_err();
    assert!(open.contains("may be read by others") && !open.contains("correct horse"), "{open}");
    machine.write("password", "correct horse\n", 0o600);
    std::fs::remove_file(machine.path("machine/ldap.password")).unwrap();
    let missing = machine.with_config("backup").unwrap_err();
    assert!(missing.contains("ldap.password"), "{missing}");
    machine.write("machine/ldap.password", "swordfish", 0o600);
    if std::fs::metadata(machine.at.path()).unwrap().uid() == 0 {
        // As a package has it, whose service is not root.
        std::os::unix::fs::chown(machine.path("machine/data"), Some(65534), Some(65534)).unwrap();
        let unreadable = machine.with_config("backup").unwrap_err();
        assert!(unreadable.contains("as who serves: runuser"), "{unreadable}");
        std::os::unix::fs::chown(machine.path("machine/data"), Some(0), Some(0)).unwrap();
    }

    let mut held = pool.begin_with("begin").await.unwrap();
    sqlx::query("select pg_advisory_xact_lock($1)").bind(own_backup::LOCK).execute(&mut *held).await.unwrap();
    let busy = machine.with_config("backup").unwrap_err();
    assert!(busy.contains("another backup"), "{busy}");
    held.rollback().await.unwrap();

    machine.write("password", "another password\n", 0o600);
    std::fs::create_dir_all(machine.path("repository")).unwrap();
    std::fs::write(machine.path("repository/config"), "rubbish").unwrap();
    let rubbish = machine.with_config("backup").unwrap_err();
    assert!(rubbish.contains("repository") && !rubbish.contains("another password"), "{rubbish}");
}

/// An SFTP server of OpenSSH, in a mount namespace of its own; that takes root.
struct Sshd {
    child: std::process::Child,
    port: u16,
}

impl Sshd {
    fn start(at: &Path) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        for key in ["host_key", "user_key"] {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(at.join(key)).status();
            assert!(made.unwrap().success());
        }
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {0}/host_key\nPidFile none\nUseDNS no\nUsePAM no\n\
             StrictModes no\nPermitRootLogin yes\nAuthorizedKeysFile {0}/user_key.pub\nSubsystem sftp internal-sftp\n",
            at.display()
        );
        std::fs::write(at.join("sshd_config"), config).unwrap();
        let namespace =
            "mount -t tmpfs tmpfs /run; mkdir -m 755 /run/sshd; exec /usr/sbin/sshd -D -e -f \"$1\" 2>/dev/null";
        let started = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "/bin/sh", "-euc", namespace, "sh"])
            .arg(at.join("sshd_config"))
            .spawn();
        let child = started.unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(std::time::Instant::now() < until, "sshd did not start");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Self { child, port }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[sqlx::test(migrations = "../migrations")]
async fn a_lost_controller_is_brought_back_from_a_server(pool: PgPool) {
    install_crypto();
    let machine = Machine::new(&pool);
    std::fs::create_dir(machine.path("elsewhere")).unwrap();
    let sshd = Sshd::start(&machine.path("elsewhere"));
    let place = format!("sftp://root@127.0.0.1:{}{}", sshd.port, machine.path("elsewhere/repository").display());
    let host_key = String::from_utf8(read(&machine.path("elsewhere/host_key.pub"))).unwrap();
    let access =
        format!("[sftp]\nkey_file = '{}'\nhost_keys = ['{}']\n", machine.path("key").display(), host_key.trim());
    std::fs::copy(machine.path("elsewhere/user_key"), machine.path("key")).unwrap();
    machine.write("access.toml", &access, 0o600);
    let config = String::from_utf8(read(&machine.path("machine/corpus.toml"))).unwrap();
    let config = config.replace(&machine.path("repository").display().to_string(), &place) + &access;
    machine.write("machine/corpus.toml", &config, 0o640);
    machine.serves().await;
    machine.statement("insert into projects (id, name, created_at) values (gen_random_uuid(), 'atlas', now())").await;
    machine.with_config("backup").unwrap();
    machine.with_config("check-backups").unwrap();
    assert_eq!(machine.with_config("list-backups").unwrap().lines().count(), 1);

    std::fs::remove_dir_all(machine.path("machine")).unwrap();
    machine.statement("drop schema public cascade; create schema public").await;
    let at = |name: &str| machine.path(name).display().to_string();
    let from = ["restore", "--from", &place, "--password-file", &at("password")];
    let error = Machine::run(&from).unwrap_err();
    assert!(error.contains("needs the section [sftp]"), "{error}");
    let said = Machine::run(&[&from[..], &["--access", &at("access.toml")]].concat()).unwrap();
    assert!(said.contains("machine/corpus.toml"), "{said}");
    assert_eq!(String::from_utf8(read(&machine.path("machine/corpus.toml"))).unwrap(), config);
    assert_eq!(machine.count("select count(*) from projects where name = 'atlas'").await, 1);
    assert_eq!(machine.with_config("list-backups").unwrap().lines().count(), 1);
}
