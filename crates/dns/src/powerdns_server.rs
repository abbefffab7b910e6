//! A real `PowerDNS` for one test: its own folder, its own loopback ports, gone with the value.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    missing_docs,
    clippy::missing_panics_doc,
    reason = "tests may fail loudly, and start programs"
)]

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use tempfile::TempDir;

use super::{PowerDns, PowerDnsSettings};

const SCHEMA: &str = "/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql";

pub struct PowerDnsServer {
    process: Child,
    pub dns: SocketAddr,
    pub api: SocketAddr,
    _folder: TempDir,
}

impl PowerDnsServer {
    pub fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let database = folder.path().join("pdns.sqlite3");
        let schema = std::fs::File::open(SCHEMA).expect("the package pdns-backend-sqlite3 is installed");
        assert!(Command::new("sqlite3").arg(&database).stdin(schema).status().unwrap().success());
        let (dns, api) = (free_dns(), free_tcp());
        let settings = format!(
            "launch=gsqlite3\ngsqlite3-database={}\nlocal-address=127.0.0.1\nlocal-port={}\nsocket-dir={}\napi=yes\n\
             api-key=testkey\nwebserver=yes\nwebserver-address=127.0.0.1\nwebserver-port={}\n\
             webserver-allow-from=127.0.0.1\ndaemon=no\nguardian=no\ndisable-syslog=yes\nwrite-pid=no\nloglevel=4\n\
             security-poll-suffix=\ncache-ttl=0\nquery-cache-ttl=0\nnegquery-cache-ttl=0\nzone-cache-refresh-interval=0\n",
            database.display(),
            dns.port(),
            folder.path().display(),
            api.port(),
        );
        std::fs::write(folder.path().join("pdns.conf"), settings).unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let process = Command::new("pdns_server")
            .arg(format!("--config-dir={}", folder.path().display()))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("the package pdns-server is installed");
        let this = Self { process, dns, api, _folder: folder };
        this.wait();
        this
    }

    fn wait(&self) {
        let begin = Instant::now();
        while std::net::TcpStream::connect(self.api).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(20), "PowerDNS did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn provider(&self) -> PowerDns {
        self.provider_with_key("testkey")
    }

    pub fn provider_with_key(&self, key: &str) -> PowerDns {
        PowerDns::new(PowerDnsSettings {
            api_url: format!("http://{}/", self.api).parse().unwrap(),
            api_key: SecretString::from(key.to_owned()),
            server_id: "localhost".to_owned(),
            nameservers: vec!["ns1.example.net".parse().unwrap()],
        })
        .unwrap()
    }

    /// A request as somebody else than Corpus would make it; returns the status.
    pub async fn by_hand(&self, method: reqwest::Method, path: &str, body: serde_json::Value) -> u16 {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = format!("http://{}/api/v1/servers/localhost/{path}", self.api);
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = client.request(method, url).header("X-API-Key", "testkey").json(&body).send().await.unwrap();
        answer.status().as_u16()
    }

    pub fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for PowerDnsServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn free_tcp() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// DNS needs the same port free for UDP and TCP.
pub(crate) fn free_dns() -> SocketAddr {
    (0..100)
        .map(|_| free_tcp())
        .find(|address| UdpSocket::bind(address).is_ok())
        .expect("one of a hundred ports is free")
}
