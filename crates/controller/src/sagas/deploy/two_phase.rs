//! A deployment on several guests is a two-phase commit: all go live, or none does.
//!
//! The leader, which is pushed to, waits when it is prepared: deployed and proven, so that it could
//! go live. Then the followers prepare the same, one after the other, so that at most one of them is
//! being changed at any time, and wait too. One that can't has put everything back by itself; then
//! the leader aborts with that reason, and so do those that are prepared. Otherwise the leader
//! commits, and once it has, the followers.
//!
//! What the leader says is live is the decision, so a guest that was lost in between needs no other:
//! the job that follows it later asks what became of its leader.

use std::time::Duration;

use corpus_domain::{CommitId, DeploymentId, DeploymentState, Phase};
use corpus_protocol::{Request, Source};
use sqlx::PgConnection;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::follow::follow_telling;
use super::journal::reason;
use super::{Ctx, Ending, Part, Patience, Until, follow, give_up, has_drilled, not_live, order, progress, settle};
use crate::jobs::{StepError, StepErrorKind};
use crate::nodes::{Call, Carried, Credential, carry, connect};
use crate::sagas::balance;
use crate::sagas::guest_calls::{On, SHORT, ask, endpoint, failed, placement, read};
use crate::store::beside;
use crate::store::deployments::{self, DeploymentProgress, NewDeployment, Ordered};
use crate::store::environments::{self, Placement};
use crate::store::followers::{self, FollowerDeployment};
use corpus_domain::Repository;

/// How often a leader is looked at that has not decided yet.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// How long a repository may take from guest to guest.
const TRANSFER_LIMIT: Duration = Duration::from_mins(30);
/// Lines that wait for the leader's journal.
const QUEUED_NOTES: usize = 100;
/// How often a guest is tried that does not answer, each time for a while; the leader waits meanwhile.
const ORDER_ATTEMPTS: u32 = 10;

/// Why a follower aborts whose leader tells no reason.
const NOT_COMMITTED: &str = "it did not go live on the leader";

/// What is decided on a deployment that is prepared.
enum Decision {
    /// It goes live.
    Commit,
    /// It puts everything back, for the reason.
    Abort(String),
}

/// The same deployment on the followers, until all are prepared.
pub async fn prepare(ctx: Ctx) -> Result<(), StepError> {
    let part = ctx.params();
    let leader = progress(&ctx, part.deployment).await?;
    if leader.leader.is_some() || has_drilled(&ctx).await? || !placement(&ctx, &part.on).await?.is_leader() {
        return Ok(());
    }
    let mut conn = ctx.services().db.acquire().await?;
    let followers = environments::followers(&mut conn, part.on.project, part.on.environment).await?;
    drop(conn);
    // It is proven, and serves while the next one is changed: never are two out at a time.
    balance::come_back_from_job(&ctx).await?;
    for follower in &followers {
        ctx.log(format!("{} is next", follower.guest_name));
        let prepared = Box::pin(prepare_one(&ctx, &leader, follower)).await?;
        // Prepared, or as it was before.
        balance::come_back_from_job(&ctx).await?;
        if let Err(why) = prepared {
            let why = format!("{}: {why}", follower.guest_name);
            decide(&ctx, part, Decision::Abort(why.clone())).await?;
            return Err(StepError::permanent(why));
        }
        ctx.log(format!("{} can go live", follower.guest_name));
    }
    Ok(())
}

/// Deploys on a follower until it is prepared; the inner error is why it is not.
async fn prepare_one(
    ctx: &Ctx,
    leader: &DeploymentProgress,
    follower: &Placement,
) -> Result<Result<(), String>, StepError> {
    let part = match begun(ctx, leader, follower).await? {
        Ok(part) => part,
        Err(why) => return Ok(Err(why)),
    };
    match Box::pin(order(ctx, &part)).await {
        Ok(()) => {}
        Err(error) if error.kind == StepErrorKind::Permanent || ctx.attempt() >= ORDER_ATTEMPTS => {
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(error),
    }
    let Ending::NotLive(why) = Box::pin(follow_aloud(ctx, &part, follower)).await? else { return Ok(Ok(())) };
    let known = progress(ctx, part.deployment).await?;
    // That everything is back there goes without saying: it will be so on all guests.
    let back = known.report.filter(|report| report.state == DeploymentState::RolledBack);
    Ok(Err(back.map_or(why, |report| reason(&report))))
}

/// Follows it until it is prepared. The leader's journal says how it goes, and so the pusher's terminal.
async fn follow_aloud(ctx: &Ctx, part: &Part, follower: &Placement) -> Result<Ending, StepError> {
    let (say, mut said) = mpsc::channel(QUEUED_NOTES);
    let following = async move {
        let mut tell = |note| {
            let line = format!("{}: {note}", follower.guest_name);
            ctx.log(&line);
            // Who watches misses what the leader is too slow to take.
            drop(say.try_send(line));
        };
        follow_telling(ctx, part, Until::Prepared, Patience::Long, &mut tell).await
    };
    let telling = async {
        let mut lines = Vec::new();
        while said.recv_many(&mut lines, QUEUED_NOTES).await > 0 {
            if let Err(error) = note(ctx, std::mem::take(&mut lines)).await {
                // Who watches misses them, and nobody else.
                return ctx.log(error.to_string());
            }
        }
    };
    let (ending, ()) = tokio::join!(following, beside(telling));
    ending
}

/// Lines for the leader's journal.
async fn note(ctx: &Ctx, lines: Vec<String>) -> Result<(), StepError> {
    let Part { deployment, on, .. } = ctx.params();
    let placement = placement(ctx, on).await?;
    let call = Call::new(Request::Note { project: on.name.clone(), id: *deployment, lines }, SHORT);
    let answer = ctx.services().guests.call(&endpoint(&placement)?, call, |_| ()).await;
    answer.map(drop).map_err(|error| failed(&placement, error))
}

/// The row of the deployment on a follower: that which this job made before, or a new one.
async fn begun(
    ctx: &Ctx,
    leader: &DeploymentProgress,
    follower: &Placement,
) -> Result<Result<Part, String>, StepError> {
    let leader_id = ctx.params().deployment;
    let on = On::from(follower);
    let mut tx = ctx.begin().await?;
    let known = followers::deployments_of(&mut tx, leader_id).await?;
    if let Some(begun) = known.into_iter().find(|one| one.guest == follower.guest && one.job == leader.job) {
        return Ok(Ok(Part::unkept(begun.id, on)));
    }
    let Some(ordered) = as_of(&mut tx, leader, follower).await? else {
        return Ok(Err("it does not keep this archive".to_owned()));
    };
    let deployment = DeploymentId(Uuid::now_v7());
    let new = NewDeployment {
        id: deployment,
        on: follower,
        trigger: leader.trigger,
        ordered: Some(&ordered),
        by_id: ctx.created_by(),
        by: &leader.by,
        leader: Some((leader_id, leader.number)),
    };
    deployments::insert(&mut tx, &new).await?;
    if let Some(job) = leader.job {
        deployments::set_job(&mut tx, deployment, job).await?;
    }
    tx.commit().await?;
    Ok(Ok(Part::unkept(deployment, on)))
}

/// What a follower is ordered to deploy; none when it does not keep the archive that comes back.
async fn as_of(
    conn: &mut PgConnection,
    leader: &DeploymentProgress,
    follower: &Placement,
) -> sqlx::Result<Option<Ordered>> {
    let only = leader.ordered.as_ref().map(|ordered| ordered.only.clone()).unwrap_or_default();
    let report = leader.report.as_ref();
    // What was pushed was ordered on the guest, which tells.
    let plain_archive = leader.ordered.as_ref().is_some_and(|ordered| ordered.plain_archive)
        || report.is_some_and(|report| report.plain_archive);
    if let Some(Source::Archive { archive }) = leader.ordered.as_ref().map(|ordered| &ordered.source) {
        // The guest's archives are called as its own deployments are.
        let there = followers::deployments_of(conn, *archive).await?;
        let kept = there.into_iter().find(|one| follower.archives.iter().any(|kept| kept.id == one.id));
        return Ok(kept.map(|one| Ordered { source: Source::Archive { archive: one.id }, only, plain_archive }));
    }
    let commit = report.and_then(|report| report.commit.clone());
    let pillar = report.and_then(|report| report.pillar.clone());
    Ok(Some(Ordered { source: Source::Release { commit, pillar }, only, plain_archive }))
}

/// What a follower is to deploy comes to it from the leader.
pub async fn bring(ctx: &Ctx, part: &Part, ordered: &Ordered) -> Result<(), StepError> {
    let Source::Release { commit, pillar } = &ordered.source else { return Ok(()) };
    if !ordered.only.is_empty() && !ordered.only.contains(&Phase::ReleaseSync) {
        return Ok(());
    }
    let mut conn = ctx.services().db.acquire().await?;
    let leader = environments::get(&mut conn, part.on.project, part.on.environment).await?;
    drop(conn);
    let leader = leader.ok_or_else(|| StepError::permanent("the environment is not there any more"))?;
    carry_all(ctx, part, &leader, [(Repository::Project, commit), (Repository::Pillar, pillar)]).await
}

/// Brings these commits of the repositories on one guest to the one of the deployment.
pub async fn carry_all(
    ctx: &Ctx,
    part: &Part,
    source: &Placement,
    commits: [(Repository, &Option<CommitId>); 2],
) -> Result<(), StepError> {
    let target = placement(ctx, &part.on).await?;
    let key = Credential::Key(ctx.services().control_key.clone());
    let work = async {
        let from = connect(&endpoint(source)?, &key).await.map_err(|error| failed(source, error))?;
        let to = connect(&endpoint(&target)?, &key).await.map_err(|error| failed(&target, error))?;
        for (repository, commit) in commits {
            let Some(commit) = commit.clone() else { continue };
            let (project, deployment) = (part.on.name.clone(), part.deployment);
            let what = Carried { source: source.name.clone(), project, repository, commit, deployment };
            // What a server that was lost had begun may come to its end meanwhile, and git refuses the
            // second one of two; tried again, there is nothing left to send.
            if let Err(error) = carry(&from, &to, &what).await {
                ctx.log(format!("{error}; once more"));
                carry(&from, &to, &what).await.map_err(|error| failed(&target, error))?;
            }
        }
        from.close().await;
        to.close().await;
        Ok::<_, StepError>(())
    };
    let late = |_| StepError::transient("the code did not come from guest to guest in time");
    ctx.or_cancelled(async { timeout(TRANSFER_LIMIT, Box::pin(work)).await.map_err(late)? }).await
}

/// All commit: the leader, and then the followers. On a follower that was lost meanwhile its own
/// job does what its leader did.
pub async fn commit(ctx: Ctx) -> Result<(), StepError> {
    let part = ctx.params();
    let known = progress(&ctx, part.deployment).await?;
    if let Some(leader) = known.leader {
        return as_the_leader(&ctx, part, leader).await;
    }
    if has_drilled(&ctx).await? {
        return Ok(());
    }
    if let Err(why) = carry_out(&ctx, part, Decision::Commit).await? {
        return not_live(&ctx, why).await;
    }
    let followers = own(&ctx, &known).await?;
    for one in &followers {
        decide(&ctx, one, Decision::Commit).await?;
    }
    let mut failed = Vec::new();
    for one in &followers {
        let name = placement(&ctx, &one.on).await?.guest_name;
        match carry_out(&ctx, one, Decision::Commit).await? {
            Ok(()) => read(&ctx, &one.on).await?,
            Err(why) => failed.push(format!("{name}: {why}")),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(StepError::permanent(format!("it is live on the leader, but not on {}", failed.join("; "))))
}

/// What became of the deployment on the leader decides.
async fn as_the_leader(ctx: &Ctx, part: &Part, leader: DeploymentId) -> Result<(), StepError> {
    let decision = loop {
        let known = progress(ctx, leader).await?;
        match known.state {
            DeploymentState::Live if is_still_live(ctx, part, leader).await? => break Decision::Commit,
            DeploymentState::Live => break Decision::Abort("another one went live on the leader meanwhile".to_owned()),
            // One that was only given up may have gone live after all.
            state if state.is_over() && known.is_final => {
                break Decision::Abort(NOT_COMMITTED.to_owned());
            }
            _ => {}
        }
        ctx.or_cancelled(async {
            sleep(ctx.paced(POLL_INTERVAL)).await;
            Ok::<(), StepError>(())
        })
        .await?;
    };
    match carry_out(ctx, part, decision).await? {
        Ok(()) => Ok(()),
        Err(why) => not_live(ctx, why).await,
    }
}

async fn is_still_live(ctx: &Ctx, part: &Part, leader: DeploymentId) -> Result<bool, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let on_leader = environments::get(&mut conn, part.on.project, part.on.environment).await?;
    Ok(on_leader.and_then(|on_leader| on_leader.live).is_some_and(|live| live.deployment == leader))
}

/// Decides on a deployment that is prepared, and follows it to its end; the inner error is why it is
/// not live.
async fn carry_out(ctx: &Ctx, part: &Part, decision: Decision) -> Result<Result<(), String>, StepError> {
    decide(ctx, part, decision).await?;
    Ok(match follow(ctx, part, Until::Over, Patience::Long).await? {
        Ending::Live => Ok(()),
        Ending::NotLive(why) => Err(why),
        Ending::Prepared => Err("it still waits for the decision".to_owned()),
    })
}

/// Tells a guest what was decided, unless its deployment is over.
async fn decide(ctx: &Ctx, part: &Part, decision: Decision) -> Result<(), StepError> {
    if progress(ctx, part.deployment).await?.is_final {
        return Ok(());
    }
    let (project, id) = (part.on.name.clone(), part.deployment);
    let request = match decision {
        Decision::Commit => Request::CommitDeployment { project, id },
        Decision::Abort(reason) => Request::AbortDeployment { project, id, reason },
    };
    ask(ctx, &part.on, request, SHORT).await.map(drop)
}

/// The deployments on followers that this job began.
async fn own(ctx: &Ctx, leader: &DeploymentProgress) -> Result<Vec<Part>, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let all = followers::deployments_of(&mut conn, ctx.params().deployment).await?;
    let mut own = Vec::new();
    for FollowerDeployment { id, guest, .. } in all.into_iter().filter(|one| one.job == leader.job) {
        if let Some(placement) = environments::on_guest(&mut conn, guest).await? {
            own.push(Part::unkept(id, On::from(&placement)));
        }
    }
    Ok(own)
}

/// One that is prepared aborts with the reason; one that is not yet is ended.
async fn abort(ctx: &Ctx, part: &Part, leader: &DeploymentProgress) -> Result<(), StepError> {
    let fault = leader.report.as_ref().and_then(|report| report.fault.as_ref());
    let why = fault.map_or(NOT_COMMITTED, |fault| fault.message.as_str());
    if let Err(error) = decide(ctx, part, Decision::Abort(why.to_owned())).await {
        ctx.log(error.to_string());
    }
    settle(ctx, part).await
}

/// The leader's deployment is ended, if it has not gone live already, and those on the followers
/// do what it did. What became of it may not be known: then they stay prepared, and the job that
/// follows each of them later decides.
pub async fn settle_followers(ctx: Ctx) -> Result<(), StepError> {
    let part = ctx.params();
    if progress(&ctx, part.deployment).await?.leader.is_some() {
        return Ok(());
    }
    settle(&ctx, part).await?;
    let leader = progress(&ctx, part.deployment).await?;
    for follower in own(&ctx, &leader).await? {
        if progress(&ctx, follower.deployment).await?.state.is_over() {
            continue;
        }
        if leader.is_final {
            // Who is as before serves while the next one is put back, which would wait for it.
            balance::come_back_from_job(&ctx).await?;
        }
        match (leader.is_final, leader.state) {
            (true, DeploymentState::Live) => carry_out(&ctx, &follower, Decision::Commit).await.map(drop)?,
            (true, _) | (false, DeploymentState::Superseded) => abort(&ctx, &follower, &leader).await?,
            (false, _) => {
                let why = "it is prepared, and waits until it is known whether the leader went live";
                give_up(&ctx, follower.deployment, DeploymentState::Broken, why).await?;
            }
        }
    }
    Ok(())
}
