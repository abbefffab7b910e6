//! A relay for tests: it speaks SMTP on a loopback port and keeps what it is given.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One letter: who it is from and to, and all of it.
#[derive(Debug, Clone, Default)]
pub struct Taken {
    pub from: String,
    pub to: Vec<String>,
    pub data: String,
    /// What the sender logged in with: `AUTH PLAIN`'s words, in base64.
    pub login: Option<String>,
}

pub struct Sink {
    /// Where it listens, for `smtp://`.
    pub address: String,
    pub taken: Arc<Mutex<Vec<Taken>>>,
    /// What it answers to the end of a letter instead of taking it.
    pub refuses: Arc<Mutex<Option<&'static str>>>,
    task: JoinHandle<()>,
}

impl Sink {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let taken = Arc::<Mutex<Vec<Taken>>>::default();
        let refuses = Arc::<Mutex<Option<&'static str>>>::default();
        let (keeps, says) = (Arc::clone(&taken), Arc::clone(&refuses));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(talk(stream, Arc::clone(&keeps), Arc::clone(&says)));
            }
        });
        Self { address, taken, refuses, task }
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

async fn talk(stream: TcpStream, taken: Arc<Mutex<Vec<Taken>>>, answers: Arc<Mutex<Option<&'static str>>>) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader).lines();
    writer.write_all(b"220 sink.test\r\n").await.unwrap();
    let mut letter = Taken::default();
    while let Ok(Some(line)) = lines.next_line().await {
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
                writer.write_all(b"354 go on\r\n").await.unwrap();
                while let Ok(Some(line)) = lines.next_line().await {
                    if line == "." {
                        break;
                    }
                    letter.data += line.strip_prefix('.').unwrap_or(&line);
                    letter.data.push('\n');
                }
                let refusal = *answers.lock().unwrap();
                if refusal.is_none() {
                    taken.lock().unwrap().push(std::mem::take(&mut letter));
                }
                refusal.unwrap_or("250 taken").to_owned()
            }
            "QUIT" => {
                drop(writer.write_all(b"221 bye\r\n").await);
                return;
            }
            word if word.starts_with("EHLO ") => "250-sink.test\r\n250 AUTH PLAIN".to_owned(),
            word if word.starts_with("AUTH PLAIN ") => {
                letter.login = word.strip_prefix("AUTH PLAIN ").map(str::to_owned);
                "235 welcome".to_owned()
            }
            _ => "250 sink.test".to_owned(),
        };
        writer.write_all(format!("{answer}\r\n").as_bytes()).await.unwrap();
    }
}
