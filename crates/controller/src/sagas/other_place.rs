//! The other place of a guest that goes to another node: what moving one, and bringing one elsewhere from a backup, have in
//! common.
//!
//! The guest has two places meanwhile, and its row says at which of them it is. It is made at the new one with all that it
//! is, but for its files; once these are there, the rows exchange the places as a whole, and everybody is led there.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use corpus_domain::{GuestId, GuestName, GuestState, ImageName, NodeId};
use corpus_protocol::{GuestNet, GuestPlan, GuestSetup, Request};
use serde::{Deserialize, Serialize};

use super::guest_create::log_in;
use super::name_switch::say_where;
use super::node_calls::{SHORT, apply, ask, bring_keys, node, resolv_conf, tell};
use super::snapshot::LONG;
use super::{files_back, guest_point, node_images};
use crate::jobs::{JobParams, Lock, NewJob, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::{self, GuestRow, Place};
use crate::store::nodes::Node;
use crate::store::{far, links, lxc_lines, moves, names};

/// The guest as it was when it was asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Moved {
    pub guest: GuestId,
    pub name: GuestName,
    pub from: NodeId,
    pub to: NodeId,
    /// Whether it runs, and is to run there.
    pub runs: bool,
}

impl Moved {
    pub fn new(guest: &GuestRow, to: NodeId) -> Self {
        Self {
            guest: guest.id,
            name: guest.name.clone(),
            from: guest.node_id,
            to,
            runs: guest.state == GuestState::Running,
        }
    }
}

/// Where a guest is to go.
#[derive(Debug)]
pub struct Target {
    /// The node.
    pub node: Node,
    /// Whether what it is a clone of is there.
    pub has_image: bool,
    /// The addresses whose reverse records go with it: the one that it has, and the one that it will have there.
    pub pointed: Vec<Ipv4Addr>,
}

/// A job by which a guest comes to another node.
pub(super) trait Moving: JobParams + Clone {
    /// Of which guest.
    fn moved(&self) -> &Moved;
}

type Ctx<P> = StepContext<Services, P>;

/// Such a job. None that needs the guest is accepted meanwhile: it would look for it where it was.
pub(super) fn job<P: Moving>(title: String, guest: &GuestRow, target: &Target, params: P) -> NewJob<P> {
    let Target { node: to, has_image, pointed } = target;
    let closed = format!("{} is being moved to {}; ask again when it is there", guest.name, to.address);
    NewJob::new(title, params)
        .guest(guest.id)
        .project(guest.project_id)
        .closing(Lock::guest(guest.id), closed)
        .locks([Lock::node_shared(to.id)])
        .locks((!has_image).then(|| node_images::lock(to.id)))
        .locks(pointed.iter().map(|address| guest_point::lock(*address)))
}

/// The guest's row.
pub(super) async fn guest<P: Moving>(ctx: &Ctx<P>) -> Result<GuestRow, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let row = guests::get(&mut conn, ctx.params().moved().guest).await?;
    row.ok_or_else(|| StepError::permanent("the guest's row is gone"))
}

/// Gives it an address, MAC and SSH port there.
pub(super) async fn place<P: Moving>(ctx: Ctx<P>) -> Result<Place, StepError> {
    let Moved { guest, to, .. } = *ctx.params().moved();
    let network = node(&ctx, to).await?.network;
    let mut tx = ctx.begin().await?;
    let chosen = moves::choose(&mut tx, guest, (to, network)).await?;
    tx.commit().await?;
    let place = chosen
        .ok_or_else(|| StepError::permanent(format!("no address, SSH port or range of ids is free in {network}")))?;
    ctx.log(format!("{}, {}, SSH port {}", place.ip, place.mac, place.ssh_port));
    Ok(place)
}

/// It has one place.
pub(super) async fn forget<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    moves::settle(&mut tx, ctx.params().moved().guest).await?;
    Ok(tx.commit().await?)
}

/// Brings there what it is a clone of, if it is missing.
pub(super) async fn image<P: Moving>(ctx: Ctx<P>) -> Result<ImageName, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let image = moves::image(&mut conn, ctx.params().moved().guest).await?;
    drop(conn);
    let image = image.ok_or_else(|| StepError::permanent("it is not said where the guest goes"))?;
    node_images::ensure(&ctx, ctx.params().moved().to, &image).await?;
    Ok(image)
}

/// Makes it there; it starts with its node once it is known to run there.
pub(super) async fn spawn<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    make_there(&ctx, false).await
}

/// It is there, and starts with its node or not.
pub(super) async fn make_there<P: Moving>(ctx: &Ctx<P>, autostart: bool) -> Result<(), StepError> {
    let (place, image): (Place, ImageName) = (ctx.output("place")?, ctx.output("image")?);
    let row = guest(ctx).await?;
    make(ctx, ctx.params().moved().to, (row, image, place), autostart).await
}

/// Where it was it starts with its node or not: a node that boots while nobody looks starts no second one of it.
pub(super) async fn make_here<P: Moving>(ctx: &Ctx<P>, autostart: bool) -> Result<(), StepError> {
    let row = guest(ctx).await?;
    let mut conn = ctx.services().db.acquire().await?;
    let place = guests::place(&mut conn, row.id).await?;
    drop(conn);
    let place = place.ok_or_else(|| StepError::permanent("the guest has no address where it is"))?;
    let image = row.image.clone();
    make(ctx, ctx.params().moved().from, (row, image, place), autostart).await
}

async fn make<P: Moving>(
    ctx: &Ctx<P>,
    on: NodeId,
    (row, image, place): (GuestRow, ImageName, Place),
    autostart: bool,
) -> Result<(), StepError> {
    let at = node(ctx, on).await?;
    let mut conn = ctx.services().db.acquire().await?;
    let lines = lxc_lines::of_guest(&mut conn, row.id).await?;
    drop(conn);
    let net = GuestNet { bridge: at.bridge, network: at.network, ip: place.ip, mac: place.mac };
    let plan = GuestPlan {
        name: row.name,
        id: Some(row.id),
        driver: row.driver,
        image,
        backing: row.backing,
        size: row.size,
        limits: row.limits,
        net,
        autostart: autostart && row.autostart,
        lines,
        ids: place.ids,
    };
    ask(ctx, on, Request::EnsureGuest { plan: Box::new(plan) }, Duration::from_mins(10)).await.map(drop)
}

/// Nothing of it is there.
pub(super) async fn remove<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    absent(&ctx, ctx.params().moved().to).await
}

pub(super) async fn absent<P: Moving>(ctx: &Ctx<P>, node: NodeId) -> Result<(), StepError> {
    let Moved { guest, name, .. } = ctx.params().moved().clone();
    ask(ctx, node, Request::EnsureAbsent { name, id: Some(guest) }, Duration::from_mins(5)).await.map(drop)
}

/// The files that were brought become its files.
pub(super) async fn put<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    let Moved { name, to, .. } = ctx.params().moved().clone();
    ask(&ctx, to, Request::EnsureReplaced { name, job: ctx.job() }, LONG).await.map(drop)
}

/// What it was made with there goes.
pub(super) async fn settle<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    let Moved { name, to, .. } = ctx.params().moved().clone();
    ask(&ctx, to, Request::EnsureSettled { name }, LONG).await.map(drop)
}

/// Where the guest is led to, and which of its nodes are told so.
pub(super) struct Led<'a> {
    pub node: NodeId,
    pub told: &'a [NodeId],
}

/// The guest is at this node; those of its two that can be are told, and whoever brings it visitors or is brought some by it.
pub(super) async fn lead<P: Moving>(ctx: &Ctx<P>, Led { node, told }: Led<'_>) -> Result<(), StepError> {
    let Moved { guest, from, to, .. } = *ctx.params().moved();
    let mut tx = ctx.begin().await?;
    moves::lead(&mut tx, guest, node).await?;
    let mut others: BTreeSet<NodeId> = far::beside(&mut tx, guest).await?;
    let beside = links::beside(&mut tx, &[guest]).await?;
    tx.commit().await?;
    others.extend(beside.own.into_iter().chain(beside.others));
    // The one that it comes to is ready for it before the other one brings visitors there.
    let mut ends = told.to_vec();
    ends.sort_by_key(|one| *one != node);
    for end in ends {
        apply(ctx, end).await?;
    }
    others.retain(|other| ![from, to].contains(other));
    for other in others {
        tell(ctx, other).await?;
    }
    Ok(())
}

/// Its files, which say that it is at this address, say where it is.
pub(super) async fn readdress<P: Moving>(ctx: &Ctx<P>, said: Option<Ipv4Addr>) -> Result<(), StepError> {
    let Moved { guest, name, to, .. } = ctx.params().moved().clone();
    let has: Place = ctx.output("place")?;
    let gateway = node(ctx, to).await?.network.gateway();
    let readdressed = said.filter(|said| *said != has.ip).map(|said| (said, has.ip));
    let setup = GuestSetup { readdressed, files: vec![resolv_conf(gateway, true)], ..GuestSetup::default() };
    let request = Request::SetUpGuest { name, id: Some(guest), setup: Box::new(setup) };
    ask(ctx, to, request, SHORT).await.map(drop)
}

/// The address that it had at the place that it left.
pub(super) async fn former_address<P: Moving>(ctx: &Ctx<P>) -> Result<Option<Ipv4Addr>, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    Ok(moves::place(&mut conn, ctx.params().moved().guest).await?.map(|had| had.ip))
}

/// Before it starts: nobody gets in by a key that was taken away since.
pub(super) async fn keys<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    let Moved { guest, name, to, .. } = ctx.params().moved();
    bring_keys(&ctx, *to, *guest, name).await
}

/// It runs there, if it is to, and with its node from now on.
pub(super) async fn start<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    make_there(&ctx, true).await?;
    run(&ctx, ctx.params().moved().to).await
}

pub(super) async fn run<P: Moving>(ctx: &Ctx<P>, node: NodeId) -> Result<(), StepError> {
    let Moved { name, runs, .. } = ctx.params().moved().clone();
    if !runs {
        return Ok(());
    }
    ask(ctx, node, Request::EnsureRunning { name }, SHORT).await.map(drop)
}

/// It does not run there.
pub(super) async fn stop_there<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    make_there(&ctx, false).await?;
    stop(&ctx, ctx.params().moved().to, 0).await
}

pub(super) async fn stop<P: Moving>(ctx: &Ctx<P>, node: NodeId, grace_s: u32) -> Result<(), StepError> {
    let name = ctx.params().moved().name.clone();
    ask(ctx, node, Request::EnsureStopped { name, grace_s }, Duration::from_mins(1)).await.map(drop)
}

/// It is entered there, if it is to run.
pub(super) async fn enter<P: Moving>(ctx: &Ctx<P>) -> Result<(), StepError> {
    let Moved { guest, to, runs, .. } = *ctx.params().moved();
    let place: Place = ctx.output("place")?;
    if runs { log_in(ctx, to, guest, place.ssh_port).await } else { Ok(()) }
}

/// Its project is told where it is.
pub(super) async fn project<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    let Moved { guest, runs, .. } = *ctx.params().moved();
    if runs { files_back::tell_project(&ctx, guest).await } else { Ok(()) }
}

/// Its names say that it is there, and its address points back to the one that it pointed to.
pub(super) async fn say<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    say_names(&ctx, ctx.params().moved().to).await
}

pub(super) async fn say_names<P: Moving>(ctx: &Ctx<P>, node: NodeId) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let all = moves::names(&mut conn, ctx.params().moved().guest).await?;
    drop(conn);
    for id in all {
        let mut conn = ctx.services().db.acquire().await?;
        let row = names::get(&mut conn, id).await?;
        drop(conn);
        let Some((row, held)) = row.and_then(|row| row.held.clone().map(|held| (row, held))) else { continue };
        say_where(ctx, &row, held, node).await?;
    }
    guest_point::follow(ctx, ctx.params().moved().guest).await
}

/// It is again what it was, at its new place.
pub(super) async fn ready<P: Moving>(ctx: Ctx<P>) -> Result<(), StepError> {
    let Moved { guest, runs, .. } = *ctx.params().moved();
    files_back::note_state(&ctx, guest, runs).await
}
