//! A guest, the server, and a relay.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use corpus_protocol::{MailGuest, MailPlan};

use super::super::{Counts, POLICY, Places, Policy, Shared, Times, listen, read_counts};
use crate::files;

pub const MESSAGES: u32 = 5;
const PATIENCE: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(400);

/// What the relay does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Takes,
    RefusesRecipients,
    /// It says nothing any more to this word.
    Hangs(&'static str),
    /// It closes at this word.
    Dies(&'static str),
}

pub struct World {
    folder: tempfile::TempDir,
    address: SocketAddr,
    shared: Arc<Shared>,
    heard: Arc<Mutex<Vec<String>>>,
    relays: Arc<AtomicUsize>,
}

impl World {
    pub fn new(manner: Manner) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (heard, relays) = (Arc::default(), Arc::default());
        let relay = relay(manner, Arc::clone(&heard), Arc::clone(&relays));
        let guest =
            MailGuest { guest: "a.example.org".parse().unwrap(), ip: Ipv4Addr::LOCALHOST, messages_per_hour: MESSAGES };
        let plan = MailPlan { relay, max_bytes: 5_000, guests: vec![guest] };
        let policy = folder.path().join(POLICY);
        files::write(&policy, &serde_json::to_string(&plan).unwrap(), 0o644).unwrap();
        let shared = Arc::new(Shared {
            name: "[127.0.0.1]".into(),
            host: "node".into(),
            policy: Policy::new(policy),
            counts: Counts::open(folder.path().join("counts.json")),
            places: Places::default(),
            times: Times {
                command: Duration::from_secs(2),
                message: PATIENCE,
                session: PATIENCE * 4,
                connect: SHORT,
                relay: SHORT,
                taking: SHORT,
                away: PATIENCE,
            },
            away: Mutex::default(),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let served = Arc::clone(&shared);
        thread::spawn(move || listen(&listener, &served));
        Self { folder, address, shared, heard, relays }
    }

    pub fn connect(&self) -> Guest {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Guest(BufReader::new(stream))
    }

    /// One that was greeted.
    pub fn guest(&self) -> Guest {
        let mut guest = self.connect();
        assert_eq!(guest.answer(), "220 [127.0.0.1] ESMTP Corpus\r\n");
        guest
    }

    pub fn begun_without_data(&self) -> Guest {
        let mut guest = self.guest();
        guest.send("EHLO web\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\n");
        assert_eq!(guest.codes(3), ["250", "250", "250"]);
        guest
    }

    /// One whose message may come.
    pub fn begun(&self) -> Guest {
        let mut guest = self.begun_without_data();
        assert!(guest.ask("DATA").starts_with("354"));
        guest
    }

    pub fn switch_off(&self) {
        let plan = MailPlan { relay: "127.0.0.1:9".parse().unwrap(), max_bytes: 5_000, guests: vec![] };
        files::write(&self.folder.path().join(POLICY), &serde_json::to_string(&plan).unwrap(), 0o644).unwrap();
    }

    /// What the relay was told: commands, and whole messages.
    pub fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// Until nobody speaks to the relay any more, and what became of it is counted.
    pub fn wait_for_relays(&self) {
        let end = Instant::now() + PATIENCE;
        while self.relays.load(Ordering::SeqCst) > 0 && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        thread::sleep(Duration::from_millis(100));
    }

    /// Accepted, limited, refused, failed.
    pub fn counts(&self) -> (u64, u64, u64, u64) {
        self.shared.counts.save().unwrap();
        let counts = read_counts(&self.folder.path().join("counts.json"));
        // An hour may end while a test runs.
        counts.iter().fold((0, 0, 0, 0), |sum, one| {
            (sum.0 + one.accepted, sum.1 + one.limited, sum.2 + one.refused, sum.3 + one.failed)
        })
    }
}

pub struct Guest(BufReader<TcpStream>);

impl Guest {
    pub fn send(&mut self, text: &str) {
        // A server that has left takes nothing more.
        let _ = self.0.get_mut().write_all(text.as_bytes());
    }

    /// All lines of an answer; what there is when the connection ends.
    pub fn answer(&mut self) -> String {
        let mut answer = String::new();
        loop {
            let mut line = String::new();
            let length = self.0.read_line(&mut line).unwrap_or(0);
            answer += &line;
            if length == 0 || line.as_bytes().get(3) != Some(&b'-') {
                return answer;
            }
        }
    }

    pub fn ask(&mut self, command: &str) -> String {
        self.send(&format!("{command}\r\n"));
        self.answer()
    }

    pub fn codes(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.answer().get(..3).unwrap_or_default().to_owned()).collect()
    }

    pub fn is_closed(&mut self) -> bool {
        self.0.read(&mut [0]).map_or(true, |length| length == 0)
    }
}

fn relay(manner: Manner, heard: Arc<Mutex<Vec<String>>>, relays: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (heard, relays) = (Arc::clone(&heard), Arc::clone(&relays));
            relays.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || {
                let _ = speak(manner, &mut BufReader::new(stream.unwrap()), &heard);
                relays.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    address
}

fn speak(manner: Manner, stream: &mut BufReader<TcpStream>, heard: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let goes_on = |stream: &mut BufReader<TcpStream>, word: &str| {
        if manner == Manner::Hangs(word_of(word)) {
            // Until the other side has had enough.
            while stream.read(&mut [0; 999]).is_ok_and(|length| length > 0) {}
        }
        ![Manner::Hangs(word_of(word)), Manner::Dies(word_of(word))].contains(&manner)
    };
    if !goes_on(stream, "connect") {
        return Ok(());
    }
    stream.get_mut().write_all(b"220 relay ESMTP\r\n")?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim_end().to_owned();
        let word = line.split(' ').next().unwrap_or_default().to_owned();
        if !goes_on(stream, &word) {
            return Ok(());
        }
        heard.lock().unwrap().push(line);
        let answer = match word.as_str() {
            "EHLO" => "250-relay\r\n250-SIZE 1000000\r\n250 8BITMIME",
            "MAIL" => "250 2.1.0 Ok",
            "RCPT" if manner == Manner::RefusesRecipients => "550-5.1.1 Nobody\r\n550 5.1.1 of that name",
            "RCPT" => "250 2.1.5 Ok",
            "DATA" => {
                stream.get_mut().write_all(b"354 go on\r\n")?;
                if !goes_on(stream, "body") {
                    return Ok(());
                }
                let mut message = Vec::new();
                while !message.ends_with(b"\r\n.\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte)?;
                    message.push(byte[0]);
                }
                heard.lock().unwrap().push(String::from_utf8_lossy(&message).into_owned());
                "250 2.0.0 Ok: queued by 127.0.0.1"
            }
            "QUIT" => return stream.get_mut().write_all(b"221 bye\r\n"),
            _ => "500 what",
        };
        stream.get_mut().write_all(format!("{answer}\r\n").as_bytes())?;
    }
}

fn word_of(word: &str) -> &'static str {
    ["connect", "EHLO", "MAIL", "RCPT", "DATA", "body"].into_iter().find(|one| *one == word).unwrap_or("none")
}
