//! What steps ask of nodes, and how failures of nodes become failures of steps.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use corpus_domain::{DnsNameId, GuestId, GuestName, NodeId};
use corpus_protocol::{Answer, ErrorKind, Event, GuestFile, NodePlan, Request, RequestError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::drift::authorized_keys;
use crate::jobs::{StepContext, StepError};
use crate::nodes::{Call, Credential, Endpoint, HostId, NodeEndpoint, NodeError, Pool, Way, revoke};
use crate::services::Services;
use crate::store::links::{self, Beside};
use crate::store::nodes::Node;
use crate::store::{guest_users, keys, nodes};

/// How long a node may take for what is normally done in a blink.
pub const SHORT: Duration = Duration::from_secs(30);
/// How long one try waits for a host that can't be reached: with three tries, a reboot or a
/// network that is cut for a minute fails no job. Less than the minute that a try may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(45);
/// The pause between two attempts to reach it; the pool has its own, growing ones behind it.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The node's row.
pub async fn node<P: Send + Sync>(ctx: &StepContext<Services, P>, id: NodeId) -> Result<Node, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    nodes::get(&mut conn, id).await?.ok_or_else(|| StepError::permanent("the node is not linked any more"))
}

/// Where the node answers and by what it is recognised.
pub async fn endpoint<P: Send + Sync>(ctx: &StepContext<Services, P>, id: NodeId) -> Result<NodeEndpoint, StepError> {
    node(ctx, id)
        .await?
        .endpoint()
        .map_err(|error| StepError::permanent("the pinned host key can't be read").caused_by(error))
}

/// Asks the node for something in the name of the job; its log lines go to the job's log. A
/// cancel goes on to the node, and what it ran there has ended when this returns.
pub async fn ask<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    id: NodeId,
    request: Request,
    limit: Duration,
) -> Result<Answer, StepError> {
    let Asked { awaited, answer } = patiently(ctx, is_away, || ask_node(ctx, id, request.clone(), limit)).await?;
    answer.map_err(|error| failed_at(awaited, error))
}

/// The same without waiting for a node that can't be reached.
pub async fn ask_once<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    id: NodeId,
    request: Request,
    limit: Duration,
) -> Result<Answer, StepError> {
    let Asked { awaited, answer } = ask_node(ctx, id, request, limit).await?;
    answer.map_err(|error| failed_at(awaited, error))
}

/// What became of one request.
pub struct Asked {
    /// What a job waits for as long as its host is away: `node 10.0.0.7 to answer`.
    pub awaited: String,
    /// What the host said, its own failures included.
    pub answer: Result<Answer, NodeError>,
}

/// Asks again for a while as long as the host `is_away`, and the job says so meanwhile.
pub async fn patiently<P: Send + Sync, F: Future<Output = Result<Asked, StepError>>>(
    ctx: &StepContext<Services, P>,
    is_away: impl Fn(&NodeError) -> bool,
    ask: impl Fn() -> F,
) -> Result<Asked, StepError> {
    let until = Instant::now() + ctx.paced(CONNECT_TIMEOUT);
    let mut waiting = None;
    loop {
        let asked = ask().await?;
        match &asked.answer {
            Err(error) if is_away(error) && Instant::now() < until => {
                if waiting.is_none() {
                    waiting = Some(ctx.waiting_for(asked.awaited));
                    ctx.log(error.to_string());
                }
            }
            _ => return Ok(asked),
        }
        ctx.or_cancelled(async {
            tokio::time::sleep(ctx.paced(LOOK_AGAIN)).await;
            Ok::<(), StepError>(())
        })
        .await?;
    }
}

/// Nothing was sent: there was no way to the host.
pub const fn is_away(error: &NodeError) -> bool {
    matches!(
        error,
        NodeError::Refused { .. }
            | NodeError::Unreachable { .. }
            | NodeError::NoAnswer { .. }
            | NodeError::BehindGateway { .. }
    )
}

async fn ask_node<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    id: NodeId,
    request: Request,
    limit: Duration,
) -> Result<Asked, StepError> {
    let endpoint = endpoint(ctx, id).await?;
    let answer = call(ctx, &ctx.services().nodes, &endpoint, request, limit).await;
    Ok(Asked { awaited: awaited(&endpoint), answer })
}

/// One request in the name of the job, to the agent on a node or on a guest.
pub async fn call<P: Send + Sync, Id: HostId>(
    ctx: &StepContext<Services, P>,
    pool: &Pool<Id>,
    to: &Endpoint<Id>,
    request: Request,
    limit: Duration,
) -> Result<Answer, NodeError> {
    call_hearing(ctx, pool, to, (request, limit), |event| ctx.report(&event)).await
}

/// The same; `hear` is told what happens meanwhile.
pub async fn call_hearing<P: Send + Sync, Id: HostId>(
    ctx: &StepContext<Services, P>,
    pool: &Pool<Id>,
    to: &Endpoint<Id>,
    (request, limit): (Request, Duration),
    hear: impl FnMut(Event) + Send,
) -> Result<Answer, NodeError> {
    // What only reads leaves no record on the host.
    let changes = !matches!(
        request,
        Request::Facts
            | Request::Read
            | Request::ReadProject { .. }
            | Request::ProveProject { .. }
            | Request::MissingCertificates { .. }
    );
    let cancel = CancellationToken::new();
    let mut call = Call::new(request, ctx.paced(limit)).cancelled_by(cancel.clone());
    if changes {
        call = call.of_job(ctx.next_request());
    }
    let answer = pool.call(to, call, hear);
    tokio::pin!(answer);
    tokio::select! {
        answered = &mut answer => answered,
        () = ctx.cancelled() => {
            cancel.cancel();
            answer.await
        }
    }
}

/// A failure at a node as a failure of the step, with what is waited for.
pub fn failed(endpoint: &NodeEndpoint, error: NodeError) -> StepError {
    failed_at(awaited(endpoint), error)
}

pub fn awaited(endpoint: &NodeEndpoint) -> String {
    format!("node {} to answer", endpoint.address)
}

/// The same for any host; `awaited` is what is waited for when trying again may help.
pub fn failed_at(awaited: String, error: NodeError) -> StepError {
    let message = error.to_string();
    match error {
        NodeError::Remote(error) => error.into(),
        NodeError::Cancelled { .. } => StepError::cancelled(),
        error if error.is_transient() || error.is_in_doubt() => {
            StepError::transient(message).while_waiting_for(awaited).caused_by(error)
        }
        error => StepError::permanent(message).caused_by(error),
    }
}

/// Takes the key for the node's gateway away from it, if there is one. A gateway that lets us in no more has nothing
/// to take away; one that lets us change no file has a line that a person put there, who is told.
pub async fn leave_gateway<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    endpoint: &NodeEndpoint,
) -> Result<(), StepError> {
    let Some(gateway) = &endpoint.gateway else { return Ok(()) };
    let left = async {
        let Credential::Key(key) = gateway.credential(&Credential::Key(ctx.services().control_key.clone()))? else {
            return Ok(());
        };
        let way = Way::through(gateway, &Credential::Key(key.clone())).await?;
        let Some(connection) = way.gateway() else { return Ok(()) };
        match revoke(connection, &key).await {
            Err(error) if !connection.is_closed() => {
                let (line, at) = (&gateway.serves, gateway.host());
                ctx.log(format!("{error}; take the line of {line} away from {at} by hand"));
            }
            revoked => {
                revoked?;
            }
        }
        connection.close().await;
        Ok::<(), NodeError>(())
    };
    match Box::pin(ctx.or_cancelled(async { Ok::<_, StepError>(left.await) })).await? {
        Err(NodeError::Auth { .. }) => Ok(()),
        left => left.map_err(|error| failed(endpoint, error)),
    }
}

/// Brings the node to the plan that the rows say now, the caller's included. When a later plan
/// is in force already, that one was read after the caller's rows were committed: it is done.
pub async fn apply<P: Send + Sync>(ctx: &StepContext<Services, P>, id: NodeId) -> Result<(), StepError> {
    let plan = next_plan(ctx, id).await?;
    let certificates: Vec<_> = plan.all_certificates().cloned().collect();
    ctx.services().bring_certificates(&certificates, |request| ask(ctx, id, request, SHORT)).await?;
    let request = Request::ApplyNode { plan: Box::new(plan) };
    let Asked { awaited, answer } = patiently(ctx, is_away, || ask_node(ctx, id, request.clone(), SHORT)).await?;
    match answer {
        Ok(_) | Err(NodeError::Remote(RequestError { kind: ErrorKind::Fenced, .. })) => Ok(()),
        Err(error) => Err(failed_at(awaited, error)),
    }
}

async fn next_plan<P: Send + Sync>(ctx: &StepContext<Services, P>, id: NodeId) -> Result<NodePlan, StepError> {
    let mut tx = ctx.begin().await?;
    let plan = ctx.services().next_plan(&mut tx, id).await?;
    tx.commit().await?;
    Ok(plan)
}

/// The same with the nodes that serve what guests share: those that the guests are on, and the others as far as they
/// answer. Tells which of the others were told.
pub async fn apply_beside<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    beside: &Beside,
) -> Result<Vec<NodeId>, StepError> {
    let mut told = Vec::new();
    for node in &beside.others {
        if tell(ctx, *node).await? {
            told.push(*node);
        }
    }
    for node in &beside.own {
        apply(ctx, *node).await?;
    }
    Ok(told)
}

/// The nodes that take visitors of a name are as the rows say now.
pub async fn apply_name<P: Send + Sync>(ctx: &StepContext<Services, P>, name: DnsNameId) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let beside = links::of_name(&mut conn, name).await?;
    drop(conn);
    apply_beside(ctx, &beside).await.map(drop)
}

/// The same by a job that holds one of them, which need not be that of the name's guest.
pub async fn apply_name_by<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    name: DnsNameId,
    held: NodeId,
) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let mut beside = links::of_name(&mut conn, name).await?;
    drop(conn);
    if beside.others.remove(&held) {
        beside.others.append(&mut beside.own);
        beside.own.insert(held);
    }
    apply_beside(ctx, &beside).await.map(drop)
}

/// Brings a node that the job does not hold to its plan: one that was given back takes none, and one that does not answer
/// is told when it is back.
pub async fn tell<P: Send + Sync>(ctx: &StepContext<Services, P>, id: NodeId) -> Result<bool, StepError> {
    let plan = next_plan(ctx, id).await?;
    let (revision, certificates) = (plan.revision, plan.all_certificates().cloned().collect::<Vec<_>>());
    let brought = ctx.services().bring_certificates(&certificates, |request| ask_once(ctx, id, request, SHORT)).await;
    let problem = match brought {
        Err(error) => error.message,
        Ok(()) => match ask_node(ctx, id, Request::RefreshNode { plan: Box::new(plan) }, SHORT).await?.answer {
            Ok(_) | Err(NodeError::Remote(RequestError { kind: ErrorKind::Fenced, .. })) => return Ok(true),
            Err(error) => error.to_string(),
        },
    };
    ctx.log(format!("another node is told later: {problem}"));
    let mut tx = ctx.begin().await?;
    links::missed(&mut tx, id, revision).await?;
    tx.commit().await?;
    Ok(false)
}

/// Its node is as the rows say now, and the others of these as far as they answer.
pub async fn apply_with<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    own: NodeId,
    others: BTreeSet<NodeId>,
) -> Result<(), StepError> {
    apply(ctx, own).await?;
    for node in others {
        tell(ctx, node).await?;
    }
    Ok(())
}

/// How a guest resolves names: it asks its node.
pub fn resolv_conf(gateway: Ipv4Addr, yields: bool) -> GuestFile {
    let text =
        format!("# Kept by Corpus until somebody changes it.\nnameserver {gateway}\noptions timeout:2 attempts:3\n");
    GuestFile { path: "/etc/resolv.conf".to_owned(), text, mode: 0o644, yields }
}

/// Brings to a guest exactly the keys of the members who may enter it; root is the controller's.
pub async fn bring_keys<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    node: NodeId,
    guest: GuestId,
    name: &GuestName,
) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let members = keys::lines_for_guest(&mut conn, guest).await?;
    let users = guest_users::keys_of_guest(&mut conn, guest).await?;
    drop(conn);
    let keys = authorized_keys(&ctx.services().control_public_line, &members, users);
    ask(ctx, node, Request::EnsureKeys { name: name.clone(), id: Some(guest), keys }, SHORT).await.map(drop)
}
