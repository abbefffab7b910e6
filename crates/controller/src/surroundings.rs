//! What the operator decides about the surroundings of nodes and guests: what they must be kept from,
//! and where they may go all the same.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use corpus_domain::EgressRule;

/// What is around all nodes.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The hosts of what Corpus is made of: its own, the database's, the directory's, …
    pub hosts: BTreeSet<String>,
    /// Where guests may go although it is closed to them otherwise.
    pub allowed: Vec<EgressRule>,
    /// Where nodes ask the name server of our zones; none: they are not told of them.
    pub authority: Option<SocketAddr>,
}
