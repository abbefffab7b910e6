//! A directory that says when to renew (ARI), for one test: Debian's pebble has no such thing. It makes accounts of whoever
//! asks, and issues nothing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    clippy::missing_panics_doc,
    reason = "tests may fail loudly"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, SecondsFormat, Utc};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;

use crate::DirectorySettings;

/// What it says of every certificate.
#[derive(Debug, Clone, Copy)]
pub enum Said {
    Window {
        start: DateTime<Utc>,
        end: DateTime<Utc>,
        retry_after: Option<&'static str>,
    },
    /// A status line, and nothing that makes sense.
    Status(&'static str),
}

struct State {
    said: Said,
    asked: usize,
}

pub struct RenewalServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl RenewalServer {
    /// Fails until it is told what to say. It runs for as long as the process.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { said: Said::Status("HTTP/1.1 503 Busy"), asked: 0 }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Who hangs up hears nothing more.
                let _ = answer(stream, address, &shared);
            }
        });
        Self { address, state }
    }

    pub fn settings(&self) -> DirectorySettings {
        let directory = format!("http://{}/dir", self.address).parse().unwrap();
        DirectorySettings { directory, contact: None, eab: None, root: None }
    }

    pub fn say(&self, said: Said) {
        self.state.lock().unwrap().said = said;
    }

    /// How often it was asked when to renew.
    pub fn asked(&self) -> usize {
        self.state.lock().unwrap().asked
    }

    /// A certificate that names its authority, as all of directories do.
    pub fn chain(&self) -> String {
        let (root_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let mut root = CertificateParams::new(Vec::new()).unwrap();
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = Issuer::new(root, root_key);
        let mut own = CertificateParams::new(vec!["www.example.org".to_owned()]).unwrap();
        own.use_authority_key_identifier_extension = true;
        own.signed_by(&key, &issuer).unwrap().pem()
    }
}

fn answer(stream: TcpStream, address: SocketAddr, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink())?;
    let path = first.split(' ').nth(1).unwrap_or_default();
    let at = |path: &str| format!("http://{address}{path}");
    let (head, body) = match path {
        "/dir" => {
            let (nonce, account, order) = (at("/nonce"), at("/account"), at("/order"));
            let directory =
                json!({ "newNonce": nonce, "newAccount": account, "newOrder": order, "renewalInfo": at("/renewal") });
            ("HTTP/1.1 200 OK".to_owned(), directory.to_string())
        }
        "/nonce" => ("HTTP/1.1 200 OK".to_owned(), String::new()),
        "/account" => (format!("HTTP/1.1 201 Created\r\nLocation: {}", at("/account/1")), "{}".to_owned()),
        _ if path.starts_with("/renewal/") => renewal(&mut state.lock().unwrap()),
        _ => ("HTTP/1.1 404 Not Found".to_owned(), String::new()),
    };
    let length = body.len();
    write!(
        reader.get_mut(),
        "{head}\r\nReplay-Nonce: bm9uY2U\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn renewal(state: &mut State) -> (String, String) {
    state.asked += 1;
    match state.said {
        Said::Status(line) => (line.to_owned(), "<html>".to_owned()),
        Said::Window { start, end, retry_after } => {
            let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Secs, true);
            let window = json!({ "suggestedWindow": { "start": time(start), "end": time(end) } });
            let wait = retry_after.map(|wait| format!("\r\nRetry-After: {wait}")).unwrap_or_default();
            (format!("HTTP/1.1 200 OK{wait}"), window.to_string())
        }
    }
}
