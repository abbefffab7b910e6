//! What the authoritative server answers, asked directly: no cache, no resolver, no recursion.
//!
//! A record that the API took may still not be served (another backend, a cache, a stopped
//! server). So a name counts as attached when the server itself answers it, and as detached
//! when it no longer does. A wildcard is asked for by its own name, `*.NAME`.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use corpus_domain::DnsName;
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use thiserror::Error;
use tokio::time::{Instant, sleep};

use crate::wire::{self, NoAnswer, Recursion};
use crate::{Challenge, Owner};

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
        name: Owner,
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
        name: Owner,
        /// The addresses or names last seen, or "nothing".
        seen: String,
        /// How long it was tried, in milliseconds.
        waited_ms: u128,
    },
}

/// The addresses that the server gives for a name, of the family asked for; none if there is no such name.
pub async fn addresses(server: SocketAddr, name: impl Into<Owner>, v6: bool) -> Result<Vec<IpAddr>, AuthorityError> {
    let kind = if v6 { RecordType::AAAA } else { RecordType::A };
    let answer = records(server, &name.into(), kind).await?;
    Ok(answer.iter().filter_map(RData::ip_addr).collect())
}

/// The addresses of both families.
pub async fn all_addresses(server: SocketAddr, name: impl Into<Owner>) -> Result<Vec<IpAddr>, AuthorityError> {
    let name = name.into();
    let mut all = addresses(server, &name, false).await?;
    all.extend(addresses(server, &name, true).await?);
    Ok(all)
}

/// The names that the server says a reverse name points to, without their final dot.
pub async fn pointers(server: SocketAddr, name: impl Into<Owner>) -> Result<Vec<String>, AuthorityError> {
    names(server, &name.into(), RecordType::PTR).await
}

/// The names that the server says a name is another name for, without their final dot: one, or none.
pub async fn aliases(server: SocketAddr, name: impl Into<Owner>) -> Result<Vec<String>, AuthorityError> {
    names(server, &name.into(), RecordType::CNAME).await
}

/// The names that the records of this type say; they may be in other zones, and are not followed.
async fn names(server: SocketAddr, name: &Owner, kind: RecordType) -> Result<Vec<String>, AuthorityError> {
    let plain = |name: &Name| name.to_ascii().trim_end_matches('.').to_ascii_lowercase();
    let said = |data: &RData| match data {
        RData::PTR(name) if kind == RecordType::PTR => Some(plain(&name.0)),
        RData::CNAME(name) if kind == RecordType::CNAME => Some(plain(&name.0)),
        _ => None,
    };
    Ok(records(server, name, kind).await?.iter().filter_map(said).collect())
}

/// Whether the server answers the name with this address and no other.
pub async fn answers(server: SocketAddr, name: impl Into<Owner>, address: IpAddr) -> Result<bool, AuthorityError> {
    Ok(addresses(server, name, address.is_ipv6()).await? == [address])
}

/// Whether these are the addresses that were wanted, in whichever order; of a family that none was wanted of, none.
pub fn are(seen: &[IpAddr], wanted: &[IpAddr]) -> bool {
    let sorted = |addresses: &[IpAddr]| {
        let mut all = addresses.to_vec();
        all.sort_unstable();
        all.dedup();
        all
    };
    sorted(seen) == sorted(wanted)
}

/// Waits until the server answers the name with this address; asks at 50 ms at first, at last each second.
pub async fn wait_until_answered(
    server: SocketAddr,
    name: impl Into<Owner>,
    address: IpAddr,
    limit: Duration,
) -> Result<(), AuthorityError> {
    wait(server, name.into(), Family::of(address), limit, |seen| seen == [address]).await
}

/// The same of all addresses that a name has.
pub async fn wait_until_all_answered(
    server: SocketAddr,
    name: impl Into<Owner>,
    wanted: &[IpAddr],
    limit: Duration,
) -> Result<(), AuthorityError> {
    wait(server, name.into(), Family::Both, limit, |seen| are(seen, wanted)).await
}

/// Waits until the server no longer answers the name with this address.
pub async fn wait_until_gone(
    server: SocketAddr,
    name: impl Into<Owner>,
    address: IpAddr,
    limit: Duration,
) -> Result<(), AuthorityError> {
    wait(server, name.into(), Family::of(address), limit, |seen| !seen.contains(&address)).await
}

/// Waits until the server says that a reverse name points to this name and to no other.
pub async fn wait_until_pointed(
    server: SocketAddr,
    name: impl Into<Owner>,
    to: &DnsName,
    limit: Duration,
) -> Result<(), AuthorityError> {
    wait_for_name(server, name.into(), RecordType::PTR, to, limit).await
}

/// Waits until the server says that a name is another name for this one.
pub async fn wait_until_alias(
    server: SocketAddr,
    name: impl Into<Owner>,
    of: &DnsName,
    limit: Duration,
) -> Result<(), AuthorityError> {
    wait_for_name(server, name.into(), RecordType::CNAME, of, limit).await
}

async fn wait_for_name(
    server: SocketAddr,
    name: Owner,
    kind: RecordType,
    wanted: &DnsName,
    limit: Duration,
) -> Result<(), AuthorityError> {
    let begin = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let seen = names(server, &name, kind).await;
        if seen.as_deref().is_ok_and(|seen| seen == [wanted.as_str()]) {
            return Ok(());
        }
        if begin.elapsed() + pause > limit {
            return Err(not_yet(server, &name, seen, begin.elapsed()));
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LAST_PAUSE);
    }
}

/// Whether the server answers a challenge.
pub async fn says(server: SocketAddr, challenge: &Challenge) -> Result<bool, AuthorityError> {
    let answer = ask(server, &challenge.owner(), RecordType::TXT).await?;
    let is_it = |data: &RData| match data {
        RData::TXT(text) => text.txt_data.concat() == challenge.value.as_bytes(),
        _ => false,
    };
    Ok(answer.metadata.authoritative && answer.answers.iter().any(|record| is_it(&record.data)))
}

/// Waits until the server answers a challenge.
pub async fn wait_until_said(server: SocketAddr, challenge: &Challenge, limit: Duration) -> Result<(), AuthorityError> {
    let begin = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let said = says(server, challenge).await;
        if matches!(said, Ok(true)) {
            return Ok(());
        }
        if begin.elapsed() + pause > limit {
            return Err(not_yet(server, &Owner::from(&challenge.name), said.map(|_| Vec::<String>::new()), begin.elapsed()));
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LAST_PAUSE);
    }
}

#[derive(Debug, Clone, Copy)]
enum Family {
    V4,
    V6,
    Both,
}

impl Family {
    const fn of(address: IpAddr) -> Self {
        if address.is_ipv6() { Self::V6 } else { Self::V4 }
    }
}

async fn wait(
    server: SocketAddr,
    name: Owner,
    family: Family,
    limit: Duration,
    enough: impl Fn(&[IpAddr]) -> bool,
) -> Result<(), AuthorityError> {
    let begin = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let seen = match family {
            Family::V4 => addresses(server, &name, false).await,
            Family::V6 => addresses(server, &name, true).await,
            Family::Both => all_addresses(server, &name).await,
        };
        if seen.as_deref().is_ok_and(&enough) {
            return Ok(());
        }
        if begin.elapsed() + pause > limit {
            return Err(not_yet(server, &name, seen, begin.elapsed()));
        }
        sleep(pause).await;
        pause = (pause * 3 / 2).min(LAST_PAUSE);
    }
}

fn not_yet<T: ToString>(
    server: SocketAddr,
    name: &Owner,
    seen: Result<Vec<T>, AuthorityError>,
    waited: Duration,
) -> AuthorityError {
    match seen {
        Ok(seen) => {
            let seen: Vec<String> = seen.iter().map(ToString::to_string).collect();
            let seen = if seen.is_empty() { "nothing".to_owned() } else { seen.join(", ") };
            AuthorityError::NotYet { server, name: name.clone(), seen, waited_ms: waited.as_millis() }
        }
        Err(error) => error,
    }
}

/// What the records of a type that a name has say, aliases on the way too; none if there is no such name.
pub(crate) async fn records(server: SocketAddr, name: &Owner, kind: RecordType) -> Result<Vec<RData>, AuthorityError> {
    let answer = ask(server, &name.to_string(), kind).await?;
    let code = answer.metadata.response_code;
    let known = matches!(code, ResponseCode::NoError | ResponseCode::NXDomain);
    if !answer.metadata.authoritative || !known {
        return Err(AuthorityError::NotAuthoritative { server, name: name.clone(), answer: code.to_string() });
    }
    Ok(answer.answers.into_iter().map(|record| record.data).collect())
}

/// Asks for what the server itself holds.
pub(crate) async fn ask(server: SocketAddr, name: &str, kind: RecordType) -> Result<Message, AuthorityError> {
    let question = wire::question(name, kind, Recursion::No).ok_or(AuthorityError::NotUnderstood(server))?;
    wire::ask(server, &question, QUESTION_LIMIT).await.map_err(|error| match error {
        NoAnswer::Silent => AuthorityError::Silent(server),
        NoAnswer::Unreachable(error) => AuthorityError::Unreachable(server, error),
        NoAnswer::NotUnderstood => AuthorityError::NotUnderstood(server),
    })
}
