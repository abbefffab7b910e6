//! The checks that prove a deployment: a page, a port, a command.
//!
//! A page is asked for on the way that the world takes: of the node's proxy, under the
//! project's main name. Each check is tried until it passes or its time is over.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use corpus_protocol::{Moment, ProjectPlan, Proof};

use crate::project::configuration::{Check, Http};
use crate::project::process::{Bounds, Program};
use crate::project::redact::Redactor;
use crate::task::Cancel;

/// How long a check is tried unless it says otherwise.
const WITHIN: u64 = 30;
/// How long one try may take.
const TRY: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
const CONNECT: Duration = Duration::from_secs(3);
/// What is read of a page.
const READ: u64 = 1 << 20;

/// What checks need to know.
pub struct Prover<'a> {
    /// What the project should be.
    pub plan: &'a ProjectPlan,
    /// A command's surroundings; its path and arguments are the check's.
    pub command: Program,
    /// The mark of the deployment's processes.
    pub mark: String,
    /// Ends it.
    pub cancel: &'a Cancel,
}

impl Prover<'_> {
    /// Makes a check. `patient` tries until its time is over, otherwise it is tried once.
    pub fn prove(&self, check: &Check, moment: Moment, patient: bool, deadline: Instant) -> Proof {
        let began = Instant::now();
        let within = Duration::from_secs(check.within.unwrap_or(WITHIN));
        let end = (began + within).min(deadline);
        let mut proof = Proof { moment, check: self.words(check), passed: false, seen: String::new(), elapsed_ms: 0 };
        loop {
            match self.attempt(check, if patient { end.max(began + PAUSE) } else { began + TRY }) {
                Ok(seen) => (proof.passed, proof.seen) = (true, seen),
                Err(seen) => proof.seen = seen,
            }
            if proof.passed || !patient || Instant::now() + PAUSE >= end || self.cancel.is_set() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        proof.elapsed_ms = millis(began);
        proof
    }

    fn attempt(&self, check: &Check, end: Instant) -> Result<String, String> {
        let left = end.saturating_duration_since(Instant::now()).clamp(PAUSE, TRY);
        match check {
            Check { http: Some(http), .. } => self.page(http, left),
            Check { tcp: Some(port), .. } => {
                connect(Ipv4Addr::LOCALHOST.into(), *port, left).map(|_| "it accepts".into())
            }
            Check { command: Some(argv), .. } => self.command(argv, left),
            _ => Err("there is nothing to check".into()),
        }
    }

    /// What it says, for people.
    pub fn words(&self, check: &Check) -> String {
        match check {
            Check { http: Some(http), .. } => {
                let mut text = format!("GET http://{}{} is {}", self.host(http), http.path, http.status.unwrap_or(200));
                if let Some(contains) = &http.contains {
                    let _ = write!(text, " and contains {contains:?}");
                }
                text
            }
            Check { tcp: Some(port), .. } => format!("port {port} accepts connections"),
            Check { command, .. } => format!("{} succeeds", command.as_deref().unwrap_or_default().join(" ")),
        }
    }

    fn host(&self, http: &Http) -> String {
        let main = self.plan.hosts.first().map(ToString::to_string);
        http.host.clone().or(main).unwrap_or_else(|| "localhost".into())
    }

    fn page(&self, http: &Http, left: Duration) -> Result<String, String> {
        let named = http.host.is_some() || !self.plan.hosts.is_empty();
        let proxy = self.plan.proxy.filter(|_| named).unwrap_or(Ipv4Addr::LOCALHOST.into());
        let began = Instant::now();
        let (status, body) = get(proxy, &self.host(http), &http.path, left)?;
        let seen = format!("HTTP {status} in {} ms", millis(began));
        if status != http.status.unwrap_or(200) {
            return Err(seen);
        }
        match &http.contains {
            Some(wanted) if !body.contains(wanted) => Err(format!("{seen}, without {wanted:?}")),
            _ => Ok(seen),
        }
    }

    fn command(&self, argv: &[String], left: Duration) -> Result<String, String> {
        let (program_path, rest) = argv.split_first().ok_or("there is no command")?;
        let mut program = self.command.clone();
        program.path = program_path.into();
        program.args = rest.iter().map(Into::into).collect();
        let mut last = String::new();
        let bounds = Bounds {
            deadline: Instant::now() + left,
            limit: left,
            cancel: self.cancel,
            mark: self.mark.clone(),
            redactor: Redactor::default(),
        };
        let failed = program.run(&bounds, &mut |_, text| last = text.chars().take(200).collect());
        let seen = |how: &str| if last.is_empty() { how.to_owned() } else { format!("{how}: {last}") };
        failed.map_or_else(|| Ok(seen("exit status 0")), |reason| Err(seen(&reason)))
    }
}

fn connect(ip: IpAddr, port: u16, left: Duration) -> Result<TcpStream, String> {
    let address = SocketAddr::new(ip, port);
    TcpStream::connect_timeout(&address, left.min(CONNECT)).map_err(|error| format!("{address}: {error}"))
}

/// Asks for a page by HTTP/1.1; tells its status and its body.
fn get(ip: IpAddr, host: &str, path: &str, left: Duration) -> Result<(u16, String), String> {
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if !plain(host) || !plain(path) || !path.starts_with('/') {
        return Err(format!("{host:?} and {path:?} are no host and path"));
    }
    let end = Instant::now() + left;
    let mut stream = connect(ip, 80, left)?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: corpus\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    );
    stream
        .set_write_timeout(Some(left))
        .and_then(|()| stream.write_all(request.as_bytes()))
        .map_err(|error| error.to_string())?;
    let mut text = Vec::new();
    let mut chunk = [0; 16 << 10];
    while u64::try_from(text.len()).is_ok_and(|read| read < READ) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err("the answer takes too long".into());
        }
        let read = stream.set_read_timeout(Some(left)).and_then(|()| stream.read(&mut chunk));
        match read {
            Ok(0) => break,
            Ok(read) => text.extend_from_slice(chunk.get(..read).unwrap_or_default()),
            Err(_) if is_whole(&text) => break,
            Err(error) => return Err(format!("no answer: {error}")),
        }
    }
    parse(&text).ok_or_else(|| "the answer is no HTTP".into())
}

/// Whether head and body are there, for servers that keep the line open all the same.
fn is_whole(text: &[u8]) -> bool {
    parse(text).is_some()
}

fn parse(text: &[u8]) -> Option<(u16, String)> {
    let end = text.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(text.get(..end)?).to_ascii_lowercase();
    let status = head.strip_prefix("http/1.")?.split_whitespace().nth(1)?.parse().ok()?;
    let body = text.get(end + 4..)?;
    let chunked = head.lines().any(|line| line.starts_with("transfer-encoding:") && line.contains("chunked"));
    let body = if chunked { joined(body) } else { body.to_vec() };
    Some((status, String::from_utf8_lossy(&body).into_owned()))
}

/// A chunked body (RFC 9112, section 7.1) in one; as much of it as can be understood.
fn joined(mut body: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = body.windows(2).position(|bytes| bytes == b"\r\n") {
        let size = String::from_utf8_lossy(body.get(..end).unwrap_or_default()).into_owned();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16).unwrap_or(0);
        let from = end + 2;
        let Some(to) = from.checked_add(size).filter(|_| size > 0) else { break };
        whole.extend_from_slice(body.get(from..to.min(body.len())).unwrap_or_default());
        body = body.get(to.saturating_add(2)..).unwrap_or_default();
    }
    whole
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_understood() {
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nhello"), Some((200, "hello".into())));
        let chunked =
            b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n";
        assert_eq!(parse(chunked), Some((404, "hello".into())));
        for noise in [&b"SSH-2.0-x\r\n\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1\r\n\r\n"] {
            assert_eq!(parse(noise), None);
        }
        assert_eq!(joined(b"ffffffffffffffff\r\nabc"), b"");
        assert!(get(Ipv4Addr::LOCALHOST.into(), "a\r\nb", "/", TRY).is_err());
    }
}
