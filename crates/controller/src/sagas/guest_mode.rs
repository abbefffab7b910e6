//! Switching how a guest's configuration is managed.
//!
//! The guest itself does it, by its own agent, and the mode is so when its minion was taken by its master once. The row says
//! the new mode after that only: until then whoever applies states does it as before. Asked for with the mode that it has,
//! everything is laid anew, which mends what somebody in the guest took apart.

use std::time::{Duration, Instant};

use corpus_domain::{GuestId, GuestName, JobKind, Mode, NodeId};
use corpus_protocol::{Answer, Follows, MAX_SALT_KEY, ModePlan, Request, SaltBundle};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::guest_calls::{LAYOUT, ask_inside, bring_salt_inside};
use super::node_calls::{SHORT, endpoint};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::salt_masters::Followed;
use crate::store::{guest_states, guests, salt_masters};

/// How long a guest may take to be managed so: Salt starts, and its minion asks its master.
pub(super) const SWITCHES: Duration = Duration::from_mins(4);

/// How long a master may take to take a key: it looks twice a second.
const KNOWN: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    guest: GuestId,
    name: GuestName,
    node: NodeId,
    from: Mode,
    to: Mode,
    /// The master that it follows until now, and the key that this one knows it by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    follows: Option<(String, String)>,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::GuestMode;
}

type Ctx = StepContext<Services, Params>;

/// The job for a guest that runs.
pub fn job(guest: &GuestRow, to: Mode, follows: Option<Followed>) -> NewJob<Params> {
    let follows = follows.map(|followed| (followed.master, followed.public_key));
    let params =
        Params { guest: guest.id, name: guest.name.clone(), node: guest.node_id, from: guest.mode, to, follows };
    NewJob::new(format!("Switch guest {} to {to}", guest.name), params)
        .guest(guest.id)
        .project(guest.project_id)
        .node(guest.node_id)
        .locks([Lock::guest(guest.id), Lock::node_shared(guest.node_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("salt", "Bring Salt", salt).limit(LAYOUT * 2))
        .step(Step::new("master", "Have a master know its minion", master).limit(KNOWN * 2).undo(unknown))
        .step(
            Step::new("mode", "Manage it as asked", switch)
                .limit(SWITCHES)
                .undo(back)
                .undo_limit(SWITCHES)
                .undo_retry(Retry::times(10)),
        )
        .step(Step::new("keep", "Note its mode", keep).not_cancellable())
}

async fn salt(ctx: Ctx) -> Result<SaltBundle, StepError> {
    bring_salt_inside(&ctx, ctx.params().guest).await
}

async fn master(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, to, .. } = *ctx.params();
    if to == Mode::Mastersalt { be_known(&ctx, guest).await } else { Ok(()) }
}

/// What it followed before is what its master is to know again.
async fn unknown(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, follows, .. } = ctx.params().clone();
    let mut tx = ctx.begin().await?;
    match follows {
        Some((master, key)) => salt_masters::follow(&mut tx, guest, &master, &key).await?,
        None => salt_masters::forget(&mut tx, guest).await?,
    }
    Ok(tx.commit().await?)
}

async fn switch(ctx: Ctx) -> Result<(), StepError> {
    let to = ctx.params().to;
    manage(&ctx, ctx.params().guest, to, ctx.output("salt")?).await
}

async fn back(ctx: Ctx) -> Result<(), StepError> {
    let from = ctx.params().from;
    manage(&ctx, ctx.params().guest, from, ctx.output("salt")?).await
}

async fn keep(ctx: Ctx) -> Result<(), StepError> {
    let Params { guest, to, .. } = *ctx.params();
    let mut tx = ctx.begin().await?;
    guest_states::set_mode(&mut tx, guest, to).await?;
    if to != Mode::Mastersalt {
        salt_masters::forget(&mut tx, guest).await?;
    }
    Ok(tx.commit().await?)
}

/// A master of the controller knows the guest's minion: by a key that the guest made, and told over its own line.
pub(super) async fn be_known<P: JobParams>(ctx: &StepContext<Services, P>, guest: GuestId) -> Result<(), StepError> {
    let Answer::MinionKey { key } = ask_inside(ctx, guest, Request::EnsureMinionKey { id: guest }, SHORT).await? else {
        return Err(StepError::permanent("the guest told something else than its minion's key"));
    };
    if !is_key(&key) {
        return Err(StepError::permanent("what the guest told is no public key"));
    }
    let mut tx = ctx.begin().await?;
    let none = || StepError::transient("no Salt master of the controller is there").while_waiting_for("a Salt master");
    let master = salt_masters::pick(&mut tx).await?.ok_or_else(none)?;
    salt_masters::follow(&mut tx, guest, &master, &key).await?;
    tx.commit().await?;
    let until = Instant::now() + ctx.paced(KNOWN);
    loop {
        let followed = salt_masters::of(&mut *ctx.services().db.acquire().await?, guest).await?;
        if followed.is_some_and(|followed| followed.is_known) {
            return Ok(());
        }
        if Instant::now() >= until {
            let waits = format!("the Salt master {master} to take a key");
            return Err(StepError::transient("the Salt master did not take the guest's key").while_waiting_for(waits));
        }
        ctx.or_cancelled(async {
            sleep(LOOK_AGAIN).await;
            Ok::<(), StepError>(())
        })
        .await?;
    }
}

/// Whether this is a public key as PEM, and nothing else: a master's folder holds it as a file.
fn is_key(text: &str) -> bool {
    let body = text.trim_end().strip_prefix("-----BEGIN PUBLIC KEY-----\n");
    let body = body.and_then(|rest| rest.strip_suffix("\n-----END PUBLIC KEY-----")).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '\n');
    (100..MAX_SALT_KEY - 100).contains(&body.len()) && body.chars().all(plain)
}

/// The guest is managed so.
pub(super) async fn manage<P: JobParams>(
    ctx: &StepContext<Services, P>,
    guest: GuestId,
    mode: Mode,
    salt: SaltBundle,
) -> Result<(), StepError> {
    let plan = Box::new(plan(ctx, guest, mode, salt).await?);
    ask_inside(ctx, guest, Request::EnsureMode { plan }, SWITCHES).await.map(drop)
}

/// How a guest is managed, as it is told.
pub(super) async fn plan<P: JobParams>(
    ctx: &StepContext<Services, P>,
    guest: GuestId,
    mode: Mode,
    salt: SaltBundle,
) -> Result<ModePlan, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let row = guests::get(&mut conn, guest).await?.ok_or_else(|| StepError::permanent("the guest's row is gone"))?;
    let followed = if mode == Mode::Mastersalt { salt_masters::of(&mut conn, guest).await? } else { None };
    drop(conn);
    let lost = || StepError::permanent("its master is not there any more: switch it to mastersalt once more");
    let follows = match mode {
        Mode::Masterless => Follows::Nobody,
        Mode::Salt => Follows::Itself,
        Mode::Mastersalt => Follows::Master(followed.ok_or_else(lost)?.place),
    };
    let node = endpoint(ctx, row.node_id).await?.address.to_string();
    let (id, project, environment) = (row.id, row.project, row.environment);
    Ok(ModePlan { id, guest: row.name, salt, project, environment, node, follows })
}

#[cfg(test)]
mod tests {
    use super::is_key;

    #[test]
    fn a_key_is_a_key_and_no_other_file() {
        let key = |body: &str| format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----\n");
        assert!(is_key(&key(&"MIIBojAN+/\n".repeat(40))));
        for body in [
            String::new(),
            "A".repeat(50),
            "A".repeat(5_000),
            format!("{}\u{0}", "A".repeat(200)),
            format!("{} ../", "A".repeat(200)),
        ] {
            assert!(!is_key(&key(&body)), "{body}");
        }
        assert!(!is_key(&"A".repeat(400)));
    }
}
