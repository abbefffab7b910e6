//! A real directory (`pebble`) for one test: its own folder, its own loopback ports, gone with the value.
//!
//! By itself all names lead to 127.0.0.1 for it, where what it asks over HTTP is answered by [`PebbleServer::answers`], or
//! refused at will. In a world that is there it asks that world's DNS server, and the hosts that names lead to.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    missing_docs,
    clippy::missing_panics_doc,
    reason = "tests may fail loudly, and start programs"
)]

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use secrecy::SecretString;
use tempfile::TempDir;

use crate::{DirectorySettings, ExternalAccount};

const EXTERNAL_ID: &str = "kid-1";
const EXTERNAL_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/// How it behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Behaviour {
    /// How many of a hundred good nonces it refuses.
    pub refuses_nonces: u8,
    /// Whether accounts must be bound to an external one.
    pub binds_accounts: bool,
}

/// Token to answer, as the guests' proxy would have it; empty: nobody answers.
pub type Answers = Arc<Mutex<HashMap<String, String>>>;

pub struct PebbleServer {
    pebble: Child,
    names: Option<(Child, SocketAddr)>,
    pub api: SocketAddr,
    management: SocketAddr,
    answers: Answers,
    behaviour: Behaviour,
    folder: TempDir,
}

impl PebbleServer {
    pub fn start() -> Self {
        Self::start_with(Behaviour::default())
    }

    pub fn start_with(behaviour: Behaviour) -> Self {
        let answers = Answers::default();
        let http = answer_http(&answers);
        let [dns, management] = free();
        let names = Command::new("pebble-challtestsrv")
            .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-defaultIPv6", ""])
            .args(["-dns01", &dns.to_string(), "-management", &management.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the package pebble is installed");
        Self::run(behaviour, (dns, http.port()), answers, Some((names, management)))
    }

    /// Which asks this DNS server, and hosts at this port.
    pub fn of_world(dns: SocketAddr, http_port: u16) -> Self {
        Self::run(Behaviour::default(), (dns, http_port), Answers::default(), None)
    }

    fn run(
        behaviour: Behaviour,
        (dns, http_port): (SocketAddr, u16),
        answers: Answers,
        names: Option<(Child, SocketAddr)>,
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let [api, management] = free();
        write_tls(&folder);
        let at = |name: &str| folder.path().join(name).display().to_string();
        let mut settings = serde_json::json!({
            "listenAddress": api.to_string(),
            "managementListenAddress": management.to_string(),
            "certificate": at("cert.pem"),
            "privateKey": at("key.pem"),
            "httpPort": http_port,
            "tlsPort": 1,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": behaviour.binds_accounts,
        });
        if behaviour.binds_accounts {
            settings["externalAccountMACKeys"] = serde_json::json!({ EXTERNAL_ID: EXTERNAL_KEY });
        }
        std::fs::write(folder.path().join("pebble.json"), serde_json::json!({ "pebble": settings }).to_string())
            .unwrap();
        let log = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
        let pebble = Command::new("pebble")
            .args(["-strict", "-config", &at("pebble.json"), "-dnsserver", &dns.to_string()])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", behaviour.refuses_nonces.to_string())
            .stdin(Stdio::null())
            .stdout(log("pebble.log"))
            .stderr(log("pebble.err"))
            .spawn()
            .expect("the package pebble is installed");
        let this = Self { pebble, names, api, management, answers, behaviour, folder };
        let begin = Instant::now();
        let awaited = || std::iter::once(this.api).chain(this.names.as_ref().map(|(_, management)| *management));
        while awaited().any(|address| TcpStream::connect(address).is_err()) {
            assert!(begin.elapsed() < Duration::from_secs(20), "pebble did not start: {}", this.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        this
    }

    pub fn settings(&self) -> DirectorySettings {
        let external =
            || ExternalAccount { key_id: EXTERNAL_ID.to_owned(), key: SecretString::from(EXTERNAL_KEY.to_owned()) };
        DirectorySettings {
            directory: format!("https://{}/dir", self.api).parse().unwrap(),
            contact: Some("admin@example.org".to_owned()),
            eab: self.behaviour.binds_accounts.then(external),
            root: Some(self.root()),
        }
    }

    /// The authority that its own certificate is of.
    pub fn root(&self) -> PathBuf {
        self.folder.path().join("root.pem")
    }

    /// What is answered to it over HTTP.
    pub fn answers(&self) -> Answers {
        Arc::clone(&self.answers)
    }

    pub fn answer(&self, token: &str, answer: &str) {
        self.answers.lock().unwrap().insert(token.to_owned(), answer.to_owned());
    }

    /// A TXT record of `_acme-challenge.NAME`.
    pub async fn set_txt(&self, name: &str, value: &str) {
        let body = serde_json::json!({ "host": format!("_acme-challenge.{name}."), "value": value });
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let (_, management) = self.names.as_ref().expect("it asks the world");
        let to = format!("http://{management}/set-txt");
        assert!(client.post(to).json(&body).send().await.unwrap().status().is_success());
    }

    /// The authority that it signs with.
    pub async fn authority(&self) -> String {
        let root = reqwest::Certificate::from_pem(&std::fs::read(self.root()).unwrap()).unwrap();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([root]).build().unwrap();
        client.get(format!("https://{}/roots/0", self.management)).send().await.unwrap().text().await.unwrap()
    }

    pub fn log(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        read("pebble.log") + &read("pebble.err")
    }

    pub fn stop(&mut self) {
        for process in std::iter::once(&mut self.pebble).chain(self.names.as_mut().map(|(names, _)| names)) {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Drop for PebbleServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ports that are free for TCP and UDP.
fn free() -> [SocketAddr; 2] {
    let held: [TcpListener; 2] = std::array::from_fn(|_| {
        loop {
            let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
            if std::net::UdpSocket::bind(tcp.local_addr().unwrap()).is_ok() {
                break tcp;
            }
        }
    });
    held.map(|held| held.local_addr().unwrap())
}

fn write_tls(folder: &TempDir) {
    let (root_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut root = CertificateParams::new(Vec::new()).unwrap();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_certificate = root.self_signed(&root_key).unwrap();
    let issuer = Issuer::new(root, root_key);
    let own = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let certificate = own.signed_by(&key, &issuer).unwrap();
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
    write("root.pem", root_certificate.pem());
    write("cert.pem", certificate.pem());
    write("key.pem", key.serialize_pem());
}

/// A web server on a port of its own, for as long as the process runs.
fn answer_http(answers: &Answers) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answers = Arc::downgrade(answers);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let Some(answers) = answers.upgrade() else { return };
            let answers = answers.lock().unwrap().clone();
            std::thread::spawn(move || answer_one(stream, &answers));
        }
    });
    address
}

fn answer_one(mut stream: TcpStream, answers: &HashMap<String, String>) {
    let mut head = [0; 2048];
    let length = stream.read(&mut head).unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..length]).into_owned();
    let token = head.split_whitespace().nth(1).and_then(|path| path.strip_prefix("/.well-known/acme-challenge/"));
    let (status, body) = match token.and_then(|token| answers.get(token)) {
        Some(answer) => ("200 OK", answer.clone()),
        None => ("404 Not Found", "nobody's".to_owned()),
    };
    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
}
