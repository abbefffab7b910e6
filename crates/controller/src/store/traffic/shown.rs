//! What visitors asked for, as it is shown: points that SQL adds up, however many minutes and nodes are behind each.

use chrono::{DateTime, TimeDelta, Utc};
use corpus_api::traffic::{TrafficCounts, TrafficError, TrafficPoint, UnreadNode};
use corpus_domain::{DnsName, Environment, NodeId, ProjectId, TrafficSpan};
use corpus_protocol::Latency;
use sqlx::PgConnection;

use super::super::{number, word};
use super::readings::KEPT_ERRORS;

/// A node that was not read for so many seconds is told of: it is asked once a minute.
const LATE_S: f64 = 200.0;

/// From when to when a span goes: the point that is not over is the last one.
pub fn window(span: TrafficSpan, now: DateTime<Utc>) -> (DateTime<Utc>, DateTime<Utc>) {
    let step = i64::from(span.step_s());
    // The minute that runs is told of when it is over.
    let last = now.timestamp().saturating_sub(60).div_euclid(step);
    let at = |place: i64| DateTime::from_timestamp(place.saturating_mul(step), 0).unwrap_or(now);
    (at(last + 1 - i64::from(span.points())), at(last + 1))
}

/// A point of a table, before it is a number for people.
struct Row {
    place: i32,
    requests: i64,
    statuses: Vec<i64>,
    bytes_in: i64,
    bytes_out: i64,
    latency: Vec<i64>,
}

/// The statement over a table; both have the same columns.
macro_rules! summed {
    ($of:literal, $($given:expr),+) => {
        sqlx::query_as!(
            Row,
            r#"
            with counted as (
                select floor(extract(epoch from at - $3::timestamptz) / $5::int)::int as place, requests, statuses,
                    bytes_in, bytes_out, latency
                from "# + $of + r#"
                where project_id = $1 and environment = $2 and at >= $3 and at < $4
            ), latencies as (
                select l.place, array_agg(l.total order by l.bound) as latency from (
                    select c.place, u.bound, sum(u.count)::bigint as total
                    from counted c cross join unnest(c.latency) with ordinality as u (count, bound)
                    group by c.place, u.bound) l
                group by l.place
            ), points as (
                select place, sum(requests)::bigint as requests,
                    array[sum(statuses[1])::bigint, sum(statuses[2])::bigint, sum(statuses[3])::bigint,
                        sum(statuses[4])::bigint, sum(statuses[5])::bigint] as statuses,
                    sum(bytes_in)::bigint as bytes_in, sum(bytes_out)::bigint as bytes_out
                from counted group by place
            )
            select p.place as "place!", p.requests as "requests!", p.statuses as "statuses!",
                p.bytes_in as "bytes_in!", p.bytes_out as "bytes_out!", coalesce(l.latency, '{}') as "latency!"
            from points p left join latencies l on l.place = p.place
            "#
            , $($given),+
        )
    };
}

/// All points of a span that ends now, those without requests too, and what they come to together.
pub async fn points(
    conn: &mut PgConnection,
    (project, environment): (ProjectId, Environment),
    span: TrafficSpan,
    now: DateTime<Utc>,
) -> sqlx::Result<(Vec<TrafficPoint>, TrafficCounts)> {
    let ((from, to), step) = (window(span, now), i32::try_from(span.step_s()).unwrap_or(i32::MAX));
    let which = environment.as_str();
    let rows = match span {
        TrafficSpan::Hour | TrafficSpan::Day => {
            summed!("traffic_minutes", project.0, which, from, to, step).fetch_all(conn).await?
        }
        TrafficSpan::Week | TrafficSpan::Month => {
            summed!("traffic_hours", project.0, which, from, to, step).fetch_all(conn).await?
        }
    };
    let began = |place: u32| from + TimeDelta::seconds(i64::from(place) * i64::from(step));
    let empty = |place| TrafficPoint { at: began(place), counts: TrafficCounts::default() };
    let mut points: Vec<TrafficPoint> = (0..span.points()).map(empty).collect();
    let (mut totals, mut latency) = (TrafficCounts::default(), Latency::default());
    for row in rows {
        let (counts, took) = counted(&row)?;
        if let Some(point) = usize::try_from(row.place).ok().and_then(|place| points.get_mut(place)) {
            add(&mut totals, &counts);
            latency.merge(&took);
            point.counts = counts;
        }
    }
    (totals.p50_ms, totals.p95_ms) = (latency.percentile(50), latency.percentile(95));
    Ok((points, totals))
}

fn counted(row: &Row) -> sqlx::Result<(TrafficCounts, Latency)> {
    let latency = row.latency.iter().map(|count| number(*count)).collect::<sqlx::Result<Vec<u64>>>()?;
    let latency = Latency::try_from(latency).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    let status = |class: usize| number(row.statuses.get(class).copied().unwrap_or_default());
    let counts = TrafficCounts {
        requests: number(row.requests)?,
        status_1xx: status(0)?,
        status_2xx: status(1)?,
        status_3xx: status(2)?,
        status_4xx: status(3)?,
        status_5xx: status(4)?,
        bytes_in: number(row.bytes_in)?,
        bytes_out: number(row.bytes_out)?,
        p50_ms: latency.percentile(50),
        p95_ms: latency.percentile(95),
    };
    Ok((counts, latency))
}

fn add(totals: &mut TrafficCounts, more: &TrafficCounts) {
    for (sum, more) in [
        (&mut totals.requests, more.requests),
        (&mut totals.status_1xx, more.status_1xx),
        (&mut totals.status_2xx, more.status_2xx),
        (&mut totals.status_3xx, more.status_3xx),
        (&mut totals.status_4xx, more.status_4xx),
        (&mut totals.status_5xx, more.status_5xx),
        (&mut totals.bytes_in, more.bytes_in),
        (&mut totals.bytes_out, more.bytes_out),
    ] {
        *sum = sum.saturating_add(more);
    }
}

/// What failed last, the newest first.
pub async fn errors(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<Vec<TrafficError>> {
    let rows = sqlx::query!(
        "select at, name, wildcard, method, path, status, took_ms, cause from traffic_errors
         where project_id = $1 and environment = $2 order by at desc, id desc limit $3",
        project.0,
        environment.as_str(),
        i64::try_from(KEPT_ERRORS).unwrap_or_default(),
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(TrafficError {
            at: row.at,
            name: called(&word(&row.name)?, row.wildcard),
            method: row.method,
            path: row.path,
            status: number(row.status)?,
            took_ms: number(row.took_ms)?,
            cause: row.cause,
        })
    });
    rows.collect()
}

/// A name as people write it.
pub fn called(name: &DnsName, wildcard: bool) -> String {
    if wildcard { format!("*.{name}") } else { name.to_string() }
}

/// Whence the numbers of an environment come.
#[derive(Debug)]
pub struct Sources {
    /// How many names lead to its guests.
    pub names: u32,
    /// When that of its nodes was read which was read longest ago.
    pub read_at: Option<DateTime<Utc>>,
    /// Those that could not be read lately.
    pub not_read: Vec<UnreadNode>,
    /// When one of them lost some last.
    pub lost_at: Option<DateTime<Utc>>,
}

/// Whence the numbers of an environment come: the nodes that serve its names.
pub async fn sources(conn: &mut PgConnection, project: ProjectId, environment: Environment) -> sqlx::Result<Sources> {
    let rows = sqlx::query!(
        r#"select l.names as "names!", n.id, n.address, t.read_at as "read_at?", t.lost_at as "lost_at?",
               coalesce(t.read_at < now() - make_interval(secs => $3), true) as "is_late!"
           from (select node_id, count(*) as names from names_on_nodes
                 where project_id = $1 and environment = $2 group by node_id) l
           join nodes n on n.id = l.node_id left join traffic_read t on t.node_id = n.id
           order by n.address, n.id"#,
        project.0,
        environment.as_str(),
        LATE_S,
    );
    let rows = rows.fetch_all(conn).await?;
    let names: i64 = rows.iter().map(|row| row.names).sum();
    let is_whole = rows.iter().all(|row| row.read_at.is_some());
    let read_at = rows.iter().filter_map(|row| row.read_at).min().filter(|_| is_whole);
    let lost_at = rows.iter().filter_map(|row| row.lost_at).max();
    let late = rows.into_iter().filter(|row| row.is_late);
    let late =
        late.map(|row| Ok(UnreadNode { node: NodeId(row.id), address: word(&row.address)?, since: row.read_at }));
    Ok(Sources { names: number(names)?, read_at, not_read: late.collect::<sqlx::Result<_>>()?, lost_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_ends_with_the_point_that_is_not_over() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        let now = at("2026-11-25T10:07:20Z");
        assert_eq!(window(TrafficSpan::Hour, now), (at("2026-11-25T09:07:00Z"), at("2026-11-25T10:07:00Z")));
        assert_eq!(window(TrafficSpan::Day, now), (at("2026-11-24T10:15:00Z"), at("2026-11-25T10:15:00Z")));
        assert_eq!(window(TrafficSpan::Week, now), (at("2026-11-18T12:00:00Z"), at("2026-11-25T12:00:00Z")));
        assert_eq!(window(TrafficSpan::Month, now), (at("2026-10-26T12:00:00Z"), at("2026-11-25T12:00:00Z")));
    }
}
