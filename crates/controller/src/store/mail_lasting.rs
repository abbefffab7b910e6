//! What lasts too long, or is near its end, and was not told yet: nodes that are away, jobs of which nothing is heard,
//! tokens, certificates, backups. To find it is to mark it as told, so that of several servers one tells it, once.

use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_domain::{DnsNameId, GuestId, JobId, NodeId, ProjectId, UserId};
use sqlx::PgConnection;

use super::jobs::ANOTHER;
use super::{number, word};
use crate::mail::{AwayLetter, BackupLetter, BackupNeed, CertificateLetter, JobLetter, TokenLetter};

/// How long a node is away, or back, before it is told: one that comes and goes is told once in a while.
const AWAY: Duration = Duration::from_mins(5);
/// How long after it was told that a node is away it is not told again.
const AWAY_AGAIN: Duration = Duration::from_mins(30);
/// How long nothing is heard of a job before it is told.
const STALLED: Duration = Duration::from_mins(30);
/// As many of each are told in one transaction.
const AT_ONCE: i64 = 100;

/// Nodes in service that do not answer for a while, or show another host key.
pub async fn away(conn: &mut PgConnection) -> sqlx::Result<Vec<AwayLetter>> {
    let rows = sqlx::query!(
        r#"update nodes n set away_told = reachability, away_told_at = now()
           where id in (
               select id from nodes
               where state in ('linked', 'initializing', 'ready', 'draining', 'failed') and (
                   reachability = 'host_key_changed' and away_told = 'unreachable'
                   or away_told is null and (away_told_at is null or away_told_at < now() - make_interval(secs => $2))
                       and (reachability = 'host_key_changed' or reachability = 'unreachable'
                           and reachability_since < now() - make_interval(secs => $1)))
               order by id limit $3 for no key update skip locked)
           returning id, address, reachability_since, reachability_reason,
               reachability = 'host_key_changed' as "is_host_key!",
               (select count(*) from guests g where g.node_id = n.id) as "guests!""#,
        AWAY.as_secs_f64(),
        AWAY_AGAIN.as_secs_f64(),
        AT_ONCE,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        Ok(AwayLetter {
            node: NodeId(row.id),
            address: word(&row.address)?,
            since: row.reachability_since,
            reason: row.reachability_reason,
            is_host_key: row.is_host_key,
            guests: number(row.guests)?,
        })
    })
    .collect()
}

/// Nodes of which it was told that they are away, and that answer for a while now.
pub async fn back(conn: &mut PgConnection) -> sqlx::Result<Vec<AwayLetter>> {
    let rows = sqlx::query!(
        r#"update nodes n set away_told = null
           where id in (
               select id from nodes where away_told is not null and reachability = 'reachable'
                   and reachability_since < now() - make_interval(secs => $1)
               order by id limit $2 for no key update skip locked)
           returning id, address, reachability_since,
               (select count(*) from guests g where g.node_id = n.id) as "guests!""#,
        AWAY.as_secs_f64(),
        AT_ONCE,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        let (node, address, since) = (NodeId(row.id), word(&row.address)?, row.reachability_since);
        Ok(AwayLetter { node, address, since, reason: None, is_host_key: false, guests: number(row.guests)? })
    })
    .collect()
}

/// A job of which nothing is heard.
#[derive(Debug)]
pub struct Stalled {
    /// What is told of it.
    pub letter: JobLetter,
    /// Its project.
    pub project: Option<ProjectId>,
    /// Who asked for it.
    pub by: Option<UserId>,
}

/// Of a job of another project no more is told than that there is one. Jobs that wait to begin for long, of whose step nothing is heard, or whose step is tried again and again.
pub async fn stalled(conn: &mut PgConnection) -> sqlx::Result<Vec<Stalled>> {
    let rows = sqlx::query!(
        r#"update jobs j set stalled_told_at = now()
           from (
               select j.id, coalesce(steps.heard, j.started_at, j.created_at) as heard
               from jobs j left join lateral (
                   select max(case
                       when s.state not in ('running', 'undoing') then coalesce(s.ended_at, s.started_at)
                       when s.attempts > 1 and j.waiting_for is not null then s.started_at
                       else coalesce(s.alive_at, s.started_at) end) as heard
                   from job_steps s where s.job_id = j.id) steps on true
               where j.state in ('waiting', 'running', 'undoing') and j.stalled_told_at is null
                   and coalesce(steps.heard, j.started_at, j.created_at) < now() - make_interval(secs => $1)
               order by j.queue_order limit $2 for no key update of j skip locked) found
           where j.id = found.id
           returning j.id, j.title, j.project_id, j.created_by, found.heard as "heard!",
               case when j.blocked_by is null or exists (
                   select 1 from jobs b where b.id = j.blocked_by and b.project_id = j.project_id)
               then j.waiting_for else $3 end as waiting_for"#,
        STALLED.as_secs_f64(),
        AT_ONCE,
        ANOTHER,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    Ok(rows
        .map(|row| Stalled {
            letter: JobLetter {
                job: JobId(row.id),
                title: row.title,
                reason: row.waiting_for.map(|what| format!("it waits for {what}")),
                stalled: Some(row.heard),
            },
            project: row.project_id.map(ProjectId),
            by: row.created_by.map(UserId),
        })
        .collect())
}

/// Tokens that end within a week, or within the last quarter of their life if that is short; those that are good for
/// a day are not told of.
pub async fn ending_tokens(conn: &mut PgConnection) -> sqlx::Result<Vec<(UserId, String, TokenLetter)>> {
    let rows = sqlx::query!(
        "update tokens set end_told_at = now()
         where id in (
             select id from tokens
             where revoked_at is null and end_told_at is null and expires_at > now()
                 and expires_at < now() + interval '7 days'
                 and expires_at < now() + (expires_at - created_at) / 4
                 and expires_at - created_at > interval '1 day 1 hour'
             order by expires_at limit $1 for no key update skip locked)
         returning id, user_id, name, grant_, expires_at, last_used_at",
        AT_ONCE,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        let ends_at: DateTime<Utc> = row.expires_at;
        let letter = TokenLetter { name: row.name, scope: word(&row.grant_)?, ends_at, used_at: row.last_used_at };
        Ok((UserId(row.user_id), row.id.to_string(), letter))
    })
    .collect()
}

/// A certificate of a project's name that needs somebody.
#[derive(Debug)]
pub struct NeedyCertificate {
    /// Whose name it is.
    pub project: ProjectId,
    /// What makes one letter of it: told once, and again shortly before the end.
    pub event: String,
    /// What is told.
    pub letter: CertificateLetter,
}

/// Certificates that are served and near their end: 40 days before it, and again 7, or a third and a tenth of a shorter
/// life. One that is renewed by itself is told of when that is late: in the last quarter of its life.
pub async fn ending_certificates(conn: &mut PgConnection) -> sqlx::Result<Vec<NeedyCertificate>> {
    let rows = sqlx::query!(
        r#"with due as (
               select c.id, case when c.not_after < now() + least(interval '7 days', (c.not_after - c.not_before) / 10)
                                 then 2 else 1 end::smallint as level
               from certificates c join dns_names n on n.certificate_id = c.id
               where n.routed and c.end_told < 2 and c.not_after > now()
                   and c.not_after < now() + least(interval '40 days',
                       (c.not_after - c.not_before) / case when c.source = 'uploaded' then 3 else 4 end)
           ), told as (
               update certificates c set end_told = due.level from due
               where c.id in (select d.id from due d join certificates h on h.id = d.id where h.end_told < d.level
                              order by d.id limit $1) and due.id = c.id
               returning c.id, c.dns_name_id, c.source, c.not_after, c.end_told
           )
           select t.id, t.end_told, t.source, t.not_after, n.id as name_id, n.name, n.wildcard, n.project_id,
               o.problem as "problem?"
           from told t join dns_names n on n.id = t.dns_name_id
           left join certificate_orders o on o.dns_name_id = n.id order by n.name"#,
        AT_ONCE,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| NeedyCertificate {
        project: ProjectId(row.project_id),
        event: format!("certificate:{}:ends:{}", row.id, row.end_told),
        letter: CertificateLetter {
            id: DnsNameId(row.name_id),
            name: written(row.name, row.wildcard),
            ends_at: Some(row.not_after),
            is_brought: row.source == "uploaded",
            problem: row.problem,
        },
    });
    Ok(rows.collect())
}

/// Names for which no certificate can be had for a day.
pub async fn failing_certificates(conn: &mut PgConnection) -> sqlx::Result<Vec<NeedyCertificate>> {
    let rows = sqlx::query!(
        r#"with told as (
               update certificate_orders set failing_told = true
               where dns_name_id in (
                   select dns_name_id from certificate_orders
                   where not failing_told and failing_since < now() - interval '1 day'
                   order by dns_name_id limit $1 for no key update skip locked)
               returning dns_name_id, failing_since, problem
           )
           select n.id, n.name, n.wildcard, n.project_id, t.failing_since as "since!", t.problem,
               c.not_after as "ends_at?", coalesce(c.source = 'uploaded', false) as "is_brought!"
           from told t join dns_names n on n.id = t.dns_name_id left join certificates c on c.id = n.certificate_id
           order by n.name"#,
        AT_ONCE,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| NeedyCertificate {
        project: ProjectId(row.project_id),
        event: format!("certificate:{}:fails:{}", row.id, row.since.timestamp()),
        letter: CertificateLetter {
            id: DnsNameId(row.id),
            name: written(row.name, row.wildcard),
            ends_at: row.ends_at,
            is_brought: row.is_brought,
            problem: row.problem,
        },
    });
    Ok(rows.collect())
}

/// Backups of a guest on which nobody should rely.
#[derive(Debug)]
pub struct NeedyBackups {
    /// Whose guest it is.
    pub project: ProjectId,
    /// What makes one letter of it.
    pub event: String,
    /// What is told.
    pub letter: BackupLetter,
}

/// Guests whose backups are taken by schedule and have something wrong that was not told. Each is looked at once an
/// hour, or as often as that many at a time allow: 12,000 an hour.
pub async fn needy_backups(conn: &mut PgConnection) -> sqlx::Result<Vec<NeedyBackups>> {
    let rows = sqlx::query!(
        r#"with due as (
               select guest_id, need_told from backup_schedules where need_look_at <= now()
               order by need_look_at limit $1 for no key update skip locked
           ), found as (
               select d.need_told, n.* from due d join backup_needs n on n.guest_id = d.guest_id
           ), looked as (
               update backup_schedules c set need_look_at = now() + interval '1 hour', need_told = f.need
               from found f where c.guest_id = f.guest_id
           )
           select guest_id as "guest_id!", project_id as "project_id!", name as "name!", taken_at as "taken_at?",
               need as "need!", dump_problem as "dump_problem?", problem as "problem?", prove_problem as "prove_problem?"
           from found where need is not null and need is distinct from need_told order by name"#,
        AT_ONCE,
    );
    let now = Utc::now().timestamp();
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let (need, problem) = match row.need.as_str() {
            "late" => (BackupNeed::Late, row.problem),
            "undumped" => (BackupNeed::Undumped, row.dump_problem),
            _ => (BackupNeed::Unproven, row.prove_problem),
        };
        Ok(NeedyBackups {
            project: ProjectId(row.project_id),
            event: format!("backups:{}:{}:{now}", row.guest_id, row.need),
            letter: BackupLetter {
                guest: GuestId(row.guest_id),
                name: word(&row.name)?,
                need,
                last_at: row.taken_at,
                problem,
            },
        })
    });
    rows.collect()
}

fn written(name: String, wildcard: bool) -> String {
    if wildcard { format!("*.{name}") } else { name }
}

/// Who looks after a project: its maintainers.
pub async fn maintainers(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Vec<UserId>> {
    let found = sqlx::query_scalar!(
        r#"select m.user_id as "id!" from member_roles m join users u on u.id = m.user_id
           where m.project_id = $1 and m.role = 'maintainer' and u.disabled_at is null and u.realm <> 'robot'"#,
        project.0,
    );
    Ok(found.fetch_all(conn).await?.into_iter().map(UserId).collect())
}
