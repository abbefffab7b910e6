//! The DNS servers that are configured, by name: a zone says which of them holds it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use corpus_domain::ProviderName;

use crate::DnsProvider;

/// A DNS server that holds zones of ours.
#[derive(Clone)]
pub struct Provider {
    /// What it is told to change.
    pub dns: Arc<dyn DnsProvider>,
    /// Where it answers, for checks.
    pub authority: SocketAddr,
    /// Where nodes ask it; none: they ask as the world does.
    pub resolver: Option<SocketAddr>,
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Providers(BTreeMap<ProviderName, Provider>);

impl Providers {
    /// The one of the section `[dns]`.
    pub fn one(dns: Arc<dyn DnsProvider>, authority: SocketAddr, resolver: Option<SocketAddr>) -> Self {
        let provider = Provider { dns, authority, resolver };
        Self([(ProviderName::first(), provider)].into())
    }

    /// One more.
    pub fn add(&mut self, name: ProviderName, provider: Provider) {
        self.0.insert(name, provider);
    }

    /// The one of this name.
    pub fn get(&self, name: &ProviderName) -> Option<&Provider> {
        self.0.get(name)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &ProviderName> {
        self.0.keys()
    }

    /// The only one, if there is no choice.
    pub fn only(&self) -> Option<&ProviderName> {
        let mut names = self.0.keys();
        names.next().filter(|_| names.next().is_none())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
