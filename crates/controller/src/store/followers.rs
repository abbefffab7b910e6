//! Deployments on followers of their environment: each names that on the leader.

use corpus_domain::{DeploymentId, DeploymentState, GuestId, JobId};
use sqlx::PgConnection;

use super::word;

/// A deployment on a follower.
#[derive(Debug, Clone)]
pub struct FollowerDeployment {
    /// Its id.
    pub id: DeploymentId,
    /// The guest.
    pub guest: GuestId,
    /// Its state.
    pub state: DeploymentState,
    /// The job that began it.
    pub job: Option<JobId>,
}

/// The deployments on followers that belong to one on their leader, oldest first.
pub async fn deployments_of(conn: &mut PgConnection, leader: DeploymentId) -> sqlx::Result<Vec<FollowerDeployment>> {
    let rows = sqlx::query!(
        "select id, guest_id, state, job_id from deployments where leader_id = $1 order by ordered_at, id",
        leader.0,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let (id, job) = (DeploymentId(row.id), row.job_id.map(JobId));
            Ok(FollowerDeployment { id, guest: GuestId(row.guest_id), state: word(&row.state)?, job })
        })
        .collect()
}
