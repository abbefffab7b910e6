//! What the authoritative server answers, asked directly: no cache, no resolver, no recursion.
//!
//! A record that the API took may still not be served (another backend, a cache, a stopped
//! server). So a name counts as attached when the server itself answers it, and as detached
//! when it no longer does. One UDP question a try; the socket is connected, so an answer from
//! elsewhere never arrives, and id and question are compared.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use corpus_domain::DnsName;
use hickory_resolver::proto::op::{Message, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use thiserror::Error;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep, timeout};

/// How long one question may take.
const QUESTION_LIMIT: Duration = Duration::from_secs(1);
/// The first pause between two questions; each is half as long again as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// Why a question had no usable answer.
#[derive(Debug, Error)]
pub enum AuthorityError {
    /// Nothing came back in time.
    #[error("the DNS server {0} does not answer")]
    Silent(SocketAddr),
    /// The network refused.
    #[error("the DNS server {0} can't be reached")]
    Unreachable(SocketAddr, #[source] std::io::Error),
    /// It answered, but not as the authority of the name's zone.
    #[error("the DNS server {server} does not answer for the zone of {name} ({answer})")]
    NotAuthoritative {
        /// The server.
        server: SocketAddr,
        /// The name asked for.
        name: DnsName,
        /// Its response code.
        answer: String,
    },
    /// The answer was no DNS message, or one for another question.
    #[error("the DNS server {0} sent something else than an answer")]
    NotUnderstood(SocketAddr),
    /// The time limit of the wait has passed; the last observation is in the message.
    #[error("after {waited_ms} ms the DNS server {server} still answers {name} with {seen}")]
    NotYet {
        /// The server.
        server: SocketAddr,
        /// The name asked for.
        name: DnsName,
        /// The addresses last seen, or "nothing".
        seen: String,
        /// How long it was tried, in milliseconds.
        waited_ms: u128,
    },
}

/// The addresses that the server gives for a name, of the family asked for; none if there is no such name.
pub async fn addresses(server: SocketAddr, name: &DnsName, v6: bool) -> Result<Vec<IpAddr>, AuthorityError> {
    let kind = if v6 { RecordType::AAAA } else { RecordType::A };
    let answer = ask(server, name, kind).await?;
    if !answer.metadata.authoritative {
        let answer = answer.metadata.response_code.to_string();
        return Err(AuthorityError::NotAuthoritative { server, name: name.clone(), answer });
    }
    match answer.metadata.response_code {
        ResponseCode::NoError => Ok(answer.answers.iter().filter_map(|record| record.data.ip_addr()).collect()),
        ResponseCode::NXDomain => Ok(Vec::new()),
        code => Err(AuthorityError::NotAuthoritative { server, name: name.clone(), answer: code.to_string() }),
    }
}

/// Whether the server answers the name with this address and no other.
pub async fn answers(server: SocketAddr, name: &DnsName, address: IpAddr) -> Result<bool, AuthorityError> {
    Ok(addresses(server, name, address.is_ipv6()).await? == [address])
}

/// Waits until the server answers the name with this address; asks at 50 ms at first, at last each second.
pub async fn wait_until_answered(
    server: SocketAddr,
    name: &DnsName,
    address: IpAddr,
    limit: Duration,
) -> Result<(), AuthorityError> {
    wait(server, name, address, limit, |seen| seen == [address]).await
}

/// Waits until the server no longer answers the name with this address.
pub async fn wait_until_gone(
    server: SocketAddr,
    name: &DnsName,
    address: IpAddr,
    limit: Duration,
) -> Result<(), AuthorityError> {
    wait(server, name, address, limit, |seen| !seen.contains(&address)).await
}

async fn wait(
    server: SocketAddr,
    name: &DnsName,
    address: IpAddr,
    limit: Duration,
    enough: impl Fn(&[IpAddr]) -> bool,
) -> Result<(), AuthorityError> {
    let begin = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let seen = addresses(server, name, address.is_ipv6()).await;
        if seen.as_deref().is_ok_and(&enough) {
            return Ok(());
        }
        if begin.elapsed() + pause > limit {
            return Err(not_yet(server, name, seen, begin.elapsed()));
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LAST_PAUSE);
    }
}

fn not_yet(
    server: SocketAddr,
    name: &DnsName,
    seen: Result<Vec<IpAddr>, AuthorityError>,
    waited: Duration,
) -> AuthorityError {
    match seen {
        Ok(seen) => {
            let seen: Vec<String> = seen.iter().map(IpAddr::to_string).collect();
            let seen = if seen.is_empty() { "nothing".to_owned() } else { seen.join(", ") };
            AuthorityError::NotYet { server, name: name.clone(), seen, waited_ms: waited.as_millis() }
        }
        Err(error) => error,
    }
}

async fn ask(server: SocketAddr, name: &DnsName, kind: RecordType) -> Result<Message, AuthorityError> {
    let question = question(name, kind).ok_or(AuthorityError::NotUnderstood(server))?;
    let bytes = question.to_vec().map_err(|_| AuthorityError::NotUnderstood(server))?;
    let answer = timeout(QUESTION_LIMIT, exchange(server, &bytes))
        .await
        .map_err(|_| AuthorityError::Silent(server))?
        .map_err(|error| AuthorityError::Unreachable(server, error))?;
    Message::from_vec(&answer)
        .ok()
        .filter(|answer| answer.metadata.id == question.metadata.id && answer.queries == question.queries)
        .filter(|answer| !answer.metadata.truncation)
        .ok_or(AuthorityError::NotUnderstood(server))
}

fn question(name: &DnsName, kind: RecordType) -> Option<Message> {
    let name = Name::from_ascii(format!("{name}.")).ok()?;
    let mut message = Message::query();
    message.metadata.recursion_desired = false;
    message.add_query(Query::query(name, kind));
    Some(message)
}

async fn exchange(server: SocketAddr, question: &[u8]) -> std::io::Result<Vec<u8>> {
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut answer = vec![0; 4096];
    let length = socket.recv(&mut answer).await?;
    answer.truncate(length);
    Ok(answer)
}
