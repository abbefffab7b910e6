//! The numbers at a glance.

use corpus_api::jobs::{JobLine, ListJobs};
use corpus_api::overview::{Counts, GetCounts, GetOverview, Overview};
use corpus_domain::JobState;
use corpus_gate::{Handle, Permit, Result};
use sqlx::PgConnection;

use crate::Controller;
use crate::store::{Seen, counts, jobs};

/// Jobs that are not over, or stuck.
const OPEN: [JobState; 4] = [JobState::Waiting, JobState::Running, JobState::Undoing, JobState::Stuck];
/// How many of them are shown.
const OPEN_SHOWN: i64 = 12;
/// How many of the latest jobs are shown.
const LATEST_SHOWN: i64 = 8;
/// How many of the guests that failed are named.
const FAILED_SHOWN: i64 = 5;

impl Handle<GetCounts> for Controller {
    async fn handle(&self, permit: Permit<GetCounts>) -> Result<Counts> {
        Ok(counts::all(&mut *permit.connection().await?, permit.who().id, permit.visible().as_deref()).await?)
    }
}

impl Handle<GetOverview> for Controller {
    async fn handle(&self, permit: Permit<GetOverview>) -> Result<Overview> {
        let visible = permit.visible();
        let mut conn = permit.connection().await?;
        let counts = counts::all(&mut conn, permit.who().id, visible.as_deref()).await?;
        let (slots, slots_free) = counts::slots(&mut conn).await?;
        let failed = match counts.guests_failed {
            0 => Vec::new(),
            _ => counts::failed(&mut conn, visible.as_deref(), FAILED_SHOWN).await?,
        };
        let open = OPEN.to_vec().try_into().unwrap_or_default();
        let open = ListJobs { state: open, ..ListJobs::default() };
        let open_jobs = of(&permit, &mut conn, &open, OPEN_SHOWN).await?;
        let latest_jobs = of(&permit, &mut conn, &ListJobs::default(), LATEST_SHOWN).await?;
        Ok(Overview { counts, slots, slots_free, failed, open_jobs, latest_jobs })
    }
}

async fn of(
    permit: &Permit<GetOverview>,
    conn: &mut PgConnection,
    asked: &ListJobs,
    limit: i64,
) -> Result<Vec<JobLine>> {
    let projects = permit.visible();
    let seen = Seen { projects: projects.as_deref(), environments: None };
    let found = jobs::list(conn, asked, seen, None, limit).await?;
    Ok(found.into_iter().map(|row| row.line_for(&permit.who())).collect())
}
