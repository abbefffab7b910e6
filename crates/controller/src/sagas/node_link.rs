//! Linking a host: enter it, become root, bring the agent, learn what it is.

use std::net::IpAddr;
use std::time::Duration;

use corpus_api::nodes::LinkNode;
use corpus_domain::{JobKind, NodeAddress, NodeId, NodeState, Reachability};
use corpus_protocol::{Answer, Request};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::node_calls::{SHORT, ask, endpoint, failed, leave_gateway};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError, StepErrorKind};
use crate::nodes::{Connection, Credential, connect, install_agent, privilege, remove_agent, revoke};
use crate::services::Services;
use crate::store::nodes;

/// How often a host is tried that does not answer while it is being linked.
const TRIES: Retry = Retry::times(6);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    node: NodeId,
    address: NodeAddress,
    /// Whether the request installed the control key, so that the undo takes it away.
    key_installed: bool,
    /// The same of the key for its gateway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    gateway_key_installed: bool,
    /// What was asked for, without secrets, to ask again when it can't be linked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked: Option<Value>,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NodeLink;
}

type Ctx = StepContext<Services, Params>;

/// Where the request installed keys of ours, which an undo takes away.
#[derive(Debug, Default, Clone, Copy)]
pub struct LetIn {
    /// On the host.
    pub host: bool,
    /// On its gateway.
    pub gateway: bool,
}

/// The job for a node whose row is there, and what was asked for.
pub fn job(node: NodeId, asked: &LinkNode, installed: LetIn) -> NewJob<Params> {
    let address = &asked.address;
    let LetIn { host: key_installed, gateway: gateway_key_installed } = installed;
    let params = Params { node, address: address.clone(), key_installed, gateway_key_installed, asked: again(asked) };
    NewJob::new(format!("Link node {address}"), params).node(node).locks([Lock::node(node)])
}

/// What was asked for, as it is asked again: the host's key is read and compared anew.
fn again(asked: &LinkNode) -> Option<Value> {
    let plain = LinkNode { password: None, gateway_password: None, instead_of: None, ..asked.clone() };
    serde_json::to_value(plain).ok()
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("ids", "Choose ids", ids).undo(lock_out_and_forget))
        .step(Step::new("connect", "Log in with the controller's key", log_in).retry(TRIES))
        .step(Step::new("privilege", "Become root", become_root).retry(TRIES))
        .step(Step::new("agent", "Bring the agent", bring_agent).retry(TRIES).undo(take_agent).undo_retry(TRIES))
        .step(Step::new("facts", "Gather facts", facts).retry(TRIES))
        .step(Step::new("linked", "Mark as linked", linked))
}

/// The id was chosen with the request, which may have let the controller's key in. So the undo,
/// which comes last of all, locks it out again and frees the address.
async fn ids(ctx: Ctx) -> Result<(), StepError> {
    endpoint(&ctx, ctx.params().node).await.map(drop)
}

async fn lock_out_and_forget(ctx: Ctx) -> Result<(), StepError> {
    if ctx.params().key_installed {
        lock_out(&ctx).await?;
    }
    // The way to the host, so the last.
    if ctx.params().gateway_key_installed
        && let Ok(endpoint) = endpoint(&ctx, ctx.params().node).await
    {
        leave_gateway(&ctx, &endpoint).await?;
    }
    ctx.services().nodes.forget(ctx.params().node);
    let mut tx = ctx.begin().await?;
    nodes::delete(&mut tx, ctx.params().node).await?;
    Ok(tx.commit().await?)
}

/// A connection of the job's own, outside the pool, for what comes before the agent is there.
async fn line(ctx: &Ctx) -> Result<Connection, StepError> {
    let endpoint = endpoint(ctx, ctx.params().node).await?;
    let credential = Credential::Key(ctx.services().control_key.clone());
    let connected = async { connect(&endpoint, &credential).await.map_err(|error| failed(&endpoint, error)) };
    ctx.or_cancelled(connected).await
}

/// The same for undos: none when the host lets us in no more. A host that does not answer is an
/// error, since something of ours may be left on it.
async fn line_if_let_in(ctx: &Ctx) -> Result<Option<Connection>, StepError> {
    match line(ctx).await {
        Err(error) if error.kind == StepErrorKind::Permanent => Ok(None),
        other => other.map(Some),
    }
}

async fn log_in(ctx: Ctx) -> Result<(), StepError> {
    line(&ctx).await.map(drop)
}

/// Takes the control key away again. A host that does not let us in has nothing to take away,
/// and neither has one whose row is gone: then this was done before.
async fn lock_out(ctx: &Ctx) -> Result<(), StepError> {
    let Ok(endpoint) = endpoint(ctx, ctx.params().node).await else { return Ok(()) };
    let Some(connection) = line_if_let_in(ctx).await? else { return Ok(()) };
    revoke(&connection, &ctx.services().control_key).await.map(drop).map_err(|error| failed(&endpoint, error))
}

async fn become_root(ctx: Ctx) -> Result<(), StepError> {
    let endpoint = endpoint(&ctx, ctx.params().node).await?;
    let connection = line(&ctx).await?;
    privilege(&connection).await.map(drop).map_err(|error| failed(&endpoint, error))
}

async fn bring_agent(ctx: Ctx) -> Result<(), StepError> {
    let endpoint = endpoint(&ctx, ctx.params().node).await?;
    let connection = line(&ctx).await?;
    let agent = ctx.services().nodes.agent_binary();
    let installed = async {
        let by = privilege(&connection).await?;
        install_agent(&connection, by, agent).await
    };
    ctx.or_cancelled(async { installed.await.map_err(|error| failed(&endpoint, error)) }).await?;
    ctx.log(format!("agent at {}", agent.path_on_node()));
    ctx.services().nodes.repin(&endpoint);
    Ok(())
}

async fn take_agent(ctx: Ctx) -> Result<(), StepError> {
    ctx.services().nodes.forget(ctx.params().node);
    let endpoint = endpoint(&ctx, ctx.params().node).await?;
    let Some(connection) = line_if_let_in(&ctx).await? else { return Ok(()) };
    let removed = async {
        let by = privilege(&connection).await?;
        remove_agent(&connection, by).await
    };
    removed.await.map_err(|error| failed(&endpoint, error))
}

async fn facts(ctx: Ctx) -> Result<(), StepError> {
    read_facts(&ctx, ctx.params().node).await
}

/// Gathers what the host is and where its guests' names point to.
pub(super) async fn read_facts<P: JobParams>(ctx: &StepContext<Services, P>, node: NodeId) -> Result<(), StepError> {
    let Answer::Facts(facts) = ask(ctx, node, Request::Facts, SHORT).await? else {
        return Err(StepError::permanent("the agent answered something else than facts"));
    };
    let endpoint = endpoint(ctx, node).await?;
    let public_ip = match resolve(&endpoint.address, endpoint.port).await {
        // Its name may be one of the network behind the gateway.
        Err(unresolved) if endpoint.gateway.is_some() => *facts.addresses.first().ok_or(unresolved)?,
        resolved => resolved?,
    };
    ctx.log(format!("{}, kernel {}, {} CPUs, {} memory", facts.os, facts.kernel, facts.cpu.count, facts.memory.gib()));
    let mut tx = ctx.begin().await?;
    nodes::set_facts(&mut tx, node, &facts, &public_ip.to_string()).await?;
    Ok(tx.commit().await?)
}

async fn resolve(address: &NodeAddress, port: u16) -> Result<IpAddr, StepError> {
    let name = match address {
        NodeAddress::Ip(ip) => return Ok(*ip),
        NodeAddress::Name(name) => name,
    };
    let unresolved = || StepError::transient(format!("{name} does not resolve to an address"));
    let lookup = tokio::net::lookup_host((name.as_str(), port));
    let found = tokio::time::timeout(Duration::from_secs(5), lookup).await.map_err(|_| unresolved())?;
    found.map_err(|error| unresolved().caused_by(error))?.next().map(|found| found.ip()).ok_or_else(unresolved)
}

async fn linked(ctx: Ctx) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let from = [NodeState::Linking, NodeState::Linked];
    nodes::set_state(&mut tx, ctx.params().node, &from, NodeState::Linked, None).await?;
    nodes::set_reachability(&mut tx, ctx.params().node, Reachability::Reachable, None).await?;
    Ok(tx.commit().await?)
}
