//! Bringing a guest back to a backup: its files are brought to its node while it runs, and it stands still only while
//! they take the place of what it has.

use std::time::Duration;

use corpus_domain::{BackupId, JobKind, ProjectId};
use corpus_protocol::{GuestSetup, Request};
use serde::{Deserialize, Serialize};

use super::backup;
use super::files_back::{self, Guest, Source};
use super::node_calls::{SHORT, ask};
use crate::jobs::{Job, JobParams, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::guests::{self, GuestRow};
use crate::store::{Transaction, backups};

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    backup: BackupId,
    project: ProjectId,
    #[serde(flatten)]
    guest: Guest,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::BackupRestore;
}

type Ctx = StepContext<Services, Params>;

impl Source for Params {
    const WHY: &'static str = "it is brought back to a backup";

    fn guest(&self) -> &Guest {
        &self.guest
    }

    fn request(ctx: &Ctx) -> Request {
        Request::EnsureReplaced { name: ctx.params().guest.name.clone(), job: ctx.job() }
    }

    /// It may have moved since the backup was taken.
    async fn readdress(ctx: &Ctx) -> Result<(), StepError> {
        let Guest { id, name, node, .. } = ctx.params().guest.clone();
        let mut conn = ctx.services().db.acquire().await?;
        let said = backups::address(&mut conn, ctx.params().backup).await?;
        let has = guests::place(&mut conn, id).await?.map(|place| place.ip);
        drop(conn);
        let Some(readdressed) = said.zip(has).filter(|(said, has)| said != has) else { return Ok(()) };
        let setup = GuestSetup { readdressed: Some(readdressed), ..GuestSetup::default() };
        ask(ctx, node, Request::SetUpGuest { name, id: Some(id), setup: Box::new(setup) }, SHORT).await.map(drop)
    }

    async fn over(&self, _: &mut Transaction) -> sqlx::Result<()> {
        Ok(())
    }
}

/// The job for a guest as it was when it was asked for. Nobody deletes backups of its project meanwhile.
pub fn job(guest: &GuestRow, id: BackupId) -> NewJob<Params> {
    let params = Params { backup: id, project: guest.project_id, guest: guest.into() };
    files_back::job(format!("Bring {} back to a backup", guest.name), guest, params)
        .locks([backup::lock_shared(guest.project_id)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    let bring = Step::new("bring", "Bring the backup's files to its node", bring);
    files_back::steps(
        Job::new().step(bring.undo(leave).undo_retry(Retry::times(20)).retry(Retry::times(2)).limit(backup::WHOLE)),
    )
}

async fn bring(ctx: Ctx) -> Result<(), StepError> {
    let Params { backup, project, guest } = ctx.params();
    backup::bring(&ctx, (*backup, *project), (&guest.name, guest.node)).await
}

/// What was brought and not used is no more; asked when nothing of that is on the node, it does nothing.
async fn leave(ctx: Ctx) -> Result<(), StepError> {
    let Guest { name, node, .. } = ctx.params().guest.clone();
    let limit = Duration::from_mins(35);
    ask(&ctx, node, Request::EnsureSettled { name }, limit).await.map(drop)
}
