//! A relay for tests: it speaks SMTP on a loopback port, with TLS or without, and keeps what it is given.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// One letter: who it is from and to, and all of it.
#[derive(Debug, Clone, Default)]
pub struct Taken {
    pub from: String,
    pub to: Vec<String>,
    pub data: String,
    /// What the sender logged in with: `AUTH PLAIN`'s words, in base64.
    pub login: Option<String>,
    /// Whether it came over TLS.
    pub over_tls: bool,
}

/// What the relay does about TLS.
#[derive(Clone, Default)]
pub enum Offers {
    /// None.
    #[default]
    Plain,
    /// From the start.
    Tls(TlsAcceptor),
    /// After STARTTLS; logins only then.
    StartTls(TlsAcceptor),
}

#[derive(Clone, Default)]
struct Shared {
    taken: Arc<Mutex<Vec<Taken>>>,
    refuses: Arc<Mutex<Option<&'static str>>>,
    login: Arc<Mutex<Option<String>>>,
    heard: Arc<Mutex<Vec<String>>>,
}

pub struct Sink {
    /// Where it listens, for `smtp://`.
    pub address: String,
    pub taken: Arc<Mutex<Vec<Taken>>>,
    /// What it answers to the end of a letter instead of taking it.
    pub refuses: Arc<Mutex<Option<&'static str>>>,
    /// The only login that it takes, as `AUTH PLAIN` says it; none: any.
    pub login: Arc<Mutex<Option<String>>>,
    /// All commands that came, in order.
    pub heard: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Sink {
    pub async fn start() -> Self {
        Self::offering(Offers::Plain).await
    }

    pub async fn offering(offers: Offers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Shared::default();
        let Shared { taken, refuses, login, heard } = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(Box::new(stream), offers.clone(), shared.clone()));
            }
        });
        Self { address, taken, refuses, login, heard, task }
    }

    pub fn letters(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: Box<dyn Stream>, offers: Offers, shared: Shared) {
    match offers {
        Offers::Plain => drop(talk(stream, "250 AUTH PLAIN", false, true, &shared).await),
        Offers::Tls(acceptor) => {
            // Who does not trust the certificate ends here.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            talk(Box::new(stream), "250 AUTH PLAIN", true, true, &shared).await;
        }
        Offers::StartTls(acceptor) => {
            let Some(stream) = talk(stream, "250 STARTTLS", false, true, &shared).await else { return };
            let Ok(stream) = acceptor.accept(stream).await else { return };
            talk(Box::new(stream), "250 AUTH PLAIN", true, false, &shared).await;
        }
    }
}

/// Talks until the end; returns the stream when TLS is to begin.
async fn talk(
    stream: Box<dyn Stream>,
    extension: &str,
    over_tls: bool,
    greets: bool,
    shared: &Shared,
) -> Option<Box<dyn Stream>> {
    let mut stream = BufReader::new(stream);
    if greets {
        stream.write_all(b"220 sink.test\r\n").await.ok()?;
    }
    let mut letter = Taken { over_tls, ..Taken::default() };
    while let Some(line) = next_line(&mut stream).await {
        shared.heard.lock().unwrap().push(line.clone());
        let answer = match line.split_once(':').map_or(line.as_str(), |(word, _)| word) {
            "MAIL FROM" => {
                letter.from = line.clone();
                "250 ok".to_owned()
            }
            "RCPT TO" => {
                letter.to.push(line.clone());
                "250 ok".to_owned()
            }
            "DATA" => {
                stream.write_all(b"354 go on\r\n").await.ok()?;
                while let Some(line) = next_line(&mut stream).await {
                    if line == "." {
                        break;
                    }
                    letter.data += line.strip_prefix('.').unwrap_or(&line);
                    letter.data.push('\n');
                }
                let refusal = *shared.refuses.lock().unwrap();
                if refusal.is_none() {
                    shared.taken.lock().unwrap().push(std::mem::take(&mut letter));
                }
                refusal.unwrap_or("250 taken").to_owned()
            }
            "QUIT" => {
                drop(stream.write_all(b"221 bye\r\n").await);
                return None;
            }
            "STARTTLS" if extension.ends_with("STARTTLS") => {
                stream.write_all(b"220 go ahead\r\n").await.ok()?;
                return Some(stream.into_inner());
            }
            word if word.starts_with("EHLO ") => format!("250-sink.test\r\n{extension}"),
            word if word.starts_with("AUTH PLAIN ") => {
                letter.login = word.strip_prefix("AUTH PLAIN ").map(str::to_owned);
                let only = shared.login.lock().unwrap().clone();
                let refused = only.is_some() && only != letter.login;
                if refused { "535 5.7.8 authentication failed" } else { "235 welcome" }.to_owned()
            }
            _ => "250 sink.test".to_owned(),
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).await.ok()?;
        Pin::new(&mut stream).flush().await.ok()?;
    }
    None
}

async fn next_line(stream: &mut BufReader<Box<dyn Stream>>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}
