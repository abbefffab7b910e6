//! Quotas: what projects may take, and what they have taken by the sums that the database keeps.
//!
//! Whoever takes something holds what the project takes until the transaction ends, and asks what is left under that
//! lock: so two at once never take the same. The lock comes before those of nodes, guests and names, everywhere.

use corpus_api::quotas::{ListQuotas, ProjectQuota, QuotaPolicy, QuotaUse};
use corpus_api::words::SearchText;
use corpus_domain::{ProjectId, QuotaOf};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{number, projects, word};

/// The advisory locks of who takes, one a project.
const TAKING_CLASS: i32 = 0x7175_6f74;

/// Holds the taking of a project until the transaction ends. Projects that share a lock only wait for each other. What a
/// preview takes is taken of its project.
pub async fn hold(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<()> {
    let [.., a, b, c, d] = projects::root(conn, project).await?.0.into_bytes();
    let of_project = i32::from_be_bytes([a, b, c, d]);
    sqlx::query!("select pg_advisory_xact_lock($1, $2)::text as held", TAKING_CLASS, of_project)
        .fetch_one(conn)
        .await
        .map(drop)
}

/// What the project has taken, and how much it may; of a preview, that of its project.
pub async fn get(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Option<ProjectQuota>> {
    let project = projects::root(conn, project).await?;
    Ok(of(conn, &[project.0]).await?.pop())
}

/// The same of several projects, by name, each with what its previews have taken.
pub async fn of(conn: &mut PgConnection, projects: &[Uuid]) -> sqlx::Result<Vec<ProjectQuota>> {
    let rows = sqlx::query!(
        r#"
        select p.name, coalesce(q.unlimited, '{}') as "unlimited!",
            t.guests as "guests!", t.memory as "memory!", t.cpu_millis as "cpu!", t.storage as "storage!",
            t.names as "names!", t.ports as "ports!", b.bytes as "backups!",
            q.guests as "own_guests?", q.memory as "own_memory?", q.cpu_millis as "own_cpu?",
            q.storage as "own_storage?", q.names as "own_names?",
            q.ports as "own_ports?", q.backups as "own_backups?",
            d.guests as policy_guests, d.memory as policy_memory, d.cpu_millis as policy_cpu,
            d.storage as policy_storage, d.names as policy_names, d.ports as policy_ports,
            d.backups as policy_backups
        from projects p cross join quota_policy d left join project_quotas q on q.project_id = p.id
        cross join lateral (
            select coalesce(sum(guests), 0) as guests, coalesce(sum(memory), 0)::bigint as memory,
                coalesce(sum(cpu_millis), 0)::bigint as cpu_millis, coalesce(sum(storage), 0)::bigint as storage,
                coalesce(sum(names), 0) as names, coalesce(sum(ports), 0) as ports
            from project_tallies
            where project_id in (select p.id union all select c.id from projects c where c.parent_id = p.id)) t
        cross join lateral (
            select coalesce(sum(r.bytes), 0)::bigint as bytes from backup_repositories r
            where r.project_id in (select p.id union all select c.id from projects c where c.parent_id = p.id)) b
        where p.id = any($1) order by p.name
        "#,
        projects,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let uses = [
            (QuotaOf::Guests, row.guests, row.own_guests, row.policy_guests),
            (QuotaOf::Memory, row.memory, row.own_memory, row.policy_memory),
            (QuotaOf::Cpu, row.cpu, row.own_cpu, row.policy_cpu),
            (QuotaOf::Storage, row.storage, row.own_storage, row.policy_storage),
            (QuotaOf::Names, row.names, row.own_names, row.policy_names),
            (QuotaOf::Ports, row.ports, row.own_ports, row.policy_ports),
            (QuotaOf::Backups, row.backups, row.own_backups, row.policy_backups),
        ];
        let uses = uses.map(|(of, used, own, policy)| {
            let unlimited = row.unlimited.iter().any(|word| word == of.as_str());
            let limit = if unlimited { None } else { own.or(policy) };
            let limit = limit.map(number).transpose()?;
            Ok((of, QuotaUse::of(number(used)?, limit, unlimited || own.is_some())))
        });
        let uses: Vec<(QuotaOf, QuotaUse)> = uses.into_iter().collect::<sqlx::Result<_>>()?;
        let of = |of: QuotaOf| uses.iter().find(|(one, _)| *one == of).map(|(_, used)| *used).unwrap_or_default();
        Ok(ProjectQuota::of(word(&row.name)?, of))
    });
    rows.collect()
}

/// A project of the list, and its place in it.
#[derive(Debug)]
pub struct Found {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
}

/// The projects that match, by name, those after one.
pub async fn list(
    conn: &mut PgConnection,
    asked: &ListQuotas,
    visible: Option<&[Uuid]>,
    after: Option<&str>,
    limit: i64,
) -> sqlx::Result<Vec<Found>> {
    let rows = sqlx::query_as!(
        Found,
        "select id, name from projects p
         where parent_id is null and ($1::text is null or position(lower($1) in name) > 0)
           and ($2::uuid[] is null or id = any($2))
           and ($3::bool is null or exists (select from project_quotas q where q.project_id = p.id) = $3)
           and ($4::text is null or name > $4)
         order by name limit $5",
        asked.q.as_ref().map(SearchText::as_str),
        visible,
        asked.own,
        after,
        limit,
    );
    rows.fetch_all(conn).await
}

/// Sets what a project has of its own: amounts, and what has no limit. What is neither is the policy's.
pub async fn set(
    conn: &mut PgConnection,
    project: ProjectId,
    amount: impl Fn(QuotaOf) -> Option<u64>,
    unlimited: &[QuotaOf],
) -> sqlx::Result<()> {
    let amount = |of| amount(of).map(stored);
    let words: Vec<String> = unlimited.iter().map(ToString::to_string).collect();
    if words.is_empty() && QuotaOf::ALL.iter().all(|of| amount(*of).is_none()) {
        let gone = sqlx::query!("delete from project_quotas where project_id = $1", project.0);
        return gone.execute(conn).await.map(drop);
    }
    sqlx::query!(
        "insert into project_quotas (project_id, guests, memory, cpu_millis, storage, names, ports, backups, unlimited)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (project_id) do update set guests = $2, memory = $3, cpu_millis = $4, storage = $5, names = $6,
             ports = $7, backups = $8, unlimited = $9",
        project.0,
        amount(QuotaOf::Guests),
        amount(QuotaOf::Memory),
        amount(QuotaOf::Cpu),
        amount(QuotaOf::Storage),
        amount(QuotaOf::Names),
        amount(QuotaOf::Ports),
        amount(QuotaOf::Backups),
        &words,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// What every project may take that has no quota of its own.
pub async fn policy(conn: &mut PgConnection) -> sqlx::Result<QuotaPolicy> {
    let row = sqlx::query!("select guests, memory, cpu_millis, storage, names, ports, backups from quota_policy");
    let row = row.fetch_one(conn).await?;
    let limits = [
        (QuotaOf::Guests, row.guests),
        (QuotaOf::Memory, row.memory),
        (QuotaOf::Cpu, row.cpu_millis),
        (QuotaOf::Storage, row.storage),
        (QuotaOf::Names, row.names),
        (QuotaOf::Ports, row.ports),
        (QuotaOf::Backups, row.backups),
    ];
    let limits = limits.map(|(of, limit)| Ok((of, limit.map(number).transpose()?)));
    let limits: Vec<(QuotaOf, Option<u64>)> = limits.into_iter().collect::<sqlx::Result<_>>()?;
    Ok(QuotaPolicy::of(|of| limits.iter().find(|(one, _)| *one == of).and_then(|(_, limit)| *limit)))
}

/// Holds the policy until the transaction ends, so that it stays as it is read.
pub async fn hold_policy(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select is_the_only from quota_policy for update").fetch_one(conn).await.map(drop)
}

/// Sets what every project may take that has no quota of its own.
pub async fn set_policy(conn: &mut PgConnection, amount: impl Fn(QuotaOf) -> Option<u64>) -> sqlx::Result<()> {
    let amount = |of| amount(of).map(stored);
    sqlx::query!(
        "update quota_policy set guests = $1, memory = $2, cpu_millis = $3, storage = $4, names = $5, ports = $6,
            backups = $7",
        amount(QuotaOf::Guests),
        amount(QuotaOf::Memory),
        amount(QuotaOf::Cpu),
        amount(QuotaOf::Storage),
        amount(QuotaOf::Names),
        amount(QuotaOf::Ports),
        amount(QuotaOf::Backups),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// An amount as its column takes it; what is valid is far below the largest.
fn stored(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
