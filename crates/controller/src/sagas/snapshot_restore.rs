//! Bringing the files of a snapshot back to its guest.

use corpus_domain::{JobKind, SnapshotId};
use corpus_protocol::Request;
use serde::{Deserialize, Serialize};

use super::files_back::{self, Guest, Source};
use crate::jobs::{Job, JobParams, NewJob, StepContext};
use crate::services::Services;
use crate::store::guests::GuestRow;
use crate::store::{Transaction, snapshots};

/// What the job is about.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Params {
    snapshot: SnapshotId,
    #[serde(flatten)]
    guest: Guest,
}

impl JobParams for Params {
    const KIND: JobKind = JobKind::SnapshotRestore;
}

impl Source for Params {
    const WHY: &'static str = "it is brought back to a snapshot";

    fn guest(&self) -> &Guest {
        &self.guest
    }

    fn request(ctx: &StepContext<Services, Self>) -> Request {
        let Self { snapshot, guest } = ctx.params();
        Request::EnsureRestored { name: guest.name.clone(), snapshot: *snapshot, job: ctx.job() }
    }

    async fn over(&self, tx: &mut Transaction) -> sqlx::Result<()> {
        snapshots::back(tx, self.snapshot).await
    }
}

/// The job for a guest as it was when it was asked for, and a snapshot that is being restored.
pub fn job(guest: &GuestRow, snapshot: SnapshotId) -> NewJob<Params> {
    let params = Params { snapshot, guest: guest.into() };
    files_back::job(format!("Bring {} back to a snapshot", guest.name), guest, params)
}

/// The steps.
pub fn steps() -> Job<Services, Params> {
    files_back::steps(Job::new())
}
