//! Where names lead whose guests are on several nodes.
//!
//! Such a name has the addresses of all these nodes, and that changes without anybody asking for it: a guest joins or
//! leaves on another node, or a node is lost. So what each name should lead to is compared with what it was last said to,
//! every few seconds, by whichever server comes first; what differs is written. A node that does not answer is left out
//! while another one serves, and is back when it answers: browsers go on to the next address by themselves, but only after
//! a while.

use std::net::IpAddr;
use std::time::Duration;

use corpus_domain::DnsNameId;
use tokio_util::sync::CancellationToken;

use crate::dns::{Content, Owner, Record};
use crate::services::{Services, internal};
use crate::store::names;
use crate::{Controller, Error, Result};

/// How often it is compared.
const INTERVAL: Duration = Duration::from_secs(3);
/// How long a DNS server may take for one record: its row is held meanwhile, so that nobody removes the record.
const WRITE: Duration = Duration::from_secs(5);
/// Names that are written at a look.
const AT_ONCE: i64 = 200;

impl Controller {
    /// Compares and writes until `stop`.
    pub(crate) async fn spread_names(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            if let Err(error) = self.spread_all().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "where names lead could not be compared");
            }
        }
    }

    /// Brings all names to where they should lead; one that fails keeps no other from it.
    pub(crate) async fn spread_all(&self) -> Result<()> {
        let due = names::to_spread(&mut *self.services.db.acquire().await?, AT_ONCE).await?;
        for name in due {
            if let Err(error) = self.services.spread(name).await {
                tracing::warn!(name.id = %name, error = &error as &dyn std::error::Error, "a name does not lead to all of its nodes");
            }
        }
        Ok(())
    }
}

impl Services {
    /// Has the record of an attached name say where it should lead to now, where that is more than one node or was.
    pub(crate) async fn spread(&self, id: DnsNameId) -> Result<()> {
        let mut tx = self.begin().await?;
        let Some(spread) = names::hold_spread(&mut tx, id).await? else { return Ok(()) };
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
        names::spread(&mut tx, id, &spread.addresses).await?;
        Ok(tx.commit().await?)
    }
}
