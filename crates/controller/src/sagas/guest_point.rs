//! Having the address of a guest point back to one of its names: the reverse record (PTR), and what the server answers.
//!
//! The row of the name is set with the job, so that an address has one at most. A reverse zone that is not ours, and a
//! record that somebody else made, end well: nothing is written, and the name says why.

use std::net::Ipv4Addr;

use corpus_domain::{DnsName, DnsNameId, GuestId, JobKind, ZoneId};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::name_attach::{PROPAGATION, dns_failed, provider};
use crate::dns::authority::{AuthorityError, wait_until_pointed};
use crate::dns::{Content, DnsError, Owner, Record, reverse};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::moves::{self, Followed};
use crate::store::names::Held;
use crate::store::pointers::{self, PointedName};
use crate::store::zones;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    address: Ipv4Addr,
    /// What it pointed to before.
    from: Option<PointedName>,
    to: Option<PointedName>,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestPoint;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest whose rows say already what its address is to point to.
pub fn job(guest: &GuestRow, address: Ipv4Addr, from: Option<PointedName>, to: Option<PointedName>) -> NewJob<Params> {
    let title = match &to {
        Some(to) => format!("Point the address of {} to {}", guest.name, to.name),
        None => format!("Point the address of {} to no name", guest.name),
    };
    let mut names: Vec<DnsNameId> = [&from, &to].into_iter().flatten().map(|pointed| pointed.id).collect();
    names.dedup();
    let mut locks = vec![Lock::guest(guest.id), lock(address)];
    locks.extend(names.into_iter().map(|name| Lock::exclusive("name", name)));
    let params = Params { guest: guest.id, address, from, to };
    NewJob::new(title, params).guest(guest.id).project(guest.project_id).node(guest.node_id).locks(locks)
}

/// Who changes what an address points back to: guests of other nodes may have this address, too.
pub(super) fn lock(address: Ipv4Addr) -> Lock {
    Lock::exclusive("address", address)
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("wanted", "Note the name", wanted).undo(as_before))
        .step(
            Step::new("pointer", "Write the reverse record", pointer)
                .undo(pointer_back)
                .undo_retry(Retry::times(20))
                .retry(Retry::times(8)),
        )
        .step(Step::new("answered", "Wait for the authoritative server", answered).limit(PROPAGATION * 2))
}

async fn wanted(ctx: Ctx) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let now = pointers::of_guest(&mut conn, ctx.params().guest).await?;
    if now.map(|pointed| pointed.id) == ctx.params().to.as_ref().map(|to| to.id) {
        return Ok(());
    }
    Err(StepError::permanent("the name does not lead to the guest any more"))
}

/// A name that led there before may be gone, or lead elsewhere: then there is nothing to point to.
async fn as_before(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, from, .. } = ctx.params();
    let mut tx = ctx.begin().await?;
    pointers::point_back(&mut tx, *guest, from.as_ref()).await?;
    Ok(tx.commit().await?)
}

async fn pointer(ctx: Ctx) -> Result<(), StepError> {
    say(&ctx, ctx.params().to.as_ref()).await
}

/// The rows come first: what the record is to say is what they say then.
async fn pointer_back(ctx: Ctx) -> Result<(), StepError> {
    as_before(ctx.clone()).await?;
    let mut conn = ctx.services().db.acquire().await?;
    let now = pointers::of_guest(&mut conn, ctx.params().guest).await?;
    drop(conn);
    say(&ctx, now.as_ref()).await
}

/// Has the reverse record say a name, or has none of ours, and keeps what came of it.
async fn say(ctx: &Ctx, to: Option<&PointedName>) -> Result<(), StepError> {
    let address = ctx.params().address;
    match to {
        Some(to) => say_name(ctx, address, to, Unsaid::Kept).await,
        None => erase_if_free(ctx, address).await,
    }
}

/// What becomes of the wish where a reverse record can't say a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsaid {
    /// The name says why, and it can be tried again.
    Kept,
    /// The address points to no name any more.
    Dropped,
}

async fn say_name<P: JobParams>(
    ctx: &StepContext<Services, P>,
    address: Ipv4Addr,
    to: &PointedName,
    unsaid: Unsaid,
) -> Result<(), StepError> {
    let stands = write(ctx, address, &to.name).await?;
    match &stands {
        Ok(_) => ctx.log(format!("{address} points to {}", to.name)),
        Err(why) => ctx.log(format!("{address} does not point to {}: {why}", to.name)),
    }
    let mut tx = ctx.begin().await?;
    if stands.is_err() && unsaid == Unsaid::Dropped {
        pointers::forget(&mut tx, to.id).await?;
    } else {
        pointers::keep(&mut tx, to.id, stands.as_ref().copied().map_err(String::as_str)).await?;
    }
    Ok(tx.commit().await?)
}

/// A guest that is moved has its reverse record with it, there and back: that of the address that it left goes, and that of
/// the one that it has says the name. Where that can't be, it points to no name any more; back where it was, the name says
/// why.
pub(crate) async fn follow<P: JobParams>(ctx: &StepContext<Services, P>, guest: GuestId) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let Some(Followed { name, has, left, moved }) = moves::followed(&mut conn, guest).await? else { return Ok(()) };
    let now = pointers::of_guest(&mut conn, guest).await?;
    let is_taken = now.is_none() && pointers::is_of_guest(&mut conn, &has.to_string()).await?;
    drop(conn);
    erase_if_free(ctx, left).await?;
    if is_taken {
        ctx.log(format!("{has} does not point to {name}: it points to a name of another guest that has this address"));
    }
    let unsaid = if moved { Unsaid::Dropped } else { Unsaid::Kept };
    match now {
        Some(now) => say_name(ctx, has, &now, unsaid).await,
        None => Ok(()),
    }
}

/// The zone in which it stands, or why it does not. What somebody else's record says is theirs alone.
async fn write<P: JobParams>(
    ctx: &StepContext<Services, P>,
    address: Ipv4Addr,
    to: &DnsName,
) -> Result<Result<ZoneId, String>, StepError> {
    let Some(owner) = reverse(address.into()) else { return Ok(Err("it has no reverse name".to_owned())) };
    let mut conn = ctx.services().db.acquire().await?;
    let (zone, is_of_node) =
        (zones::of_name(&mut conn, &owner).await?, pointers::is_of_node(&mut conn, &address.to_string()).await?);
    drop(conn);
    let missing = || format!("no reverse zone of ours holds {owner}; an operator can make one under DNS");
    let Some((zone, held)) = zone else { return Ok(Err(missing())) };
    if is_of_node {
        return Ok(Err(format!("{address} is the address of a node as well, whose name it points to")));
    }
    ctx.still_ours().await?;
    let content = Content::Pointer(to.clone());
    let record = Record { zone: held.zone.clone(), owner: Owner::from(&owner), content, ttl_s: held.ttl_s };
    match provider(ctx.services(), &held.provider)?.dns.ensure_record(&record).await {
        Ok(()) => Ok(Ok(zone)),
        Err(DnsError::Foreign { .. }) => {
            Ok(Err(format!("{owner} has a record that Corpus did not make; it stays as it is")))
        }
        Err(DnsError::ZoneMissing(_)) => Ok(Err(missing())),
        Err(error) => Err(dns_failed(error)),
    }
}

async fn answered(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, address, to: Some(to), .. } = ctx.params() else { return Ok(()) };
    let mut conn = ctx.services().db.acquire().await?;
    let stands = pointers::of_guest(&mut conn, *guest).await?.is_some_and(|pointed| pointed.zone.is_some());
    let held = held(&mut conn, *address).await?;
    drop(conn);
    let Some((owner, held)) = held.filter(|_| stands) else { return Ok(()) };
    let authority = provider(ctx.services(), &held.provider)?.authority;
    let unanswered = |error: AuthorityError| {
        StepError::transient(error.to_string()).while_waiting_for("the authoritative server to answer").caused_by(error)
    };
    let pointed = wait_until_pointed(authority, &owner, &to.name, PROPAGATION);
    ctx.or_cancelled(async { pointed.await.map_err(unanswered) }).await
}

async fn held(conn: &mut PgConnection, address: Ipv4Addr) -> sqlx::Result<Option<(Owner, Held)>> {
    let Some(owner) = reverse(address.into()) else { return Ok(None) };
    Ok(zones::of_name(conn, &owner).await?.map(|(_, held)| (Owner::from(&owner), held)))
}

/// What points back to a name that is going does so no more. The row says so last, so that it can be repeated.
pub(super) async fn unpoint<P: JobParams>(ctx: &StepContext<Services, P>, name: DnsNameId) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let pointed = pointers::of_name(&mut conn, name).await?;
    drop(conn);
    let Some(pointed) = pointed else { return Ok(()) };
    // Also where the row does not know of a record: one may stand there since a server that died in between.
    if let Ok(address) = pointed.address.parse() {
        erase(ctx, address).await?;
    }
    let mut tx = ctx.begin().await?;
    pointers::forget(&mut tx, name).await?;
    Ok(tx.commit().await?)
}

/// The reverse name of an address has no record of ours. That of a node's own address is the node's.
async fn erase<P: JobParams>(ctx: &StepContext<Services, P>, address: Ipv4Addr) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let (held, is_of_node) =
        (held(&mut conn, address).await?, pointers::is_of_node(&mut conn, &address.to_string()).await?);
    drop(conn);
    let Some((owner, held)) = held.filter(|_| !is_of_node) else { return Ok(()) };
    ctx.still_ours().await?;
    match provider(ctx.services(), &held.provider)?.dns.remove_record(&held.zone, &owner).await {
        Ok(_) | Err(DnsError::ZoneMissing(_)) => Ok(()),
        Err(error) => Err(dns_failed(error)),
    }
}

/// The same, unless it points to the name of a guest, of another node that has this address: it is its name's by now.
async fn erase_if_free<P: JobParams>(ctx: &StepContext<Services, P>, address: Ipv4Addr) -> Result<(), StepError> {
    let is_taken = pointers::is_of_guest(&mut *ctx.services().db.acquire().await?, &address.to_string()).await?;
    if is_taken { Ok(()) } else { erase(ctx, address).await }
}
