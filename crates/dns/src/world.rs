//! What the world answers for a name: asked of resolvers, as everybody asks.
//!
//! Names of zones that others hold are believed only as far as this: that they lead to us, and that whoever may write
//! there has written our proof. Aliases are followed, a few of them; an answer is as long as what a resolver sends.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use corpus_domain::DnsName;
use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{Name, RData, RecordType};
use thiserror::Error;

use crate::wire::{self, NoAnswer, Recursion};

/// How long one resolver may take.
const QUESTION_LIMIT: Duration = Duration::from_secs(3);
/// How many aliases are followed.
const MOST_ALIASES: usize = 8;
/// The label under which the proof stands.
pub const PROOF_LABEL: &str = "_corpus-challenge";

/// Why the world gives no answer.
#[derive(Debug, Error)]
pub enum WorldError {
    /// No resolver is known.
    #[error("no resolver is known to this server: set dns.resolvers in Corpus' configuration")]
    NoResolver,
    /// None of them answered.
    #[error("the resolvers do not answer")]
    Silent,
    /// They answered with a failure.
    #[error("the resolvers answer {0} for it")]
    Failed(String),
    /// An alias leads back to itself.
    #[error("its aliases lead in a circle, by {0}")]
    Circle(String),
    /// Too many aliases.
    #[error("more than {MOST_ALIASES} aliases follow each other")]
    TooManyAliases,
}

/// The resolvers, asked in this order: the next one when one does not answer.
#[derive(Debug, Clone, Default)]
pub struct World {
    resolvers: Vec<SocketAddr>,
}

impl World {
    /// By these resolvers.
    pub const fn new(resolvers: Vec<SocketAddr>) -> Self {
        Self { resolvers }
    }

    /// By those of the system.
    pub fn of_system() -> Self {
        let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        Self::new(name_servers(&text))
    }

    /// The addresses that a name leads to, of both families; none if there is no such name.
    pub async fn addresses(&self, name: &DnsName) -> Result<Vec<IpAddr>, WorldError> {
        let mut all = self.followed(name, RecordType::A).await?;
        all.extend(self.followed(name, RecordType::AAAA).await?);
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// The proofs that stand under a name.
    pub async fn proofs(&self, name: &DnsName) -> Result<Vec<String>, WorldError> {
        let answer = self.ask(&format!("{PROOF_LABEL}.{name}"), RecordType::TXT).await?;
        let text = |data: &RData| match data {
            RData::TXT(text) => {
                let bytes: Vec<u8> = text.txt_data.iter().flat_map(|part| part.iter().copied()).collect();
                String::from_utf8(bytes).ok()
            }
            _ => None,
        };
        Ok(answer.answers.iter().filter_map(|record| text(&record.data)).collect())
    }

    /// A resolver answers with the whole chain of aliases; a server that holds only the first of them does not.
    async fn followed(&self, name: &DnsName, kind: RecordType) -> Result<Vec<IpAddr>, WorldError> {
        let mut at = name.to_string();
        let mut seen = Vec::new();
        loop {
            let answer = self.ask(&at, kind).await?;
            let found: Vec<IpAddr> = answer
                .answers
                .iter()
                .filter(|one| one.record_type() == kind)
                .filter_map(|one| one.data.ip_addr())
                .collect();
            if !found.is_empty() {
                return Ok(found);
            }
            let before = seen.len();
            while let Some(next) = alias(&answer, &at) {
                if seen.contains(&next) || next == name.as_str() {
                    return Err(WorldError::Circle(next));
                }
                if seen.len() >= MOST_ALIASES {
                    return Err(WorldError::TooManyAliases);
                }
                seen.push(next.clone());
                at = next;
            }
            if seen.len() == before {
                return Ok(Vec::new());
            }
        }
    }

    async fn ask(&self, name: &str, kind: RecordType) -> Result<Message, WorldError> {
        let question = wire::question(name, kind, Recursion::Yes);
        let question = question.ok_or_else(|| WorldError::Failed("no name".to_owned()))?;
        let mut failure = if self.resolvers.is_empty() { WorldError::NoResolver } else { WorldError::Silent };
        for resolver in &self.resolvers {
            match wire::ask(*resolver, &question, QUESTION_LIMIT).await {
                Ok(answer) => match answer.metadata.response_code {
                    ResponseCode::NoError | ResponseCode::NXDomain => return Ok(answer),
                    code => failure = WorldError::Failed(code.to_string()),
                },
                Err(NoAnswer::Silent | NoAnswer::Unreachable(_) | NoAnswer::NotUnderstood) => {}
            }
        }
        Err(failure)
    }
}

/// What the answer says that a name is another name for.
fn alias(answer: &Message, name: &str) -> Option<String> {
    let plain = |name: &Name| name.to_ascii().trim_end_matches('.').to_ascii_lowercase();
    answer.answers.iter().find_map(|record| match &record.data {
        RData::CNAME(target) if plain(&record.name) == name => Some(plain(&target.0)),
        _ => None,
    })
}

/// Those that `resolv.conf` names.
fn name_servers(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.trim().parse::<IpAddr>().ok()).map(|ip| SocketAddr::new(ip, 53)).collect()
}

#[cfg(test)]
mod tests {
    use reqwest::Method;
    use serde_json::{Value, json};
    use tokio::net::UdpSocket;

    use super::*;
    use crate::DnsProvider;
    use crate::powerdns_server::PowerDnsServer;

    #[test]
    fn the_resolvers_of_the_system() {
        let text = "# x\nnameserver 192.0.2.1\nsearch x\nnameserver fd00::1\nnameserver fe80::1%eth0\n";
        assert_eq!(name_servers(text), ["192.0.2.1:53", "[fd00::1]:53"].map(|one| one.parse().unwrap()));
    }

    /// A resolver that answers each question so, by UDP; none: it stays silent.
    async fn resolver(answer: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut question = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                if let Some(answer) = answer(&question[..length]) {
                    socket.send_to(&answer, from).await.unwrap();
                }
            }
        });
        address
    }

    /// The question as an answer with this response code (RFC 1035, section 4.1.1).
    fn failing(code: u8) -> impl Fn(&[u8]) -> Option<Vec<u8>> {
        move |question| {
            let mut answer = question.to_vec();
            answer[2] |= 0x80;
            answer[3] = (answer[3] & 0xf0) | code;
            Some(answer)
        }
    }

    /// A resolver of a0.test and so on: each is an alias of the next, and the last one has an address. It answers with one
    /// alias at a time.
    fn chained(aliases: usize) -> impl Fn(&[u8]) -> Option<Vec<u8>> {
        move |question| {
            let first = usize::from(question[12]);
            let number: usize = std::str::from_utf8(&question[14..13 + first]).ok()?.parse().ok()?;
            // The first label, `test`, the root, type and class.
            let end = 12 + 1 + first + 5 + 1 + 4;
            let kind = question[end - 3];
            let mut answer = question[..end].to_vec();
            (answer[2], answer[3]) = (answer[2] | 0x80, 0x80);
            let next = format!("a{}", number + 1);
            let said = match (number < aliases, kind) {
                (true, _) => {
                    let label = [&[u8::try_from(next.len()).ok()?], next.as_bytes(), b"\x04test\0"].concat();
                    Some((5, label))
                }
                (false, 1) => Some((1, vec![192, 0, 2, 7])),
                (false, _) => None,
            };
            answer[6..12].copy_from_slice(&[0, u8::from(said.is_some()), 0, 0, 0, 0]);
            if let Some((kind, data)) = said {
                answer.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, u8::try_from(data.len()).ok()?]);
                answer.extend(data);
            }
            Some(answer)
        }
    }

    #[tokio::test]
    async fn resolvers_that_fail_are_told_and_the_next_one_is_asked() {
        let name: DnsName = "a0.test".parse().unwrap();
        let (refusing, failing) = (resolver(failing(5)).await, resolver(failing(2)).await);
        for of in [vec![refusing], vec![failing], vec![failing, refusing]] {
            let world = World::new(of.clone());
            for error in [world.addresses(&name).await.unwrap_err(), world.proofs(&name).await.unwrap_err()] {
                let last = if of.last() == Some(&refusing) { ResponseCode::Refused } else { ResponseCode::ServFail };
                assert!(matches!(&error, WorldError::Failed(code) if *code == last.to_string()), "{error}");
            }
        }
        let good = resolver(chained(0)).await;
        let world = World::new(vec![refusing, failing, good]);
        assert_eq!(world.addresses(&name).await.unwrap(), ["192.0.2.7".parse::<IpAddr>().unwrap()]);
    }

    #[tokio::test]
    async fn resolvers_that_are_silent_or_talk_nonsense_give_no_answer() {
        let name: DnsName = "a0.test".parse().unwrap();
        let nonsense = resolver(|_| Some(b"nonsense".to_vec())).await;
        let of_another = resolver(|question| {
            let mut answer = failing(0)(question)?;
            answer[0] ^= 0xff;
            Some(answer)
        });
        let of_another = of_another.await;
        let begin = std::time::Instant::now();
        for resolver in [nonsense, of_another] {
            let error = World::new(vec![resolver]).addresses(&name).await.unwrap_err();
            assert!(matches!(error, WorldError::Silent), "{error}");
        }
        assert!(begin.elapsed() < QUESTION_LIMIT, "they are not waited for");
        let silent = resolver(|_| None).await;
        let error = World::new(vec![silent]).addresses(&name).await.unwrap_err();
        assert!(matches!(error, WorldError::Silent), "{error}");
        assert!(begin.elapsed() < QUESTION_LIMIT * 3, "each is waited for so long");
    }

    #[tokio::test]
    async fn so_many_aliases_are_followed_and_no_more() {
        let name: DnsName = "a0.test".parse().unwrap();
        let most = World::new(vec![resolver(chained(MOST_ALIASES)).await]);
        assert_eq!(most.addresses(&name).await.unwrap(), ["192.0.2.7".parse::<IpAddr>().unwrap()]);
        let more = World::new(vec![resolver(chained(MOST_ALIASES + 1)).await]);
        let error = more.addresses(&name).await.unwrap_err();
        assert!(matches!(error, WorldError::TooManyAliases), "{error}");
        assert_eq!(error.to_string(), "more than 8 aliases follow each other");
    }

    fn set(name: &str, kind: &str, content: &str) -> Value {
        json!({ "name": format!("{name}."), "type": kind, "ttl": 60, "changetype": "REPLACE",
                "records": [{ "content": content, "disabled": false }] })
    }

    #[tokio::test]
    async fn aliases_are_followed_and_circles_told() {
        let server = PowerDnsServer::start();
        let zone: DnsName = "elsewhere.test".parse().unwrap();
        server.provider().ensure_zone(&zone).await.unwrap();
        let sets = json!({ "rrsets": [
            set("www.elsewhere.test", "CNAME", "shop.elsewhere.test."),
            set("shop.elsewhere.test", "A", "192.0.2.7"),
            set("shop.elsewhere.test", "AAAA", "2001:db8::7"),
            set("_corpus-challenge.www.elsewhere.test", "TXT", "\"abc\""),
            set("a.elsewhere.test", "CNAME", "b.elsewhere.test."),
            set("b.elsewhere.test", "CNAME", "a.elsewhere.test."),
        ] });
        assert_eq!(server.by_hand(Method::PATCH, "zones/elsewhere.test.", sets).await, 204);
        let world = World::new(vec![server.dns]);
        let name = |text: &str| text.parse::<DnsName>().unwrap();
        let both: Vec<IpAddr> = ["192.0.2.7", "2001:db8::7"].map(|ip| ip.parse().unwrap()).into();
        assert_eq!(world.addresses(&name("www.elsewhere.test")).await.unwrap(), both);
        assert_eq!(world.proofs(&name("www.elsewhere.test")).await.unwrap(), ["abc"]);
        assert!(world.addresses(&name("nothing.elsewhere.test")).await.unwrap().is_empty());
        assert!(world.proofs(&name("shop.elsewhere.test")).await.unwrap().is_empty());
        let circle = world.addresses(&name("a.elsewhere.test")).await.unwrap_err();
        assert!(matches!(circle, WorldError::Circle(_) | WorldError::Failed(_)), "{circle}");
        let none = World::default().addresses(&name("a.elsewhere.test")).await.unwrap_err();
        assert!(matches!(none, WorldError::NoResolver), "{none}");
    }
}
