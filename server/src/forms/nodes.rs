//! Forms about compute nodes.
//!
//! Linking takes two steps in one page: the host key is read and shown, then a person says it
//! is the right one. The key they saw comes back in the form, and only that one is pinned.

use axum::response::Response;
use corpus_app::FormState;
use corpus_controller::LinkNode;
use corpus_controller::nodes::SeenHostKey;
use corpus_domain::{NodeAddress, NodeId, Overcommit};

use super::sent::{Done, Fault};
use super::{Posted, Sent};

const LINK: &str = "/nodes/link";
const OF_THE_KEY: [&str; 3] = ["host_key", "fingerprint", "algorithm"];

/// Links a host: `step` is `probe`, `confirm` or `back`.
pub async fn link(sent: Sent) -> Response {
    match sent.posted.fields.raw("step") {
        "confirm" => {
            let done = confirm_link(&sent).await;
            sent.answer(LINK, "", done).await
        }
        "back" => sent.posted.show(LINK, without_key(&sent.posted, "")).await,
        _ => match probe(&sent).await {
            Ok(seen) => sent.posted.show(LINK, with_key(&sent.posted, "", seen)).await,
            Err(fault) => sent.refuse(LINK, "", fault).await,
        },
    }
}

/// The first step checks all of the form, so that the second holds no surprise.
async fn probe(sent: &Sent) -> Result<SeenHostKey, Fault> {
    let wanted = wanted(sent, false)?;
    Ok(sent.posted.web.controller.probe_node(&sent.who, &wanted.address, wanted.port).await?)
}

async fn confirm_link(sent: &Sent) -> Done {
    let wanted = wanted(sent, true)?;
    let (node, _) = sent.posted.web.controller.link_node(&sent.who, wanted).await?;
    Ok(format!("/nodes/{node}"))
}

fn wanted(sent: &Sent, confirmed: bool) -> Result<LinkNode, Fault> {
    let fields = &sent.posted.fields;
    let mut reading = sent.read();
    let address: Option<NodeAddress> = reading.required("address");
    let port = fields.text("port").map_or(Some(22), |text| text.parse().ok().filter(|port: &u16| *port > 0));
    if port.is_none() {
        reading.error("port", "A port is 1 to 65535.");
    }
    let user = fields.text("user").map_or_else(|| "root".parse().ok(), |_| reading.optional("user"));
    let network = reading.optional("network");
    let environments = reading.several("environments");
    if environments.is_empty() {
        reading.error("environments", "Choose at least one environment.");
    }
    let host_key = if confirmed { reading.required("host_key") } else { Some(String::new()) };
    reading.finish()?;
    match (address, port, user, host_key) {
        (Some(address), Some(port), Some(user), Some(host_key)) => {
            let password = fields.secret("password");
            Ok(LinkNode { address, port, user, host_key, password, environments, network })
        }
        _ => Err(Fault::Fields(Vec::new())),
    }
}

/// The form with the key that the host showed.
fn with_key(posted: &Posted, form: &str, seen: SeenHostKey) -> FormState {
    let mut state = without_key(posted, form);
    for (name, value) in OF_THE_KEY.into_iter().zip([seen.public, seen.fingerprint, seen.algorithm]) {
        state.values.push((name.to_owned(), value));
    }
    state
}

fn without_key(posted: &Posted, form: &str) -> FormState {
    let mut state = posted.state(form).status(200);
    state.values.retain(|(name, _)| !OF_THE_KEY.contains(&name.as_str()));
    state
}

/// Initializes a node.
pub async fn initialize(sent: Sent) -> Response {
    let page = format!("/nodes/{}", sent.param("id"));
    let done = async {
        let id: NodeId = sent.id("id")?;
        sent.posted.web.controller.initialize_node(&sent.who, id).await?;
        Ok(format!("/nodes/{id}"))
    };
    let done = done.await;
    sent.answer(&page, "initialize", done).await
}

/// Brings a node back to what it should be.
pub async fn repair(sent: Sent) -> Response {
    let page = format!("/nodes/{}", sent.param("id"));
    let done = async {
        let id: NodeId = sent.id("id")?;
        sent.posted.web.controller.repair_node(&sent.who, id).await?;
        Ok(format!("/nodes/{id}"))
    };
    let done = done.await;
    sent.answer(&page, "repair", done).await
}

/// Reads the changed host key of a linked node, then takes it: `step` is `probe` or `confirm`.
pub async fn host_key(sent: Sent) -> Response {
    let page = format!("/nodes/{}", sent.param("id"));
    if sent.posted.fields.raw("step") == "confirm" {
        let done = confirm_key(&sent).await;
        return sent.answer(&page, "host-key", done).await;
    }
    match probe_again(&sent).await {
        Ok(seen) => sent.posted.show(&page, with_key(&sent.posted, "host-key", seen)).await,
        Err(fault) => sent.refuse(&page, "host-key", fault).await,
    }
}

async fn probe_again(sent: &Sent) -> Result<SeenHostKey, Fault> {
    let controller = &sent.posted.web.controller;
    let node = controller.node(&sent.who, sent.id("id")?).await?;
    Ok(controller.probe_node(&sent.who, &node.address, node.ssh_port).await?)
}

async fn confirm_key(sent: &Sent) -> Done {
    let id: NodeId = sent.id("id")?;
    let key: String = sent.only("host_key")?;
    sent.posted.web.controller.confirm_host_key(&sent.who, id, &key).await?;
    Ok(format!("/nodes/{id}"))
}

/// Sets how much more than a node has may be promised.
pub async fn overcommit(sent: Sent) -> Response {
    let done = overcommit_node(&sent).await;
    sent.answer(&format!("/nodes/{}", sent.param("id")), "overcommit", done).await
}

async fn overcommit_node(sent: &Sent) -> Done {
    let id: NodeId = sent.id("id")?;
    let mut r = sent.read();
    let (memory, cpu, storage) = (r.required("memory"), r.required("cpu"), r.required("storage"));
    r.finish()?;
    let (Some(memory), Some(cpu), Some(storage)) = (memory, cpu, storage) else {
        return Err(Fault::Fields(Vec::new()));
    };
    sent.posted.web.controller.overcommit_node(&sent.who, id, Overcommit { memory, cpu, storage }).await?;
    Ok(format!("/nodes/{id}"))
}

/// Unlinks a node, once its address was typed.
pub async fn unlink(sent: Sent) -> Response {
    let page = format!("/nodes/{}/unlink", sent.param("id"));
    let done = unlink_node(&sent).await;
    sent.answer(&page, "", done).await
}

async fn unlink_node(sent: &Sent) -> Done {
    let id: NodeId = sent.id("id")?;
    let controller = &sent.posted.web.controller;
    let address = controller.node(&sent.who, id).await?.address.to_string();
    sent.confirmed(&address)?;
    let job = controller.unlink_node(&sent.who, id, sent.posted.fields.text("force").is_some()).await?;
    Ok(format!("/jobs/{job}"))
}
