//! DNS names attached to guests.

use corpus_api::names::{AliasTarget, ListNames, NameLine, NamePointer};
use corpus_api::words::SearchText;
use corpus_domain::{
    DnsName, DnsNameId, Environment, GuestId, GuestName, JobId, NameState, ProjectId, ProjectName, ProviderName,
    UserId, ZoneId,
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{evidence, number, word, word_opt};

/// A name as jobs and changes work with it.
#[derive(Debug, Clone)]
pub struct NameRow {
    /// Its id.
    pub id: DnsNameId,
    /// The name.
    pub name: DnsName,
    /// Whether it is all names below it.
    pub wildcard: bool,
    /// Who holds it; none: a zone that is not ours.
    pub held: Option<Held>,
    /// The guest it leads to.
    pub guest_id: GuestId,
    /// That guest's name.
    pub guest: GuestName,
    /// The environment that it belongs to, whose leader that guest is; none when it is the guest's.
    pub environment: Option<Environment>,
    /// Its state.
    pub state: NameState,
    /// What it is another name for, and leads along with.
    pub alias_of: Option<AliasTarget>,
}

/// The zone of ours that holds a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The zone.
    pub zone: DnsName,
    /// The DNS server that holds it.
    pub provider: ProviderName,
    /// For how long resolvers may keep an answer, in seconds.
    pub ttl_s: u32,
}

impl Held {
    /// From the columns of a row, which are there together.
    pub(super) fn of(zone: Option<&str>, provider: Option<&str>, ttl_s: Option<i32>) -> sqlx::Result<Option<Self>> {
        let (Some(zone), Some(provider), Some(ttl_s)) = (zone, provider, ttl_s) else { return Ok(None) };
        Ok(Some(Self { zone: word(zone)?, provider: word(provider)?, ttl_s: number(ttl_s)? }))
    }
}

/// The one name.
pub async fn get(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<Option<NameRow>> {
    Ok(rows(conn, Some(id), None).await?.pop())
}

/// The names of a guest, by name.
pub async fn of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<NameRow>> {
    rows(conn, None, Some(guest)).await
}

async fn rows(conn: &mut PgConnection, id: Option<DnsNameId>, guest: Option<GuestId>) -> sqlx::Result<Vec<NameRow>> {
    let rows = sqlx::query!(
        "select n.id, n.name, n.wildcard, z.name as \"zone?\", z.provider as \"provider?\", z.ttl_s as \"ttl_s?\", n.guest_id,
             g.name as guest, n.environment, n.state, t.id as \"target_id?\", t.name as \"target?\"
         from dns_names n left join zones z on z.id = n.zone_id join guests g on g.id = n.guest_id
         left join dns_names t on t.id = n.alias_of
         where n.id = $1 or n.guest_id = $2 order by n.name",
        id.map(|id| id.0),
        guest.map(|id| id.0),
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(NameRow {
            id: DnsNameId(row.id),
            name: word(&row.name)?,
            wildcard: row.wildcard,
            held: Held::of(row.zone.as_deref(), row.provider.as_deref(), row.ttl_s)?,
            guest_id: GuestId(row.guest_id),
            guest: word(&row.guest)?,
            environment: word_opt(row.environment.as_deref())?,
            state: word(&row.state)?,
            alias_of: target(row.target_id, row.target.as_deref())?,
        })
    });
    rows.collect()
}

/// From the columns of a row, which are there together.
fn target(id: Option<Uuid>, name: Option<&str>) -> sqlx::Result<Option<AliasTarget>> {
    let Some((id, name)) = id.zip(name) else { return Ok(None) };
    Ok(Some(AliasTarget { id: DnsNameId(id), name: word(name)? }))
}

/// The names that match, by name, those after one.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListNames,
    visible: Option<&[ProjectId]>,
    after: Option<(&str, bool)>,
    limit: i64,
) -> sqlx::Result<Vec<NameLine>> {
    let visible: Option<Vec<Uuid>> = visible.map(|projects| projects.iter().map(|project| project.0).collect());
    let ids = sqlx::query_scalar!(
        "select n.id from dns_names n
         where ($1::uuid[] is null or n.project_id = any($1))
           and ($2::text is null or n.project_id = (select id from projects where name = $2))
           and ($3::uuid is null or n.zone_id = $3) and ($4::text is null or n.state = $4)
           and ($5::uuid is null or n.guest_id = $5) and ($10::uuid is null or n.alias_of = $10)
           and ($6::text is null or position(lower($6) in n.name) > 0) and ($7::text is null or (n.name, n.wildcard) > ($7, $9::boolean))
         order by n.name, n.wildcard limit $8",
        visible.as_deref(),
        asked.project.as_ref().map(ProjectName::as_str),
        asked.zone.map(|id| id.0),
        asked.state.map(NameState::as_str),
        asked.guest.map(|id| id.0),
        asked.q.as_ref().map(SearchText::as_str),
        after.map(|(name, _)| name),
        limit,
        after.is_some_and(|(_, wildcard)| wildcard),
        asked.alias_of.map(|id| id.0),
    );
    let ids = ids.fetch_all(&mut *conn).await?;
    lines(conn, &ids).await
}

/// The names that match, the newest first, those before one.
pub async fn newest(
    conn: &mut PgConnection,
    asked: &ListNames,
    visible: Option<&[ProjectId]>,
    before: Option<DnsNameId>,
    limit: i64,
) -> sqlx::Result<Vec<NameLine>> {
    let visible: Option<Vec<Uuid>> = visible.map(|projects| projects.iter().map(|project| project.0).collect());
    let ids = sqlx::query_scalar!(
        "select n.id from dns_names n
         where ($1::uuid[] is null or n.project_id = any($1))
           and ($2::text is null or n.project_id = (select id from projects where name = $2))
           and ($3::uuid is null or n.zone_id = $3) and ($4::text is null or n.state = $4)
           and ($5::uuid is null or n.guest_id = $5) and ($9::uuid is null or n.alias_of = $9)
           and ($6::text is null or position(lower($6) in n.name) > 0) and ($7::uuid is null or n.id < $7)
         order by n.id desc limit $8",
        visible.as_deref(),
        asked.project.as_ref().map(ProjectName::as_str),
        asked.zone.map(|id| id.0),
        asked.state.map(NameState::as_str),
        asked.guest.map(|id| id.0),
        asked.q.as_ref().map(SearchText::as_str),
        before.map(|id| id.0),
        limit,
        asked.alias_of.map(|id| id.0),
    );
    let ids = ids.fetch_all(&mut *conn).await?;
    lines(conn, &ids).await
}

/// The one name as it is shown.
pub async fn line(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<Option<NameLine>> {
    Ok(lines(conn, &[id.0]).await?.pop())
}

/// These names as they are shown, in this order; a job is told of while the name is not settled.
async fn lines(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<NameLine>> {
    let rows = sqlx::query!(
        r#"select n.id, n.name, n.wildcard, n.zone_id, z.name as "zone?", n.guest_id, g.name as guest, n.environment,
                n.state, n.state_reason,
                case when n.unanswered_since is null then greatest(n.answered_at, z.answers_at)
                    else n.answered_at end as answered_at,
                coalesce(n.unanswered_since, z.silent_since) as unanswered_since,
                coalesce(n.unanswered_reason, z.silent_reason) as unanswered_reason,
                n.site_status, n.site_problem, n.site_since,
                coalesce(h.not_after > now(), false) as "https!",
                coalesce(n.site_left_at, c.sites_at) as "site_checked_at?", c.public_ip, c.public_ipv6,
                coalesce(n.spread_to, (select t.spread_to from dns_names t where t.id = n.alias_of),
                    array_remove(array[c.public_ip, c.public_ipv6], null)) as "addresses!",
                n.alias_of, (select t.name from dns_names t where t.id = n.alias_of) as alias_target,
                n.pointed_address, n.pointer_zone_id, n.pointer_problem, n.pointer_at,
                (select j.id from jobs j
                 where n.state in ('wanted', 'detaching') and j.guest_id = n.guest_id
                   and j.state in ('waiting', 'running', 'undoing', 'stuck') and j.params ->> 'id' = n.id::text
                 order by j.queue_order desc limit 1) as "job?"
         from dns_names n left join zones z on z.id = n.zone_id join guests g on g.id = n.guest_id
         join nodes c on c.id = g.node_id left join certificates h on h.id = n.certificate_id and n.routed
         where n.id = any($1) order by array_position($1, n.id)"#,
        ids,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(NameLine {
            id: DnsNameId(row.id),
            name: word(&row.name)?,
            wildcard: row.wildcard,
            zone: row.zone_id.map(ZoneId),
            zone_name: word_opt(row.zone.as_deref())?,
            alias_of: target(row.alias_of, row.alias_target.as_deref())?,
            guest: GuestId(row.guest_id),
            guest_name: word(&row.guest)?,
            environment: word_opt(row.environment.as_deref())?,
            state: word(&row.state)?,
            state_reason: row.state_reason,
            answered_at: row.answered_at,
            unanswered_since: row.unanswered_since,
            unanswered_reason: row.unanswered_reason,
            site: evidence::site(row.site_status, row.site_problem, row.site_since, row.site_checked_at)?,
            target: row.public_ip,
            target_ipv6: row.public_ipv6,
            addresses: row.addresses,
            pointer: row.pointed_address.map(|address| NamePointer {
                address,
                stands: row.pointer_zone_id.is_some(),
                problem: row.pointer_problem,
                since: row.pointer_at,
            }),
            job: row.job.map(JobId),
            https: row.https,
        })
    });
    rows.collect()
}

/// Keeps a wanted name, of a guest, or of the environment that it leads; a name that is there already breaks the unique rule.
pub async fn insert(
    conn: &mut PgConnection,
    (name, wildcard): (&DnsName, bool),
    zone: Option<ZoneId>,
    (guest, environment): (GuestId, Option<Environment>),
    by: UserId,
) -> sqlx::Result<DnsNameId> {
    let id = DnsNameId(Uuid::now_v7());
    sqlx::query!(
        "insert into dns_names (id, name, zone_id, guest_id, environment, state, created_by, wildcard)
         values ($1, $2, $3, $4, $5, 'wanted', $6, $7)",
        id.0,
        name.as_str(),
        zone.map(|id| id.0),
        guest.0,
        environment.map(Environment::as_str),
        by.0,
        wildcard,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// Keeps a wanted name that is another name for this one, and leads where it leads; a name that is there already breaks
/// the unique rule.
pub async fn insert_alias(
    conn: &mut PgConnection,
    name: &DnsName,
    zone: ZoneId,
    target: DnsNameId,
    by: UserId,
) -> sqlx::Result<DnsNameId> {
    let id = DnsNameId(Uuid::now_v7());
    sqlx::query!(
        "insert into dns_names (id, name, zone_id, guest_id, environment, state, created_by, alias_of)
         select $1, $2, $3, t.guest_id, t.environment, 'wanted', $4, t.id from dns_names t where t.id = $5",
        id.0,
        name.as_str(),
        zone.0,
        by.0,
        target.0,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// Holds a name until the transaction ends, so that nothing becomes an alias of it meanwhile, and it leads where it leads.
pub async fn hold(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<()> {
    sqlx::query!("select id from dns_names where id = $1 for update", id.0).fetch_optional(conn).await.map(drop)
}

/// The names that are another name for this one, by name; no more than a name can have.
pub async fn aliases(conn: &mut PgConnection, of: DnsNameId) -> sqlx::Result<Vec<AliasTarget>> {
    let rows = sqlx::query!("select id, name from dns_names where alias_of = $1 order by name", of.0);
    let rows = rows.fetch_all(conn).await?.into_iter();
    rows.map(|row| Ok(AliasTarget { id: DnsNameId(row.id), name: word(&row.name)? })).collect()
}

/// Serializes who takes which name: whether one is free depends on those around it.
const TAKING_KEY: i64 = 0x636f_7270_6e61;

/// Holds the giving of names until the transaction ends.
pub async fn hold_all(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock($1)::text as held", TAKING_KEY).fetch_one(conn).await.map(drop)
}

/// How near to a name another one is too near.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Near<'a> {
    /// Only the same one.
    Same,
    /// The same, of whom the world proved that it is theirs: that a guest is called so counts for nothing.
    Proven,
    /// Also those above it and below it, up to the zone that holds it: they share cookies.
    Around(&'a DnsName),
}

/// Whether another project has the name, one near it, or had it a week ago, or has a guest that is
/// called so. A project and its previews are one.
pub async fn is_of_others(
    conn: &mut PgConnection,
    name: &DnsName,
    project: ProjectId,
    near: Near<'_>,
) -> sqlx::Result<bool> {
    let zone = match near {
        Near::Same | Near::Proven => None,
        Near::Around(zone) => Some(zone.as_str()),
    };
    sqlx::query_scalar!(
        "with own as (select coalesce((select parent_id from projects where id = $2), $2) as id)
         select exists (
             select from (
                 select n.name, coalesce(p.parent_id, p.id) as project_id
                 from dns_names n join projects p on p.id = n.project_id
                 union all
                 select name, project_id from freed_names where freed_at > now() - interval '7 days'
             ) taken
             where project_id <> (select id from own)
               and (name = $1
                    or ($3::text is not null and length(name) > length($3)
                        and (right($1, length(name) + 1) = '.' || name or right(name, length($1) + 1) = '.' || $1)))
         ) or $4 and exists (
             select from guests g join projects p on p.id = g.project_id
             where g.name = $1 and coalesce(p.parent_id, p.id) <> (select id from own)) as \"of_others!\"",
        name.as_str(),
        project.0,
        zone,
        near != Near::Proven,
    )
    .fetch_one(conn)
    .await
}

/// Sets the state, and the reason of it.
pub async fn set_state(
    conn: &mut PgConnection,
    id: DnsNameId,
    state: NameState,
    reason: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query!("update dns_names set state = $2, state_reason = $3 where id = $1", id.0, state.as_str(), reason)
        .execute(conn)
        .await
        .map(drop)
}

/// Notes that the authoritative server answered the name just now.
pub async fn answered(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<()> {
    sqlx::query!(
        "update dns_names set answered_at = now(), unanswered_since = null, unanswered_reason = null where id = $1",
        id.0
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Sets whether the node should route the name.
pub async fn set_routed(conn: &mut PgConnection, id: DnsNameId, routed: bool) -> sqlx::Result<()> {
    sqlx::query!("update dns_names set routed = $2 where id = $1", id.0, routed).execute(conn).await.map(drop)
}

/// Sets whether the node should route the names of a guest.
pub async fn set_routed_of_guest(conn: &mut PgConnection, guest: GuestId, routed: bool) -> sqlx::Result<()> {
    sqlx::query!("update dns_names set routed = $2 where guest_id = $1", guest.0, routed).execute(conn).await.map(drop)
}

/// Forgets a name.
pub async fn delete(conn: &mut PgConnection, id: DnsNameId) -> sqlx::Result<()> {
    sqlx::query!("delete from dns_names where id = $1", id.0).execute(conn).await.map(drop)
}

/// Forgets the names of a guest.
pub async fn delete_of_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<()> {
    sqlx::query!("delete from dns_names where guest_id = $1", guest.0).execute(conn).await.map(drop)
}

/// The names that lead to the guests of projects, of each guest those of its environment first, and then the oldest.
/// Those of an environment lead to all its guests, wherever they are.
pub async fn hosts(conn: &mut PgConnection, projects: &[ProjectId]) -> sqlx::Result<Vec<(GuestId, DnsName)>> {
    let projects: Vec<_> = projects.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        r#"select coalesce(o.guest_id, n.guest_id) as "guest_id!", n.name
           from dns_names n
           left join lateral (
               select eg.guest_id from environment_guests eg
               where eg.project_id = n.project_id and eg.environment = n.environment
           ) o on true
           where n.project_id = any($1) and n.state = 'attached' and not n.wildcard
           order by n.environment is null, n.created_at, n.name"#,
        &projects,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok((GuestId(row.guest_id), word(&row.name)?))).collect()
}
