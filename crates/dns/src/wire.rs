//! One question to a server, and its answer: by UDP, and by TCP what does not fit.
//!
//! The socket is connected, so an answer from elsewhere never arrives; id and question are compared.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use hickory_proto::op::{Edns, Message, Query};
use hickory_proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// The largest answer by UDP that we say we take: what passes everywhere without being cut (RFC 9715).
const PAYLOAD: u16 = 1232;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Nothing came in time.
    Silent,
    /// The network refused.
    Unreachable(io::Error),
    /// It was no answer to this.
    NotUnderstood,
}

/// Whether the server is to look elsewhere for what it does not hold itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recursion {
    /// It tells what it holds.
    No,
    /// It asks as the world does.
    Yes,
}

/// The question for the records of a type that a name has; the name without its final dot.
pub(crate) fn question(name: &str, kind: RecordType, recursion: Recursion) -> Option<Message> {
    let name = Name::from_ascii(format!("{name}.")).ok()?;
    let mut message = Message::query();
    message.metadata.recursion_desired = recursion == Recursion::Yes;
    message.add_query(Query::query(name, kind));
    let mut edns = Edns::new();
    edns.set_max_payload(PAYLOAD).set_version(0);
    message.set_edns(edns);
    Some(message)
}

/// Asks by UDP, and by TCP when the answer is too long for it; each way may take so long.
pub(crate) async fn ask(server: SocketAddr, question: &Message, limit: Duration) -> Result<Message, NoAnswer> {
    let bytes = question.to_vec().map_err(|_| NoAnswer::NotUnderstood)?;
    let answer = within(limit, udp(server, &bytes)).await?;
    let answer = understood(question, &answer)?;
    if !answer.metadata.truncation {
        return Ok(answer);
    }
    let answer = by_tcp(server, &bytes, limit).await?;
    understood(question, &answer)
}

/// Sends bytes by TCP; the answer as it came.
pub(crate) async fn by_tcp(server: SocketAddr, message: &[u8], limit: Duration) -> Result<Vec<u8>, NoAnswer> {
    within(limit, tcp(server, message)).await
}

async fn within(limit: Duration, exchange: impl Future<Output = io::Result<Vec<u8>>>) -> Result<Vec<u8>, NoAnswer> {
    timeout(limit, exchange).await.map_err(|_| NoAnswer::Silent)?.map_err(NoAnswer::Unreachable)
}

fn understood(question: &Message, answer: &[u8]) -> Result<Message, NoAnswer> {
    Message::from_vec(answer)
        .ok()
        .filter(|answer| answer.metadata.id == question.metadata.id && answer.queries == question.queries)
        .ok_or(NoAnswer::NotUnderstood)
}

async fn udp(server: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut answer = vec![0; 4096];
    let length = socket.recv(&mut answer).await?;
    answer.truncate(length);
    Ok(answer)
}

async fn tcp(server: SocketAddr, message: &[u8]) -> io::Result<Vec<u8>> {
    let length = u16::try_from(message.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut stream = TcpStream::connect(server).await?;
    let framed = [length.to_be_bytes().as_slice(), message].concat();
    stream.write_all(&framed).await?;
    let length = stream.read_u16().await?;
    let mut answer = vec![0; usize::from(length)];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}
