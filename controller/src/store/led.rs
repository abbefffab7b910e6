//! Deployments on other guests than the first of their environment: each names its leader.

use corpus_domain::{DeploymentId, DeploymentState, GuestId, JobId};
use corpus_protocol::Live;
use sqlx::PgConnection;

use super::{json, number, word};
use crate::project_views::OnGuestView;

/// A deployment on another guest than the first.
#[derive(Debug, Clone)]
pub struct Led {
    /// Its id.
    pub id: DeploymentId,
    /// The guest.
    pub guest: GuestId,
    /// Its state.
    pub state: DeploymentState,
    /// The job that began it.
    pub job: Option<JobId>,
}

/// The deployments that one leads, oldest first.
pub async fn of(conn: &mut PgConnection, leader: DeploymentId) -> sqlx::Result<Vec<Led>> {
    let rows = sqlx::query!(
        "select id, guest_id, state, job_id from deployments where leader_id = $1 order by ordered_at, id",
        leader.0,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let (id, job) = (DeploymentId(row.id), row.job_id.map(JobId));
            Ok(Led { id, guest: GuestId(row.guest_id), state: word(&row.state)?, job })
        })
        .collect()
}

/// What is live now on the guest of a deployment, with the number of the deployment that brought it.
pub async fn live_beside(conn: &mut PgConnection, id: DeploymentId) -> sqlx::Result<Option<(Live, Option<i64>)>> {
    let row = sqlx::query!(
        "select s.live, b.number as \"number?\" from deployments d join environment_places s on s.guest_id = d.guest_id
         left join deployments b on b.id::text = s.live ->> 'deployment'
         where d.id = $1",
        id.0,
    )
    .fetch_optional(conn)
    .await?;
    row.and_then(|row| Some((row.live?, row.number))).map(|(live, number)| Ok((json(live)?, number))).transpose()
}

/// How a deployment goes on the other guests of its environment, in their order; the latest of each.
pub async fn on_others(conn: &mut PgConnection, leader: DeploymentId) -> sqlx::Result<Vec<OnGuestView>> {
    let rows = sqlx::query!(
        "select l.id, l.guest, l.state, l.fault, l.elapsed_ms from (
             select distinct on (guest_id) id, guest, state, fault, elapsed_ms, ordered_at from deployments
             where leader_id = $1 order by guest_id, ordered_at desc, id desc
         ) l order by l.ordered_at, l.guest",
        leader.0,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(OnGuestView {
                id: DeploymentId(row.id),
                guest: word(&row.guest)?,
                state: word(&row.state)?,
                fault: row.fault,
                elapsed_ms: row.elapsed_ms.map(number).transpose()?,
            })
        })
        .collect()
}
