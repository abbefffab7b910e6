//! The record of a name whose guests are on several nodes: it has the addresses of all of them.

use std::net::IpAddr;
use std::time::Duration;

use corpus_domain::DnsNameId;

use crate::dns::{Content, Owner, Record};
use crate::services::{Services, internal};
use crate::store::spread;
use crate::{Error, Result};

/// How long a DNS server may take for one record: its row is held meanwhile, so that nobody removes the record.
const WRITE: Duration = Duration::from_secs(5);

impl Services {
    /// Has the record of an attached name say where it should lead to now, where that is more than one node or was.
    pub(crate) async fn spread(&self, id: DnsNameId) -> Result<()> {
        let mut tx = self.begin().await?;
        let Some(spread) = spread::hold_spread(&mut tx, id).await? else { return Ok(()) };
        let addresses: Vec<IpAddr> = spread.addresses.iter().filter_map(|text| text.parse().ok()).collect();
        if addresses.is_empty() {
            return Ok(());
        }
        let held = spread.held;
        let provider = self.provider(&held.provider).map_err(Error::Conflict)?;
        let owner = Owner::new(spread.name, false);
        let record = Record { zone: held.zone, owner, content: Content::Addresses(addresses), ttl_s: held.ttl_s };
        let written = tokio::time::timeout(WRITE, provider.dns.ensure_record(&record)).await;
        let message = || format!("the record of {} was not written", record.owner);
        written
            .map_err(|error| Error::Unavailable { message: message(), source: Box::new(error) })?
            .map_err(|error| internal("a record was not written", error))?;
        spread::spread(&mut tx, id, &spread.addresses).await?;
        Ok(tx.commit().await?)
    }
}
