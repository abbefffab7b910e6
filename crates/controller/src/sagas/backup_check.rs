//! Looking whether the backups of a project are what was written: a place can lose bytes without telling, and whoever needs a
//! backup is the last who should find out.
//!
//! The whole of what tells where everything lies is looked at, and so much of the contents at a time that it takes minutes:
//! another part each time. A job that finds damage fails, which is told to the project and to operators as any failure is.

use corpus_backup::{BackupError, Reading};
use corpus_domain::{JobKind, ProjectId, ProjectName};
use serde::{Deserialize, Serialize};

use super::backup::{self, WHOLE, counted, in_thread, repository};
use crate::jobs::{Job, JobParams, Lock, NewJob, Retry, Step, StepContext, StepError};
use crate::services::Services;
use crate::store::backup_repositories;

/// So much of the contents is read at a time, in bytes.
const AT_ONCE: u64 = 20_000_000_000;

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    project: ProjectId,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::BackupCheck;
}

type Ctx = StepContext<Services, Params>;

/// The job for a project. What is being saved meanwhile would look damaged, so nothing is.
pub fn job(project: ProjectId, name: &ProjectName) -> NewJob<Params> {
    NewJob::new(format!("Check the backups of {name}"), Params { project })
        .project(project)
        .locks([Lock::exclusive(backup::REPOSITORY, project)])
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    Job::new().step(Step::new("check", "Read what lies there", check).retry(Retry::times(2)).limit(WHOLE))
}

async fn check(ctx: Ctx) -> Result<(), StepError> {
    let project = ctx.params().project;
    let repository = repository(&ctx, project).await?;
    let damage = in_thread(move || match repository.check(Reading::Some(AT_ONCE)) {
        Err(BackupError::Damaged { found, .. }) => Ok(Some(found)),
        // Nothing was saved yet.
        Err(BackupError::NoRepository(_)) => Ok(None),
        checked => checked.map(|()| None),
    })
    .await?;
    let size = counted(&ctx, project).await?;
    let mut tx = ctx.begin().await?;
    backup_repositories::counted(&mut tx, project, size).await?;
    backup_repositories::found(&mut tx, project, damage.as_deref()).await?;
    tx.commit().await?;
    match damage {
        None => Ok(()),
        Some(damage) => Err(StepError::permanent(format!(
            "some of it is not what was written, so some backups can't be brought back: {damage}"
        ))),
    }
}
