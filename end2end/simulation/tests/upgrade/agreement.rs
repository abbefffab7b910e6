//! Whether node and database agree after a replay.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use chrono::Utc;
use corpus_domain::GuestName;

use crate::replay::{Cut, World};

impl World {
    /// What the node has is what the rows say.
    pub async fn assert_agreement(&self, index: usize, address: Ipv4Addr, cut: Cut) {
        let story = || format!("{} {cut:?}", self.recorded.kind);
        let rows: Vec<(String, String, bool)> = sqlx::query_as(
            "select g.name, g.state, g.routed from guests g join nodes n on n.id = g.node_id where n.address = $1",
        )
        .bind(address.to_string())
        .fetch_all(&self.db)
        .await
        .unwrap();
        let host = self.simulation.host(index).unwrap().clone();
        // What was not destroyed completely says so, and may be there or not.
        let whole: Vec<_> = rows.iter().filter(|(_, state, _)| state != "failed").collect();
        for (name, state, routed) in &whole {
            let guest = host.guests().get(&name.parse().unwrap()).unwrap_or_else(|| panic!("{}: no {name}", story()));
            assert_eq!(state, if guest.running { "running" } else { "stopped" }, "{}", story());
            let routes = host.plan().into_iter().flat_map(|plan| &plan.ssh_routes);
            assert_eq!(*routed, routes.map(|to| to.guest.as_str()).any(|to| to == name), "{}: route", story());
        }
        if whole.len() == rows.len() {
            let named: BTreeSet<&str> = rows.iter().map(|(name, ..)| name.as_str()).collect();
            let there: BTreeSet<&str> = host.guests().keys().map(GuestName::as_str).collect();
            assert_eq!(named, there, "{}", story());
        }
        let node: Option<String> = sqlx::query_scalar("select state from nodes where address = $1")
            .bind(address.to_string())
            .fetch_optional(&self.db)
            .await
            .unwrap();
        assert!(node.is_some() || host.plan().is_none(), "{}: a plan is left on a node that is forgotten", story());
        let names: Vec<(String, bool)> = sqlx::query_as(
            "select d.name, d.routed from dns_names d join guests g on g.id = d.guest_id
                 join nodes n on n.id = g.node_id where n.address = $1 and d.state <> 'failed'",
        )
        .bind(address.to_string())
        .fetch_all(&self.db)
        .await
        .unwrap();
        for (name, routed) in names {
            let record = self.names.at(Utc::now()).get(&name.parse().unwrap()).copied();
            assert_eq!(record, Some(address.into()), "{}: the record of {name}", story());
            let routes = host.plan().into_iter().flat_map(|plan| &plan.http_routes);
            assert_eq!(routed, routes.map(|to| to.name.as_str()).any(|to| to == name), "{}: {name}", story());
        }
    }
}
