//! Deployments: to order, list and read them.

use corpus_domain::{
    DeploymentId, Environment, GuestId, GuestName, GuestState, JobId, Phase, ProjectId, ProjectName, Trigger, UserId,
};
use corpus_protocol::Source;
use serde_json::json;
use sqlx::PgTransaction;
use uuid::Uuid;

use super::environments::is_ready;
use super::jobs_error;
use super::projects::audit_project;
use crate::authz::{Denied, Operation, Principal};
use crate::jobs::{Jobs, NewJob};
use crate::project_views::{DeploymentDetail, DeploymentFilter, DeploymentSummary, LogLine, OnGuestView};
use crate::sagas::deploy;
use crate::store::deployments::{NewDeployment, Ordered, Query};
use crate::store::environments::Stands;
use crate::store::{audit, deployment_log, deployments, environments, led, projects, users};
use crate::{Controller, Error, Result};

/// Deployments on a page of the list.
pub const DEPLOYMENTS_PAGE: i64 = 50;
/// Log lines that are answered at once at most.
const LOG_PAGE: i64 = 5000;
/// The longest text that is searched for.
const LONGEST_SEARCH: usize = 200;

impl Controller {
    /// Deploys; an archive is a restore. Only these phases, all when none are given.
    pub async fn deploy(
        &self,
        principal: &Principal,
        project: ProjectId,
        environment: Environment,
        source: Source,
        only: Vec<Phase>,
    ) -> Result<(DeploymentId, JobId)> {
        let _permit = principal.permit_in(Operation::deploy_to(environment), project)?;
        if only.contains(&Phase::Rollback) {
            return Err(Error::field("only", "A rollback runs by itself when something fails; restore an archive."));
        }
        let trigger = if matches!(source, Source::Archive { .. }) { Trigger::Restore } else { Trigger::Hand };
        if trigger == Trigger::Restore && !only.is_empty() {
            return Err(Error::field("only", "An archive is restored as a whole."));
        }
        self.order(principal, (project, environment), trigger, Ordered { source, only }).await
    }

    /// Deploys what is live and breaks it on purpose, to see it rolled back; not in prod.
    pub async fn drill(
        &self,
        principal: &Principal,
        project: ProjectId,
        environment: Environment,
    ) -> Result<(DeploymentId, JobId)> {
        let _permit = principal.permit_in(Operation::Drill, project)?;
        if environment == Environment::Prod {
            return Err(Error::field("environment", "Nothing is broken on purpose in prod; drill on staging."));
        }
        let ordered = Ordered { source: Source::Head, only: Vec::new() };
        self.order(principal, (project, environment), Trigger::Drill, ordered).await
    }

    async fn order(
        &self,
        principal: &Principal,
        (project, environment): (ProjectId, Environment),
        trigger: Trigger,
        ordered: Ordered,
    ) -> Result<(DeploymentId, JobId)> {
        let mut tx = self.services.begin().await?;
        let stands = environments::get(&mut tx, project, environment).await?.ok_or_else(|| {
            Error::field("environment", format!("The project has no {environment}; set it up first."))
        })?;
        is_ready(&stands)?;
        runs(&stands)?;
        let others = environments::others(&mut tx, project, environment).await?;
        others_run(&others)?;
        if let Source::Archive { archive } = &ordered.source
            && !stands.archives.iter().any(|kept| kept.id == *archive)
        {
            return Err(Error::field("archive", "This archive is not kept any more; the list has those that are."));
        }
        let id = DeploymentId(Uuid::now_v7());
        let new = NewDeployment {
            id,
            on: &stands,
            trigger,
            ordered: Some(&ordered),
            by_id: Some(principal.id),
            by: principal.login.as_str(),
            leader: None,
        };
        let number = deployments::insert(&mut tx, &new).await?.unwrap_or_default();
        let detail = json!({ "environment": environment, "number": number, "trigger": trigger, "deployment": id,
                             "source": ordered.source, "only": ordered.only });
        audit_project(&mut tx, principal, "deployment.order", project, &stands.name, detail).await?;
        let job = self.submit(&mut tx, principal, deploy::job(id, number, &stands, &others)).await?;
        deployments::set_job(&mut tx, id, job).await?;
        tx.commit().await?;
        Ok((id, job))
    }

    /// A page of the deployments that match and that the principal may see, the newest first.
    pub async fn deployments(
        &self,
        principal: &Principal,
        filter: &DeploymentFilter,
    ) -> Result<Vec<DeploymentSummary>> {
        let _permit = principal.permit(Operation::OverviewSee)?;
        let visible = principal.visible_projects();
        let query =
            Query { projects: visible.as_deref(), filter: filter.clone(), limit: DEPLOYMENTS_PAGE, ..Query::default() };
        let mut conn = self.services.db.acquire().await?;
        Ok(deployments::list(&mut conn, &query).await?)
    }

    /// One deployment.
    pub async fn deployment(&self, principal: &Principal, id: DeploymentId) -> Result<DeploymentDetail> {
        self.detail(principal, Query { one: Some(id), limit: 1, ..Query::default() }).await
    }

    /// One deployment by its number in its project, as it went on one of the guests: the first,
    /// unless another one is named.
    pub async fn deployment_by_number(
        &self,
        principal: &Principal,
        project: &ProjectName,
        number: i64,
        guest: Option<&GuestName>,
    ) -> Result<DeploymentDetail> {
        let mut conn = self.services.db.acquire().await?;
        let id = projects::by_name(&mut conn, project).await?.ok_or(Denied::NotFound)?;
        drop(conn);
        let query = Query { projects: Some(&[id]), number: Some(number), guest, limit: 1, ..Query::default() };
        self.detail(principal, query).await
    }

    async fn detail(&self, principal: &Principal, query: Query<'_>) -> Result<DeploymentDetail> {
        let mut conn = self.services.db.acquire().await?;
        let summary = deployments::list(&mut conn, &query).await?.pop().ok_or(Denied::NotFound)?;
        let _permit = principal.permit_in(Operation::DeploymentSee, summary.project_id)?;
        let report = deployments::report(&mut conn, summary.id).await?;
        let live = led::live_beside(&mut conn, summary.id).await?;
        let others = led::on_others(&mut conn, summary.leader.unwrap_or(summary.id)).await?;
        let first = match summary.leader {
            Some(leader) => {
                let query = Query { one: Some(leader), limit: 1, ..Query::default() };
                deployments::list(&mut conn, &query).await?.pop().map(on_guest)
            }
            None => None,
        };
        let beside = environments::others(&mut conn, summary.project_id, summary.environment).await?;
        let guests = beside.into_iter().map(|stands| stands.guest_name).collect();
        Ok(DeploymentDetail { summary, report, live, first, others, guests })
    }

    /// The log of a deployment after line `after`, at most `limit` lines.
    pub async fn deployment_log(
        &self,
        principal: &Principal,
        id: DeploymentId,
        after: i64,
        limit: i64,
    ) -> Result<Vec<LogLine>> {
        self.see(principal, id).await?;
        let mut conn = self.services.db.acquire().await?;
        Ok(deployment_log::read(&mut conn, id, after, limit.clamp(0, LOG_PAGE)).await?)
    }

    /// The lines of a deployment's log that contain the text, in any case of letters; 500 at most.
    pub async fn deployment_search(&self, principal: &Principal, id: DeploymentId, text: &str) -> Result<Vec<LogLine>> {
        self.see(principal, id).await?;
        if text.is_empty() || text.len() > LONGEST_SEARCH || text.contains('\0') {
            return Err(Error::field("text", format!("Search for 1 to {LONGEST_SEARCH} characters.")));
        }
        let mut conn = self.services.db.acquire().await?;
        Ok(deployment_log::search(&mut conn, id, text).await?)
    }

    async fn see(&self, principal: &Principal, id: DeploymentId) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let query = Query { one: Some(id), limit: 1, ..Query::default() };
        let summary = deployments::list(&mut conn, &query).await?.pop().ok_or(Denied::NotFound)?;
        let _permit = principal.permit_in(Operation::DeploymentSee, summary.project_id)?;
        Ok(())
    }

    /// A deployment that began on its guest without an order of ours, by a push: its row is made
    /// if it is new, and the job that follows it. Repeatable; one whose job ended before the
    /// guest had told its end gets another job.
    pub async fn deployment_began(
        &self,
        by: Option<UserId>,
        guest: GuestId,
        id: DeploymentId,
        trigger: Trigger,
    ) -> Result<JobId> {
        let mut tx = self.services.begin().await?;
        let stands = environments::on_guest(&mut tx, guest).await?.ok_or(Denied::NotFound)?;
        let (project, environment) = (stands.project, stands.environment);
        let member = match by {
            Some(by) => users::principal(&mut tx, by).await?,
            None => None,
        };
        let login = member.as_ref().map_or("", |member| member.login.as_str());
        let new = NewDeployment { id, on: &stands, trigger, ordered: None, by_id: by, by: login, leader: None };
        if let Some(number) = deployments::insert(&mut tx, &new).await? {
            let detail = json!({ "environment": environment, "number": number, "trigger": trigger, "deployment": id });
            let entry = audit::Entry {
                action: "deployment.begin",
                subject: stands.name.as_str(),
                subject_id: Some(project.0),
                detail,
            };
            let actor = if login.is_empty() { stands.guest_name.as_str() } else { login };
            audit::write_as(&mut tx, by.map(|id| id.0), actor, entry).await?;
        }
        let job = self.follow(&mut tx, id, &stands, by).await?;
        tx.commit().await?;
        Ok(job)
    }

    /// The job that sees the deployment to its end: the one that is on it, or a new one.
    async fn follow(
        &self,
        tx: &mut PgTransaction<'_>,
        id: DeploymentId,
        stands: &Stands,
        by: Option<UserId>,
    ) -> Result<JobId> {
        let course = deployments::hold(tx, id).await?.ok_or(Denied::NotFound)?;
        if (course.project, course.guest) != (stands.project, stands.guest) {
            return Err(Denied::NotFound.into());
        }
        if let Some(job) = course.job
            && (course.is_final || !Jobs::row_on(tx, job).await.map_err(jobs_error)?.state.is_over())
        {
            return Ok(job);
        }
        let others = if stands.is_first {
            environments::others(tx, stands.project, stands.environment).await?
        } else {
            Vec::new()
        };
        let mut new: NewJob<_> = deploy::job(id, course.number, stands, &others);
        if let Some(by) = by {
            new = new.created_by(by);
        }
        let job = self.jobs.submit(tx, new).await.map_err(jobs_error)?.id();
        deployments::set_job(tx, id, job).await?;
        Ok(job)
    }
}

fn on_guest(one: DeploymentSummary) -> OnGuestView {
    let DeploymentSummary { id, guest, state, fault, elapsed_ms, .. } = one;
    OnGuestView { id, guest, state, fault, elapsed_ms }
}

/// So must its other guests: what can't go live on one of them goes live on none.
pub(super) fn others_run(others: &[Stands]) -> Result<()> {
    let Some(down) = others.iter().find(|other| other.guest_state != GuestState::Running) else { return Ok(()) };
    Err(Error::Conflict(format!(
        "{}, a guest of {}'s {}, is {}; start it, or take it from the environment.",
        down.guest_name, down.name, down.environment, down.guest_state
    )))
}

/// The guest of an environment must run for what is asked of it now.
pub(super) fn runs(stands: &Stands) -> Result<()> {
    if stands.guest_state == GuestState::Running {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "{}, the guest of {}'s {}, is {}; start it first.",
        stands.guest_name, stands.name, stands.environment, stands.guest_state
    )))
}
