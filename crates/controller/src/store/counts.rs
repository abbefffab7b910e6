//! The numbers beside the navigation: each page has them, so they are one statement, over sums that the
//! database keeps (`project_tallies`, `node_promises`).

use corpus_api::overview::{Counts, FailedGuest};
use corpus_domain::{Backing, GuestId, ProjectId, Room, SizeProfile, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, room};

fn ids(projects: Option<&[ProjectId]>) -> Option<Vec<Uuid>> {
    projects.map(|projects| projects.iter().map(|project| project.0).collect())
}

/// The statement, with a condition on the projects of deployments, jobs and sums and on projects themselves. It is
/// written for each way to ask, not with a parameter that may be absent: PostgreSQL would plan that one anew each
/// time, which takes longer than counting.
macro_rules! counted {
    ($of:literal, $projects:literal, $notices:literal, $requests:literal, $($given:expr),+) => {
        sqlx::query_as!(
            Row,
            r#"
            select coalesce(t.guests, 0) as "guests!", coalesce(t.running, 0) as "running!",
                coalesce(t.failed, 0) as "failed!", coalesce(t.stopped, 0) as "stopped!",
                coalesce(t.names, 0) as "names!", coalesce(t.attached, 0) as "attached!",
                j.jobs as "jobs!", j.stuck as "stuck!",
                (select count(*) from nodes) as "nodes!",
                (select count(*) from projects where parent_id is null and "# + $projects + r#") as "projects!",
                (select count(*) from deployments
                    where ended_at is null and leader_id is null and "# + $of + r#") as "deployments!",
                (select count(*) from notices n
                    where n.user_id = $1 and n.read_at is null and "# + $notices + r#"
                        and (n.claim_id is null or exists (
                            select 1 from key_claims c where c.id = n.claim_id and c.expires_at > now()))) as "unread!",
                (select count(*) from requests where state = 'open' and "# + $requests + r#") as "requests!"
            from (
                select sum(guests) as guests, sum(running) as running, sum(failed) as failed, sum(stopped) as stopped,
                    sum(names) as names, sum(attached) as attached
                from project_tallies where "# + $of + r#"
            ) t, (
                select count(*) as jobs, count(*) filter (where state = 'stuck') as stuck
                from jobs where state in ('waiting', 'running', 'undoing', 'stuck') and "# + $of + r#"
            ) j
            "#
            , $($given),+
        )
    };
}

struct Row {
    guests: i64,
    running: i64,
    failed: i64,
    stopped: i64,
    names: i64,
    attached: i64,
    jobs: i64,
    stuck: i64,
    nodes: i64,
    projects: i64,
    deployments: i64,
    unread: i64,
    requests: i64,
}

/// What there is of what members of these projects may see, and the member's own unread notices. Jobs of nodes
/// are for who sees all.
pub async fn all(conn: &mut PgConnection, who: UserId, projects: Option<&[ProjectId]>) -> sqlx::Result<Counts> {
    let row = match ids(projects) {
        Some(projects) => {
            let own = counted!(
                "project_id = any($2)",
                "id = any($2)",
                "not n.for_ops and (n.project_id is null or n.project_id = any($2))",
                "asker_id = $1",
                who.0,
                &projects
            );
            own.fetch_one(conn).await?
        }
        None => counted!("true", "true", "true", "true", who.0).fetch_one(conn).await?,
    };
    Ok(Counts {
        guests: number(row.guests)?,
        guests_running: number(row.running)?,
        guests_failed: number(row.failed)?,
        guests_stopped: number(row.stopped)?,
        nodes: number(row.nodes)?,
        names: number(row.names)?,
        names_attached: number(row.attached)?,
        projects: number(row.projects)?,
        deployments_running: number(row.deployments)?,
        jobs: number(row.jobs)?,
        jobs_stuck: number(row.stuck)?,
        requests: number(row.requests)?,
        unread: number(row.unread)?,
    })
}

/// The slots of all nodes, and how many are free on those that are ready: a slot holds a guest of size
/// `small`, by what the node was promised and the number that it is to have at most.
pub async fn slots(conn: &mut PgConnection) -> sqlx::Result<(u32, u32)> {
    let size = SizeProfile::Small;
    let small = Room::of_guest(size.limits(), Backing::Overlayfs, size);
    let row = sqlx::query!(
        r#"
        select coalesce(sum(s.slots), 0)::bigint as "slots!",
            coalesce(sum(s.slots - s.guests) filter (where s.ready), 0)::bigint as "free!"
        from (
            select coalesce(p.guests, 0) as guests, n.state = 'ready' as ready,
                greatest(coalesce(p.guests, 0), least(n.slots, coalesce(p.guests, 0) + greatest(0, case
                    when n.memory is null or n.cpu_millis is null or n.storage is null then n.slots
                    else least(n.slots,
                    (n.memory / 100 * n.memory_overcommit + n.memory % 100 * n.memory_overcommit / 100
                        - coalesce(p.memory, 0)) / $1::bigint,
                    (n.cpu_millis * n.cpu_overcommit / 100 - coalesce(p.cpu_millis, 0)) / $2::bigint,
                    (n.storage / 100 * n.storage_overcommit + n.storage % 100 * n.storage_overcommit / 100
                        - coalesce(p.storage, 0)) / $3::bigint) end))) as slots
            from nodes n left join node_promises p on p.node_id = n.id
        ) s
        "#,
        room::amount(small.memory.0),
        room::amount(small.cpu_millis),
        room::amount(small.storage.0),
    )
    .fetch_one(conn)
    .await?;
    Ok((number(row.slots)?, number(row.free)?))
}

/// A few guests that failed, the newest failure first.
pub async fn failed(
    conn: &mut PgConnection,
    projects: Option<&[ProjectId]>,
    limit: i64,
) -> sqlx::Result<Vec<FailedGuest>> {
    let projects = ids(projects);
    let rows = sqlx::query!(
        "select id, name from guests where state = 'failed' and ($1::uuid[] is null or project_id = any($1))
         order by state_since desc, id limit $2",
        projects.as_deref(),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows.map(|row| FailedGuest { id: GuestId(row.id), name: row.name }).collect())
}

/// The advisory lock of who folds.
const FOLD_KEY: i64 = 0x636f_7270_666f_6c64;

/// Makes one row of the many that changes have added to each sum, unless another server does so now.
pub async fn fold(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select fold_tallies() where pg_try_advisory_xact_lock($1)", FOLD_KEY).execute(conn).await.map(drop)
}
