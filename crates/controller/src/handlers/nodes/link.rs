//! Linking hosts: by which key Corpus enters, which key the host has, and that a person compared it.

use std::time::Duration;

use corpus_api::nodes::{
    ConfirmNodeHostKey, ControlKey, GetControlKey, HostKey, LinkNode, NodeChanged, NodeLinking, ProbeHostKey,
};
use corpus_api::words::{KeyText, Port};
use corpus_domain::NodeId;
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use secrecy::SecretString;
use serde_json::json;
use uuid::Uuid;

use super::held;
use crate::Controller;
use crate::nodes::{Credential, NodeEndpoint, NodeError, authorize, connect, probe_host_key};
use crate::sagas::node_link;
use crate::store::{nodes, not_created};

/// How long a person at a form waits for a host.
const AT_THE_FORM: Duration = Duration::from_secs(8);

impl Handle<GetControlKey> for Controller {
    async fn handle(&self, _: Permit<GetControlKey>) -> Result<ControlKey> {
        Ok(ControlKey { line: self.services.control_public_line.clone() })
    }
}

impl Handle<ProbeHostKey> for Controller {
    async fn handle(&self, permit: Permit<ProbeHostKey>) -> Result<HostKey> {
        let port = permit.port.unwrap_or(Port::SSH).number();
        let seen = probe_host_key(&permit.address, port, AT_THE_FORM).await;
        let seen = seen.map_err(|error| Error::field("address", error.to_string()))?;
        Ok(HostKey { host_key: seen.public, algorithm: seen.algorithm, fingerprint: seen.fingerprint })
    }
}

impl Handle<LinkNode> for Controller {
    async fn handle(&self, mut change: Change<LinkNode>) -> Result<Committed<LinkNode>> {
        let (wanted, by) = (change.operation(), change.who().id);
        if wanted.environments.is_empty() {
            let message = "Choose at least one environment that the node takes guests of.";
            return Err(Error::field("environments", message));
        }
        let endpoint = endpoint(&wanted)?;
        if nodes::is_known(&mut *change.connection().await?, &endpoint.address, endpoint.port).await? {
            return Err(linked_already(&endpoint));
        }
        let key_installed = match &wanted.password {
            Some(password) => self.let_in(&endpoint, password.secret()).await?,
            None => false,
        };
        let row = nodes::NewNode {
            id: endpoint.id,
            address: &endpoint.address,
            ssh_port: endpoint.port,
            ssh_user: &endpoint.user,
            host_key: &endpoint.pinned_host_key.to_string(),
            environments: &wanted.environments,
            network: wanted.network.unwrap_or(self.services.settings.network),
            bridge: &self.services.settings.bridge,
        };
        let inserted = nodes::insert(change.transaction().await?, &row, by).await;
        inserted.map_err(|error| at_once(error, &endpoint))?;
        let job = self.queue(&mut change, node_link::job(endpoint.id, &wanted, key_installed)).await?;
        if let Some(failed) = wanted.instead_of {
            let tx = change.transaction().await?;
            not_created::dismiss(tx, failed, by, Some(not_created::About::Node)).await?;
        }
        let detail = json!({ "fingerprint": endpoint.pinned_host_key.seen().fingerprint, "user": endpoint.user });
        let subject = endpoint.address.to_string();
        let entry = Entry::new("node.link", &subject).id(endpoint.id.0).detail(detail);
        change.commit(entry, NodeLinking { node: endpoint.id, job }).await
    }
}

impl Handle<ConfirmNodeHostKey> for Controller {
    async fn handle(&self, mut change: Change<ConfirmNodeHostKey>) -> Result<Committed<ConfirmNodeHostKey>> {
        let asked = change.operation();
        let pinned = read_key(&asked.host_key)?;
        let node = held(&mut change, asked.node).await?;
        nodes::set_host_key(change.transaction().await?, node.id, &pinned.to_string()).await?;
        let detail = json!({ "from": node.fingerprint, "to": pinned.seen().fingerprint });
        let subject = node.address.to_string();
        let entry = Entry::new("node.confirm_host_key", &subject).id(node.id.0).detail(detail);
        let done = change.commit(entry, NodeChanged { node: node.id }).await?;
        self.services.nodes.forget(node.id);
        Ok(done)
    }
}

impl Controller {
    /// Installs the control key by the one-time password, which is used here and stored nowhere.
    async fn let_in(&self, endpoint: &NodeEndpoint, password: &SecretString) -> Result<bool> {
        let credential = Credential::Password(password.clone());
        let attempt = async {
            let connection = connect(endpoint, &credential).await?;
            authorize(&connection, &self.services.control_key).await
        };
        match tokio::time::timeout(AT_THE_FORM, attempt).await {
            Ok(Ok(added)) => Ok(added),
            Ok(Err(error @ NodeError::Auth { .. })) => Err(Error::field("password", error.to_string())),
            Ok(Err(error)) => Err(Error::field("address", error.to_string())),
            Err(_) => {
                Err(Error::field("address", format!("{} did not answer within {AT_THE_FORM:?}.", endpoint.host())))
            }
        }
    }
}

/// Where the host answers, under an id that is chosen now.
fn endpoint(wanted: &LinkNode) -> Result<NodeEndpoint> {
    let user = match wanted.user.clone() {
        Some(user) => user,
        None => "root".parse()?,
    };
    Ok(NodeEndpoint {
        id: NodeId(Uuid::now_v7()),
        address: wanted.address.clone(),
        port: wanted.port.unwrap_or(Port::SSH).number(),
        user,
        pinned_host_key: read_key(&wanted.host_key)?,
    })
}

fn read_key(text: &KeyText) -> Result<crate::nodes::HostKey> {
    let read = text.as_str().parse();
    read.map_err(|error| Error::field("host_key", format!("The host key was not read: {error}")))
}

/// Another request may have linked it since it was looked for.
fn at_once(error: sqlx::Error, endpoint: &NodeEndpoint) -> Error {
    match &error {
        sqlx::Error::Database(inner) if inner.is_unique_violation() => linked_already(endpoint),
        _ => Error::Database(error),
    }
}

fn linked_already(endpoint: &NodeEndpoint) -> Error {
    Error::field("address", format!("{} port {} is linked already.", endpoint.address, endpoint.port))
}
