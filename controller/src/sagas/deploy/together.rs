//! Several guests of one environment go live together, or none does.
//!
//! The first guest leads: it holds when it could go live. Then the others deploy the same, one
//! after the other, so that at most one of them is being changed at any time, and hold too. One
//! that can't has put everything back by itself; then the first is told to go back with that
//! reason, and so are those that hold. Otherwise the first goes live, and once it has, the others.
//!
//! What the first guest says is live is the decision, so a guest that was lost in between needs
//! no other: the job that follows it later asks what became of its leader.

use std::time::Duration;

use corpus_domain::{DeploymentId, DeploymentState, Phase};
use corpus_protocol::{Request, Source};
use sqlx::PgConnection;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::follow::follow_telling;
use super::journal::reason;
use super::{Ctx, Ending, Part, Patience, Until, course, follow, give_up, not_live, order, settle};
use crate::git::Repository;
use crate::jobs::{StepError, StepErrorKind};
use crate::nodes::{Call, Carried, Credential, carry, connect};
use crate::sagas::guest_calls::{On, SHORT, ask, endpoint, failed, read, stands};
use crate::store::beside;
use crate::store::deployments::{self, Course, NewDeployment, Ordered};
use crate::store::environments::{self, Stands};
use crate::store::led::{self, Led};

/// How often a leader is looked at that has not decided yet.
const GLANCE: Duration = Duration::from_millis(500);
/// How long a repository may take from guest to guest.
const CARRYING: Duration = Duration::from_mins(30);
/// How often a guest is tried that does not answer, each time for a while; the first one holds meanwhile.
const TRIES: u32 = 10;

/// The same deployment on the other guests, until all hold.
pub async fn others(ctx: Ctx) -> Result<(), StepError> {
    let part = ctx.params();
    let leader = course(&ctx, part.deployment).await?;
    if leader.leader.is_some() || !stands(&ctx, &part.on).await?.is_first {
        return Ok(());
    }
    let mut conn = ctx.services().db.acquire().await?;
    let others = environments::others(&mut conn, part.on.project, part.on.environment).await?;
    drop(conn);
    for other in &others {
        ctx.log(format!("{} is next", other.guest_name));
        if let Err(why) = Box::pin(one_more(&ctx, &leader, other)).await? {
            let why = format!("{}: {why}", other.guest_name);
            decide(&ctx, part, Some(why.clone())).await?;
            return Err(StepError::permanent(why));
        }
        ctx.log(format!("{} can go live", other.guest_name));
    }
    Ok(())
}

/// Deploys on another guest until it holds; the inner error is why it does not.
async fn one_more(ctx: &Ctx, leader: &Course, other: &Stands) -> Result<Result<(), String>, StepError> {
    let part = match begun(ctx, leader, other).await? {
        Ok(part) => part,
        Err(why) => return Ok(Err(why)),
    };
    match Box::pin(order(ctx, &part)).await {
        Ok(()) => {}
        Err(error) if error.kind == StepErrorKind::Permanent || ctx.attempt() >= TRIES => {
            return Ok(Err(error.to_string()));
        }
        Err(error) => return Err(error),
    }
    let Ending::Other(why) = follow_aloud(ctx, &part, other).await? else { return Ok(Ok(())) };
    let known = course(ctx, part.deployment).await?;
    // That everything is back there goes without saying: it will be so on all guests.
    let back = known.report.filter(|report| report.state == DeploymentState::RolledBack);
    Ok(Err(back.map_or(why, |report| reason(&report))))
}

/// Follows it until it holds. The first guest's journal says how it goes, and so the pusher's terminal.
async fn follow_aloud(ctx: &Ctx, part: &Part, other: &Stands) -> Result<Ending, StepError> {
    let (say, mut said) = mpsc::unbounded_channel();
    let following = async move {
        let mut tell = |note| {
            let line = format!("{}: {note}", other.guest_name);
            ctx.log(&line);
            drop(say.send(line));
        };
        follow_telling(ctx, part, Until::Held, Patience::Long, &mut tell).await
    };
    let telling = async {
        let mut lines = Vec::new();
        while said.recv_many(&mut lines, usize::MAX).await > 0 {
            if let Err(error) = note(ctx, std::mem::take(&mut lines)).await {
                // Who watches misses them, and nobody else.
                return ctx.log(error.to_string());
            }
        }
    };
    let (ending, ()) = tokio::join!(following, beside(telling));
    ending
}

/// Lines for the first guest's journal.
async fn note(ctx: &Ctx, lines: Vec<String>) -> Result<(), StepError> {
    let Part { deployment, on } = ctx.params();
    let stands = stands(ctx, on).await?;
    let call = Call::new(Request::Note { project: on.name.clone(), id: *deployment, lines }, SHORT);
    let answer = ctx.services().guests.call(&endpoint(&stands)?, call, |_| ()).await;
    answer.map(drop).map_err(|error| failed(&stands, error))
}

/// The row of the deployment on another guest: that which this job made before, or a new one.
async fn begun(ctx: &Ctx, leader: &Course, other: &Stands) -> Result<Result<Part, String>, StepError> {
    let leads = ctx.params().deployment;
    let on = On::from(other);
    let mut tx = ctx.begin().await?;
    let known = led::of(&mut tx, leads).await?;
    if let Some(led) = known.into_iter().find(|led| led.guest == other.guest && led.job == leader.job) {
        return Ok(Ok(Part { deployment: led.id, on }));
    }
    let Some(ordered) = as_of(&mut tx, leader, other).await? else {
        return Ok(Err("it does not keep this archive".to_owned()));
    };
    let deployment = DeploymentId(Uuid::now_v7());
    let new = NewDeployment {
        id: deployment,
        on: other,
        trigger: leader.trigger,
        ordered: Some(&ordered),
        by_id: ctx.created_by(),
        by: &leader.by,
        leader: Some((leads, leader.number)),
    };
    deployments::insert(&mut tx, &new).await?;
    if let Some(job) = leader.job {
        deployments::set_job(&mut tx, deployment, job).await?;
    }
    tx.commit().await?;
    Ok(Ok(Part { deployment, on }))
}

/// What another guest is ordered to deploy; none when it does not keep the archive that comes back.
async fn as_of(conn: &mut PgConnection, leader: &Course, other: &Stands) -> sqlx::Result<Option<Ordered>> {
    let only = leader.ordered.as_ref().map(|ordered| ordered.only.clone()).unwrap_or_default();
    if let Some(Source::Archive { archive }) = leader.ordered.as_ref().map(|ordered| &ordered.source) {
        // The guest's archives are called as its own deployments are.
        let there = led::of(conn, *archive).await?;
        let kept = there.into_iter().find(|led| other.archives.iter().any(|kept| kept.id == led.id));
        return Ok(kept.map(|led| Ordered { source: Source::Archive { archive: led.id }, only }));
    }
    let report = leader.report.as_ref();
    let commit = report.and_then(|report| report.commit.clone());
    let pillar = report.and_then(|report| report.pillar.clone());
    Ok(Some(Ordered { source: Source::Release { commit, pillar }, only }))
}

/// What another guest is to deploy comes to it from the first.
pub async fn bring(ctx: &Ctx, part: &Part, ordered: &Ordered) -> Result<(), StepError> {
    let Source::Release { commit, pillar } = &ordered.source else { return Ok(()) };
    if !ordered.only.is_empty() && !ordered.only.contains(&Phase::ReleaseSync) {
        return Ok(());
    }
    let mut conn = ctx.services().db.acquire().await?;
    let first = environments::get(&mut conn, part.on.project, part.on.environment).await?;
    drop(conn);
    let first = first.ok_or_else(|| StepError::permanent("the environment is not there any more"))?;
    let other = stands(ctx, &part.on).await?;
    let key = Credential::Key(ctx.services().control_key.clone());
    let work = async {
        let from = connect(&endpoint(&first)?, &key).await.map_err(|error| failed(&first, error))?;
        let to = connect(&endpoint(&other)?, &key).await.map_err(|error| failed(&other, error))?;
        for (repository, commit) in [(Repository::Project, commit), (Repository::Pillar, pillar)] {
            let Some(commit) = commit.clone() else { continue };
            let (project, deployment) = (part.on.name.clone(), part.deployment);
            let what = Carried { project, repository, commit, deployment };
            // What a server that was lost had begun may come to its end meanwhile, and git refuses the
            // second one of two; tried again, there is nothing left to send.
            if let Err(error) = carry(&from, &to, &what).await {
                ctx.log(format!("{error}; once more"));
                carry(&from, &to, &what).await.map_err(|error| failed(&other, error))?;
            }
        }
        from.close().await;
        to.close().await;
        Ok::<_, StepError>(())
    };
    let late = |_| StepError::transient("the code did not come from guest to guest in time");
    ctx.or_cancelled(async { timeout(CARRYING, Box::pin(work)).await.map_err(late)? }).await
}

/// All go live: the first guest, and then the others. On a guest that was lost meanwhile its own
/// job does what its leader did.
pub async fn live(ctx: Ctx) -> Result<(), StepError> {
    let part = ctx.params();
    let known = course(&ctx, part.deployment).await?;
    if let Some(leader) = known.leader {
        return as_the_leader(&ctx, part, leader).await;
    }
    if let Err(why) = to_live(&ctx, part, None).await? {
        return not_live(&ctx, why).await;
    }
    let led = own(&ctx, &known).await?;
    for one in &led {
        decide(&ctx, one, None).await?;
    }
    let mut failed = Vec::new();
    for one in &led {
        let name = stands(&ctx, &one.on).await?.guest_name;
        match to_live(&ctx, one, None).await? {
            Ok(()) => read(&ctx, &one.on).await?,
            Err(why) => failed.push(format!("{name}: {why}")),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(StepError::permanent(format!("it is live on the first guest, but not on {}", failed.join("; "))))
}

/// What became of the deployment on the first guest decides.
async fn as_the_leader(ctx: &Ctx, part: &Part, leader: DeploymentId) -> Result<(), StepError> {
    let refused = loop {
        let known = course(ctx, leader).await?;
        match known.state {
            DeploymentState::Live if is_still_live(ctx, part, leader).await? => break None,
            DeploymentState::Live => break Some("another one went live on the first guest meanwhile".to_owned()),
            // One that was only given up may have gone live after all.
            state if state.is_over() && known.is_final => {
                break Some("it did not go live on the first guest".to_owned());
            }
            _ => {}
        }
        ctx.or_cancelled(async {
            sleep(ctx.paced(GLANCE)).await;
            Ok::<(), StepError>(())
        })
        .await?;
    };
    match to_live(ctx, part, refused).await? {
        Ok(()) => Ok(()),
        Err(why) => not_live(ctx, why).await,
    }
}

async fn is_still_live(ctx: &Ctx, part: &Part, leader: DeploymentId) -> Result<bool, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let first = environments::get(&mut conn, part.on.project, part.on.environment).await?;
    Ok(first.and_then(|first| first.live).is_some_and(|live| live.deployment == leader))
}

/// Decides on a deployment that holds, and follows it to its end; the inner error is why it is not live.
async fn to_live(ctx: &Ctx, part: &Part, refused: Option<String>) -> Result<Result<(), String>, StepError> {
    decide(ctx, part, refused).await?;
    Ok(match follow(ctx, part, Until::Over, Patience::Long).await? {
        Ending::Live => Ok(()),
        Ending::Other(why) => Err(why),
        Ending::Held => Err("it still holds".to_owned()),
    })
}

/// Tells a guest what was decided, unless its deployment is over.
async fn decide(ctx: &Ctx, part: &Part, refused: Option<String>) -> Result<(), StepError> {
    if course(ctx, part.deployment).await?.is_final {
        return Ok(());
    }
    let request = Request::Decide { project: part.on.name.clone(), id: part.deployment, refused };
    ask(ctx, &part.on, request, SHORT).await.map(drop)
}

/// The deployments on other guests that this job began.
async fn own(ctx: &Ctx, leader: &Course) -> Result<Vec<Part>, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let all = led::of(&mut conn, ctx.params().deployment).await?;
    let mut own = Vec::new();
    for Led { id, guest, .. } in all.into_iter().filter(|led| led.job == leader.job) {
        if let Some(stands) = environments::on_guest(&mut conn, guest).await? {
            own.push(Part { deployment: id, on: On::from(&stands) });
        }
    }
    Ok(own)
}

/// One that holds hears why; one that does not yet is ended.
async fn go_back(ctx: &Ctx, part: &Part, leader: &Course) -> Result<(), StepError> {
    let fault = leader.report.as_ref().and_then(|report| report.fault.as_ref());
    let why = fault.map_or("it did not go live on the first guest", |fault| fault.message.as_str());
    if let Err(error) = decide(ctx, part, Some(why.to_owned())).await {
        ctx.log(error.to_string());
    }
    settle(ctx, part).await
}

/// The first guest's deployment is ended, if it has not gone live already, and those on the others
/// do what it did. What became of it may not be known: then they go on holding, and the job that
/// follows each of them later decides.
pub async fn settle_others(ctx: Ctx) -> Result<(), StepError> {
    let part = ctx.params();
    if course(&ctx, part.deployment).await?.leader.is_some() {
        return Ok(());
    }
    settle(&ctx, part).await?;
    let leader = course(&ctx, part.deployment).await?;
    for other in own(&ctx, &leader).await? {
        if course(&ctx, other.deployment).await?.state.is_over() {
            continue;
        }
        match (leader.is_final, leader.state) {
            (true, DeploymentState::Live) => to_live(&ctx, &other, None).await.map(drop)?,
            (true, _) | (false, DeploymentState::Superseded) => go_back(&ctx, &other, &leader).await?,
            (false, _) => {
                let why = "it holds until it is known whether the first guest went live";
                give_up(&ctx, other.deployment, DeploymentState::Broken, why).await?;
            }
        }
    }
    Ok(())
}
