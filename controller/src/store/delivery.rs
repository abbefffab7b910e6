//! How a project delivers: computed from its deployments of the last 13 weeks, whenever it is asked for.
//!
//! What happens in dev and what was broken on purpose does not count; nor does what never ran.

use corpus_domain::ProjectId;
use sqlx::PgConnection;

use super::{number, word};
use crate::project_views::Delivery;

/// The weeks that are looked back.
const WEEKS: usize = 13;

/// The statistics of a project.
pub async fn of_project(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Delivery> {
    let mut delivery = Delivery { live_a_week: vec![0; WEEKS], failed_a_week: vec![0; WEEKS], ..Delivery::default() };
    by_week(conn, project, &mut delivery).await?;
    let (live, failed) = (sum(&delivery.live_a_week), sum(&delivery.failed_a_week));
    delivery.failure_rate = (live + failed > 0).then(|| f64::from(failed) / f64::from(live + failed));
    delivery.lead_time_s = lead_time(conn, project).await?;
    delivery.time_to_restore_s = time_to_restore(conn, project).await?;
    durations(conn, project, &mut delivery).await?;
    Ok(delivery)
}

fn sum(weeks: &[u32]) -> u32 {
    weeks.iter().sum()
}

async fn by_week(conn: &mut PgConnection, project: ProjectId, into: &mut Delivery) -> sqlx::Result<()> {
    let rows = sqlx::query!(
        "select floor(extract(epoch from now() - ended_at) / 604800)::int as \"ago!\",
                count(*) filter (where state = 'live') as \"live!\",
                count(*) filter (where state <> 'live') as \"failed!\"
         from deployments
         where project_id = $1 and leader_id is null and environment <> 'dev' and trigger <> 'drill'
           and state in ('live', 'rolled_back', 'broken') and ended_at > now() - interval '13 weeks' and ended_at <= now()
         group by 1",
        project.0,
    )
    .fetch_all(conn)
    .await?;
    for row in rows {
        let Some(week) = WEEKS.checked_sub(1 + number::<u32>(row.ago)? as usize) else { continue };
        if let (Some(live), Some(failed)) = (into.live_a_week.get_mut(week), into.failed_a_week.get_mut(week)) {
            (*live, *failed) = (number(row.live)?, number(row.failed)?);
        }
    }
    Ok(())
}

/// From the authoring of each commit to when it was live.
async fn lead_time(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Option<u64>> {
    let seconds = sqlx::query_scalar!(
        "select percentile_cont(0.5) within group (
             order by greatest(0, extract(epoch from d.ended_at) - (c ->> 'at_ms')::float8 / 1000))::bigint as seconds
         from deployments d cross join jsonb_array_elements(d.report -> 'commits') c
         where d.project_id = $1 and d.leader_id is null and d.environment <> 'dev' and d.trigger <> 'drill' and d.state = 'live' and d.final
           and d.ended_at > now() - interval '13 weeks'",
        project.0,
    )
    .fetch_one(conn)
    .await?;
    seconds.map(number).transpose()
}

/// From the first failure after a success to the next success of the same environment.
async fn time_to_restore(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Option<u64>> {
    let seconds = sqlx::query_scalar!(
        "with counted as (
             select environment, ended_at, state = 'live' as ok,
                    lag(state) over (partition by environment order by ended_at) = 'live' as after_ok,
                    min(ended_at) filter (where state = 'live') over (
                        partition by environment order by ended_at rows between 1 following and unbounded following
                    ) as restored_at
             from deployments
             where project_id = $1 and leader_id is null and environment <> 'dev' and trigger <> 'drill'
               and state in ('live', 'rolled_back', 'broken') and ended_at > now() - interval '13 weeks'
         )
         select percentile_cont(0.5) within group (order by extract(epoch from restored_at - ended_at))::bigint as seconds
         from counted where not ok and coalesce(after_ok, true) and restored_at is not null",
        project.0,
    )
    .fetch_one(conn)
    .await?;
    seconds.map(number).transpose()
}

async fn durations(conn: &mut PgConnection, project: ProjectId, into: &mut Delivery) -> sqlx::Result<()> {
    let rows = sqlx::query!(
        "select elapsed_ms as \"elapsed_ms!\", state from deployments
         where project_id = $1 and leader_id is null and environment <> 'dev' and trigger <> 'drill' and elapsed_ms is not null
           and state in ('live', 'rolled_back', 'broken') and ended_at > now() - interval '13 weeks'
         order by ended_at desc",
        project.0,
    )
    .fetch_all(conn)
    .await?;
    let mut all: Vec<u64> = rows.iter().map(|row| number(row.elapsed_ms)).collect::<sqlx::Result<_>>()?;
    for row in rows.iter().take(30).rev() {
        into.durations.push((number(row.elapsed_ms)?, word(&row.state)?));
    }
    all.sort_unstable();
    into.median_ms = all.get(all.len() / 2).copied();
    Ok(())
}
