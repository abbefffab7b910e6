//! What visitors of a site would see: the node's own proxy is asked for `/` of each name.
//!
//! It is asked at a socket of its own, where a name whose visitors are sent to HTTPS answers as it does there: so what is
//! seen is the guest's answer, without TLS, and whether the certificate is good is not told here.
//!
//! Asked here and not from the controller, which need not reach the ports of visitors. What answers is a
//! guest's, so of the answer nothing is read but its first line, and none may keep the others waiting: of a guest whose
//! sites were slow a few times, those that are left are not asked in the same request.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use corpus_domain::GuestName;
use corpus_protocol::{AskedSite, Site};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::proxy;
use crate::host::Host;

/// Where the proxy of a node takes HTTP that an older release set up: it sends nobody to HTTPS.
const HTTP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 80);
/// How long a site may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);
/// How long all may take together; those that were not asked by then are not told of.
const WHOLE_LIMIT: Duration = Duration::from_secs(20);
/// As many are asked for one request.
const MOST: usize = 500;
/// Sites asked at once.
const AT_ONCE: usize = 8;
/// What takes longer is slow, beside [`ANSWER_LIMIT`].
const SLOW: u32 = 5;
/// As many slow sites of one guest are waited for, and those that are asked meanwhile; with all others of it the request
/// would be over before anybody else's turn.
const SLOW_OF_A_GUEST: usize = 4;
/// As much of an answer is read: its first line is shorter.
const FIRST_LINE: usize = 256;

/// What the proxy answers for these names, asked in their order; those that were not asked are left out.
pub fn probe(host: &Host, sites: &[AskedSite]) -> Vec<Site> {
    let socket = host.path(proxy::SITES);
    let proxy = if socket.exists() { Proxy::Socket(socket) } else { Proxy::Port(HTTP) };
    probe_at(&proxy, sites.get(..MOST).unwrap_or(sites), ANSWER_LIMIT)
}

/// Where the proxy takes requests.
enum Proxy {
    Socket(PathBuf),
    Port(SocketAddr),
}

impl Proxy {
    fn connect(&self, limit: Duration) -> io::Result<Box<dyn Connection>> {
        match self {
            Self::Socket(path) => {
                // One that takes no connections makes who waits for it wait for ever.
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                connect(&socket, &SocketAddrUnix::new(path)?)?;
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                Ok(Box::new(stream))
            }
            Self::Port(address) => Ok(Box::new(TcpStream::connect_timeout(address, limit)?)),
        }
    }
}

/// A connection that can be told how long to wait.
trait Connection: Read + Write {
    fn wait_for_read(&self, limit: Duration) -> io::Result<()>;
    fn wait_for_write(&self, limit: Duration) -> io::Result<()>;
}

macro_rules! connections {
    ($($stream:ty),+) => {$(
        impl Connection for $stream {
            fn wait_for_read(&self, limit: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(limit))
            }

            fn wait_for_write(&self, limit: Duration) -> io::Result<()> {
                self.set_write_timeout(Some(limit))
            }
        }
    )+};
}

connections!(TcpStream, UnixStream);

fn probe_at(proxy: &Proxy, asked: &[AskedSite], limit: Duration) -> Vec<Site> {
    let (next, end, slow) = (AtomicUsize::new(0), Instant::now() + WHOLE_LIMIT, Slow::default());
    let ask_on = || {
        let mut sites = Vec::new();
        while let Some(one) = asked.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| Instant::now() < end) {
            if slow.is_too_often(&one.guest) {
                continue;
            }
            let begin = Instant::now();
            let (status, problem) = match ask(one, proxy, limit) {
                Ok(status) => (Some(status), None),
                Err(problem) => (None, Some(problem)),
            };
            if begin.elapsed() > limit / SLOW {
                slow.note(&one.guest);
            }
            sites.push(Site { name: one.name.clone(), status, problem });
        }
        sites
    };
    thread::scope(|scope| {
        let asking: Vec<_> = (0..AT_ONCE.min(asked.len())).map(|_| scope.spawn(ask_on)).collect();
        asking.into_iter().filter_map(|one| one.join().ok()).flatten().collect()
    })
}

/// How often sites of each guest were slow.
#[derive(Default)]
struct Slow<'a>(Mutex<HashMap<&'a GuestName, usize>>);

impl<'a> Slow<'a> {
    fn note(&self, guest: &'a GuestName) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(guest).or_default() += 1;
    }

    fn is_too_often(&self, guest: &GuestName) -> bool {
        let slow = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        slow.get(guest).is_some_and(|times| *times >= SLOW_OF_A_GUEST)
    }
}

fn ask(site: &AskedSite, proxy: &Proxy, limit: Duration) -> Result<u16, String> {
    let end = Instant::now() + limit;
    let (who, connected) = match site.at {
        Some(ip) => ("it", Proxy::Port(SocketAddr::new(ip.into(), 80)).connect(limit)),
        None => ("the node's proxy", proxy.connect(limit)),
    };
    let mut stream = connected.map_err(|error| format!("{who} does not take connections: {}", error.kind()))?;
    let (name, path) = (&site.name, site.path.as_ref().map_or("/", |path| path.as_str()));
    let request = format!("GET {path} HTTP/1.1\r\nHost: {name}\r\nUser-Agent: corpus\r\nConnection: close\r\n\r\n");
    let slow = || format!("no answer within {} s", limit.as_secs_f32());
    stream.wait_for_write(limit).and_then(|()| stream.write_all(request.as_bytes())).map_err(|_| slow())?;
    let (mut line, mut part) = (Vec::with_capacity(FIRST_LINE), [0; FIRST_LINE]);
    while line.len() < FIRST_LINE && !line.contains(&b'\n') {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.wait_for_read(left).is_err() {
            return Err(slow());
        }
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(length) => line.extend(part.iter().take(length)),
            Err(_) => return Err(slow()),
        }
    }
    status(&line).ok_or_else(|| "the answer is no HTTP".to_owned())
}

/// `HTTP/1.1 200 OK`
fn status(line: &[u8]) -> Option<u16> {
    let (version, rest) = line.split_at_checked(9)?;
    let code = rest.get(..3)?;
    let plain = version.starts_with(b"HTTP/1.") && version.ends_with(b" ") && code.iter().all(u8::is_ascii_digit);
    let status = plain.then(|| code.iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))?;
    (100..=999).contains(&status).then_some(status)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers each connection with the next of these, in turn; none: it says nothing.
    fn proxy(answers: Vec<Option<&'static str>>) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let mut open = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 1024]);
                if let Some(answer) = answer {
                    stream.write_all(answer.as_bytes()).unwrap();
                }
                open.push(stream);
            }
            thread::sleep(Duration::from_secs(2));
        });
        address
    }

    /// A site of a guest.
    fn of(guest: &str, name: &str) -> AskedSite {
        let (name, guest) = (format!("{name}.example.org"), format!("{guest}.example.net"));
        AskedSite { name: name.parse().unwrap(), guest: guest.parse().unwrap(), at: None, path: None }
    }

    fn seen(answer: Option<&'static str>) -> (Option<u16>, Option<String>) {
        let mut sites = probe_at(&Proxy::Port(proxy(vec![answer])), &[of("web", "www")], Duration::from_millis(300));
        let site = sites.pop().unwrap();
        (site.status, site.problem)
    }

    #[test]
    fn what_is_seen_is_the_status_or_why_there_is_none() {
        assert_eq!(seen(Some("HTTP/1.1 200 OK\r\n\r\nhello")), (Some(200), None));
        assert_eq!(seen(Some("HTTP/1.0 503 Service Unavailable\r\n")), (Some(503), None));
        for (rubbish, why) in [
            (Some("SSH-2.0-OpenSSH\r\n"), "no HTTP"),
            (Some("HTTP/1.1 2x0 OK\r\n"), "no HTTP"),
            (Some("HTTP/1.1 000 OK\r\n"), "no HTTP"),
            (Some("HTTP/1."), "no answer"),
            (None, "no answer within 0.3 s"),
        ] {
            let (status, problem) = seen(rubbish);
            assert!(status.is_none() && problem.unwrap().contains(why), "{rubbish:?}");
        }
    }

    #[test]
    fn the_node_s_own_socket_is_asked_when_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let host = Host::below(folder.path());
        let path = host.path(proxy::SITES);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let answering = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        });
        let sites = [of("web", "www")];
        assert_eq!(probe(&host, &sites)[0].status, Some(204));
        answering.join().unwrap();
        // It is there, and nobody takes connections any more.
        let gone = probe(&host, &sites);
        assert!(gone[0].problem.as_deref().unwrap().contains("does not take connections"), "{gone:?}");
    }

    #[test]
    fn one_that_is_slow_keeps_no_other_waiting() {
        let names: Vec<AskedSite> = (0..20).map(|at| of(&format!("web{at}"), &format!("n{at}"))).collect();
        let answers = (0..20).map(|at| (at != 3).then_some("HTTP/1.1 204 No Content\r\n\r\n")).collect();
        let begin = Instant::now();
        let sites = probe_at(&Proxy::Port(proxy(answers)), &names, Duration::from_millis(500));
        assert_eq!(sites.iter().filter(|site| site.status == Some(204)).count(), 19);
        assert!(sites.len() == 20 && begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let refused = probe_at(&Proxy::Port(closed), &names[..1], Duration::from_millis(300));
        assert!(refused[0].problem.as_deref().unwrap().contains("proxy"), "{refused:?}");
    }

    /// Says nothing where the name begins with `slow`, and answers every other one.
    fn hanging() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept() {
                let mut request = [0; 1024];
                let length = stream.read(&mut request).unwrap_or_default();
                if !String::from_utf8_lossy(&request[..length]).contains("Host: slow") {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                }
                open.push(stream);
            }
        });
        address
    }

    #[test]
    fn one_guest_keeps_no_other_from_being_asked_whatever_it_has() {
        let mut asked: Vec<AskedSite> = (0..200).map(|at| of("evil", &format!("slow{at}"))).collect();
        asked.push(of("web", "www"));
        let (begin, limit) = (Instant::now(), Duration::from_millis(500));
        let sites = probe_at(&Proxy::Port(hanging()), &asked, limit);
        let good = sites.iter().find(|site| site.name == asked[200].name).expect("the other guest's site was asked");
        assert_eq!(good.status, Some(200));
        assert!((SLOW_OF_A_GUEST..SLOW_OF_A_GUEST + AT_ONCE).contains(&(sites.len() - 1)), "{}", sites.len());
        assert!(begin.elapsed() < 4 * limit, "{:?}", begin.elapsed());
    }
}
