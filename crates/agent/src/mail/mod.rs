//! Mail from guests: a small SMTP server at their gateway that hands each message to the operator's relay while the
//! guest still speaks.
//!
//! There is no queue. A message is the relay's when the guest is told that it was taken, and until then it is the
//! guest's: nothing is lost here, and nothing is answered for anybody. What a guest sends is read byte by byte by rules of
//! our own ([`body`], [`command`]), and what the relay is told is made anew.
//!
//! It is a service of its own ([`crate::node`] renders its unit), which may do nothing but this: it is spoken to by root
//! of every guest of the node. A guest is known by its address, which the bridge lets nobody else use; how much of it is
//! taken is said by the node's plan ([`policy`]) and counted ([`counts`]).

mod body;
mod command;
mod counts;
mod date;
mod places;
mod policy;
mod relay;
mod session;
mod wire;

#[cfg(test)]
mod tests;

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use self::counts::Counts;
pub use self::counts::read as read_counts;
use self::places::Places;
use self::policy::Policy;
use self::session::Session;
use crate::host::Host;

/// The name of the file of counts, in the service's own folder.
pub const COUNTS: &str = "counts.json";
/// The name of the file that says whose mail is taken, among what the agent renders.
pub const POLICY: &str = "mail.json";

/// What a session needs is small.
const STACK: usize = 256 << 10;
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// When no connection can be taken, as there are too many files.
const PAUSE: Duration = Duration::from_millis(100);

/// How long is waited for what.
#[derive(Debug, Clone)]
struct Times {
    /// For a guest's next command.
    command: Duration,
    /// For a whole message.
    message: Duration,
    /// For all of a connection but the message that it is at.
    session: Duration,
    /// For the relay to take a connection.
    connect: Duration,
    /// For the relay to answer.
    relay: Duration,
    /// For it to take a message that it has whole.
    taking: Duration,
    /// How long a relay that was away is not tried again.
    away: Duration,
}

impl Times {
    const REAL: Self = Self {
        command: Duration::from_mins(1),
        message: Duration::from_mins(15),
        session: Duration::from_mins(30),
        connect: Duration::from_secs(10),
        relay: Duration::from_mins(1),
        taking: Duration::from_mins(5),
        away: Duration::from_secs(5),
    };
}

/// What all sessions share.
#[derive(Debug)]
struct Shared {
    /// What the server calls itself to guests.
    name: String,
    /// What it calls itself to the relay, and in messages.
    host: String,
    policy: Policy,
    counts: Counts,
    places: Places,
    times: Times,
    /// When the relay was found to be away.
    away: Mutex<Option<Instant>>,
}

/// What `corpus-agent mail ADDRESS:PORT` does: serves there until it is ended.
pub fn serve(address: &str) -> io::Result<()> {
    let address: SocketAddrV4 = address.parse().map_err(|_| io::Error::new(ErrorKind::InvalidInput, "no address"))?;
    let state = std::env::var_os("STATE_DIRECTORY").map(PathBuf::from);
    let state = state.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "STATE_DIRECTORY is not set"))?;
    let listener = TcpListener::bind(address)?;
    let shared = Arc::new(Shared {
        name: format!("[{}]", address.ip()),
        host: host_name(),
        policy: Policy::new(Host::default().configuration().join(POLICY)),
        counts: Counts::open(state.join(COUNTS)),
        places: Places::default(),
        times: Times::REAL,
        away: Mutex::default(),
    });
    keep_counts(&shared)?;
    listen(&listener, &shared);
    Ok(())
}

/// The node's name, as it may stand in a message.
fn host_name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let name: String = name.chars().filter(|c| plain(*c)).take(100).collect();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

fn keep_counts(shared: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::clone(shared);
    let keep = move || {
        loop {
            thread::sleep(SAVE_INTERVAL);
            if let Err(failure) = shared.counts.save() {
                eprintln!("what was sent is not kept: {failure}");
            }
        }
    };
    thread::Builder::new().stack_size(STACK).spawn(keep).map(drop)
}

/// Takes connections, each in a thread of its own; those beyond what there is room for are told so.
fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            thread::sleep(PAUSE);
            continue;
        };
        let Ok(SocketAddr::V4(peer)) = stream.peer_addr() else { continue };
        take(stream, *peer.ip(), shared);
    }
}

fn take(stream: TcpStream, from: Ipv4Addr, shared: &Arc<Shared>) {
    let Some(place) = shared.places.take(from) else {
        return turn_away(&stream, "421 4.7.0 Too many connections at once, try again later\r\n");
    };
    let shared = Arc::clone(shared);
    let serve = move || {
        let _place = place;
        Session::new(stream, from, &shared).serve();
    };
    // Without a thread the connection is closed.
    let _ = thread::Builder::new().stack_size(STACK).spawn(serve);
}

/// Whoever does not read is not waited for.
fn turn_away(mut stream: &TcpStream, why: &str) {
    if stream.set_nonblocking(true).is_ok() {
        let _ = io::Write::write_all(&mut stream, why.as_bytes());
    }
}
