//! `PowerDNS` by its HTTP API, version 1 (Authoritative Server 4.3 and later).
//!
//! A zone of ours has the account `corpus`; a record set of ours has a comment by the account
//! `corpus`. Names have their final dot on the wire only. Two calls about one name are not
//! atomic on the server, so callers hold the name's lock.

mod api;
mod wire;

use async_trait::async_trait;
use corpus_domain::{DnsName, HostName};
use secrecy::SecretString;
use url::Url;

use super::record::above;
use super::{Challenge, DnsError, DnsProvider, Owner, Record, Removal, Zone};
use api::{Api, Found};
use wire::{MARK, NewZone, Patch, RrSet};

/// Where a `PowerDNS` is, and what its zones are made with.
#[derive(Debug, Clone)]
pub struct PowerDnsSettings {
    /// The API's address, `http://127.0.0.1:8081`.
    pub api_url: Url,
    /// Its key.
    pub api_key: SecretString,
    /// The server's id within the API, in practice always `localhost`.
    pub server_id: String,
    /// The name servers that a new zone names in its NS records.
    pub nameservers: Vec<HostName>,
}

/// A `PowerDNS` authoritative server.
#[derive(Debug)]
pub struct PowerDns {
    api: Api,
    nameservers: Vec<HostName>,
}

impl PowerDns {
    /// Prepares the client; nothing is sent yet.
    pub fn new(settings: PowerDnsSettings) -> Result<Self, DnsError> {
        let api = Api::new(&settings.api_url, &settings.server_id, &settings.api_key)?;
        Ok(Self { api, nameservers: settings.nameservers })
    }
}

#[async_trait]
impl DnsProvider for PowerDns {
    async fn check(&self) -> Result<(), DnsError> {
        self.api.server().await
    }

    async fn zones(&self) -> Result<Vec<Zone>, DnsError> {
        let mut zones: Vec<Zone> =
            self.api.zones().await?.into_iter().filter_map(wire::ZoneSummary::into_zone).collect();
        zones.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(zones)
    }

    async fn ensure_zone(&self, zone: &DnsName) -> Result<(), DnsError> {
        self.api.create_zone(&NewZone::new(zone, &self.nameservers)).await
    }

    async fn remove_zone(&self, zone: &DnsName) -> Result<Removal, DnsError> {
        let Found::Yes(found) = self.api.zone(zone).await? else { return Ok(Removal::Absent) };
        if found.account != MARK {
            return Ok(Removal::NotOurs);
        }
        let foreign: Vec<String> =
            found.rrsets.iter().filter(|set| set.is_foreign_in(zone)).map(RrSet::title).take(5).collect();
        if !foreign.is_empty() {
            return Err(DnsError::NotEmpty { zone: zone.clone(), records: foreign.join(", ") });
        }
        self.api.delete_zone(zone).await
    }

    async fn made_by_others(&self, zone: &DnsName, owner: &Owner) -> Result<Option<String>, DnsError> {
        let name = owner.to_string();
        let sets = self.api.name(zone, &name).await?.or_missing(zone)?;
        if let Some(set) = sets.iter().find(|set| set.is_foreign_in(zone)) {
            return Ok(Some(set.title()));
        }
        for above in above(zone, &name) {
            let wildcard = format!("*.{above}");
            let sets = self.api.name(zone, &wildcard).await?.or_missing(zone)?;
            if let Some(set) = sets.iter().find(|set| !set.is_ours()) {
                return Ok(Some(set.title()));
            }
            if above != zone.as_str()
                && let Some(set) =
                    self.api.name(zone, above).await?.or_missing(zone)?.iter().find(|set| set.leads_away())
            {
                return Ok(Some(set.title()));
            }
        }
        Ok(None)
    }

    async fn ensure_record(&self, record: &Record) -> Result<(), DnsError> {
        let Record { zone, owner, .. } = record;
        if !owner.name().is_in(zone) {
            return Err(DnsError::OutsideZone { name: owner.clone(), zone: zone.clone() });
        }
        let sets = self.api.name(zone, &owner.to_string()).await?.or_missing(zone)?;
        if let Some(foreign) = sets.iter().find(|set| set.leads_elsewhere() && !set.is_ours()) {
            return if wire::say(&sets, record) { Ok(()) } else { Err(foreign.foreign(owner)) };
        }
        self.api.patch(zone, &Patch::replace(record, &sets)).await?.or_missing(zone)
    }

    async fn remove_record(&self, zone: &DnsName, owner: &Owner) -> Result<Removal, DnsError> {
        let Found::Yes(sets) = self.api.name(zone, &owner.to_string()).await? else { return Ok(Removal::Absent) };
        let patch = Patch::delete_ours(&sets);
        if patch.is_empty() {
            let taken = sets.iter().any(RrSet::leads_elsewhere);
            return Ok(if taken { Removal::NotOurs } else { Removal::Absent });
        }
        Ok(match self.api.patch(zone, &patch).await? {
            Found::Yes(()) => Removal::Removed,
            Found::No => Removal::Absent,
        })
    }

    async fn ensure_challenge(&self, challenge: &Challenge) -> Result<(), DnsError> {
        let Challenge { zone, name, .. } = challenge;
        if !name.is_in(zone) {
            return Err(DnsError::OutsideZone { name: name.into(), zone: zone.clone() });
        }
        let sets = self.api.name(zone, &challenge.owner()).await?.or_missing(zone)?;
        let patch = Patch::with_challenge(challenge, &sets);
        if patch.is_empty() { Ok(()) } else { self.api.patch(zone, &patch).await?.or_missing(zone) }
    }

    async fn remove_challenge(&self, challenge: &Challenge) -> Result<Removal, DnsError> {
        let zone = &challenge.zone;
        let Found::Yes(sets) = self.api.name(zone, &challenge.owner()).await? else { return Ok(Removal::Absent) };
        let patch = Patch::without_challenge(challenge, &sets);
        if patch.is_empty() {
            return Ok(Removal::Absent);
        }
        Ok(match self.api.patch(zone, &patch).await? {
            Found::Yes(()) => Removal::Removed,
            Found::No => Removal::Absent,
        })
    }
}
