//! What steps ask of the agents on guests, and what they tell them of their projects.

use std::net::IpAddr;
use std::time::Duration;

use corpus_domain::{Environment, GuestId, NodeId, ProjectId, ProjectName};
use corpus_protocol::{Answer, ProjectPlan, Request, Role, SaltBundle};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::node_calls::{self, Asked, call, failed_at, patiently};
use crate::jobs::{Lock, StepContext, StepError};
use crate::nodes::{GuestEndpoint, NodeError, UploadName};
use crate::services::Services;
use crate::store::environments::{self, Placement, ProjectReading};
use crate::store::{balance, guest_storage, guests, names};

/// How long a guest may take for what is normally done in a blink.
pub const SHORT: Duration = Duration::from_secs(30);
/// How long laying a project out may take: Salt is unpacked there.
pub const LAYOUT: Duration = Duration::from_mins(5);

/// Which environment a job is about, and where it stood when the job was submitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct On {
    /// The project.
    pub project: ProjectId,
    /// Its name.
    pub name: ProjectName,
    /// The environment.
    pub environment: Environment,
    /// The guest.
    pub guest: GuestId,
    /// The guest's node.
    pub node: NodeId,
}

impl From<&Placement> for On {
    fn from(placement: &Placement) -> Self {
        Self {
            project: placement.project,
            name: placement.name.clone(),
            environment: placement.environment,
            guest: placement.guest,
            node: placement.node,
        }
    }
}

impl On {
    /// The environment and its guest, alone.
    pub fn alone(&self) -> [Lock; 3] {
        [Lock::exclusive("environment", self.resource()), Lock::guest(self.guest), Lock::node_shared(self.node)]
    }

    /// The same with others: several deployments are followed at once, since it is the guest
    /// that puts them in order; it is neither stopped nor taken apart meanwhile.
    pub fn shared(&self) -> [Lock; 3] {
        [Lock::shared("environment", self.resource()), Lock::shared("guest", self.guest), Lock::node_shared(self.node)]
    }

    fn resource(&self) -> String {
        format!("{}/{}", self.project, self.environment)
    }
}

/// The environment, if it still stands where it did.
pub async fn find_placement<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    on: &On,
) -> Result<Option<Placement>, StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let found = environments::on_guest(&mut conn, on.guest).await?;
    Ok(found.filter(|placement| (placement.project, placement.environment) == (on.project, on.environment)))
}

/// The same; its absence is a failure.
pub async fn placement<P: Send + Sync>(ctx: &StepContext<Services, P>, on: &On) -> Result<Placement, StepError> {
    find_placement(ctx, on).await?.ok_or_else(|| StepError::permanent("the environment is not on that guest any more"))
}

/// How the guest is entered.
pub fn endpoint(placement: &Placement) -> Result<GuestEndpoint, StepError> {
    placement.endpoint().ok_or_else(|| StepError::permanent("the guest has no SSH port or host key yet"))
}

/// Asks the guest for something in the name of the job; its log lines go to the job's log. A
/// guest that can't be reached is waited for; a cancel goes on to the guest.
pub async fn ask<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    on: &On,
    request: Request,
    limit: Duration,
) -> Result<Answer, StepError> {
    let Asked { awaited, answer } = ask_patiently(ctx, on, request, limit).await?;
    answer.map_err(|error| failed_at(awaited, error))
}

/// The same with the guest's own failures apart.
pub async fn ask_patiently<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    on: &On,
    request: Request,
    limit: Duration,
) -> Result<Asked, StepError> {
    let once = || async {
        let placement = placement(ctx, on).await?;
        let answer = call(ctx, &ctx.services().guests, &endpoint(&placement)?, request.clone(), limit).await;
        Ok(Asked { awaited: awaited(&placement), answer })
    };
    patiently(ctx, NodeError::is_transient, once).await
}

/// A failure at a guest as a failure of the step, with what is waited for.
pub fn failed(placement: &Placement, error: NodeError) -> StepError {
    failed_at(awaited(placement), error)
}

pub fn awaited(placement: &Placement) -> String {
    format!("guest {} to answer", placement.guest_name)
}

/// Asks a guest for something that is about itself and no project, as it is entered now.
pub async fn ask_inside<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    guest: GuestId,
    request: Request,
    limit: Duration,
) -> Result<Answer, StepError> {
    let once = || async {
        let (endpoint, awaited) = inside(ctx, guest).await?;
        let answer = call(ctx, &ctx.services().guests, &endpoint, request.clone(), limit).await;
        Ok(Asked { awaited, answer })
    };
    let Asked { awaited, answer } = patiently(ctx, NodeError::is_transient, once).await?;
    answer.map_err(|error| failed_at(awaited, error))
}

/// How a guest is entered, and what is waited for meanwhile.
async fn inside<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    guest: GuestId,
) -> Result<(GuestEndpoint, String), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let row = guests::get(&mut conn, guest).await?.ok_or_else(|| StepError::permanent("the guest's row is gone"))?;
    let host_key = guests::host_key(&mut conn, guest).await?;
    drop(conn);
    let at = node_calls::endpoint(ctx, row.node_id).await?;
    let none = || StepError::permanent("the guest has no SSH port or host key yet");
    let pinned_host_key = host_key
        .ok_or_else(none)?
        .parse()
        .map_err(|error| StepError::permanent("the guest's host key can't be read").caused_by(error))?;
    let user = "root".parse().map_err(|error| StepError::permanent("no account name").caused_by(error))?;
    let port = row.ssh_port.ok_or_else(none)?.get();
    let endpoint = GuestEndpoint { id: guest, address: at.address, port, user, pinned_host_key, gateway: at.gateway };
    Ok((endpoint, format!("guest {} to answer", row.name)))
}

/// Brings the bundle of Salt to a guest, unless it is there.
pub async fn bring_salt_inside<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    guest: GuestId,
) -> Result<SaltBundle, StepError> {
    let (endpoint, awaited) = inside(ctx, guest).await?;
    let brought = bring_salt_to(ctx, &endpoint, &awaited).await?;
    brought.ok_or_else(|| StepError::permanent("no bundle of Salt is configured (salt_bundle)"))
}

/// Brings the bundle of Salt to the guest, unless it is there; none when none is configured.
pub async fn bring_salt<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    on: &On,
) -> Result<Option<SaltBundle>, StepError> {
    if ctx.services().settings.salt_bundle.is_none() {
        ctx.log("no bundle of Salt is configured (salt_bundle): the guest runs no .salt recipes");
        return Ok(None);
    }
    let placement = placement(ctx, on).await?;
    bring_salt_to(ctx, &endpoint(&placement)?, &awaited(&placement)).await
}

/// The same to a guest that is entered so; `awaited` is what is waited for meanwhile.
pub async fn bring_salt_to<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    endpoint: &GuestEndpoint,
    awaited: &str,
) -> Result<Option<SaltBundle>, StepError> {
    let Some(local) = &ctx.services().settings.salt_bundle else { return Ok(None) };
    let name: UploadName =
        "salt.tar.gz".parse().map_err(|error| StepError::permanent("no upload name").caused_by(error))?;
    let upload = ctx.services().guests.upload(endpoint, local, &name, |done, total| ctx.progress(done, total));
    let failed = |error| failed_at(awaited.to_owned(), error);
    let uploaded = ctx.or_cancelled(async { upload.await.map_err(failed) }).await?;
    if uploaded.sent {
        ctx.log(format!("Salt was copied: {} MiB", uploaded.size >> 20));
    }
    Ok(Some(SaltBundle { path: uploaded.path, sha256: uploaded.sha256.to_string() }))
}

/// Tells the guest what its project should know, as the rows say now.
pub async fn bring_plan<P: Send + Sync>(
    ctx: &StepContext<Services, P>,
    on: &On,
    salt: Option<SaltBundle>,
) -> Result<(), StepError> {
    let placement = placement(ctx, on).await?;
    let mut conn = ctx.services().db.acquire().await?;
    let hosts = names::hosts(&mut conn, &[on.project]).await?;
    let role = role(&mut conn, &placement).await?;
    let storage_grows = match guests::get(&mut conn, on.guest).await? {
        Some(guest) => guest_storage::is_held(&mut conn, &guest).await?,
        None => false,
    };
    let balanced = balance::is_shared(&mut conn, on.guest).await?;
    drop(conn);
    let plan = ProjectPlan {
        project: placement.name,
        environment: placement.environment,
        hosts: hosts.into_iter().filter(|(guest, _)| *guest == on.guest).map(|(_, name)| name).collect(),
        proxy: Some(IpAddr::V4(placement.gateway)),
        settings: placement.settings,
        salt,
        role,
        storage_grows,
        balanced,
    };
    ask(ctx, on, Request::EnsureProject { plan: Box::new(plan) }, LAYOUT).await.map(drop)
}

/// What a guest is among those of its environment.
async fn role(conn: &mut PgConnection, placement: &Placement) -> Result<Role, StepError> {
    let (project, environment) = (placement.project, placement.environment);
    if placement.is_leader() {
        let followers = environments::followers(conn, project, environment).await?;
        return Ok(Role::Leader { followers: followers.into_iter().map(|follower| follower.guest_name).collect() });
    }
    let leader = environments::get(conn, project, environment).await?;
    let leader = leader.ok_or_else(|| StepError::permanent("the environment is not there any more"))?;
    Ok(Role::Follower { leader: leader.guest_name })
}

/// Takes over what the guest tells of its project now.
pub async fn read<P: Send + Sync>(ctx: &StepContext<Services, P>, on: &On) -> Result<(), StepError> {
    let answer = ask(ctx, on, Request::ReadProject { project: on.name.clone() }, SHORT).await?;
    let Answer::Project { mut live, mut archives, configuration, .. } = answer else {
        return Err(StepError::permanent("the guest told something else than its project"));
    };
    let mut tx = ctx.begin().await?;
    let refused = environments::own_only(&mut tx, on.guest, &mut live, &mut archives).await?;
    for line in &refused {
        ctx.log(line);
    }
    let reading = ProjectReading { live, archives, configuration: Some(configuration) };
    environments::observe(&mut tx, on.guest, &reading).await?;
    Ok(tx.commit().await?)
}
