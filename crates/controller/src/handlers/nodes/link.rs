//! Linking hosts: by which key Corpus enters, which key the host has, and that a person compared it. The same of a
//! gateway that a host is reached through.

use std::time::Duration;

use corpus_api::nodes::{
    ConfirmNodeHostKey, ControlKey, GetControlKey, HostKey, LinkNode, NodeChanged, NodeLinking, ProbeBehindGateway,
    ProbeHostKey,
};
use corpus_api::words::{KeyText, Password, Port};
use corpus_domain::{NodeAddress, NodeId, UnixUser};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::held;
use crate::Controller;
use crate::nodes::{
    Credential, Gateway, NodeEndpoint, NodeError, Way, authorize, authorize_forwarding, connect_by, forwarding_line,
    host, probe_host_key, probe_host_key_by, revoke,
};
use crate::sagas::node_link::{self, LetIn};
use crate::store::{node_gateways, nodes, not_created};

/// How long a person at a form waits for a host, and its gateway.
const AT_THE_FORM: Duration = Duration::from_secs(8);

impl Handle<GetControlKey> for Controller {
    async fn handle(&self, permit: Permit<GetControlKey>) -> Result<ControlKey> {
        let to_gateway = |address: &NodeAddress| {
            let serves = host(address, permit.port.unwrap_or(Port::SSH).number());
            let key = self.services.control_key.for_gateway(&serves).ok()?;
            Some(forwarding_line(&key, address))
        };
        let gateway_line = permit.behind.as_ref().and_then(to_gateway);
        Ok(ControlKey { line: self.services.control_public_line.clone(), gateway_line })
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

impl Handle<ProbeBehindGateway> for Controller {
    async fn handle(&self, change: Change<ProbeBehindGateway>) -> Result<Committed<ProbeBehindGateway>> {
        let asked = change.operation();
        let port = asked.port.unwrap_or(Port::SSH).number();
        let gateway = Gateway {
            address: asked.gateway_address.clone(),
            port: asked.gateway_port.unwrap_or(Port::SSH).number(),
            user: user_or_root(asked.gateway_user.clone())?,
            pinned_host_key: read_key("gateway_host_key", &asked.gateway_host_key)?,
            serves: host(&asked.address, port),
        };
        let until = Instant::now() + AT_THE_FORM;
        let way = self.enter_gateway(&gateway, asked.gateway_password.as_ref(), until).await?;
        let seen = probe_host_key_by(&way, &asked.address, port, until.duration_since(Instant::now())).await;
        if let Some(connection) = way.gateway() {
            connection.close().await;
        }
        let seen = seen.map_err(|error| Error::field("address", error.to_string()))?;
        let answer = HostKey { host_key: seen.public, algorithm: seen.algorithm, fingerprint: seen.fingerprint };
        let subject = asked.address.to_string();
        let detail = json!({ "gateway": gateway.address, "user": gateway.user, "fingerprint": answer.fingerprint });
        change.commit(Entry::new("node.probe", &subject).detail(detail), answer).await
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
        let installed = self.let_in(&endpoint, &wanted).await?;
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
        if let Some(gateway) = &endpoint.gateway {
            node_gateways::insert(change.transaction().await?, endpoint.id, gateway).await?;
        }
        let job = self.queue(&mut change, node_link::job(endpoint.id, &wanted, installed)).await?;
        if let Some(failed) = wanted.instead_of {
            let tx = change.transaction().await?;
            not_created::dismiss(tx, failed, by, Some(not_created::About::Node)).await?;
        }
        let detail = json!({
            "fingerprint": endpoint.pinned_host_key.seen().fingerprint, "user": endpoint.user,
            "gateway": endpoint.gateway.as_ref().map(|gateway| json!({
                "address": gateway.address, "fingerprint": gateway.pinned_host_key.seen().fingerprint,
                "user": gateway.user,
            })),
        });
        let subject = endpoint.address.to_string();
        let entry = Entry::new("node.link", &subject).id(endpoint.id.0).detail(detail);
        change.commit(entry, NodeLinking { node: endpoint.id, job }).await
    }
}

impl Handle<ConfirmNodeHostKey> for Controller {
    async fn handle(&self, mut change: Change<ConfirmNodeHostKey>) -> Result<Committed<ConfirmNodeHostKey>> {
        let asked = change.operation();
        let pinned = read_key("host_key", &asked.host_key)?;
        let node = held(&mut change, asked.node).await?;
        let of_host = (!asked.gateway).then(|| pinned.to_string());
        let tx = change.transaction().await?;
        if asked.gateway && !node_gateways::set_host_key(tx, node.id, &pinned).await? {
            return Err(Error::Conflict(format!("{} is reached through no gateway.", node.address)));
        }
        nodes::set_host_key(tx, node.id, of_host.as_deref()).await?;
        let from = match &node.gateway {
            Some(gateway) if asked.gateway => gateway.pinned_host_key.seen().fingerprint,
            _ => node.fingerprint,
        };
        let detail = json!({ "from": from, "to": pinned.seen().fingerprint, "gateway": asked.gateway });
        let subject = node.address.to_string();
        let entry = Entry::new("node.confirm_host_key", &subject).id(node.id.0).detail(detail);
        let done = change.commit(entry, NodeChanged { node: node.id }).await?;
        self.services.nodes.forget(node.id);
        Ok(done)
    }
}

impl Controller {
    /// Lets our keys in by the one-time passwords, which are used here and stored nowhere: at the gateway the one
    /// that is made for it, at the host the control key. When the host refuses, nothing of ours stays at the gateway.
    async fn let_in(&self, endpoint: &NodeEndpoint, wanted: &LinkNode) -> Result<LetIn> {
        let mut installed = LetIn::default();
        if wanted.password.is_none() && wanted.gateway_password.is_none() {
            return Ok(installed);
        }
        let until = Instant::now() + AT_THE_FORM;
        let mut way = Way::default();
        if let Some(gateway) = &endpoint.gateway {
            way = self.enter_gateway(gateway, wanted.gateway_password.as_ref(), until).await?;
            // What is given up half-way may be there: it is ours until the gateway says that it was there before.
            installed.gateway = wanted.gateway_password.is_some();
        }
        let entered = async {
            if let Some(gateway) = endpoint.gateway.as_ref().filter(|_| installed.gateway) {
                installed.gateway = self.let_in_at_gateway(&way, endpoint, gateway, until).await?;
            }
            if let Some(password) = &wanted.password {
                installed.host = self.let_in_at_host(&way, endpoint, password, until).await?;
            }
            Ok::<(), Error>(())
        };
        let entered = entered.await;
        if entered.is_err() && installed.gateway {
            self.leave_gateway(&way, endpoint).await;
        }
        entered.map(|()| installed)
    }

    /// Enters a gateway by a password, or else by the key that is made for it.
    async fn enter_gateway(&self, gateway: &Gateway, password: Option<&Password>, until: Instant) -> Result<Way> {
        let ours = || gateway.credential(&Credential::Key(self.services.control_key.clone()));
        let credential = password.map_or_else(ours, |given| Ok(Credential::Password(given.secret().clone())));
        let credential = credential.map_err(|error| Error::field("gateway_address", error.to_string()))?;
        match timeout_at(until, Way::through(gateway, &credential)).await {
            Ok(Err(error @ NodeError::Auth { .. })) => Err(Error::field("gateway_password", error.to_string())),
            entered => in_time(entered, "gateway_address", &gateway.host()),
        }
    }

    async fn let_in_at_gateway(
        &self,
        way: &Way,
        endpoint: &NodeEndpoint,
        gateway: &Gateway,
        until: Instant,
    ) -> Result<bool> {
        let (Some(connection), Ok(key)) = (way.gateway(), self.services.control_key.for_gateway(&gateway.serves))
        else {
            return Ok(false);
        };
        let attempt = authorize_forwarding(connection, &key, &endpoint.address);
        in_time(timeout_at(until, attempt).await, "gateway_address", &gateway.host())
    }

    async fn let_in_at_host(
        &self,
        way: &Way,
        endpoint: &NodeEndpoint,
        password: &Password,
        until: Instant,
    ) -> Result<bool> {
        let credential = Credential::Password(password.secret().clone());
        let attempt = async {
            let connection = connect_by(way, endpoint, &credential).await?;
            authorize(&connection, &self.services.control_key).await
        };
        match timeout_at(until, attempt).await {
            Ok(Err(error @ NodeError::Auth { .. })) => Err(Error::field("password", error.to_string())),
            entered => in_time(entered, "address", &endpoint.host()),
        }
    }

    /// Takes back what was let in at the gateway a moment ago. What can't be taken back reaches a host that knows no
    /// key of ours, and is the same line at the next try.
    async fn leave_gateway(&self, way: &Way, endpoint: &NodeEndpoint) {
        let (Some(connection), Some(gateway)) = (way.gateway(), &endpoint.gateway) else { return };
        let Ok(key) = self.services.control_key.for_gateway(&gateway.serves) else { return };
        let left = tokio::time::timeout(AT_THE_FORM, revoke(connection, &key)).await;
        if !matches!(left, Ok(Ok(_))) {
            tracing::warn!(gateway = gateway.host(), "the key for the gateway was not taken away again");
        }
    }
}

/// What came of an attempt at a host, as a problem of a field.
fn in_time<T>(
    attempt: std::result::Result<std::result::Result<T, NodeError>, tokio::time::error::Elapsed>,
    field: &'static str,
    host: &str,
) -> Result<T> {
    let Ok(attempt) = attempt else {
        return Err(Error::field(field, format!("{host} did not answer within {AT_THE_FORM:?}.")));
    };
    attempt.map_err(|error| Error::field(field, error.to_string()))
}

/// Where the host answers, and through which gateway, under an id that is chosen now.
fn endpoint(wanted: &LinkNode) -> Result<NodeEndpoint> {
    let port = wanted.port.unwrap_or(Port::SSH).number();
    Ok(NodeEndpoint {
        id: NodeId(Uuid::now_v7()),
        address: wanted.address.clone(),
        port,
        user: user_or_root(wanted.user.clone())?,
        pinned_host_key: read_key("host_key", &wanted.host_key)?,
        gateway: gateway(wanted, host(&wanted.address, port))?.map(Box::new),
    })
}

fn gateway(wanted: &LinkNode, serves: String) -> Result<Option<Gateway>> {
    let Some(address) = wanted.gateway_address.clone() else {
        let given = wanted.gateway_host_key.is_some() || wanted.gateway_password.is_some();
        let message = "Say where the gateway answers, or leave all of its fields empty.";
        return if given { Err(Error::field("gateway_address", message)) } else { Ok(None) };
    };
    let Some(key) = &wanted.gateway_host_key else {
        return Err(Error::field("gateway_host_key", "The host key of the gateway is needed, compared by a person."));
    };
    Ok(Some(Gateway {
        address,
        port: wanted.gateway_port.unwrap_or(Port::SSH).number(),
        user: user_or_root(wanted.gateway_user.clone())?,
        pinned_host_key: read_key("gateway_host_key", key)?,
        serves,
    }))
}

fn user_or_root(user: Option<UnixUser>) -> Result<UnixUser> {
    Ok(match user {
        Some(user) => user,
        None => "root".parse()?,
    })
}

fn read_key(field: &'static str, text: &KeyText) -> Result<crate::nodes::HostKey> {
    let read = text.as_str().parse();
    read.map_err(|error| Error::field(field, format!("The host key was not read: {error}")))
}

/// Another request may have linked it since it was looked for.
fn at_once(error: sqlx::Error, endpoint: &NodeEndpoint) -> Error {
    match &error {
        sqlx::Error::Database(inner) if inner.is_unique_violation() => linked_already(endpoint),
        _ => error.into(),
    }
}

fn linked_already(endpoint: &NodeEndpoint) -> Error {
    Error::field("address", format!("{} port {} is linked already.", endpoint.address, endpoint.port))
}
