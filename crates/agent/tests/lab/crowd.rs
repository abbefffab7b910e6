//! One guest's visitors, however many, cost no other guest's: 4,100 open sockets to one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::network::Two;
use crate::world::{World, port};

const CROWD: &str = include_str!("crowd.py");
const SOCKETS: usize = 4100;
/// Of the other node, which has no other use for them.
const SOURCES: [u8; 8] = [101, 102, 103, 104, 105, 106, 107, 108];
/// What no visitor notices; and what a machine that does much else adds now and then. A proxy that is
/// full makes everybody wait for seconds, or for ever.
const NOISE: Duration = Duration::from_millis(30);
const SPIKE: Duration = Duration::from_millis(500);
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// Takes requests and never answers, or answers rubbish.
const HANGS: &str = "import socket,threading\ns=socket.socket();s.setsockopt(1,2,1);s.bind(('',80));s.listen(4096);k=[]\nwhile 1: k.append(s.accept())";
const RAVES: &str = "import socket\ns=socket.socket();s.setsockopt(1,2,1);s.bind(('',80));s.listen(99)\nwhile 1:\n c,_=s.accept()\n try:\n  c.recv(999);c.sendall(b'HTTP/1.1 200 OK\\r\\n'+b'x: '+b'y'*(1<<20));c.close()\n except OSError: pass";

impl Two<'_> {
    /// The others are as fast as before, by HTTP and SSH, and rubbish costs only who asked for it.
    pub fn one_guest_fills_nothing(&self, other: &str) {
        println!("--- a crowd");
        let (world, evil) = (self.world, self.evil.name.as_str());
        self.serves(HANGS);
        let sources = self.sources(other);
        let page = || visit(&world.address, self.good.name.as_str());
        let shell = || banner(&world.address, port(&self.good));
        for (what, at, host) in [("HTTP", 80, evil), ("silent", 80, "-"), ("SSH", port(&self.evil), "-")] {
            let before = (asked(page), asked(shell));
            let mut crowd = crowd(world, other, at, host, &sources);
            let open = line(&mut crowd);
            let during = (asked(page), asked(shell));
            let closed = line(&mut crowd);
            crowd.wait().unwrap();
            let told = format!(
                "{SOCKETS} sockets, {what}, to one guest ({open}, {closed}): p95 of another's page {:.1} ms beside {:.1} ms, of its SSH {:.1} ms beside {:.1} ms",
                ms(during.0.p95),
                ms(before.0.p95),
                ms(during.1.p95),
                ms(before.1.p95)
            );
            println!("{told}");
            measured(&told);
            assert_ne!(closed, "closed 0", "nothing of the crowd was turned away");
            let as_fast = |during: Asked, before: Asked| {
                during.p50 < before.p50 * 2 + NOISE && during.p95 < before.p95 * 2 + SPIKE
            };
            assert!(as_fast(during.0, before.0) && as_fast(during.1, before.1), "{told}; {during:?} beside {before:?}");
        }
        self.serves(RAVES);
        for _ in 0..5 {
            assert!(world.http(evil).text.ends_with(" 502"), "{}", world.http(evil).text);
            assert_eq!(world.http(self.good.name.as_str()).text, "good.lab.test\n 200");
        }
        for last in SOURCES {
            world.on(other, &format!("ip addr del {}/24 dev eth0", address(other, last)));
        }
    }

    /// The hostile guest has another server on port 80.
    fn serves(&self, script: &str) {
        let start = format!(
            "systemctl stop 'run-*.service'; cat > /root/s.py <<'END'\n{script}\nEND\nsystemd-run -q -p LimitNOFILE=20000 python3 /root/s.py"
        );
        // Its own SSH is full until the crowd at it has gone.
        let until = Instant::now() + WAIT_LIMIT;
        loop {
            let said = self.inside(&self.evil, &start);
            if said.success {
                break;
            }
            assert!(Instant::now() < until, "{}", said.text);
            std::thread::sleep(Duration::from_millis(500));
        }
        std::thread::sleep(Duration::from_millis(300));
    }

    fn sources(&self, other: &str) -> Vec<String> {
        let sources: Vec<String> = SOURCES.iter().map(|last| address(other, *last)).collect();
        for source in &sources {
            self.world.on(other, &format!("ip addr replace {source}/24 dev eth0")).expect_success();
        }
        sources
    }
}

fn address(like: &str, last: u8) -> String {
    format!("{}.{last}", like.rsplit_once('.').unwrap().0)
}

fn crowd(world: &World, other: &str, at: u16, host: &str, sources: &[String]) -> Child {
    let run = format!(
        "ulimit -n 20000; python3 - {} {at} {host} {SOCKETS} 12 {} <<'END'\n{CROWD}\nEND",
        world.address,
        sources.join(" ")
    );
    world.begin_on(other, &run)
}

fn line(child: &mut Child) -> String {
    // A byte at a time: the rest is for the next one.
    let mut text = String::new();
    let mut reader = BufReader::with_capacity(1, child.stdout.as_mut().unwrap());
    reader.read_line(&mut text).unwrap();
    text.trim().to_owned()
}

/// How long half of the answers take at most, and all but the slowest of twenty.
#[derive(Debug, Clone, Copy)]
struct Asked {
    p50: Duration,
    p95: Duration,
}

/// Sixty one after the other.
fn asked(ask: impl Fn() -> Duration) -> Asked {
    let mut times: Vec<Duration> = (0..60).map(|_| ask()).collect();
    times.sort_unstable();
    Asked { p50: times[29], p95: times[56] }
}

fn visit(node: &str, host: &str) -> Duration {
    let started = Instant::now();
    let mut line = TcpStream::connect((node, 80)).unwrap();
    line.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    write!(line, "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    line.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" 200 OK\r\n") && answer.ends_with(&format!("{host}\n")), "{answer}");
    started.elapsed()
}

fn banner(node: &str, port: u16) -> Duration {
    let started = Instant::now();
    let mut line = TcpStream::connect((node, port)).unwrap();
    line.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut answer = [0; 4];
    line.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"SSH-");
    started.elapsed()
}

/// In milliseconds.
pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Shown at the end of all tests.
pub fn measured(text: &str) {
    let Ok(path) = std::env::var("CORPUS_MEASURES") else { return };
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
    writeln!(file, "{text}").unwrap();
}
