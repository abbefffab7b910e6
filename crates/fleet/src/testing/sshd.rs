//! The OpenSSH server under test, and values that fit it.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use corpus_domain::{GuestName, NodeAddress, NodeId, UnixUser};
use corpus_protocol::Request;
use russh::keys::PrivateKey;
use russh::keys::ssh_key::LineEnding;
use secrecy::SecretString;
use tempfile::TempDir;

use crate::{AgentBinary, Call, ControlKey, HostKey, NodeEndpoint, Pool};

pub const PASSWORD: &str = "one-time";
/// `openssl passwd -6 one-time`
const HASH: &str =
    "$6$corpuscorpus$F5KFo2NabIv6SjZj.iG.TWG2gd7u2mDeLWnlANnbrqd7qq0e2rieiMIUnAOPTBFk2h3vsBlULc.M2XFkR7CeS/";

/// How passwords are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Password,
    KeyboardInteractive,
}

pub struct Sshd {
    child: Child,
    pub port: u16,
    pub key: ControlKey,
    pub dir: TempDir,
    host_key: PrivateKey,
}

/// What the server's namespace looks like; `$1` is the folder of the test, `$2` its `sshd_config`.
const NAMESPACE: &str = "
mount -t tmpfs -o mode=755 tmpfs /var/lib
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -m 755 /run/sshd
for name in passwd shadow group sudoers; do mount --bind \"$1/$name\" \"/etc/$name\"; done
exec /usr/sbin/sshd -D -e -f \"$2\"
";

pub fn start() -> Sshd {
    start_asking(Ask::Password)
}

pub fn start_asking(ask: Ask) -> Sshd {
    start_at(free_port(), ask)
}

/// One on a port on which a node has the SSH of its guests.
pub fn start_as_guest() -> Sshd {
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    let from = 40_000 + rand::random_range(0..9_000);
    start_at((from..50_000).find(is_free).unwrap(), Ask::Password)
}

fn start_at(port: u16, ask: Ask) -> Sshd {
    let dir = tempfile::Builder::new().prefix("corpus-sshd-").tempdir().unwrap();
    chmod(dir.path(), 0o755);
    let key = ControlKey::generate("test").unwrap();
    let host_key = new_host_key();
    accounts(dir.path());
    write(&dir.path().join("host_key"), &host_key.to_openssh(LineEnding::LF).unwrap(), 0o600);
    let (password, kbd) = if ask == Ask::Password { ("yes", "no") } else { ("no", "yes") };
    let config = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {0}/host_key\nPidFile none\nUseDNS no\nLogLevel VERBOSE\n\
         UsePAM {kbd}\nPasswordAuthentication {password}\nKbdInteractiveAuthentication {kbd}\nPermitRootLogin yes\n\
         AuthorizedKeysFile .ssh/authorized_keys\nSubsystem sftp internal-sftp\nMaxStartups 200\nMaxAuthTries 3\n",
        dir.path().display()
    );
    write(&dir.path().join("sshd_config"), &config, 0o600);
    let child = run(dir.path());
    let sshd = Sshd { child, port, key, dir, host_key };
    sshd.wait();
    sshd
}

fn run(dir: &Path) -> Child {
    let log = fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the server under test is a process")]
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "/bin/sh", "-euc", NAMESPACE, "sh"])
        .args([dir, &dir.join("sshd_config")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .expect("unshare(1) can be run as root")
}

fn accounts(dir: &Path) {
    let home = |name: &str, uid: u32| {
        let home = dir.join(name);
        fs::create_dir(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(uid), Some(uid)).unwrap();
        format!("{name}:x:{uid}:{uid}::{}:/bin/sh\n", home.display())
    };
    let passwd = [home("root", 0), home("admin", 60001), home("nosudo", 60002)].concat();
    let others =
        "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n";
    write(&dir.join("passwd"), &(passwd + others), 0o644);
    let shadow: String = ["root", "admin", "nosudo"].map(|name| format!("{name}:{HASH}:20000::::::\n")).concat();
    write(&dir.join("shadow"), &shadow, 0o600);
    write(&dir.join("group"), "root:x:0:\nadmin:x:60001:\nnosudo:x:60002:\nnogroup:x:65534:\n", 0o644);
    write(&dir.join("sudoers"), "root ALL=(ALL) ALL\nadmin ALL=(ALL) NOPASSWD: ALL\n", 0o440);
}

impl Sshd {
    fn wait(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(Instant::now() < until, "sshd did not start: {}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// What sshd wrote.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Lets the control key in as `user`.
    pub fn let_in(&self, user: &str) {
        let folder = self.home(user).join(".ssh");
        fs::create_dir_all(&folder).unwrap();
        write(&folder.join("authorized_keys"), &self.key.public_line().unwrap(), 0o644);
    }

    pub fn home(&self, user: &str) -> PathBuf {
        self.dir.path().join(user)
    }

    pub fn endpoint(&self, user: &str) -> NodeEndpoint {
        self.endpoint_at(user, self.port)
    }

    pub fn endpoint_at(&self, user: &str, port: u16) -> NodeEndpoint {
        NodeEndpoint {
            id: NodeId(uuid::Uuid::now_v7()),
            address: localhost(),
            port,
            user: user.parse::<UnixUser>().unwrap(),
            pinned_host_key: self.host_key(),
            gateway: None,
        }
    }

    pub fn host_key(&self) -> HostKey {
        self.host_key.public_key().to_openssh().unwrap().parse().unwrap()
    }

    /// A file of the server's own mount namespace.
    pub fn inside(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.child.id()))
    }

    /// The server gets another host key, as after a new installation.
    pub fn replace_host_key(&mut self) {
        self.stop();
        self.host_key = new_host_key();
        write(&self.dir.path().join("host_key"), &self.host_key.to_openssh(LineEnding::LF).unwrap(), 0o600);
        self.child = run(self.dir.path());
        self.wait();
    }

    /// The processes of the connections that are open now.
    pub fn connections(&self) -> Vec<u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = fs::read_to_string(path).unwrap_or_default();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Ends the server's side of all connections, as when the host dies.
    #[expect(clippy::disallowed_methods, reason = "the server under test is a process")]
    pub fn cut(&self) {
        for pid in self.connections() {
            // It may have ended by itself meanwhile, which is as good.
            drop(Command::new("kill").args(["-KILL", &pid.to_string()]).stderr(Stdio::null()).status());
        }
    }

    fn stop(&mut self) {
        self.cut();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A pool whose agent is the script.
    pub async fn pool(&self) -> Pool {
        Pool::new(self.key.clone(), self.agent().await)
    }

    pub async fn agent(&self) -> AgentBinary {
        let path = self.dir.path().join("agent");
        let script = include_str!("agent.sh")
            .replace("@DIR@", &self.dir.path().display().to_string())
            .replace("@VERSION@", &corpus_protocol::VERSION.to_string());
        write(&path, &script, 0o755);
        AgentBinary::load(&path).await.unwrap()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- sshd:\n{}", self.log());
        }
        self.stop();
    }
}

pub fn localhost() -> NodeAddress {
    NodeAddress::Ip(Ipv4Addr::LOCALHOST.into())
}

pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

pub fn new_host_key() -> PrivateKey {
    let mut rng = russh::keys::key::safe_rng();
    PrivateKey::random(&mut rng, russh::keys::Algorithm::Ed25519).unwrap()
}

pub fn password(text: &str) -> SecretString {
    SecretString::from(text)
}

/// A request that the script takes as an order: `slow`, `hang`, `rubbish`, `die`, `endless`, `noisy`, `flood`, `liar`,
/// `busy`.
pub fn order(word: &str) -> Call {
    let name: GuestName = format!("{word}.test").parse().unwrap();
    Call::new(Request::EnsureRunning { name }, Duration::from_secs(20))
}

pub fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    chmod(path, mode);
}

fn chmod(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
