//! A real OpenSSH server with SFTP, on a port of this machine, in a mount namespace of its own: with its own accounts, so
//! nothing of this machine is touched. That takes root.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use secrecy::SecretString;
use tempfile::TempDir;

use crate::{Access, SftpAccess, Storage};

/// What the server's namespace looks like; `$1` is the folder of the test.
const NAMESPACE: &str = "
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -m 755 /run/sshd
for name in passwd shadow group; do mount --bind \"$1/$name\" \"/etc/$name\"; done
exec /usr/sbin/sshd -D -e -f \"$1/sshd_config\"
";
const ID: u32 = 60_001;

pub struct Sshd {
    pub dir: TempDir,
    pub port: u16,
    pub key: PrivateKey,
    pub host_key: PrivateKey,
    child: Mutex<Option<Child>>,
}

pub fn new_key() -> PrivateKey {
    PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).unwrap()
}

pub fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

pub fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn children(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

impl Sshd {
    pub fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("corpus-sftp-").tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (port, key, host_key) = (free_port(), new_key(), new_key());
        let at = |name: &str| dir.path().join(name);
        let home = at("home");
        fs::create_dir_all(home.join(".ssh")).unwrap();
        chown(&home, Some(ID), Some(ID)).unwrap();
        write(&home.join(".ssh/authorized_keys"), &key.public_key().to_openssh().unwrap(), 0o644);
        write(&at("host_key"), &host_key.to_openssh(LineEnding::LF).unwrap(), 0o600);
        write(&at("user_key"), &key.to_openssh(LineEnding::LF).unwrap(), 0o600);
        let passwd = format!(
            "root:x:0:0::/root:/bin/sh\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\nbackup:x:{ID}:{ID}::{}:/bin/sh\n",
            home.display()
        );
        write(&at("passwd"), &passwd, 0o644);
        write(&at("shadow"), "root:*:20000::::::\nsshd:*:20000::::::\nbackup:*:20000::::::\n", 0o600);
        write(&at("group"), &format!("root:x:0:\nbackup:x:{ID}:\nnogroup:x:65534:\n"), 0o644);
        let config = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nHostKey {0}/host_key\nPidFile none\nUseDNS no\nLogLevel VERBOSE\n\
             UsePAM no\nPasswordAuthentication no\nAuthorizedKeysFile .ssh/authorized_keys\n\
             Subsystem sftp internal-sftp\nMaxStartups 200\n",
            dir.path().display()
        );
        write(&at("sshd_config"), &config, 0o600);
        let sshd = Self { dir, port, key, host_key, child: Mutex::new(None) };
        sshd.run();
        sshd
    }

    pub fn run(&self) {
        let log = fs::File::options().create(true).append(true).open(self.dir.path().join("log")).unwrap();
        let child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "/bin/sh", "-euc", NAMESPACE, "sh"])
            .arg(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("unshare(1) can be run as root");
        *self.child.lock().unwrap() = Some(child);
        let until = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(Instant::now() < until, "sshd did not start: {}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Where the account may write.
    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub fn access(&self) -> Access {
        access(&self.key, &self.host_key)
    }

    /// A folder in the account's home.
    pub fn storage(&self, name: &str) -> Storage {
        self.storage_by(name, &self.access())
    }

    pub fn storage_by(&self, name: &str, access: &Access) -> Storage {
        let path = self.home().join(name);
        let place = format!("sftp://backup@127.0.0.1:{}{}", self.port, path.display());
        Storage::new(place.parse().unwrap(), access).unwrap()
    }

    /// Ends the server's side of all connections.
    pub fn cut(&self) {
        let Some(id) = self.child.lock().unwrap().as_ref().map(Child::id) else { return };
        // Of each connection one process is root's, and those below are the account's.
        let (mut all, mut next) = (Vec::new(), children(id));
        while let Some(process) = next.pop() {
            next.extend(children(process));
            all.push(process.to_string());
        }
        // They may have ended by themselves meanwhile, which is as good.
        drop(Command::new("kill").arg("-KILL").args(all).stderr(Stdio::null()).status());
    }

    /// The machine of the server dies.
    pub fn stop(&self) {
        // Who comes again while the others are ended would stay.
        if let Some(id) = self.child.lock().unwrap().as_ref().map(Child::id) {
            Command::new("kill").args(["-STOP", &id.to_string()]).status().unwrap();
        }
        self.cut();
        if let Some(mut child) = self.child.lock().unwrap().take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

pub fn access(key: &PrivateKey, host_key: &PrivateKey) -> Access {
    let key = SecretString::from(key.to_openssh(LineEnding::LF).unwrap().to_string());
    let sftp = SftpAccess::new(&key, &[host_key.public_key().to_openssh().unwrap()]).unwrap();
    Access { sftp: Some(Arc::new(sftp)), s3: None }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("--- sshd:\n{}", self.log());
        }
        self.stop();
    }
}
