//! Leases: taking over those that ran out, renewing and giving back one's own.

use corpus_domain::{JobId, UserId};
use uuid::Uuid;

use super::claim::{Claimant, Claimed, claimed};
use super::error::JobsError;
use super::writer::Lease;

impl Claimant {
    /// Takes up to `room` jobs whose lease ran out or was given back.
    pub async fn adopt(&self, room: usize) -> Result<Vec<Claimed>, JobsError> {
        let rows = sqlx::query!(
            r#"
            update jobs set owner = $1, generation = generation + 1, lease_until = now() + make_interval(secs => $2)
            where id in (
                select id from jobs
                where state in ('running', 'undoing') and (owner is null or lease_until < now()) and kind = any($3)
                order by queue_order
                limit $4
                for update skip locked
            )
            returning id, generation, kind, params, dag, created_by, cancel_requested_at
            "#,
            self.owner,
            self.lease.as_secs_f64(),
            &self.kinds,
            i64::try_from(room).unwrap_or(i64::MAX),
        )
        .fetch_all(&mut *self.db.acquire().await?)
        .await?;
        claimed!(self, rows)
    }

    /// Renews the leases of all own jobs; returns those that are still ours and whether their
    /// cancel was asked for.
    pub async fn renew(&self, jobs: &[Lease]) -> Result<Vec<(Lease, bool)>, JobsError> {
        let ids: Vec<Uuid> = jobs.iter().map(|lease| lease.job.0).collect();
        let rows = sqlx::query!(
            r#"
            update jobs set lease_until = now() + make_interval(secs => $3)
            where owner = $1 and id = any($2)
            returning id, generation, cancel_requested_at is not null as "cancel!"
            "#,
            self.owner,
            &ids,
            self.lease.as_secs_f64(),
        )
        .fetch_all(&mut *self.db.acquire().await?)
        .await?;
        let lease = |id, generation| Lease { job: JobId(id), owner: self.owner, generation };
        Ok(rows.into_iter().map(|row| (lease(row.id, row.generation), row.cancel)).collect())
    }

    /// Gives leases back, so that another server takes the jobs at once.
    pub async fn release(&self, jobs: &[Lease]) -> Result<(), JobsError> {
        let ids: Vec<Uuid> = jobs.iter().map(|lease| lease.job.0).collect();
        sqlx::query!(
            r#"
            with released as (
                update jobs set owner = null, lease_until = null
                where owner = $1 and id = any($2) returning id
            )
            select pg_notify('corpus_jobs', 'wake')::text as notified where exists (select from released)
            "#,
            self.owner,
            &ids,
        )
        .fetch_optional(&mut *self.db.acquire().await?)
        .await?;
        Ok(())
    }
}
