//! Named networks: what operators call some addresses, so that rules say what is meant and follow when it changes.

use corpus_api::Denied;
use corpus_api::firewall::networks::{
    CreateNetwork, GetNetwork, ListNetworks, NamedNetwork, NetworkChanged, Networks, RemoveNetwork, SetNetwork,
};
use corpus_api::words::Label;
use corpus_domain::{Ipv4Network, NamedNetworkId, RuleAction};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::are_no_guests;
use super::nodes::cuts_nothing_of_ours;
use crate::sagas::firewall_apply;
use crate::store::firewall::{self, NetworkBefore, Of, RuleChange, networks};
use crate::{Controller, changed};

impl Handle<ListNetworks> for Controller {
    async fn handle(&self, permit: Permit<ListNetworks>) -> Result<Networks> {
        let mut conn = permit.connection().await?;
        let items = networks::list(&mut conn, None).await?;
        Ok(Networks { items, blocks: firewall::of(&mut conn, Of::Everywhere).await? })
    }
}

impl Handle<GetNetwork> for Controller {
    async fn handle(&self, permit: Permit<GetNetwork>) -> Result<NamedNetwork> {
        network(&mut *permit.connection().await?, permit.network).await
    }
}

impl Handle<CreateNetwork> for Controller {
    async fn handle(&self, mut change: Change<CreateNetwork>) -> Result<Committed<CreateNetwork>> {
        let (asked, by) = (change.operation(), change.who().id);
        let addresses = given(&asked.networks)?;
        let id = NamedNetworkId(Uuid::now_v7());
        let tx = change.transaction().await?;
        are_no_guests(tx, "networks", &addresses).await?;
        if networks::are_full(tx).await? {
            return Err(Error::Conflict("There are as many named networks as can be: remove one.".to_owned()));
        }
        let comment = asked.comment.as_ref().map(Label::as_str);
        let inserted = networks::insert(tx, (id, &asked.name), &addresses, comment, by).await;
        inserted.map_err(|error| {
            Error::taken(error, "name", format!("{} is the name of a network already.", asked.name))
        })?;
        let detail = json!({ "networks": addresses });
        let entry = Entry::new("network.create", asked.name.as_str()).id(id.0).detail(detail);
        change.commit(entry, NetworkChanged { network: id, job: None }).await
    }
}

impl Handle<SetNetwork> for Controller {
    async fn handle(&self, mut change: Change<SetNetwork>) -> Result<Committed<SetNetwork>> {
        let (asked, id) = (change.operation(), change.network);
        let addresses = given(&asked.networks)?;
        let tx = change.transaction().await?;
        networks::hold(tx, id).await?;
        let before = network(tx, id).await?;
        if asked.version != before.version {
            return Err(changed::by_others(tx, "network.set", id.0, was).await);
        }
        let rules = networks::rules_of(tx, id).await?;
        if firewall::any_is(tx, &rules, RuleAction::Block).await? {
            cuts_nothing_of_ours(tx, "networks", &addresses).await?;
        } else {
            are_no_guests(tx, "networks", &addresses).await?;
        }
        networks::set(tx, id, &addresses, asked.comment.as_ref().map(Label::as_str)).await?;
        let nodes = firewall::nodes_of(tx, &rules).await?;
        let mut job = None;
        if addresses != before.networks && !nodes.nodes.is_empty() {
            let network = NetworkBefore { id, networks: before.networks.clone(), comment: before.comment.clone() };
            let change_of = RuleChange { network: Some(network), ..RuleChange::default() };
            let title = format!("Tell nodes of the network {}", before.name);
            job = Some(self.queue(&mut change, firewall_apply::job(title, nodes, change_of)).await?);
        }
        let detail = json!({ "from": before.networks, "to": addresses });
        let entry = Entry::new("network.set", before.name.as_str()).id(id.0).detail(detail);
        change.commit(entry, NetworkChanged { network: id, job }).await
    }
}

impl Handle<RemoveNetwork> for Controller {
    async fn handle(&self, mut change: Change<RemoveNetwork>) -> Result<Committed<RemoveNetwork>> {
        let id = change.network;
        let tx = change.transaction().await?;
        networks::hold(tx, id).await?;
        let before = network(tx, id).await?;
        networks::delete(tx, id).await.map_err(|error| in_use(error, &before))?;
        let entry = Entry::new("network.remove", before.name.as_str()).id(id.0);
        change.commit(entry, NetworkChanged { network: id, job: None }).await
    }
}

async fn network(conn: &mut PgConnection, id: NamedNetworkId) -> Result<NamedNetwork> {
    Ok(networks::list(conn, Some(id)).await?.pop().ok_or(Denied::NotFound)?)
}

/// The addresses that are given, each once.
fn given(networks: &[Ipv4Network]) -> Result<Vec<Ipv4Network>> {
    let mut addresses = networks.to_vec();
    addresses.sort_unstable();
    addresses.dedup();
    if addresses.is_empty() {
        return Err(Error::field("networks", "Name at least one address or network."));
    }
    Ok(addresses)
}

/// What a change of it was.
fn was(detail: &Value) -> Option<String> {
    let words = |of: &str| Some(changed::read::<Vec<String>>(detail, of)?.join(", "));
    changed::parts([("it", words("from")?, words("to")?)])
}

fn in_use(error: sqlx::Error, network: &NamedNetwork) -> Error {
    let named =
        if network.rules == 1 { "1 rule names it".to_owned() } else { format!("{} rules name it", network.rules) };
    match &error {
        sqlx::Error::Database(inner) if inner.is_foreign_key_violation() => {
            Error::Conflict(format!("{} stays: {named}. Remove those first, or change its addresses.", network.name))
        }
        _ => error.into(),
    }
}
