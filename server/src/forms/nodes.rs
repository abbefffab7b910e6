//! The first of the two steps in which a host is linked, or its changed key is confirmed: its key is read
//! and shown. The key that a person saw comes back in the form of the second step, and only that one is
//! pinned.

use axum::response::Response;
use corpus_api::nodes::{GetNode, HostKey, LinkNode, ProbeHostKey};
use corpus_api::words::Port;
use corpus_api::{Input, Problem, Wrong};
use corpus_app::{Failure, FormState};
use corpus_domain::NodeId;

use super::{Form, MemberForm};
use crate::pages::Extra;

const LINK: &str = "/nodes/link";
/// What is known of a key in the form: what is pinned, and two words for the person.
const HOST_KEY_FIELDS: [&str; 3] = ["host_key", "_fingerprint", "_algorithm"];
/// What the first step does not need.
const SECOND_STEP_FIELDS: [&str; 2] = ["step", "password"];

/// Reads the key of a host that is to be linked; `step` is `probe`, or `back` from the second.
pub async fn probe(sent: MemberForm) -> Response {
    if sent.posted.fields.raw("step") == "back" {
        return sent.show(LINK, without_key(&sent.posted, "")).await;
    }
    match probed(&sent).await {
        Ok(seen) => sent.show(LINK, with_key(&sent.posted, "", seen)).await,
        Err(problem) => refuse(&sent, LINK, "", &problem).await,
    }
}

/// All of the form is checked, so that the second step holds no surprise.
async fn probed(sent: &MemberForm) -> Result<HostKey, Problem> {
    let later =
        |name: &str| name.starts_with('_') || SECOND_STEP_FIELDS.contains(&name) || HOST_KEY_FIELDS.contains(&name);
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
    let asked = ProbeHostKey { address: wanted.address, port: wanted.port };
    sent.posted.web.controller.call(&sent.who, asked, None).await
}

/// Reads the changed key of a linked host.
pub async fn probe_again(sent: MemberForm) -> Response {
    let page = format!("/nodes/{}", sent.param("node"));
    match probed_again(&sent).await {
        Ok(seen) => sent.show(&page, with_key(&sent.posted, "host-key", seen)).await,
        Err(problem) => refuse(&sent, &page, "host-key", &problem).await,
    }
}

async fn probed_again(sent: &MemberForm) -> Result<HostKey, Problem> {
    let controller = &sent.posted.web.controller;
    let node: NodeId = sent.param("node").parse().map_err(|_| Problem::not_found(""))?;
    let node = controller.call(&sent.who, GetNode { node }, None).await?;
    let port = Port::try_from(u64::from(node.ssh_port)).ok();
    controller.call(&sent.who, ProbeHostKey { address: node.line.address, port }, None).await
}

async fn refuse(sent: &MemberForm, page: &str, form: &str, problem: &Problem) -> Response {
    if matches!(problem.status, 403 | 404) {
        return sent.posted.render(page, Extra::failure(Failure::from(problem))).await;
    }
    sent.show(page, sent.posted.state(form).with_problem(problem)).await
}

/// The form with the key that the host showed.
fn with_key(posted: &Form, form: &str, seen: HostKey) -> FormState {
    let mut state = without_key(posted, form);
    for (name, value) in HOST_KEY_FIELDS.into_iter().zip([seen.host_key, seen.fingerprint, seen.algorithm]) {
        state.values.push((name.to_owned(), value));
    }
    state
}

fn without_key(posted: &Form, form: &str) -> FormState {
    let mut state = posted.state(form).status(200);
    state.values.retain(|(name, _)| !HOST_KEY_FIELDS.contains(&name.as_str()));
    state
}
