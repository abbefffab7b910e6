//! Submitting a job in the caller's transaction.

use corpus_domain::{GuestId, JobId, NodeId, ProjectId, UserId};
use serde::Serialize;
use sqlx::PgTransaction;
use uuid::Uuid;

use super::define::JobParams;
use super::error::JobsError;
use super::handle::Jobs;
use super::plan;
use super::queue::Lock;

/// A job to be submitted.
#[derive(Debug, Clone)]
pub struct NewJob<P> {
    title: String,
    params: P,
    locks: Vec<Lock>,
    node: Option<NodeId>,
    guest: Option<GuestId>,
    project: Option<ProjectId>,
    created_by: Option<UserId>,
    idempotency_key: Option<String>,
    closed: Option<(Lock, String)>,
}

impl<P: JobParams> NewJob<P> {
    /// A job of the kind that `params` belong to; `title` is for people: "Create guest web1".
    pub fn new(title: impl Into<String>, params: P) -> Self {
        Self {
            title: title.into(),
            params,
            locks: Vec::new(),
            node: None,
            guest: None,
            project: None,
            created_by: None,
            idempotency_key: None,
            closed: None,
        }
    }

    /// What it needs alone, and until it is over no other job is accepted that needs it too: what such a job would be told
    /// about it now is not so any more when its turn comes. The reason is told to who asks for one.
    #[must_use]
    pub fn closing(mut self, lock: Lock, reason: impl Into<String>) -> Self {
        self.locks.push(lock.clone());
        self.closed = Some((lock, reason.into()));
        self
    }

    /// What the job needs while it runs.
    #[must_use]
    pub fn locks(mut self, locks: impl IntoIterator<Item = Lock>) -> Self {
        self.locks.extend(locks);
        self
    }

    /// The node it is about, for filters; takes no lock.
    #[must_use]
    pub fn node(mut self, node: NodeId) -> Self {
        self.node = Some(node);
        self
    }

    /// The guest it is about, for filters; takes no lock.
    #[must_use]
    pub fn guest(mut self, guest: GuestId) -> Self {
        self.guest = Some(guest);
        self
    }

    /// The project whose members may see it.
    #[must_use]
    pub fn project(mut self, project: ProjectId) -> Self {
        self.project = Some(project);
        self
    }

    /// Who submits it.
    #[must_use]
    pub fn created_by(mut self, user: UserId) -> Self {
        self.created_by = Some(user);
        self
    }

    /// The key of the form that asks for it. The same key gives the same job; let it contain the user.
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }
}

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    /// A new job.
    New(JobId),
    /// The key was used before: that job. The caller should roll back what else it wrote.
    Repeated(JobId),
}

impl Submitted {
    /// The job.
    pub const fn id(self) -> JobId {
        match self {
            Self::New(id) | Self::Repeated(id) => id,
        }
    }
}

/// Jobs of a project that may wait. Nobody looks through more, and each is looked at again and again.
const WAITING: i64 = 1_000;

/// Refuses a job that needs what another one keeps others from; not where it was submitted before.
async fn none_closes(transaction: &mut PgTransaction<'_>, locks: &[Lock], key: Option<&str>) -> Result<(), JobsError> {
    let needed: Vec<String> = locks.iter().map(|lock| lock.resource.clone()).collect();
    let closed = sqlx::query_scalar!(
        r#"select closed as "closed!" from job_locks
           where resource = any($1) and closed is not null
             and not exists (select from jobs where idempotency_key = $2) limit 1"#,
        &needed,
        key,
    );
    match closed.fetch_optional(&mut **transaction).await? {
        Some(reason) => Err(JobsError::Closed(reason)),
        None => Ok(()),
    }
}

async fn room_for(transaction: &mut PgTransaction<'_>, project: ProjectId) -> Result<(), JobsError> {
    let waiting = sqlx::query_scalar!(
        r#"
        select count(*) as "count!" from (select 1 from jobs where project_id = $1 and state = 'waiting' limit $2) waiting
        "#,
        project.0,
        WAITING,
    )
    .fetch_one(&mut **transaction)
    .await?;
    if waiting < WAITING { Ok(()) } else { Err(JobsError::TooMany(WAITING)) }
}

#[derive(Serialize)]
struct NewStep<'a> {
    index: usize,
    name: &'a str,
    title: &'a str,
}

impl Jobs {
    /// Writes a job with its steps and locks; servers learn of it when the transaction commits. A
    /// project of which too many wait already is refused. A job of a project shares it, unless it
    /// asks for it alone ([`Lock::project`]): that one waits for all before it. What another job [closes](NewJob::closing)
    /// is refused.
    pub async fn submit<P: JobParams>(
        &self,
        transaction: &mut PgTransaction<'_>,
        mut new: NewJob<P>,
    ) -> Result<Submitted, JobsError> {
        let outline = self.outline(P::KIND)?;
        if let Some(project) = new.project {
            room_for(transaction, project).await?;
            new.locks.push(Lock::project_shared(project));
        }
        none_closes(transaction, &new.locks, new.idempotency_key.as_deref()).await?;
        let params = serde_json::to_value(&new.params).map_err(JobsError::Params)?;
        let dag = plan::dag(P::KIND, outline, params.clone())?;
        let step =
            |(index, step): (usize, &super::define::StepOutline)| NewStep { index, name: step.name, title: step.title };
        let steps: Vec<_> = outline.iter().enumerate().map(step).collect();
        let id = Uuid::now_v7();
        let inserted = sqlx::query_scalar!(
            r#"
            with job as (
                insert into jobs
                    (id, kind, title, params, dag, node_id, guest_id, created_by, idempotency_key, project_id)
                values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $12)
                on conflict (idempotency_key) do nothing
                returning id
            ), steps as (
                insert into job_steps (job_id, index, name, title)
                select job.id, new.index, new.name, new.title
                from job, jsonb_to_recordset($10) as new (index integer, name text, title text)
            ), locks as (
                insert into job_locks (resource, job_id, mode, closed)
                select new.resource, job.id, min(new.mode), case when new.resource = $13 then $14 end
                from job, jsonb_to_recordset($11) as new (resource text, mode text)
                group by new.resource, job.id
            )
            select pg_notify('corpus_jobs', 'wake')::text as "notified!" from job
            "#,
            id,
            P::KIND.as_str(),
            new.title,
            params,
            dag,
            new.node.map(|node| node.0),
            new.guest.map(|guest| guest.0),
            new.created_by.map(|user| user.0),
            new.idempotency_key,
            serde_json::to_value(&steps).map_err(JobsError::Params)?,
            serde_json::to_value(&new.locks).map_err(JobsError::Params)?,
            new.project.map(|project| project.0),
            new.closed.as_ref().map(|(lock, _)| lock.resource.as_str()),
            new.closed.as_ref().map(|(_, reason)| reason.as_str()),
        )
        .fetch_optional(&mut **transaction)
        .await?;
        if inserted.is_some() {
            return Ok(Submitted::New(JobId(id)));
        }
        let earlier = sqlx::query_scalar!("select id from jobs where idempotency_key = $1", new.idempotency_key)
            .fetch_one(&mut **transaction)
            .await?;
        Ok(Submitted::Repeated(JobId(earlier)))
    }
}
