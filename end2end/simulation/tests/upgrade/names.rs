//! A DNS server of a few lines: zones and records in memory, answered over UDP.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use chrono::{DateTime, Utc};
use corpus_dns::{Challenge, Content, DnsError, DnsProvider, Owner, Record, Removal, Zone};
use corpus_domain::DnsName;
use tokio::net::UdpSocket;

/// The records: name and address, after each change.
#[derive(Debug, Clone, Default)]
pub struct Names(Arc<Mutex<Vec<Change>>>);

/// Name and address.
pub type Records = BTreeMap<DnsName, IpAddr>;

/// When, and the records since then.
type Change = (DateTime<Utc>, Records);

impl Names {
    /// Begins to answer; tells where.
    pub async fn serve(&self) -> SocketAddr {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (address, names) = (socket.local_addr().unwrap(), self.clone());
        tokio::spawn(async move {
            let mut buffer = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                if let Some(answer) = names.answer(&buffer[..length]) {
                    let _ = socket.send_to(&answer, from).await;
                }
            }
        });
        address
    }

    /// The records at a moment.
    pub fn at(&self, moment: DateTime<Utc>) -> Records {
        let changes = self.0.lock().unwrap();
        changes
            .iter()
            .take_while(|(at, _)| *at <= moment)
            .last()
            .map(|(_, records)| records.clone())
            .unwrap_or_default()
    }

    /// Lets a name lead to an address, or nowhere. Tells where it led before.
    pub fn set(&self, name: &DnsName, address: Option<IpAddr>) -> Option<IpAddr> {
        let mut changes = self.0.lock().unwrap();
        let mut records = changes.last().map(|(_, records)| records.clone()).unwrap_or_default();
        let before = match address {
            Some(address) => records.insert(name.clone(), address),
            None => records.remove(name),
        };
        changes.push((Utc::now(), records));
        before
    }

    /// An authoritative answer to a question for an A record (RFC 1035, section 4.1).
    fn answer(&self, question: &[u8]) -> Option<Vec<u8>> {
        let (mut labels, mut at) = (Vec::new(), 12);
        while question.get(at).copied()? != 0 {
            let length = usize::from(question[at]);
            labels.push(String::from_utf8_lossy(question.get(at + 1..at + 1 + length)?).to_lowercase());
            at += 1 + length;
        }
        let asked = question.get(12..at + 5)?;
        let for_a = asked[asked.len() - 4..asked.len() - 2] == [0, 1];
        let name: DnsName = labels.join(".").parse().ok()?;
        let found = self.at(Utc::now()).get(&name).copied();
        let found = found.filter(|_| for_a);
        let mut answer = question.get(..2)?.to_vec();
        answer.extend([0x84, 0, 0, 1, 0, u8::from(found.is_some()), 0, 0, 0, 0]);
        answer.extend(asked);
        if let Some(IpAddr::V4(address)) = found {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            answer.extend(address.octets());
        }
        Some(answer)
    }
}

#[async_trait::async_trait]
impl DnsProvider for Names {
    async fn check(&self) -> Result<(), DnsError> {
        Ok(())
    }

    async fn zones(&self) -> Result<Vec<Zone>, DnsError> {
        Ok(Vec::new())
    }

    async fn ensure_zone(&self, _: &DnsName) -> Result<(), DnsError> {
        Ok(())
    }

    async fn remove_zone(&self, _: &DnsName) -> Result<Removal, DnsError> {
        Ok(Removal::Removed)
    }

    async fn made_by_others(&self, _: &DnsName, _: &Owner) -> Result<Option<String>, DnsError> {
        Ok(None)
    }

    async fn ensure_record(&self, record: &Record) -> Result<(), DnsError> {
        if let Content::Addresses(addresses) = &record.content {
            self.set(record.owner.name(), addresses.first().copied());
        }
        Ok(())
    }

    async fn remove_record(&self, _: &DnsName, owner: &Owner) -> Result<Removal, DnsError> {
        Ok(if self.set(owner.name(), None).is_some() { Removal::Removed } else { Removal::Absent })
    }

    async fn ensure_challenge(&self, _: &Challenge) -> Result<(), DnsError> {
        Ok(())
    }

    async fn remove_challenge(&self, _: &Challenge) -> Result<Removal, DnsError> {
        Ok(Removal::Absent)
    }
}
