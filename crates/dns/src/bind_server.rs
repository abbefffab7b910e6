//! A real BIND 9 for one test: its own folder, its own loopback port, gone with the value.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs,
    clippy::missing_panics_doc,
    reason = "tests may fail loudly, and start programs"
)]

use std::fmt::Write as _;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use corpus_domain::DnsName;
use secrecy::SecretString;
use tempfile::TempDir;

use super::powerdns_server::free_dns;
use super::{Rfc2136, Rfc2136Settings};

const KEY: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTMyYnl0ZXM=";
const KEY_NAME: &str = "corpus";

pub struct BindServer {
    process: Child,
    pub dns: SocketAddr,
    zones: Vec<DnsName>,
    folder: TempDir,
}

impl BindServer {
    /// With these zones, which the key may change, and `refuses.test`, which it may not.
    pub fn start(zones: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let dns = free_dns();
        let at = folder.path().display();
        let mut settings = format!(
            "options {{ directory \"{at}\"; pid-file none; session-keyfile \"{at}/session.key\";\n\
             managed-keys-directory \"{at}\"; listen-on port {} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};\n\
             recursion no; dnssec-validation no; notify no; empty-zones-enable no; }};\n\
             controls {{ }};\nkey \"{KEY_NAME}\" {{ algorithm hmac-sha256; secret \"{KEY}\"; }};\n",
            dns.port(),
        );
        let of_all = zones.iter().map(|zone| (*zone, true)).chain([("refuses.test", false)]);
        for (zone, changes) in of_all {
            let policy =
                if changes { format!("update-policy {{ grant {KEY_NAME} zonesub ANY; }};") } else { String::new() };
            writeln!(settings, "zone \"{zone}\" {{ type primary; file \"{zone}.zone\"; {policy} }};").unwrap();
            let contents = "$TTL 60\n@ IN SOA ns1 host 1 3600 600 86400 0\n@ IN NS ns1\nns1 IN A 127.0.0.1\n";
            std::fs::write(folder.path().join(format!("{zone}.zone")), contents).unwrap();
        }
        std::fs::write(folder.path().join("named.conf"), settings).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new("/usr/sbin/named")
            .args(["-g", "-n", "1", "-c"])
            .arg(folder.path().join("named.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("the package bind9 is installed");
        let zones = zones.iter().map(|zone| zone.parse().unwrap()).collect();
        let this = Self { process, dns, zones, folder };
        this.wait();
        this
    }

    fn wait(&self) {
        let begin = Instant::now();
        let log = self.folder.path().join("log");
        // It listens before its zones are there.
        while !std::fs::read_to_string(&log).is_ok_and(|text| text.contains("all zones loaded")) {
            let shown = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(begin.elapsed() < Duration::from_secs(20), "BIND did not start: {}", shown());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn provider(&self) -> Rfc2136 {
        self.provider_with(KEY, self.zones.clone())
    }

    pub fn provider_with(&self, key: &str, zones: Vec<DnsName>) -> Rfc2136 {
        let (key_name, key) = (KEY_NAME.parse().unwrap(), SecretString::from(key.to_owned()));
        Rfc2136::new(Rfc2136Settings { server: self.dns, key_name, key, zones }).unwrap()
    }

    /// An update as somebody else than Corpus would make it, a command of `nsupdate` a line.
    pub fn by_hand(&self, zone: &str, commands: &str) {
        let text = format!(
            "server 127.0.0.1 {}\nzone {zone}.\nkey hmac-sha256:{KEY_NAME} {KEY}\n{commands}\nsend\n",
            self.dns.port()
        );
        let mut process =
            Command::new("nsupdate").stdin(Stdio::piped()).spawn().expect("the package bind9-dnsutils is installed");
        process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        assert!(process.wait().unwrap().success(), "{commands}");
    }

    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for BindServer {
    fn drop(&mut self) {
        self.stop();
    }
}
