//! Bringing a guest back to a backup: its files are brought to its node while it runs, and it stands still only while
//! they take the place of what it has.

use std::time::Duration;

use corpus_domain::{BackupId, JobKind, ProjectId};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::backup;
use super::files_back::{self, Guest, Source};
use super::node_calls::ask;
use crate::jobs::{Job, JobParams, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::Transaction;
use crate::store::guests::GuestRow;

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
