//! What the examples dump of databases can be loaded again: a PostgreSQL and a `MariaDB` of their own are filled, dumped as a
//! backup has it, emptied, and loaded.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests may fail loudly, and play the guest's part"
)]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A server that ends with its test.
struct Server {
    folder: TempDir,
    child: Child,
    env: Vec<(&'static str, PathBuf)>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(folder: TempDir, mut program: Command, env: &[(&'static str, &str)], answers: &str) -> Self {
        let at = |name: &str| if name.is_empty() { folder.path().to_owned() } else { folder.path().join(name) };
        let env = env.iter().map(|(name, value)| (*name, at(value))).collect();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let server = Self { folder, child, env };
        let end = Instant::now() + Duration::from_secs(30);
        while !server.sh(answers).status.success() {
            let log = std::fs::read_to_string(server.folder.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < end, "it does not answer: {log}");
            sleep(Duration::from_millis(50));
        }
        server
    }

    fn run(&self, program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Output {
        let dumps = self.folder.path().join("dumps");
        let mut command = Command::new(program);
        command.args(args).env("CORPUS_DUMPS", dumps).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).output().unwrap()
    }

    fn sh(&self, script: &str) -> Output {
        self.run("sh", &["-euc", script])
    }

    fn must(&self, script: &str) -> String {
        let said = self.sh(script);
        assert!(said.status.success(), "{script}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap()
    }

    /// Runs an example as the agent does, into a folder that only root can read; tells what it wrote.
    fn dumps(&self, example: &str) -> Result<Vec<String>, String> {
        let folder = self.folder.path().join("dumps");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o700)).unwrap();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dumps").join(example);
        let said = self.run(path, &[]);
        if !said.status.success() {
            return Err(String::from_utf8_lossy(&said.stderr).into_owned());
        }
        let mut names: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        Ok(names)
    }
}

fn folder_of(user: &str) -> TempDir {
    let folder = tempfile::Builder::new().prefix("corpus-dumps-").tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let own = Command::new("chown").args([user, folder.path().to_str().unwrap()]).status().unwrap();
    assert!(own.success());
    folder
}

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_postgresql_is_dumped() {
    let folder = folder_of("postgres");
    let (data, socket) = (folder.path().join("data"), folder.path().display().to_string());
    let bin =
        std::fs::read_dir("/usr/lib/postgresql").unwrap().map(|one| one.unwrap().path().join("bin")).max().unwrap();
    let made = Command::new("runuser")
        .args(["-u", "postgres", "--"])
        .arg(bin.join("initdb"))
        .args(["--no-sync", "--auth", "peer", "--encoding", "UTF8", "--locale", "C.UTF-8", "--pgdata"])
        .arg(&data)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut program = Command::new("setpriv");
    program.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--pdeathsig=KILL", "--"]);
    program.arg(bin.join("postgres")).arg("-D").arg(&data);
    program.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", &format!("unix_socket_directories={socket}")]);
    let server = Server::start(folder, program, &[("PGHOST", "")], "runuser -u postgres -- pg_isready --quiet");

    let psql = |database: &str, statement: &str| {
        server.must(&format!("runuser -u postgres -- psql -qXAt -d '{database}' -c \"{statement}\""))
    };
    psql("postgres", "create role mia login");
    psql("postgres", "create database \\\"a shop\\\" owner mia");
    psql("a shop", "create table orders (id int primary key, text text)");
    psql("a shop", "insert into orders select i, 'order ' || i from generate_series(1, 1000) i");
    let names = server.dumps("backup.postgresql").unwrap();
    assert_eq!(names, ["a shop.dump", "accounts.sql", "names", "postgres.dump"]);

    psql("postgres", "drop database \\\"a shop\\\"");
    psql("postgres", "drop role mia");
    server.must(
        "cd \"$CORPUS_DUMPS\"; runuser -u postgres -- psql -qX -d postgres <accounts.sql
         runuser -u postgres -- pg_restore --clean --if-exists --create --dbname postgres <'a shop.dump'",
    );
    assert_eq!(psql("a shop", "select count(*), max(text) from orders"), "1000|order 999\n");
    assert_eq!(psql("postgres", "select datdba::regrole from pg_database where datname = 'a shop'"), "mia\n");

    // What can't be dumped is no dump.
    psql("postgres", "update pg_database set datconnlimit = -2 where datname = 'a shop'");
    let said = server.dumps("backup.postgresql").unwrap_err();
    assert!(said.contains("a shop"), "{said}");
}

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_mariadb_is_dumped() {
    let folder = folder_of("root");
    let at = |name: &str| folder.path().join(name).display().to_string();
    let data = format!("--datadir={}", at("data"));
    let made = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--user=root", "--auth-root-authentication-method=socket", "--skip-test-db", &data])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut program = Command::new("setpriv");
    program.args(["--pdeathsig=KILL", "--", "mariadbd", "--no-defaults", "--user=root", "--skip-networking", &data]);
    program.arg(format!("--socket={}", at("socket"))).arg(format!("--pid-file={}", at("pid")));
    // As Debian's configuration says the socket in /run, only root's own says another.
    std::fs::write(at(".my.cnf"), format!("[client]\nsocket={}\n", at("socket"))).unwrap();
    let server = Server::start(folder, program, &[("HOME", "")], "mariadb -e 'select 1'");

    server.must("mariadb -e \"create database shop; create table shop.orders (id int primary key, text text)\"");
    server.must("mariadb -e \"insert into shop.orders select seq, concat('order ', seq) from shop.seq_1_to_1000\"");
    server.must("mariadb -e \"create procedure shop.one() select 1; create user mia@localhost\"");
    assert_eq!(server.dumps("backup.mysql").unwrap(), ["all.sql"]);
    server.must("mariadb -e \"drop database shop; drop user mia@localhost\"");
    server.must("mariadb <\"$CORPUS_DUMPS/all.sql\"; mariadb -e 'flush privileges'");
    assert_eq!(server.must("mariadb -Ne 'select count(*), max(text) from shop.orders'"), "1000\torder 999\n");
    assert_eq!(server.must("mariadb -Ne 'call shop.one()'"), "1\n");
    assert_eq!(server.must("mariadb -Ne \"select user from mysql.user where user = 'mia'\""), "mia\n");
    // A table that can't be read is none that was dumped.
    server.must("mariadb -e \"create view shop.broken as select id from shop.orders; drop table shop.orders\"");
    assert!(server.dumps("backup.mysql").unwrap_err().contains("broken"));
}
