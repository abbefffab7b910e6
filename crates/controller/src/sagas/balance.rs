//! How a guest leaves the balance of its environment before it can't serve, and comes back when it can.
//!
//! What the rows say is the truth, and the node is told it: so a job that is cut anywhere goes on where it was, and one
//! that is given up leaves nobody out. Requests that are under way at a guest which leaves are awaited, for a while.

use std::time::Duration;

use corpus_domain::{DeploymentId, GuestId, GuestName};
use corpus_protocol::{Request, Turn};
use tokio::time::{Instant, sleep};

use super::guest_calls::{self, On};
use super::node_calls::{apply_beside, ask, ask_once};
use crate::jobs::{StepContext, StepError};
use crate::services::Services;
use crate::store::balance::{self, Leaving, Why};
use crate::store::links::{self, Beside};

/// How long requests under way are awaited: what takes longer is cut.
const IDLE_S: u32 = 30;
const IDLE_LIMIT: Duration = Duration::from_secs(45);
/// How long another guest may take to come back first.
const OTHERS_LIMIT: Duration = Duration::from_mins(2);
const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// The guest leaves while the job works on it, and its requests are over; it stays when nobody else could serve.
pub async fn leave<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    guest: GuestId,
    reason: &str,
) -> Result<(), StepError> {
    let until = Instant::now() + ctx.paced(OTHERS_LIMIT);
    let mut waiting = None;
    loop {
        let mut tx = ctx.begin().await?;
        let leaving = balance::leave(&mut tx, guest, Why::Works(ctx.job(), reason)).await?;
        tx.commit().await?;
        match leaving {
            Leaving::Alone => return Ok(()),
            Leaving::Out(name) => {
                drop(waiting);
                ctx.log(format!("{name} leaves the balance"));
                return drain(ctx, guest, name).await;
            }
            Leaving::Wait if Instant::now() < until => {
                waiting.get_or_insert_with(|| ctx.waiting_for("another guest to be back in the balance"));
            }
            Leaving::Wait | Leaving::Last => {
                ctx.log("no other guest can serve: it stays in the balance");
                return Ok(());
            }
        }
        ctx.or_cancelled(async {
            sleep(ctx.paced(POLL_INTERVAL)).await;
            Ok::<(), StepError>(())
        })
        .await?;
    }
}

/// The guest leaves before it goes, whoever else can serve.
pub async fn go<P: Send + Sync>(ctx: &StepContext<Services, P>, guest: GuestId, reason: &str) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let leaving = balance::leave(&mut tx, guest, Why::Goes(reason)).await?;
    tx.commit().await?;
    match leaving {
        Leaving::Out(name) => drain(ctx, guest, name).await,
        Leaving::Alone | Leaving::Last | Leaving::Wait => Ok(()),
    }
}

/// Whoever brings it requests is told to bring none; what is under way is awaited. A node that does not answer brings none
/// either, or goes by its own check of the guest.
async fn drain<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    guest: GuestId,
    name: GuestName,
) -> Result<(), StepError> {
    let beside = beside(ctx, &[guest]).await?;
    let told = apply_beside(ctx, &beside).await?;
    let request = Request::AwaitIdle { guest: name, limit_s: IDLE_S };
    for node in told {
        if let Err(error) = ask_once(ctx, node, request.clone(), IDLE_LIMIT).await {
            ctx.log(format!("what another node brings is not awaited: {}", error.message));
        }
    }
    for node in beside.own {
        ask(ctx, node, request.clone(), IDLE_LIMIT).await?;
    }
    Ok(())
}

async fn beside<P: Send + Sync>(ctx: &StepContext<Services, P>, guests: &[GuestId]) -> Result<Beside, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    Ok(links::beside(&mut conn, guests).await?)
}

/// A guest that proved is given requests again.
pub async fn come_back<P: Send + Sync>(ctx: &StepContext<Services, P>, guest: GuestId) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let is_back = balance::come_back(&mut tx, guest).await?;
    tx.commit().await?;
    if is_back { apply_beside(ctx, &beside(ctx, &[guest]).await?).await.map(drop) } else { Ok(()) }
}

/// Those that the job took out are given requests again.
pub async fn come_back_from_job<P: Send + Sync>(ctx: &StepContext<Services, P>) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    let guests = balance::come_back_from(&mut tx, ctx.job()).await?;
    tx.commit().await?;
    if guests.is_empty() {
        return Ok(());
    }
    ctx.log("back in the balance");
    apply_beside(ctx, &beside(ctx, &guests).await?).await.map(drop)
}

/// What is live on a guest decides whether it takes part, and what its checks are how it is looked at: the nodes are told
/// where it shares its names.
pub async fn follow_up<P: Send + Sync>(ctx: &StepContext<Services, P>, on: &On) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let is_shared = balance::is_shared(&mut conn, on.guest).await?;
    drop(conn);
    if is_shared { apply_beside(ctx, &beside(ctx, &[on.guest]).await?).await.map(drop) } else { Ok(()) }
}

/// What a deployment asked for: its guest leaves, and is told so.
pub async fn leave_for_deployment<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    on: &On,
    id: DeploymentId,
    turn: Turn,
    number: i64,
) -> Result<(), StepError> {
    let reason = match turn {
        Turn::Forward => format!("deployment #{number} works on it"),
        Turn::Back => format!("deployment #{number} is put back there"),
    };
    leave(ctx, on.guest, &reason).await?;
    let request = Request::OutOfBalance { project: on.name.clone(), id, turn };
    guest_calls::ask(ctx, on, request, guest_calls::SHORT).await.map(drop)
}
