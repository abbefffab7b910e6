//! Having a node be as operators want every one, or trying what that would change.
//!
//! States do what they do, so there is no undo, as with those of guests ([`super::guest_states`]).

use std::collections::BTreeMap;

use corpus_domain::{JobKind, NodeId, UnixUser};
use corpus_protocol::{Answer, BaselinePlan, Operator, Request, STATES_LIMIT_S, SaltBundle};
use serde::{Deserialize, Serialize};

use super::guest_calls::LAYOUT;
use super::guest_states::{STATES, told_of};
use super::node_calls::{ask, endpoint, failed};
use crate::jobs::{Job, JobParams, Lock, NewJob, Step, StepContext, StepError};
use crate::nodes::UploadName;
use crate::services::Services;
use crate::store::baselines;
use crate::store::nodes::Node;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    node: NodeId,
    test: bool,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::NodeBaseline;
}

type Ctx = StepContext<Services, Params>;

/// The job for a node that answers.
pub fn job(node: &Node, test: bool) -> NewJob<Params> {
    let what = if test { "Try" } else { "Apply" };
    NewJob::new(format!("{what} the baseline on {}", node.address), Params { node: node.id, test })
        .node(node.id)
        .locks([Lock::node_shared(node.id), Lock::exclusive("baseline", node.id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new()
        .step(Step::new("salt", "Bring Salt", salt).limit(LAYOUT * 2))
        .step(Step::new("states", "Have the node see to it", states).limit(STATES + LAYOUT))
}

async fn salt(ctx: Ctx) -> Result<SaltBundle, StepError> {
    let none = || StepError::permanent("no bundle of Salt is configured (salt_bundle)");
    let local = ctx.services().settings.salt_bundle.as_ref().ok_or_else(none)?;
    let name: UploadName =
        "salt.tar.gz".parse().map_err(|error| StepError::permanent("no upload name").caused_by(error))?;
    let endpoint = endpoint(&ctx, ctx.params().node).await?;
    let upload = ctx.services().nodes.upload(&endpoint, local, &name, |done, total| ctx.progress(done, total));
    let sent = ctx.or_cancelled(async { upload.await.map_err(|error| failed(&endpoint, error)) }).await?;
    Ok(SaltBundle { path: sent.path, sha256: sent.sha256.to_string() })
}

async fn states(ctx: Ctx) -> Result<(), StepError> {
    let Params { node, test } = *ctx.params();
    let plan = Box::new(plan(&ctx, node, ctx.output("salt")?).await?);
    let request = Request::ApplyBaseline { plan, test, limit_s: STATES_LIMIT_S };
    let Answer::States(run) = ask(&ctx, node, request, STATES + LAYOUT / 2).await? else {
        return Err(StepError::permanent("the node told something else than its states"));
    };
    let mut tx = ctx.begin().await?;
    baselines::keep(&mut tx, node, test, &run).await?;
    tx.commit().await?;
    told_of(&ctx, &run, test);
    match run.failed {
        0 => Ok(()),
        failed => Err(StepError::permanent(format!("{failed} of {} states failed", run.ran))),
    }
}

async fn plan(ctx: &Ctx, node: NodeId, salt: SaltBundle) -> Result<BaselinePlan, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let (wanted, _) = baselines::get(&mut conn).await?;
    drop(conn);
    let address = endpoint(ctx, node).await?.address.to_string();
    let baselines::Wanted { packages, operators, password_login, time_servers, root_mail, .. } = wanted;
    let operators = by_name(&operators)?;
    Ok(BaselinePlan { node, address, salt, packages, operators, password_login, time_servers, root_mail })
}

/// Accounts with all of their keys, from lines with one each.
fn by_name(lines: &[String]) -> Result<Vec<Operator>, StepError> {
    let mut operators: BTreeMap<UnixUser, Vec<String>> = BTreeMap::new();
    for line in lines {
        let (name, key) = line.split_once(' ').unwrap_or((line, ""));
        let name = name.parse().map_err(|error| StepError::permanent("no account name").caused_by(error))?;
        operators.entry(name).or_default().push(key.to_owned());
    }
    Ok(operators.into_iter().map(|(name, keys)| Operator { name, keys }).collect())
}
