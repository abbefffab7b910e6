//! How a project delivers: computed from its deployments of the last 13 weeks, whenever it is asked for, in one
//! statement. What is counted stands in the index `deployments_delivered`; medians are of the newest, so that
//! they cost the same however many there are.
//!
//! What happens in dev and what was broken on purpose does not count; nor does what never ran.

use corpus_api::projects::{Delivery, DeliveryWeek, DeploymentDuration};
use corpus_domain::ProjectId;
use sqlx::PgConnection;

use super::{number, word};

/// The weeks that are looked back.
const WEEKS: usize = 13;
/// The newest deployments that medians are of.
const SAMPLE: i64 = 1_000;
/// The newest deployments whose durations are told.
const NEWEST: i64 = 30;

/// The statistics of a project. The lead time is from the authoring of each commit to when it was live. The
/// time to restore is from the first failure after a success to the next success of the same environment; the
/// window of that one begins with the newest, so that it only grows: one that shrinks is counted anew at each
/// row. The median of an even number of deployments is the longer of the two in the middle.
pub async fn of_project(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Delivery> {
    let row = sqlx::query!(
        r#"
        with weeks as (
            select floor(date_part('epoch', now() - ended_at) / 604800)::int as ago,
                count(*) filter (where state = 'live') as live, count(*) filter (where state <> 'live') as failed
            from deployments
            where project_id = $1 and leader_id is null and environment <> 'dev' and trigger <> 'drill'
                and state in ('live', 'rolled_back', 'broken')
                and ended_at > now() - interval '13 weeks' and ended_at <= now()
            group by 1
        ), counted as materialized (
            select environment, state, final, ended_at, elapsed_ms, authored_ms from deployments
            where project_id = $1 and leader_id is null and environment <> 'dev' and trigger <> 'drill'
                and state in ('live', 'rolled_back', 'broken')
                and ended_at > now() - interval '13 weeks' and ended_at <= now()
            order by ended_at desc limit $2
        ), failures as (
            select ended_at, state = 'live' as ok,
                lag(state) over (partition by environment order by ended_at) = 'live' as after_ok,
                min(ended_at) filter (where state = 'live') over (
                    partition by environment order by ended_at desc rows between unbounded preceding and 1 preceding
                ) as restored_at
            from counted
        ), newest as (
            select ended_at, elapsed_ms, state from counted
            where elapsed_ms is not null order by ended_at desc limit $3
        )
        select array(select ago from weeks order by ago) as "ago!", array(select live from weeks order by ago) as "live!",
            array(select failed from weeks order by ago) as "failed!",
            (select percentile_cont(0.5) within group (
                    order by greatest(0, date_part('epoch', c.ended_at) - commit.at_ms::float8 / 1000))::bigint
                from counted c cross join unnest(c.authored_ms) commit (at_ms)
                where c.state = 'live' and c.final) as lead_time,
            (select percentile_cont(0.5) within group (order by date_part('epoch', restored_at - ended_at))::bigint
                from failures
                where not ok and coalesce(after_ok, true) and restored_at is not null) as time_to_restore,
            (select percentile_disc(0.5) within group (order by elapsed_ms desc) from counted) as median,
            array(select elapsed_ms from newest order by ended_at) as "elapsed!",
            array(select state from newest order by ended_at) as "states!"
        "#,
        project.0,
        SAMPLE,
        NEWEST,
    );
    let row = row.fetch_one(conn).await?;
    let mut weeks = vec![DeliveryWeek::default(); WEEKS];
    let counts = row.live.into_iter().zip(row.failed);
    for (ago, (live, failed)) in row.ago.into_iter().zip(counts) {
        let at = WEEKS.checked_sub(1 + number::<u32>(ago)? as usize);
        if let Some(week) = at.and_then(|at| weeks.get_mut(at)) {
            *week = DeliveryWeek { live: number(live)?, failed: number(failed)? };
        }
    }
    let live: u32 = weeks.iter().map(|week| week.live).sum();
    let failed: u32 = weeks.iter().map(|week| week.failed).sum();
    let newest = row.elapsed.into_iter().zip(row.states);
    let durations = newest
        .map(|(elapsed, state)| Ok(DeploymentDuration { elapsed_ms: number(elapsed)?, state: word(&state)? }))
        .collect::<sqlx::Result<_>>()?;
    Ok(Delivery {
        failure_rate: (live + failed > 0).then(|| f64::from(failed) / f64::from(live + failed)),
        weeks,
        lead_time_s: row.lead_time.map(number).transpose()?,
        time_to_restore_s: row.time_to_restore.map(number).transpose()?,
        median_ms: row.median.map(number).transpose()?,
        durations,
    })
}
