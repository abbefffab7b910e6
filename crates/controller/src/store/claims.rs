//! Claims of names from elsewhere: which are to be asked for, and what the world answered.

use corpus_api::claims::{ListNameClaims, NameClaim};
use corpus_domain::{DnsName, GuestId, GuestName, NameClaimId, ProjectId, ProjectName, UserId};
use sqlx::PgConnection;
use uuid::Uuid;

use super::word;
use crate::dns::world::PROOF_LABEL;

/// The claims that match, the newest first, those before one.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListNameClaims,
    visible: Option<&[ProjectId]>,
    before: Option<NameClaimId>,
    limit: i64,
) -> sqlx::Result<Vec<NameClaim>> {
    let visible: Option<Vec<Uuid>> = visible.map(|projects| projects.iter().map(|project| project.0).collect());
    let ids = sqlx::query_scalar!(
        "select c.id from name_claims c
         where ($1::uuid[] is null or c.project_id = any($1))
           and ($2::text is null or c.project_id = (select id from projects where name = $2))
           and ($3::uuid is null or c.id < $3)
         order by c.id desc limit $4",
        visible.as_deref(),
        asked.project.as_ref().map(ProjectName::as_str),
        before.map(|id| id.0),
        limit,
    );
    let ids = ids.fetch_all(&mut *conn).await?;
    shown(conn, &ids).await
}

/// The one claim.
pub async fn get(conn: &mut PgConnection, id: NameClaimId) -> sqlx::Result<Option<NameClaim>> {
    Ok(shown(conn, &[id.0]).await?.pop())
}

async fn shown(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<NameClaim>> {
    let rows = sqlx::query!(
        "select c.id, c.name, c.guest_id, g.name as guest, n.public_ip, n.public_ipv6, c.token, c.leads, c.proven,
             c.answered, c.problem, c.asked_at, c.expires_at
         from name_claims c join guests g on g.id = c.guest_id join nodes n on n.id = g.node_id
         where c.id = any($1) order by c.id desc",
        ids,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(NameClaim {
            id: NameClaimId(row.id),
            proof_name: format!("{PROOF_LABEL}.{}", row.name),
            name: word(&row.name)?,
            guest: GuestId(row.guest_id),
            guest_name: word(&row.guest)?,
            target: row.public_ip,
            target_ipv6: row.public_ipv6,
            proof: row.token,
            leads: row.leads,
            proven: row.proven,
            answered: row.answered,
            problem: row.problem,
            asked_at: row.asked_at,
            expires_at: row.expires_at,
        })
    });
    rows.collect()
}

/// Keeps a claim; one of the project that is there already breaks the unique rule.
pub async fn insert(
    conn: &mut PgConnection,
    name: &DnsName,
    guest: GuestId,
    token: &str,
    by: UserId,
) -> sqlx::Result<NameClaimId> {
    let id = NameClaimId(Uuid::now_v7());
    sqlx::query!(
        "insert into name_claims (id, name, guest_id, project_id, token, created_by)
         select $1, $2, g.id, g.project_id, $4, $5 from guests g where g.id = $3",
        id.0,
        name.as_str(),
        guest.0,
        token,
        by.0,
    )
    .execute(conn)
    .await?;
    Ok(id)
}

/// How many claims a project has.
pub async fn count(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<i64> {
    sqlx::query_scalar!("select count(*) as \"count!\" from name_claims where project_id = $1", project.0)
        .fetch_one(conn)
        .await
}

/// It is to be asked for now; answers its name, if it is there.
pub async fn ask_now(conn: &mut PgConnection, id: NameClaimId) -> sqlx::Result<Option<DnsName>> {
    let name = sqlx::query_scalar!("update name_claims set due_at = now() where id = $1 returning name", id.0);
    name.fetch_optional(conn).await?.map(|name| word(&name)).transpose()
}

/// Forgets a claim; answers its name, if it was there.
pub async fn delete(conn: &mut PgConnection, id: NameClaimId) -> sqlx::Result<Option<DnsName>> {
    let name = sqlx::query_scalar!("delete from name_claims where id = $1 returning name", id.0);
    name.fetch_optional(conn).await?.map(|name| word(&name)).transpose()
}

/// Forgets the claim of a name that is attached.
pub async fn delete_attached(conn: &mut PgConnection, name: &DnsName, guest: GuestId) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from name_claims where name = $1 and project_id = (select project_id from guests where id = $2)",
        name.as_str(),
        guest.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// A claim that the world is asked for.
#[derive(Debug, Clone)]
pub struct Claim {
    /// Its id.
    pub id: NameClaimId,
    /// The name.
    pub name: DnsName,
    /// For which guest.
    pub guest: GuestId,
    /// Of which project.
    pub project: ProjectId,
    /// The proof.
    pub token: String,
    /// Where it is to lead.
    pub targets: Vec<String>,
    /// Who claimed it.
    pub by: Option<UserId>,
}

/// Takes up to `room` claims that are due, so that no other server asks for them for so long. What is being attached,
/// and what a project has that is leaving, is left alone.
pub async fn take(conn: &mut PgConnection, room: i64, again_s: f64) -> sqlx::Result<Vec<Claim>> {
    let rows = sqlx::query!(
        "with due as (
             select c.id from name_claims c join projects p on p.id = c.project_id
             where c.due_at <= now() and c.expires_at > now() and p.leaving_job is null
                 and not exists (select from dns_names d where d.name = c.name and not d.wildcard and d.guest_id = c.guest_id)
             order by c.due_at limit $1 for update of c skip locked
         )
         update name_claims c set due_at = now() + make_interval(secs => $2)
         from due, guests g, nodes n
         where c.id = due.id and g.id = c.guest_id and n.id = g.node_id
         returning c.id, c.name, c.guest_id, c.project_id, c.token, n.public_ip, n.public_ipv6, c.created_by",
        room,
        again_s,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(Claim {
            id: NameClaimId(row.id),
            name: word(&row.name)?,
            guest: GuestId(row.guest_id),
            project: ProjectId(row.project_id),
            token: row.token,
            targets: row.public_ip.into_iter().chain(row.public_ipv6).collect(),
            by: row.created_by.map(UserId),
        })
    });
    rows.collect()
}

/// What the world answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answered {
    /// The addresses.
    pub addresses: Vec<String>,
    /// Whether they are the guest's node's.
    pub leads: bool,
    /// Whether the proof stood there.
    pub proven: bool,
    /// Why there is no answer, or why it is not attached.
    pub problem: Option<String>,
}

/// Keeps what the world answered.
pub async fn keep(conn: &mut PgConnection, id: NameClaimId, answered: &Answered) -> sqlx::Result<()> {
    sqlx::query!(
        "update name_claims set answered = $2, leads = $3, proven = $4, problem = $5, asked_at = now() where id = $1",
        id.0,
        &answered.addresses,
        answered.leads,
        answered.proven,
        answered.problem,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// It is not asked for again for so long.
pub async fn rest(conn: &mut PgConnection, id: NameClaimId, for_s: f64) -> sqlx::Result<()> {
    sqlx::query!("update name_claims set due_at = now() + make_interval(secs => $2) where id = $1", id.0, for_s)
        .execute(conn)
        .await
        .map(drop)
}

/// A claim that has lapsed.
#[derive(Debug, Clone)]
pub struct Lapsed {
    /// What its id was.
    pub id: NameClaimId,
    /// The name.
    pub name: DnsName,
    /// For which guest.
    pub guest: GuestId,
    /// That guest's name.
    pub guest_name: GuestName,
    /// Of which project.
    pub project: ProjectId,
    /// What was seen last of what it takes.
    pub answered: Answered,
    /// Who claimed it.
    pub by: Option<UserId>,
}

/// Forgets up to so many claims that have lapsed; answers what they were. One whose name is being attached stays until
/// that is over.
pub async fn lapse(conn: &mut PgConnection, most: i64) -> sqlx::Result<Vec<Lapsed>> {
    let rows = sqlx::query!(
        "delete from name_claims c using guests g
         where g.id = c.guest_id and c.id in (
             select o.id from name_claims o
             where o.expires_at <= now() and not exists (
                 select from dns_names d
                 where d.name = o.name and not d.wildcard and d.guest_id = o.guest_id and d.state = 'wanted')
             limit $1 for update of o skip locked)
         returning c.id, c.name, c.guest_id, g.name as guest, c.project_id, c.answered, c.leads, c.proven, c.problem,
             c.created_by",
        most,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(Lapsed {
            id: NameClaimId(row.id),
            name: word(&row.name)?,
            guest: GuestId(row.guest_id),
            guest_name: word(&row.guest)?,
            project: ProjectId(row.project_id),
            answered: Answered { addresses: row.answered, leads: row.leads, proven: row.proven, problem: row.problem },
            by: row.created_by.map(UserId),
        })
    });
    rows.collect()
}

/// Holds a claim until the transaction ends, if it is still there.
pub async fn hold(conn: &mut PgConnection, id: NameClaimId) -> sqlx::Result<bool> {
    let held = sqlx::query_scalar!("select id from name_claims where id = $1 for update", id.0);
    Ok(held.fetch_optional(conn).await?.is_some())
}
