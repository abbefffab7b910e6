//! Leases: taking over those that ran out, renewing and giving back one's own.

use std::collections::HashMap;

use corpus_domain::{JobId, ProjectId, UserId};
use uuid::Uuid;

use super::claim::{Claimant, Claimed, claimed};
use super::error::JobsError;
use super::queue::share;
use super::writer::Lease;

impl Claimant {
    /// Takes jobs whose lease ran out or was given back, as far as their projects get places here: a
    /// server that ended leaves what it ran, and a project no more than its share of the places of those that stay.
    pub async fn adopt(&self, capacity: usize) -> Result<Vec<Claimed>, JobsError> {
        let open = sqlx::query!(
            r#"
            select id, project_id, owner is null or lease_until < now() as "ownerless!"
            from jobs
            where state in ('running', 'undoing') and kind = any($1)
                and (owner = $2 or owner is null or lease_until < now())
            order by queue_order
            "#,
            &self.kinds,
            self.owner,
        )
        .fetch_all(&mut *self.db.acquire().await?)
        .await?;
        let (mut running, mut ready) = (HashMap::new(), Vec::new());
        for row in open {
            let project = row.project_id.map(ProjectId);
            if row.ownerless { ready.push((JobId(row.id), project)) } else { *running.entry(project).or_default() += 1 }
        }
        let begin: Vec<Uuid> = share(capacity, running, &ready).into_iter().map(|job| job.0).collect();
        let rows = sqlx::query!(
            r#"
            update jobs set owner = $1, generation = generation + 1, lease_until = now() + make_interval(secs => $2)
            where id in (
                select id from jobs
                where state in ('running', 'undoing') and (owner is null or lease_until < now()) and id = any($3)
                for update skip locked
            )
            returning id, generation, kind, params, dag, created_by, cancel_requested_at
            "#,
            self.owner,
            self.lease.as_secs_f64(),
            &begin,
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
