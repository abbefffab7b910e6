//! What was seen of sites and names: which are to be looked at, and what came of it.
//!
//! A row of a name is written when what was seen of it changes; that it is still so is written once for its
//! whole node or zone. So 20,000 names that are as they were cost as many writes a minute as they have nodes. A name that
//! was left out when its node was asked keeps the time at which it was asked itself.

use chrono::{DateTime, Utc};
use corpus_api::names::SiteAnswer;
use corpus_api::seen::Seen;
use corpus_domain::{DnsName, GuestName, GuestRole, GuestState, NodeId, ProviderName, Reachability, ZoneId};
use corpus_protocol::{AskedSite, Site};
use serde::Deserialize;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{json_opt, number, word, word_opt};

/// How often nodes are asked for their sites, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Often {
    /// Each node.
    pub every: f64,
    /// One that somebody looks at.
    pub soon: f64,
    /// How long one may be asked; then another server may begin.
    pub at_most: f64,
}

/// Takes up to `room` nodes whose sites are to be asked, so that nobody takes one of them again before it was
/// [`asked`](sites_asked): those for which it is time, or will be by and by while somebody looks at them.
pub async fn take_nodes(
    conn: &mut PgConnection,
    room: i64,
    often: Often,
    looked_at: &[Uuid],
) -> sqlx::Result<Vec<NodeId>> {
    let ahead = often.every - often.soon;
    let rows = sqlx::query_scalar!(
        "update nodes set sites_due_at = now() + make_interval(secs => $2::float8 + $3::float8) where id in (
             select n.id from nodes n
             where n.state in ('ready', 'draining') and n.reachability = 'reachable'
               and (n.sites_due_at <= now()
                   or n.id = any($4) and n.sites_due_at <= now() + make_interval(secs => $3))
             order by n.sites_due_at limit $1 for update skip locked)
         returning id",
        room,
        often.at_most,
        ahead,
        looked_at,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(NodeId).collect())
}

/// A name that is to be looked at.
#[derive(Debug, Clone)]
pub struct Name {
    /// Its id.
    pub id: Uuid,
    /// The name.
    pub name: DnsName,
    /// Whether it is all names below it.
    pub wildcard: bool,
    /// The addresses that it should be answered with: that of its node, or some of those of all nodes that serve it.
    pub targets: Vec<String>,
    /// Those by IPv6 that it may be answered with too.
    pub targets_ipv6: Vec<String>,
    /// The DNS server that is asked; none: the world is.
    pub provider: Option<ProviderName>,
    /// What it is to be answered as another name for.
    pub alias_of: Option<DnsName>,
}

/// The names that a node routes, in the order in which they are to be asked: one of each guest, then the next of each,
/// and of one guest's those that were asked longest ago first. So no guest keeps another's names waiting, however many
/// it has, and what there was no time for comes first the next time.
pub async fn routed(conn: &mut PgConnection, node: NodeId, limit: i64) -> sqlx::Result<Vec<(Uuid, AskedSite)>> {
    let rows = sqlx::query!(
        "select id, name, guest from (
             select d.id, d.name, g.name as guest, w.waits_since,
                 row_number() over (partition by d.guest_id order by w.waits_since, d.name) as turn
             from dns_names d join guests g on g.id = d.guest_id cross join lateral (
                 select case when d.site_since is null then d.created_at
                     else coalesce(d.site_left_at, 'infinity') end as waits_since
             ) w
             where g.node_id = $1 and d.state = 'attached' and not d.wildcard
         ) names order by turn, waits_since, name limit $2",
        node.0,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok((row.id, AskedSite { name: word(&row.name)?, guest: word(&row.guest)?, at: None, path: None })))
        .collect()
}

/// Keeps what sites of a node answered, where it is something else than before.
pub async fn keep_sites(conn: &mut PgConnection, node: NodeId, at: DateTime<Utc>, sites: &[Site]) -> sqlx::Result<()> {
    let names: Vec<String> = sites.iter().map(|site| site.name.to_string()).collect();
    let status: Vec<Option<i16>> =
        sites.iter().map(|site| site.status.and_then(|code| i16::try_from(code).ok())).collect();
    let problems: Vec<Option<String>> = sites.iter().map(|site| site.problem.clone()).collect();
    sqlx::query!(
        "update dns_names d set site_status = s.status, site_problem = s.problem, site_since = $5
         from unnest($2::text[], $3::smallint[], $4::text[]) as s (name, status, problem), guests g
         where d.name = s.name and not d.wildcard and g.id = d.guest_id and g.node_id = $1
           and (d.site_since is null or (d.site_status, d.site_problem) is distinct from (s.status, s.problem))",
        node.0,
        &names,
        &status as _,
        &problems as _,
        at,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A node was asked, at this time, and for these of its names; none, if for no name. It is due again `every_s` later.
pub async fn sites_asked(
    conn: &mut PgConnection,
    node: NodeId,
    at: DateTime<Utc>,
    names: &[Uuid],
    every_s: f64,
) -> sqlx::Result<()> {
    sqlx::query!(
        "with node as (
             select id, sites_at as before from nodes where id = $1 for no key update
         ), left_out as (
             update dns_names d set site_left_at = case when d.id = any($3) then null else node.before end
             from node, guests g
             where g.node_id = node.id and d.guest_id = g.id and d.site_since is not null and d.state = 'attached'
               and cardinality($3::uuid[]) > 0 and (d.id = any($3)) = (d.site_left_at is not null)
         )
         update nodes n set sites_due_at = $2::timestamptz + make_interval(secs => $4),
             sites_at = case when cardinality($3::uuid[]) > 0 then $2 else n.sites_at end
         from node where n.id = node.id",
        node.0,
        at,
        names,
        every_s,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Takes up to `room` zones whose names are to be looked up, so that no other server does for so long.
pub async fn take_zones(conn: &mut PgConnection, room: i64, at_most_s: f64) -> sqlx::Result<Vec<ZoneId>> {
    let taken = sqlx::query_scalar!(
        "update zones set answers_due_at = now() + make_interval(secs => $1) where id in (
             select id from zones where answers_due_at <= now() order by answers_due_at limit $2
             for update skip locked)
         returning id",
        at_most_s,
        room,
    );
    Ok(taken.fetch_all(conn).await?.into_iter().map(ZoneId).collect())
}

/// The names of a zone that are to be answered, those after one, by name.
pub async fn of_zone(conn: &mut PgConnection, zone: ZoneId, after: &str, limit: i64) -> sqlx::Result<Vec<Name>> {
    let rows = sqlx::query!(
        r#"select d.id, d.name, d.wildcard,
             case when d.environment is null and d.former_guest_id is null then array_remove(array[n.public_ip], null) else array(
                 select o.public_ip from name_nodes s join nodes o on o.id = s.node_id
                 where s.name_id = d.id and o.public_ip is not null) end as "targets!",
             case when d.environment is null and d.former_guest_id is null then array_remove(array[n.public_ipv6], null) else array(
                 select o.public_ipv6 from name_nodes s join nodes o on o.id = s.node_id
                 where s.name_id = d.id and o.public_ipv6 is not null) end as "targets_ipv6!",
             z.provider as "provider?",
             (select t.name from dns_names t where t.id = d.alias_of) as target from dns_names d
         join zones z on z.id = d.zone_id join guests g on g.id = d.guest_id join nodes n on n.id = g.node_id
         where d.zone_id = $1 and d.state = 'attached' and d.name > $2 order by d.name limit $3"#,
        zone.0,
        after,
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        Ok(Name {
            id: row.id,
            name: word(&row.name)?,
            wildcard: row.wildcard,
            targets: row.targets,
            targets_ipv6: row.targets_ipv6,
            provider: word_opt(row.provider.as_deref())?,
            alias_of: word_opt(row.target.as_deref())?,
        })
    })
    .collect()
}

/// The same of these names, as far as they are to be answered.
pub async fn these(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<Name>> {
    let rows = sqlx::query!(
        r#"select d.id, d.name, d.wildcard,
             case when d.environment is null and d.former_guest_id is null then array_remove(array[n.public_ip], null) else array(
                 select o.public_ip from name_nodes s join nodes o on o.id = s.node_id
                 where s.name_id = d.id and o.public_ip is not null) end as "targets!",
             case when d.environment is null and d.former_guest_id is null then array_remove(array[n.public_ipv6], null) else array(
                 select o.public_ipv6 from name_nodes s join nodes o on o.id = s.node_id
                 where s.name_id = d.id and o.public_ipv6 is not null) end as "targets_ipv6!",
             z.provider as "provider?",
             (select t.name from dns_names t where t.id = d.alias_of) as target from dns_names d
         left join zones z on z.id = d.zone_id join guests g on g.id = d.guest_id join nodes n on n.id = g.node_id
         where d.id = any($1) and d.state = 'attached' order by d.name"#,
        ids,
    );
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| {
        Ok(Name {
            id: row.id,
            name: word(&row.name)?,
            wildcard: row.wildcard,
            targets: row.targets,
            targets_ipv6: row.targets_ipv6,
            provider: word_opt(row.provider.as_deref())?,
            alias_of: word_opt(row.target.as_deref())?,
        })
    })
    .collect()
}

/// Takes up to `room` names of zones that are not ours which the world is to be asked for, so that no other server asks
/// for so long.
pub async fn take_from_elsewhere(conn: &mut PgConnection, room: i64, again_s: f64) -> sqlx::Result<Vec<Uuid>> {
    sqlx::query_scalar!(
        "update dns_names set world_due_at = now() + make_interval(secs => $1) where id in (
             select id from dns_names where zone_id is null and state = 'attached' and world_due_at <= now()
             order by world_due_at limit $2 for update skip locked)
         returning id",
        again_s,
        room,
    )
    .fetch_all(conn)
    .await
}

/// Keeps what the authoritative server answered: for each name why it is not answered as it should be, or nothing.
pub async fn keep_answers(conn: &mut PgConnection, seen: &[(Uuid, Option<String>)]) -> sqlx::Result<()> {
    let (ids, reasons): (Vec<Uuid>, Vec<Option<String>>) = seen.iter().cloned().unzip();
    sqlx::query!(
        "update dns_names d set unanswered_reason = s.reason,
             unanswered_since = case when s.reason is null then null else coalesce(d.unanswered_since, now()) end
         from unnest($1::uuid[], $2::text[]) as s (id, reason)
         where d.id = s.id and d.unanswered_reason is distinct from s.reason",
        &ids,
        &reasons as _,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// These names were answered now.
pub async fn answered(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<()> {
    let answered = sqlx::query!(
        "update dns_names set answered_at = now() where id = any($1) and unanswered_since is null and state = 'attached'",
        ids,
    );
    answered.execute(conn).await.map(drop)
}

/// The names of a zone were looked up, since `began`; or the server did not answer for them.
pub async fn zone_swept(
    conn: &mut PgConnection,
    zone: ZoneId,
    began: DateTime<Utc>,
    silent: Option<&str>,
    again_s: f64,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update zones set answers_due_at = now() + make_interval(secs => $4),
             answers_at = case when $3::text is null then $2 else answers_at end,
             silent_since = case when $3::text is null then null else coalesce(silent_since, now()) end,
             silent_reason = $3
         where id = $1",
        zone.0,
        began,
        silent,
        again_s,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A guest of [`seen_guests`](../../../../migrations/0044_sites_left_out.sql).
#[derive(Debug, Deserialize)]
struct SeenGuest {
    guest: GuestName,
    role: GuestRole,
    guest_state: GuestState,
    node_reachability: Reachability,
    guest_seen_at: Option<DateTime<Utc>>,
    site_status: Option<i16>,
    site_problem: Option<String>,
    site_since: Option<DateTime<Utc>>,
    site_checked_at: Option<DateTime<Utc>>,
}

/// What is seen of the guests that a row tells of: of the worst of them.
pub fn seen(guests: Option<serde_json::Value>) -> sqlx::Result<Option<Seen>> {
    let guests: Vec<SeenGuest> = json_opt(guests)?.unwrap_or_default();
    let seen = guests.into_iter().map(|one| {
        let site = site(one.site_status, one.site_problem, one.site_since, one.site_checked_at)?;
        let state = (one.guest_state, one.node_reachability);
        Ok(Seen::of((one.guest, one.role), state, one.guest_seen_at, site))
    });
    Ok(Seen::worst(seen.collect::<sqlx::Result<Vec<_>>>()?))
}

/// What a row holds of a site that was asked.
pub fn site(
    status: Option<i16>,
    problem: Option<String>,
    since: Option<DateTime<Utc>>,
    asked_at: Option<DateTime<Utc>>,
) -> sqlx::Result<Option<SiteAnswer>> {
    let (Some(since), Some(checked_at)) = (since, asked_at) else { return Ok(None) };
    let status = status.map(number).transpose()?;
    Ok(Some(SiteAnswer { status, problem, since, checked_at: checked_at.max(since) }))
}
