//! Certificates that names are to get: one order of a name at a time, tried again with growing pauses.

use std::time::Duration;

use corpus_domain::{CertificateSource, DnsName, DnsNameId, JobId, NodeId, ProjectId};
use sqlx::PgConnection;

use super::word;

/// What is due: the name, and where it is.
#[derive(Debug, Clone)]
pub struct Due {
    /// The name.
    pub id: DnsNameId,
    /// As it is written.
    pub name: DnsName,
    /// Whether it is all names below it.
    pub wildcard: bool,
    /// A node that serves it and answers: that of its guest where it does, else another one of its guests'.
    pub node: NodeId,
    /// Whether that is the node of its guest.
    pub is_own: bool,
    /// Whose it is.
    pub project: ProjectId,
}

/// How a directory looks whether a name is ours: `http-01`, `dns-01`; none with the internal authority.
pub type Challenge = Option<&'static str>;

/// How long a job that was submitted may take to begin before another one is.
const BEGIN_LIMIT_S: f64 = 300.0;

/// A name is to get one, by a job that the caller submits.
pub async fn want(conn: &mut PgConnection, name: DnsNameId, source: CertificateSource) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into certificate_orders (dns_name_id, source, next_try_at)
         values ($1, $2, now() + make_interval(secs => $3))
         on conflict (dns_name_id) do update set source = excluded.source, next_try_at = excluded.next_try_at,
             state = case when certificate_orders.state = 'issuing' then 'issuing' else 'wanted' end, updated_at = now()",
        name.0,
        source.as_str(),
        BEGIN_LIMIT_S,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// It is not tried before an hour is over: the project had many lately.
pub async fn postpone(conn: &mut PgConnection, name: DnsNameId) -> sqlx::Result<()> {
    sqlx::query!(
        "update certificate_orders set next_try_at = now() + interval '1 hour', updated_at = now() where dns_name_id = $1",
        name.0
    )
    .execute(conn)
    .await
    .map(drop)
}

/// How many jobs for certificates a project had in the last hour, as far as that is among its last thousand jobs. A
/// directory's limits are those of all projects.
pub async fn lately(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "count!" from (
               select kind, created_at from jobs where project_id = $1 order by queue_order desc limit 1000) last
           where kind = 'certificate_issue' and created_at > now() - interval '1 hour'"#,
        project.0,
    )
    .fetch_one(conn)
    .await
}

/// A certificate is being issued from now on, by this job. What went wrong before is told until it is over.
pub async fn begin(
    conn: &mut PgConnection,
    name: DnsNameId,
    (source, challenge): (CertificateSource, Challenge),
    job: JobId,
    key_sealed: Option<&[u8]>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into certificate_orders (dns_name_id, source, state, challenge, job_id, key_sealed)
         values ($1, $2, 'issuing', $3, $4, $5)
         on conflict (dns_name_id) do update set source = excluded.source, state = 'issuing',
             challenge = excluded.challenge, job_id = excluded.job_id, key_sealed = excluded.key_sealed,
             next_try_at = now(), updated_at = now()",
        name.0,
        source.as_str(),
        challenge,
        job.0,
        key_sealed,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The sealed key of what a job issues; none when it is not this job's any more.
pub async fn key(conn: &mut PgConnection, name: DnsNameId, job: JobId) -> sqlx::Result<Option<Vec<u8>>> {
    let key = sqlx::query_scalar!(
        "select key_sealed from certificate_orders where dns_name_id = $1 and job_id = $2",
        name.0,
        job.0
    );
    key.fetch_optional(conn).await.map(Option::flatten)
}

/// Notes what went wrong, and what can be done. It is not tried again before `wait` is over.
pub async fn note(
    conn: &mut PgConnection,
    name: DnsNameId,
    job: JobId,
    (problem, wait): (&str, Option<Duration>),
) -> sqlx::Result<()> {
    sqlx::query!(
        "update certificate_orders set problem = $3, updated_at = now(),
             next_try_at = greatest(next_try_at, now() + make_interval(secs => $4))
         where dns_name_id = $1 and job_id = $2",
        name.0,
        job.0,
        problem,
        wait.unwrap_or_default().as_secs_f64(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The job did not get it: it is tried again in 10 minutes, and each time after twice as long, up to a day.
pub async fn fail(conn: &mut PgConnection, name: DnsNameId, job: JobId) -> sqlx::Result<()> {
    sqlx::query!(
        "update certificate_orders set state = 'failed', attempts = attempts + 1, updated_at = now(), key_sealed = null,
             problem = coalesce(problem, 'it was stopped before it was done; it is tried again'),
             failing_since = coalesce(failing_since, now()),
             next_try_at = greatest(next_try_at,
                 now() + least(interval '10 minutes' * power(2, least(attempts, 10)), interval '1 day'))
         where dns_name_id = $1 and job_id = $2 and state = 'issuing'",
        name.0,
        job.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Orders whose job is over without a word, as when it was cancelled before it began, have failed.
pub async fn fail_left(conn: &mut PgConnection) -> sqlx::Result<()> {
    let left = sqlx::query!(
        r#"select o.dns_name_id, o.job_id as "job_id!" from certificate_orders o
           where o.state = 'issuing' and o.job_id is not null and not exists (
               select from jobs j where j.id = o.job_id and j.state in ('waiting', 'running', 'undoing', 'stuck'))
           order by o.dns_name_id limit 100"#
    );
    for row in left.fetch_all(&mut *conn).await? {
        fail(conn, DnsNameId(row.dns_name_id), JobId(row.job_id)).await?;
    }
    Ok(())
}

/// Nothing is ordered any more, as when names are served without certificates.
pub async fn forget(conn: &mut PgConnection, name: DnsNameId, job: JobId) -> sqlx::Result<()> {
    sqlx::query!("delete from certificate_orders where dns_name_id = $1 and job_id = $2", name.0, job.0)
        .execute(conn)
        .await
        .map(drop)
}

/// Orders that are to be tried again now, the longest due first. A node that does not answer is waited for.
pub async fn due(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<Due>> {
    let rows = sqlx::query!(
        r#"select n.id, n.name, n.wildcard, s.node_id as "node_id!", s.is_own as "is_own!", n.project_id
         from certificate_orders o join dns_names n on n.id = o.dns_name_id
         cross join lateral node_that_serves(n.id) s
         where o.state <> 'issuing' and o.next_try_at <= now() and n.state = 'attached' and n.routed
         order by o.next_try_at limit $1"#,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| of_row((row.id, row.project_id), &row.name, row.wildcard, (row.node_id, row.is_own))).collect()
}

/// Names whose certificate is to be renewed now, and is not ordered yet. What somebody brought is theirs to renew.
pub async fn to_renew(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<Due>> {
    let rows = sqlx::query!(
        r#"select n.id, n.name, n.wildcard, s.node_id as "node_id!", s.is_own as "is_own!", n.project_id
         from certificates h join dns_names n on n.certificate_id = h.id
         cross join lateral node_that_serves(n.id) s
         where h.renew_at <= now() and h.source <> 'uploaded' and n.state = 'attached' and n.routed
             and not exists (select from certificate_orders o where o.dns_name_id = n.id)
         order by h.renew_at limit $1"#,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| of_row((row.id, row.project_id), &row.name, row.wildcard, (row.node_id, row.is_own))).collect()
}

/// Names that have no certificate, and none ordered.
pub async fn without(conn: &mut PgConnection, limit: i64) -> sqlx::Result<Vec<Due>> {
    let rows = sqlx::query!(
        r#"select n.id, n.name, n.wildcard, s.node_id as "node_id!", s.is_own as "is_own!", n.project_id
         from dns_names n cross join lateral node_that_serves(n.id) s
         where n.certificate_id is null and n.state = 'attached' and n.routed
             and not exists (select from certificate_orders o where o.dns_name_id = n.id)
         order by n.id limit $1"#,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| of_row((row.id, row.project_id), &row.name, row.wildcard, (row.node_id, row.is_own))).collect()
}

fn of_row(
    (id, project): (uuid::Uuid, uuid::Uuid),
    name: &str,
    wildcard: bool,
    (node, is_own): (uuid::Uuid, bool),
) -> sqlx::Result<Due> {
    let (node, project) = (NodeId(node), ProjectId(project));
    Ok(Due { id: DnsNameId(id), name: word(name)?, wildcard, node, is_own, project })
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, TimeDelta, Utc};
    use corpus_domain::Environment;
    use sqlx::PgPool;
    use uuid::Uuid;

    use super::*;
    use crate::tests::world::World;

    const JOB: JobId = JobId(Uuid::from_u128(7));

    /// A name that is attached and has no certificate.
    async fn named(db: PgPool) -> (World, DnsNameId) {
        let world = World::new(db).await;
        let mut mia = world.member("mia", &[]).await;
        let project = world.project(&mut mia, "shop").await;
        let guest = world.guest(project, Environment::Dev).await;
        world.run("update nodes set reachability = 'reachable'").await;
        let id = DnsNameId(Uuid::now_v7());
        sqlx::query(
            "insert into dns_names (id, name, guest_id, state, routed) values ($1, 'a.example.org', $2, 'attached', true)",
        )
        .bind(id.0)
        .bind(guest.0)
        .execute(&world.db)
        .await
        .unwrap();
        (world, id)
    }

    async fn next_try(world: &World) -> TimeDelta {
        let at: DateTime<Utc> =
            sqlx::query_scalar("select next_try_at from certificate_orders").fetch_one(&world.db).await.unwrap();
        at - Utc::now()
    }

    #[sqlx::test(migrations = "../../migrations")]
    async fn pauses_grow_up_to_a_day(db: PgPool) {
        let (world, id) = named(db).await;
        let mut conn = world.db.acquire().await.unwrap();
        let mut waits = Vec::new();
        for _ in 0..10 {
            begin(&mut conn, id, (CertificateSource::Acme, Some("http-01")), JOB, None).await.unwrap();
            fail(&mut conn, id, JOB).await.unwrap();
            // Only once for one try, however often the undo runs.
            fail(&mut conn, id, JOB).await.unwrap();
            waits.push((next_try(&world).await + TimeDelta::seconds(30)).num_minutes());
        }
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]);
        assert!(due(&mut conn, 9).await.unwrap().is_empty());
    }

    #[sqlx::test(migrations = "../../migrations")]
    async fn a_directory_that_wants_to_be_left_alone_is(db: PgPool) {
        let (world, id) = named(db).await;
        let mut conn = world.db.acquire().await.unwrap();
        begin(&mut conn, id, (CertificateSource::Acme, None), JOB, Some(b"key")).await.unwrap();
        assert_eq!(key(&mut conn, id, JOB).await.unwrap().as_deref(), Some(&b"key"[..]));
        assert_eq!(key(&mut conn, id, JobId(Uuid::nil())).await.unwrap(), None, "it is another job's");
        let wait = Some(Duration::from_hours(5));
        note(&mut conn, id, JOB, ("too many certificates this week", wait)).await.unwrap();
        fail(&mut conn, id, JOB).await.unwrap();
        assert_eq!((next_try(&world).await + TimeDelta::seconds(30)).num_minutes(), 300);
        let problem: String =
            sqlx::query_scalar("select problem from certificate_orders").fetch_one(&world.db).await.unwrap();
        assert_eq!(problem, "too many certificates this week");
        assert_eq!(key(&mut conn, id, JOB).await.unwrap(), None, "its key went");
    }

    #[sqlx::test(migrations = "../../migrations")]
    async fn what_is_due(db: PgPool) {
        let (world, id) = named(db).await;
        let mut conn = world.db.acquire().await.unwrap();
        let first = async |conn: &mut PgConnection| without(conn, 9).await.unwrap().len();
        assert_eq!(first(&mut conn).await, 1);
        world.run("update nodes set reachability = 'unreachable'").await;
        assert_eq!(first(&mut conn).await, 0, "its node is waited for");
        world.run("update nodes set reachability = 'reachable'").await;
        want(&mut conn, id, CertificateSource::Acme).await.unwrap();
        assert_eq!(first(&mut conn).await, 0, "it is ordered");
        assert_eq!(due(&mut conn, 9).await.unwrap().len(), 0, "its job is about to begin");
        world.run("update certificate_orders set next_try_at = now() - interval '1 second'").await;
        assert_eq!(due(&mut conn, 9).await.unwrap().len(), 1, "it did not");
        begin(&mut conn, id, (CertificateSource::Acme, None), JOB, None).await.unwrap();
        assert_eq!(due(&mut conn, 9).await.unwrap().len(), 0, "it is being issued");
        // Its job is gone without a word.
        fail_left(&mut conn).await.unwrap();
        assert_eq!((next_try(&world).await + TimeDelta::seconds(30)).num_minutes(), 10);
        world.run("update dns_names set state = 'detaching'").await;
        world.run("update certificate_orders set next_try_at = now() - interval '1 second'").await;
        assert_eq!(due(&mut conn, 9).await.unwrap().len(), 0, "it is being detached");
    }
}
