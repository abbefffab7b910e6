//! The first of the two steps in which a host is linked, or its changed key is confirmed: its key is read
//! and shown. The key that a person saw comes back in the form of the second step, and only that one is
//! pinned. Of a host behind a gateway it is the gateway's key first, then the host's.

use axum::response::Response;
use corpus_api::nodes::{GetNode, HostKey, LinkNode, Node, ProbeBehindGateway, ProbeHostKey};
use corpus_api::words::Port;
use corpus_api::{Input, Problem, Wrong};
use corpus_app::{Failure, FormState};
use corpus_domain::NodeId;

use super::{Form, MemberForm};
use crate::pages::Extra;

const LINK: &str = "/nodes/link";
/// What is known of a key in the form: what is pinned, and two words for the person.
const HOST_KEY_FIELDS: [&str; 3] = ["host_key", "_fingerprint", "_algorithm"];
/// The same of a gateway's.
const GATEWAY_KEY_FIELDS: [&str; 3] = ["gateway_host_key", "_gateway_fingerprint", "_gateway_algorithm"];
/// What the first step does not need.
const LATER_FIELDS: [&str; 4] = ["step", "password", "host_key", "gateway_host_key"];

/// Reads the key of a host that is to be linked, or of its gateway before; `step` is `probe`, `host` from the step that
/// confirmed the gateway, or `back` to the first.
pub async fn probe(sent: MemberForm) -> Response {
    let step = sent.posted.fields.raw("step");
    if step == "back" {
        return sent.show(LINK, without(&sent.posted, "", &[HOST_KEY_FIELDS, GATEWAY_KEY_FIELDS])).await;
    }
    let behind = step == "host" && sent.posted.fields.text("gateway_host_key").is_some();
    match probed(&sent, behind).await {
        Ok((seen, fields)) => sent.show(LINK, with_key(&sent.posted, "", fields, seen)).await,
        Err(problem) => refuse(&sent, LINK, "", &problem).await,
    }
}

/// All of the form is checked, so that the next steps hold no surprise. Tells whose key it is.
async fn probed(sent: &MemberForm, behind: bool) -> Result<(HostKey, [&'static str; 3]), Problem> {
    let later = |name: &str| name.starts_with('_') || LATER_FIELDS.contains(&name);
    let given = sent.posted.fields.pairs().iter().filter(|(name, _)| !later(name)).cloned();
    let still_to_come = ("host_key".to_owned(), "-".to_owned());
    let read = Input::form(given.chain([still_to_come])).read::<LinkNode>();
    let wanted = match (read, sent.posted.fields.text("environments")) {
        (Ok(wanted), Some(_)) => wanted,
        (read, environments) => {
            let mut wrong = read.err().unwrap_or_default();
            if environments.is_none() {
                wrong.push(Wrong::new("environments", "Choose at least one environment."));
            }
            return Err(Problem::wrong(wrong));
        }
    };
    let controller = &sent.posted.web.controller;
    let Some(gateway_address) = wanted.gateway_address else {
        let asked = ProbeHostKey { address: wanted.address, port: wanted.port };
        return Ok((controller.call(&sent.who, asked, None).await?, HOST_KEY_FIELDS));
    };
    if !behind {
        let asked = ProbeHostKey { address: gateway_address, port: wanted.gateway_port };
        let seen = controller.call(&sent.who, asked, None).await.map_err(of_gateway)?;
        return Ok((seen, GATEWAY_KEY_FIELDS));
    }
    let gateway_host_key = sent.posted.fields.raw("gateway_host_key").parse();
    let asked = ProbeBehindGateway {
        address: wanted.address,
        port: wanted.port,
        gateway_address,
        gateway_port: wanted.gateway_port,
        gateway_user: wanted.gateway_user,
        gateway_host_key: gateway_host_key.map_err(|_| wrong_key())?,
        gateway_password: wanted.gateway_password,
    };
    Ok((controller.call(&sent.who, asked, None).await?, HOST_KEY_FIELDS))
}

fn wrong_key() -> Problem {
    Problem::wrong(vec![Wrong::new("gateway_host_key", "The host key was not read; begin again.")])
}

/// What is wrong with the address that was asked is wrong with the gateway's.
fn of_gateway(mut problem: Problem) -> Problem {
    for wrong in problem.errors.iter_mut().filter(|wrong| wrong.field == "address") {
        "gateway_address".clone_into(&mut wrong.field);
    }
    problem
}

/// Reads the changed key of a linked host, or of its gateway when that is the one that changed.
pub async fn probe_again(sent: MemberForm) -> Response {
    let page = format!("/nodes/{}", sent.param("node"));
    match probed_again(&sent).await {
        Ok((seen, of_gateway)) => {
            let mut state = with_key(&sent.posted, "host-key", HOST_KEY_FIELDS, seen);
            state.values.push(("gateway".to_owned(), of_gateway.to_string()));
            sent.show(&page, state).await
        }
        Err(problem) => refuse(&sent, &page, "host-key", &problem).await,
    }
}

async fn probed_again(sent: &MemberForm) -> Result<(HostKey, bool), Problem> {
    let controller = &sent.posted.web.controller;
    let node: NodeId = sent.param("node").parse().map_err(|_| Problem::not_found(""))?;
    let node = controller.call(&sent.who, GetNode { node }, None).await?;
    let port = |number: u16| Port::try_from(u64::from(number)).ok();
    let Node { line, ssh_port, gateway, .. } = node;
    let Some(gateway) = gateway else {
        let asked = ProbeHostKey { address: line.address, port: port(ssh_port) };
        return Ok((controller.call(&sent.who, asked, None).await?, false));
    };
    let asked = ProbeHostKey { address: gateway.address.clone(), port: port(gateway.port) };
    let seen = controller.call(&sent.who, asked, None).await?;
    if seen.fingerprint != gateway.fingerprint {
        return Ok((seen, true));
    }
    let asked = ProbeBehindGateway {
        address: line.address,
        port: port(ssh_port),
        gateway_address: gateway.address,
        gateway_port: port(gateway.port),
        gateway_user: Some(gateway.user),
        gateway_host_key: seen.host_key.parse().map_err(|_| wrong_key())?,
        gateway_password: None,
    };
    Ok((controller.call(&sent.who, asked, None).await?, false))
}

async fn refuse(sent: &MemberForm, page: &str, form: &str, problem: &Problem) -> Response {
    if matches!(problem.status, 403 | 404) {
        return sent.posted.render(page, Extra::failure(Failure::from(problem))).await;
    }
    sent.show(page, sent.posted.state(form).with_problem(problem)).await
}

/// The form with the key that was shown, in these fields.
fn with_key(posted: &Form, form: &str, fields: [&'static str; 3], seen: HostKey) -> FormState {
    let mut state = without(posted, form, &[HOST_KEY_FIELDS, fields]);
    for (name, value) in fields.into_iter().zip([seen.host_key, seen.fingerprint, seen.algorithm]) {
        state.values.push((name.to_owned(), value));
    }
    state
}

fn without(posted: &Form, form: &str, keys: &[[&str; 3]]) -> FormState {
    let mut state = posted.state(form).status(200);
    state.values.retain(|(name, _)| !keys.iter().flatten().any(|field| field == name));
    state
}
