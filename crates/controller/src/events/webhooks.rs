//! What webhooks are told: what became of deployments and guests. A drill is told to nobody: it fails on purpose.

use chrono::Utc;
use corpus_api::notices::News;
use corpus_domain::{DeploymentId, DeploymentState, JobId, JobKind, JobState, ProjectId, Trigger, WebhookEvent};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::short;
use crate::store::notices::{self, EndedJob, SeenBy, Telling};
use crate::store::webhook_deliveries::{self, ToldDeployment};
use crate::store::webhooks::{self, Due};
use crate::store::word;

/// A deployment was ordered or pushed.
pub async fn deployment_began(tx: &mut PgConnection, id: DeploymentId) -> sqlx::Result<()> {
    let Some(row) = webhook_deliveries::deployment(tx, id).await? else { return Ok(()) };
    tell_of(tx, id, &row, WebhookEvent::DeploymentBegan).await
}

/// A deployment is over. Repeatable.
pub async fn deployment_ended(tx: &mut PgConnection, id: DeploymentId) -> sqlx::Result<()> {
    let Some(row) = webhook_deliveries::deployment(tx, id).await? else { return Ok(()) };
    let event = match word(&row.state)? {
        DeploymentState::Live => WebhookEvent::DeploymentLive,
        DeploymentState::RolledBack => WebhookEvent::DeploymentRolledBack,
        DeploymentState::Broken => WebhookEvent::DeploymentFailed,
        // A later one came first: it never ran.
        _ => return Ok(()),
    };
    // A follower that goes live is part of what is told of its leader.
    if row.follower.is_some() && event == WebhookEvent::DeploymentLive {
        return Ok(());
    }
    tell_of(tx, id, &row, event).await
}

async fn tell_of(
    tx: &mut PgConnection,
    id: DeploymentId,
    row: &ToldDeployment,
    event: WebhookEvent,
) -> sqlx::Result<()> {
    if word::<Trigger>(&row.trigger)? == Trigger::Drill {
        return Ok(());
    }
    let query = row.follower.as_ref().map(|guest| format!("?guest={guest}")).unwrap_or_default();
    let payload = json!({
        "id": Uuid::now_v7(),
        "event": event,
        "at": Utc::now(),
        "project": row.project,
        "environment": row.environment,
        "path": format!("/projects/{}/deployments/{}{query}", row.project, row.number),
        "deployment": {
            "id": id,
            "number": row.number,
            "state": row.state,
            "trigger": row.trigger,
            "by": row.by,
            "commit": row.commit,
            "subject": row.subject,
            "fault": row.fault.as_deref().map(short),
            "follower": row.follower,
        },
    });
    webhooks::enqueue(tx, ProjectId(row.project_id), event, &format!("deployment:{id}:{event}"), &payload).await
}

/// A job is over: a guest is ready, or destroyed. Repeatable.
pub(super) async fn job_ended(tx: &mut PgConnection, id: JobId, job: &EndedJob) -> sqlx::Result<()> {
    let event = match (job.kind, job.state) {
        (Some(JobKind::GuestCreate), JobState::Done) => WebhookEvent::GuestReady,
        (Some(JobKind::GuestDestroy), JobState::Done) => WebhookEvent::GuestDestroyed,
        _ => return Ok(()),
    };
    let Some(of) = job.project else { return Ok(()) };
    let Some((guest, name, project)) = webhook_deliveries::guest_of_job(tx, id).await? else { return Ok(()) };
    let path = match event {
        WebhookEvent::GuestReady => format!("/guests/{guest}"),
        _ => format!("/jobs/{id}"),
    };
    let payload = json!({
        "id": Uuid::now_v7(), "event": event, "at": Utc::now(), "project": project, "path": path,
        "guest": { "id": guest, "name": name },
    });
    webhooks::enqueue(tx, of, event, &format!("job:{id}"), &payload).await
}

/// A webhook failed for days and was switched off: the project's maintainers are told.
pub async fn webhook_off(tx: &mut PgConnection, due: &Due, reason: Option<&str>) -> sqlx::Result<()> {
    let to = webhook_deliveries::maintainers(tx, due.project).await?;
    let news = News::WebhookOff {
        project: due.project_name.clone(),
        webhook: due.webhook,
        name: due.name.clone(),
        reason: reason.map(short),
    };
    let event = format!("webhook:{}:{}", due.webhook, due.id);
    notices::tell(tx, &to, &Telling { event, news, seen_by: SeenBy::Project(due.project) }).await
}
