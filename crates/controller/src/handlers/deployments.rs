//! Deployments: to list and read them. [`order`] is what is deployed by hand, [`test_cases`] what tests came to.

mod order;
mod test_cases;

use std::time::Duration;

use corpus_api::deployments::log::{DeploymentLog, ReadDeploymentLog, SearchDeploymentLog};
use corpus_api::deployments::{
    Deployment, DeploymentLine, DeploymentOrder, DeploymentPage, DeploymentPart, GetDeployment, GetDeploymentByNumber,
    ListDeployments,
};
use corpus_api::principal::to_deploy;
use corpus_api::words::{After, LineLimit};
use corpus_api::{Cursor, Denied, Principal};
use corpus_domain::{DeploymentId, ProjectId};
use corpus_gate::{Handle, Permit, Result};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{after, lines, page};
use crate::Controller;
use crate::job_errors::jobs_error;
use crate::store::{Seen, deployment_log, deployments_shown};

/// The list, for its cursors.
const fn list(order: DeploymentOrder) -> &'static str {
    match order {
        DeploymentOrder::Newest => "deployments, the newest first",
        DeploymentOrder::Oldest => "deployments, the oldest first",
        DeploymentOrder::Longest => "deployments, the longest first",
    }
}
/// Log lines that are answered unless said.
const LOG_LINES: i64 = 200;

impl Handle<ListDeployments> for Controller {
    async fn handle(&self, permit: Permit<ListDeployments>) -> Result<DeploymentPage> {
        let (limit, rows) = lines(permit.limit);
        let list = list(permit.sort.unwrap_or_default());
        let beyond = after(permit.cursor.as_ref(), list)?;
        let (projects, environments) = (permit.visible(), permit.environments());
        let seen = Seen { projects: projects.as_deref(), environments: environments.as_deref() };
        let mut conn = permit.connection().await?;
        let found = deployments_shown::page(&mut conn, &permit, seen, beyond, rows).await?;
        let (found, next) = page(found, limit, |row| Cursor::after(list, row));
        let ids: Vec<Uuid> = found.into_iter().map(|row| row.id).collect();
        Ok(DeploymentPage { items: deployments_shown::lines(&mut conn, &ids).await?, next })
    }
}

impl Handle<GetDeployment> for Controller {
    async fn handle(&self, permit: Permit<GetDeployment>) -> Result<Deployment> {
        let id = permit.deployment;
        if let Some(wait) = permit.wait.filter(|wait| wait.get() > 0) {
            let job = deployments_shown::open_job(&mut *permit.connection().await?, id).await?;
            if let Some(job) = job {
                self.jobs.wait(job, Duration::from_secs(wait.get())).await.map_err(jobs_error)?;
            }
        }
        whole(&mut *permit.connection().await?, id, &permit.who(), permit.project()?).await
    }
}

impl Handle<GetDeploymentByNumber> for Controller {
    async fn handle(&self, permit: Permit<GetDeploymentByNumber>) -> Result<Deployment> {
        let number = i64::try_from(permit.number.get()).unwrap_or(i64::MAX);
        let project = permit.project()?;
        let mut conn = permit.connection().await?;
        let found = deployments_shown::by_number(&mut conn, project, number, permit.guest.as_ref()).await?;
        whole(&mut conn, found.ok_or(Denied::NotFound)?, &permit.who(), project).await
    }
}

async fn whole(conn: &mut PgConnection, id: DeploymentId, who: &Principal, project: ProjectId) -> Result<Deployment> {
    let line = deployments_shown::line(conn, id).await?.ok_or(Denied::NotFound)?;
    let leader = match line.leader {
        Some(leader) => deployments_shown::line(conn, leader).await?.map(part),
        None => None,
    };
    Ok(Deployment {
        report: deployments_shown::report(conn, id).await?,
        live: deployments_shown::live_beside(conn, id).await?,
        leader,
        followers: deployments_shown::on_followers(conn, line.leader.unwrap_or(id)).await?,
        guests: deployments_shown::ready_followers(conn, project, line.environment).await?,
        may_deploy: who.judge(to_deploy(line.environment), Some(project)).is_ok(),
        line,
    })
}

fn part(line: DeploymentLine) -> DeploymentPart {
    let DeploymentLine { id, guest_name, state, fault, elapsed_ms, .. } = line;
    DeploymentPart { deployment: id, guest: guest_name, state, fault, elapsed_ms }
}

impl Handle<ReadDeploymentLog> for Controller {
    async fn handle(&self, permit: Permit<ReadDeploymentLog>) -> Result<DeploymentLog> {
        let limit = permit.limit.map(LineLimit::get).and_then(|limit| i64::try_from(limit).ok());
        let mut conn = permit.connection().await?;
        let after = line_after(permit.after);
        let lines = deployment_log::read(&mut conn, permit.deployment, after, limit.unwrap_or(LOG_LINES)).await?;
        Ok(DeploymentLog { lines })
    }
}

impl Handle<SearchDeploymentLog> for Controller {
    async fn handle(&self, permit: Permit<SearchDeploymentLog>) -> Result<DeploymentLog> {
        let mut conn = permit.connection().await?;
        let (text, after) = (permit.text.as_str(), line_after(permit.after));
        Ok(DeploymentLog { lines: deployment_log::search(&mut conn, permit.deployment, text, after).await? })
    }
}

fn line_after(after: Option<After>) -> i64 {
    after.and_then(|after| i64::try_from(after.get()).ok()).unwrap_or_default()
}
