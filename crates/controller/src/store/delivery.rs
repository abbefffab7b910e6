//! How a project delivers: computed from its deployments of the last 13 weeks, whenever it is asked for.
//!
//! What happens in dev and what was broken on purpose does not count; nor does what never ran.

use corpus_api::projects::{Delivery, DeliveryWeek, DeploymentDuration};
use corpus_domain::ProjectId;
use sqlx::PgConnection;

use super::{number, word};

/// The weeks that are looked back.
const WEEKS: usize = 13;
/// The newest deployments whose durations are told.
const NEWEST: i64 = 30;

/// The statistics of a project.
pub async fn of_project(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Delivery> {
    let weeks = weeks(conn, project).await?;
    let live: u32 = weeks.iter().map(|week| week.live).sum();
    let failed: u32 = weeks.iter().map(|week| week.failed).sum();
    Ok(Delivery {
        failure_rate: (live + failed > 0).then(|| f64::from(failed) / f64::from(live + failed)),
        weeks,
        lead_time_s: lead_time(conn, project).await?,
        time_to_restore_s: time_to_restore(conn, project).await?,
        median_ms: median(conn, project).await?,
        durations: durations(conn, project).await?,
    })
}

async fn weeks(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Vec<DeliveryWeek>> {
    let rows = sqlx::query!(
        "select floor(extract(epoch from now() - ended_at) / 604800)::int as \"ago!\",
                count(*) filter (where state = 'live') as \"live!\",
                count(*) filter (where state <> 'live') as \"failed!\"
         from deployments
         where project_id = $1 and leader_id is null and environment <> 'dev' and trigger <> 'drill'
           and state in ('live', 'rolled_back', 'broken') and ended_at > now() - interval '13 weeks' and ended_at <= now()
         group by 1",
        project.0,
    );
    let mut weeks = vec![DeliveryWeek::default(); WEEKS];
    for row in rows.fetch_all(conn).await? {
        let at = WEEKS.checked_sub(1 + number::<u32>(row.ago)? as usize);
        if let Some(week) = at.and_then(|at| weeks.get_mut(at)) {
            *week = DeliveryWeek { live: number(row.live)?, failed: number(row.failed)? };
        }
    }
    Ok(weeks)
}

/// From the authoring of each commit to when it was live.
async fn lead_time(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Option<u64>> {
    let seconds = sqlx::query_scalar!(
        "select percentile_cont(0.5) within group (
             order by greatest(0, extract(epoch from d.ended_at) - c.at_ms::float8 / 1000))::bigint as seconds
         from deployments d cross join unnest(d.authored_ms) c (at_ms)
         where d.project_id = $1 and d.leader_id is null and d.environment <> 'dev' and d.trigger <> 'drill'
           and d.state in ('live', 'rolled_back', 'broken') and d.state = 'live' and d.final
           and d.ended_at > now() - interval '13 weeks'",
        project.0,
    );
    seconds.fetch_one(conn).await?.map(number).transpose()
}

/// From the first failure after a success to the next success of the same environment. The window of the next
/// success begins with the newest, so that it only grows: one that shrinks is counted anew at each row.
async fn time_to_restore(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Option<u64>> {
    let seconds = sqlx::query_scalar!(
        "with counted as (
             select environment, ended_at, state = 'live' as ok,
                    lag(state) over (partition by environment order by ended_at) = 'live' as after_ok,
                    min(ended_at) filter (where state = 'live') over (
                        partition by environment order by ended_at desc rows between unbounded preceding and 1 preceding
                    ) as restored_at
             from deployments
             where project_id = $1 and leader_id is null and environment <> 'dev' and trigger <> 'drill'
               and state in ('live', 'rolled_back', 'broken') and ended_at > now() - interval '13 weeks'
         )
         select percentile_cont(0.5) within group (order by extract(epoch from restored_at - ended_at))::bigint as seconds
         from counted where not ok and coalesce(after_ok, true) and restored_at is not null",
        project.0,
    );
    seconds.fetch_one(conn).await?.map(number).transpose()
}

/// Of an even number of deployments the longer of the two in the middle.
async fn median(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Option<u64>> {
    let millis = sqlx::query_scalar!(
        "select percentile_disc(0.5) within group (order by elapsed_ms desc) as millis from deployments
         where project_id = $1 and leader_id is null and environment <> 'dev' and trigger <> 'drill'
           and state in ('live', 'rolled_back', 'broken') and ended_at > now() - interval '13 weeks'",
        project.0,
    );
    millis.fetch_one(conn).await?.map(number).transpose()
}

async fn durations(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Vec<DeploymentDuration>> {
    let rows = sqlx::query!(
        "select elapsed_ms as \"elapsed_ms!\", state from deployments
         where project_id = $1 and leader_id is null and environment <> 'dev' and trigger <> 'drill'
           and elapsed_ms is not null
           and state in ('live', 'rolled_back', 'broken') and ended_at > now() - interval '13 weeks'
         order by ended_at desc limit $2",
        project.0,
        NEWEST,
    );
    let rows = rows.fetch_all(conn).await?;
    let newest = rows
        .into_iter()
        .rev()
        .map(|row| Ok(DeploymentDuration { elapsed_ms: number(row.elapsed_ms)?, state: word(&row.state)? }));
    newest.collect()
}
