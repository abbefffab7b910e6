//! The node, and what a person on it sees.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use corpus_domain::{Backing, Driver, GuestId, GuestName, GuestNetwork, IdRange, ImageName, MacAddress, SizeProfile};
use corpus_protocol::{Egress, GuestNet, GuestPlan, GuestPort, HttpRoute, Https, NodePlan, SshRoute};

use crate::line::Line;

const AGENT: &str = "/var/lib/corpus/agent/corpus-agent-test";

pub struct World {
    pub address: String,
    key: PathBuf,
    pub image: PathBuf,
    folder: tempfile::TempDir,
}

pub struct Said {
    pub success: bool,
    pub text: String,
}

/// So long, on a node that is as fast as it should be; `CORPUS_LAB_SLOWER` says how many times slower this one is.
pub fn patience(usual: Duration) -> Duration {
    usual * std::env::var("CORPUS_LAB_SLOWER").map_or(1, |text| text.parse().unwrap())
}

impl Said {
    pub fn expect_success(&self) {
        assert!(self.success, "{}", self.text);
    }
}

impl World {
    pub fn from_environment() -> Option<Self> {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let world = Self {
            address: variable("CORPUS_LAB_NODE1")?,
            key: variable("CORPUS_LAB_NODE_KEY")?.into(),
            image: variable("CORPUS_LAB_IMAGE")?.into(),
            folder: tempfile::tempdir().unwrap(),
        };
        let agent = variable("CORPUS_AGENT_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_corpus-agent").to_owned());
        world.must("mkdir -p /var/lib/corpus/agent /var/lib/corpus/upload");
        world.copy(Path::new(&agent), AGENT);
        world.must(&format!("chmod 755 {AGENT}"));
        Some(world)
    }

    /// A folder of this machine.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn line(&self) -> Line {
        let mut ssh = self.ssh("root", 22, &self.key);
        Line::new(ssh.args([AGENT, "serve"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap())
    }

    /// Another program of the agent, on a line of its own.
    pub fn agent(&self, words: &str) -> Child {
        let mut ssh = self.ssh("root", 22, &self.key);
        ssh.arg(format!("{AGENT} {words}")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    fn ssh(&self, user: &str, port: u16, key: &Path) -> Command {
        Self::ssh_to(&self.address, user, port, key)
    }

    fn ssh_to(address: &str, user: &str, port: u16, key: &Path) -> Command {
        let mut ssh = Command::new("ssh");
        for option in [
            "IdentitiesOnly=yes",
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            &format!("ConnectTimeout={}", patience(Duration::from_secs(2)).as_secs()),
            "BatchMode=yes",
            "KexAlgorithms=curve25519-sha256",
        ] {
            ssh.args(["-o", option]);
        }
        ssh.arg("-i").arg(key).args(["-p", &port.to_string(), &format!("{user}@{address}")]);
        ssh
    }

    /// Runs a command on the node as its root.
    pub fn on_node(&self, command: &str) -> Said {
        said(self.ssh("root", 22, &self.key).arg(command))
    }

    /// Runs a command on another node.
    pub fn on(&self, address: &str, command: &str) -> Said {
        said(Self::ssh_to(address, "root", 22, &self.key).arg(command))
    }

    /// Begins a command on another node, whose output is read while it runs.
    pub fn begin_on(&self, address: &str, command: &str) -> Child {
        let mut ssh = Self::ssh_to(address, "root", 22, &self.key);
        ssh.arg(command).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
    }

    pub fn must(&self, command: &str) -> String {
        let said = self.on_node(command);
        assert!(said.success, "{command}: {}", said.text);
        said.text
    }

    /// A program of the host's own listens on a port, until `systemctl stop taken`.
    pub fn takes_port(&self, port: u16) {
        self.must(&format!(
            "systemd-run -q --unit taken python3 -m http.server --bind 0.0.0.0 {port} && \
             timeout 60 sh -c 'until ss -Hltn sport = {port} | grep -q .; do sleep 0.1; done'"
        ));
    }

    pub fn copy(&self, from: &Path, to: &str) {
        let file = std::fs::File::open(from).unwrap();
        // What was there may run still.
        let put = format!("cat > {to}.new && mv {to}.new {to}");
        assert!(self.ssh("root", 22, &self.key).arg(put).stdin(file).status().unwrap().success());
    }

    /// Logs in to a guest through the node's port.
    pub fn enter(&self, user: &str, port: u16, key: &Path, command: &str) -> Said {
        said(self.ssh(user, port, key).arg(command))
    }

    /// Logs in as soon as the guest answers.
    pub fn enter_soon(&self, user: &str, port: u16, key: &Path, command: &str) -> Said {
        let end = Instant::now() + patience(Duration::from_secs(20));
        loop {
            let said = self.enter(user, port, key, command);
            if said.success || Instant::now() > end {
                return said;
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// A fresh key pair: the private key's file, and the public line.
    pub fn key_pair(&self, name: &str) -> (PathBuf, String) {
        let file = self.folder.path().join(name);
        let _ = std::fs::remove_file(&file);
        let made =
            Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&file).status();
        assert!(made.unwrap().success());
        let public = std::fs::read_to_string(file.with_extension("pub")).unwrap();
        (file, public.trim().to_owned())
    }

    /// Reboots the node and waits until it answers again.
    pub fn reboot(&self) {
        let started = || self.on_node("cut -d' ' -f22 /proc/1/stat");
        let before = started().text;
        self.on_node("systemctl reboot");
        let end = Instant::now() + patience(Duration::from_mins(1));
        loop {
            let now = started();
            if now.success && now.text != before {
                break;
            }
            assert!(Instant::now() < end, "the node does not come back");
            sleep(Duration::from_millis(100));
        }
        // SSH of a slow one answers long before its firewall and its guests are there.
        if patience(Duration::from_secs(1)) > Duration::from_secs(1) {
            self.on_node("systemctl is-system-running --wait");
        }
    }

    pub fn http(&self, host: &str) -> Said {
        let address = format!("http://{}/", self.address);
        said(Command::new("curl").args([
            "-s",
            "-m",
            "5",
            "-w",
            " %{http_code}",
            "-H",
            &format!("Host: {host}"),
            &address,
        ]))
    }
}

fn said(command: &mut Command) -> Said {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Said { success: output.status.success(), text }
}

pub fn image() -> ImageName {
    "debian-12".parse().unwrap()
}

pub fn guest(name: &str, number: u8, backing: Backing) -> GuestPlan {
    let ip = Ipv4Addr::new(10, 5, 0, number);
    GuestPlan {
        name: name.parse().unwrap(),
        id: Some(GuestId(uuid::Uuid::from_u128(number.into()))),
        driver: Driver::Lxc,
        image: image(),
        backing,
        size: SizeProfile::Small,
        limits: SizeProfile::Small.limits(),
        net: GuestNet { bridge: "lxcbr1".into(), network: GuestNetwork::DEFAULT, ip, mac: MacAddress::for_ip(ip) },
        autostart: false,
        lines: Vec::new(),
        ids: IdRange::all().nth(number.into()),
    }
}

/// A node's plan that leads to these guests; `revision` rises with each call.
pub fn node(guests: &[&GuestPlan]) -> NodePlan {
    static REVISION: std::sync::atomic::AtomicI64 = std::sync::atomic::AtomicI64::new(1);
    let name = |guest: &GuestPlan| -> GuestName { guest.name.clone() };
    NodePlan {
        revision: REVISION.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        isolated: vec![],
        bridge: "lxcbr1".into(),
        network: GuestNetwork::DEFAULT,
        ssh_routes: guests
            .iter()
            .map(|guest| SshRoute { guest: name(guest), port: port(guest).try_into().unwrap(), ip: guest.net.ip })
            .collect(),
        http_routes: guests
            .iter()
            .map(|guest| HttpRoute {
                name: guest.name.as_str().parse().unwrap(),
                wildcard: false,
                guest: name(guest),
                ip: guest.net.ip,
                https: Https::default(),
                pool: None,
            })
            .collect(),
        firewall: vec![],
        published: vec![],
        blocks: vec![],
        blocked: vec![],
        ports: guests
            .iter()
            .map(|guest| GuestPort { guest: name(guest), ip: guest.net.ip, mac: guest.net.mac })
            .collect(),
        egress: Egress::default(),
        zones: vec![],
        certificates: vec![],
        challenges: vec![],
        pools: vec![],
        links: None,
        mail: None,
    }
}

pub fn port(guest: &GuestPlan) -> u16 {
    40_000 + u16::from(guest.net.ip.octets()[3])
}
