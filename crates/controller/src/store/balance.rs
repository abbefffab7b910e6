//! The balance of environments: which guests share their names, how, and which of them take part now.
//!
//! Who takes part is told by the rows alone (the view `balance_members`): a guest that a job took out is in again when
//! that job is over, however it ended, so no server that is lost leaves one out.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use corpus_api::environments::balance::{Balance, BalanceMember};
use corpus_domain::{
    BalancePolicy, CheckPath, DnsName, DnsNameId, Environment, GuestId, GuestName, JobId, NodeId, PoolId, ProjectId,
    Stickiness,
};
use corpus_protocol::{HealthCheck, MemberReading, Pool, PoolMember};
use serde::Deserialize;
use serde_json::Value;
use sqlx::PgConnection;

use super::{json_opt, word};

/// The pools that a node serves: environments with names and at least two guests, of which one is there, and the other ends
/// of names that are being switched. Those on other nodes are among them where it has ways there.
pub async fn pools(conn: &mut PgConnection, node: NodeId, has_links: bool) -> sqlx::Result<Vec<Pool>> {
    let rows = sqlx::query!(
        r#"select m.project_id as "project_id!", m.environment as "environment!", m.name as "name!", m.ip as "ip!",
             m.active as "active!", m.node_id as "node_id!", a.address, a.public_ip, e.balance_policy, e.stickiness,
             (select n.name from dns_names n
              where n.routed and (n.guest_id = m.leader_id and n.environment = m.environment
                  or n.former_guest_id = m.leader_id and n.former_environment = m.environment)
              order by n.environment <> m.environment, n.created_at, n.name limit 1) as "host!",
             (select c -> 'value' from environment_guests l cross join jsonb_array_elements(l.configuration) c
              where l.guest_id = m.leader_id and c ->> 'key' = 'checks' limit 1) as checks
           from balance_members m
           join environments e on e.project_id = m.project_id and e.environment = m.environment
           join nodes a on a.id = m.node_id
           where (m.project_id, m.environment) in (
               select o.project_id, o.environment from balance_members o where o.node_id = $1
               union
               select o.project_id, o.environment from switch_members o
               join switch_members s on s.name_id = o.name_id and s.former <> o.former where s.node_id = $1)
             and (m.node_id = $1 or $2) order by m.project_id, m.environment, m.name"#,
        node.0,
        has_links,
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut pools: BTreeMap<PoolId, Pool> = BTreeMap::new();
    for row in rows {
        let id = PoolId::of(ProjectId(row.project_id), word(&row.environment)?);
        let elsewhere = row.node_id != node.0;
        let ip = match place(row.public_ip, row.address) {
            _ if !elsewhere => word(&row.ip)?,
            Some(ip) => ip,
            // Where that node is nobody knows.
            None => continue,
        };
        let via = elsewhere.then_some(NodeId(row.node_id));
        let member = PoolMember { guest: word(&row.name)?, ip, active: row.active, via };
        if let Some(pool) = pools.get_mut(&id) {
            pool.members.push(member);
            continue;
        }
        let pool = Pool {
            id: id.clone(),
            members: vec![member],
            policy: word(&row.balance_policy)?,
            stickiness: word(&row.stickiness)?,
            check: check(row.checks, &word(&row.host)?),
        };
        pools.insert(id, pool);
    }
    // One alone on this node shares with nobody.
    let mut pools: Vec<Pool> =
        pools.into_values().filter(|pool| pool.members.len() > 1 || pool.members.iter().any(is_elsewhere)).collect();
    if has_links {
        pools.extend(alone(conn, node).await?);
    }
    Ok(pools)
}

const fn is_elsewhere(member: &PoolMember) -> bool {
    member.via.is_some()
}

/// Guests of other nodes that are an end of a name by themselves, whose other end is on this one, or which have left it.
async fn alone(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<Pool>> {
    let rows = sqlx::query!(
        r#"select distinct g.id as "id!", g.name as "name!", g.node_id as "node_id!", a.address as "address!", a.public_ip
           from switch_members o join switch_members s on s.name_id = o.name_id and s.former <> o.former
           join guests g on g.id = o.guest_id join nodes a on a.id = g.node_id
           where s.node_id = $1 and o.node_id <> $1 and o.environment is null
           union
           select g.id, g.name, g.node_id, a.address, a.public_ip
           from names_left l join guests g on g.id = l.guest_id join nodes a on a.id = g.node_id
           where l.node_id = $1 and g.node_id <> $1
           order by 1"#,
        node.0,
    );
    let mut pools = Vec::new();
    for row in rows.fetch_all(conn).await? {
        let Some(ip) = place(row.public_ip, row.address) else { continue };
        let guest = PoolMember { guest: word(&row.name)?, ip, active: true, via: Some(NodeId(row.node_id)) };
        pools.push(Pool {
            id: PoolId::of_guest(GuestId(row.id)),
            members: vec![guest],
            policy: BalancePolicy::RoundRobin,
            stickiness: Stickiness::None,
            check: None,
        });
    }
    Ok(pools)
}

/// Where a node is for others.
fn place(public_ip: Option<String>, address: String) -> Option<Ipv4Addr> {
    [public_ip, Some(address)].into_iter().flatten().find_map(|text| text.parse().ok())
}

/// The first page that the environment's own checks ask for. A guest told them, so what is no plain path is none.
fn check(checks: Option<Value>, main: &DnsName) -> Option<HealthCheck> {
    #[derive(Deserialize)]
    struct Check {
        http: Option<Http>,
    }
    #[derive(Deserialize)]
    struct Http {
        path: String,
        status: Option<u16>,
        host: Option<String>,
    }
    let Value::Array(checks) = checks? else { return None };
    let http = checks.into_iter().find_map(|one| serde_json::from_value::<Check>(one).ok()?.http)?;
    let status = http.status.unwrap_or(200);
    let path: CheckPath = http.path.parse().ok()?;
    let host = http.host.and_then(|host| host.parse().ok()).unwrap_or_else(|| main.clone());
    (100..=599).contains(&status).then_some(HealthCheck { host, path, status })
}

/// Whether the guest is one of several that share the names of its environment.
pub async fn is_shared(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<bool> {
    let others = sqlx::query_scalar!(
        r#"select exists (
             select from balance_members m
             join balance_members o on o.project_id = m.project_id and o.environment = m.environment
             where m.guest_id = $1 and o.guest_id <> m.guest_id) as "shared!""#,
        guest.0,
    );
    others.fetch_one(conn).await
}

/// Why a guest is given no requests.
#[derive(Debug, Clone, Copy)]
pub enum Why<'a> {
    /// A job works on it, and brings it back. It waits for another guest to serve meanwhile.
    Works(JobId, &'a str),
    /// It goes: the others serve, whoever they are. It is back when it proves.
    Goes(&'a str),
}

/// What became of a guest that was to leave the balance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaving {
    /// It shares its names with nobody.
    Alone,
    /// It is out by the rows, and the nodes are to be told.
    Out(GuestName),
    /// It is the only one that can serve: it stays.
    Last,
    /// Another one comes back soon.
    Wait,
}

/// Takes a guest out of the balance of its environment, where that is right now.
pub async fn leave(conn: &mut PgConnection, guest: GuestId, why: Why<'_>) -> sqlx::Result<Leaving> {
    // Two that leave at once would each count on the other.
    let held = sqlx::query_scalar!(
        "select e.environment from environments e join environment_guests eg
         on eg.project_id = e.project_id and eg.environment = e.environment
         where eg.guest_id = $1 for update of e",
        guest.0,
    );
    held.fetch_optional(&mut *conn).await?;
    let row = sqlx::query!(
        r#"select m.name as "name!", m.out_job,
             count(o.guest_id) as "others!",
             count(o.guest_id) filter (where o.active and o.guest_state = 'running') as "serve!",
             count(o.guest_id) filter (
                 where o.guest_state = 'starting' or (not o.active and o.out_job is not null)) as "back_soon!"
           from balance_members m
           left join balance_members o
             on o.project_id = m.project_id and o.environment = m.environment and o.guest_id <> m.guest_id
           where m.guest_id = $1 group by m.name, m.out_job"#,
        guest.0,
    );
    let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(Leaving::Alone) };
    if row.others == 0 {
        return Ok(Leaving::Alone);
    }
    let (job, reason) = match why {
        Why::Works(job, reason) => (Some(job.0), reason),
        Why::Goes(reason) => (None, reason),
    };
    let is_out = job.is_some() && row.out_job == job;
    if !is_out && job.is_some() && row.serve == 0 {
        return Ok(if row.back_soon > 0 { Leaving::Wait } else { Leaving::Last });
    }
    sqlx::query!(
        "update environment_guests set out_since = coalesce(out_since, now()), out_reason = $2, out_job = $3
         where guest_id = $1",
        guest.0,
        reason,
        job,
    )
    .execute(conn)
    .await?;
    Ok(Leaving::Out(word(&row.name)?))
}

/// The guest is in the balance again; tells whether it was out.
pub async fn come_back(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<bool> {
    let back = sqlx::query!(
        "update environment_guests set out_since = null, out_reason = null, out_job = null
         where guest_id = $1 and out_since is not null",
        guest.0,
    );
    Ok(back.execute(conn).await?.rows_affected() > 0)
}

/// Those that a job took out are in the balance again; tells which. One that its deployment left broken is not proven,
/// and stays out until it is.
pub async fn come_back_from(conn: &mut PgConnection, job: JobId) -> sqlx::Result<Vec<GuestId>> {
    sqlx::query!(
        "update environment_guests eg set out_job = null, out_reason = 'its last deployment is broken'
         where eg.out_job = $1 and exists (
             select from deployments d where d.job_id = $1 and d.guest_id = eg.guest_id and d.state = 'broken')",
        job.0,
    )
    .execute(&mut *conn)
    .await?;
    let guests = sqlx::query_scalar!(
        "update environment_guests set out_since = null, out_reason = null, out_job = null
         where out_job = $1 returning guest_id",
        job.0,
    );
    Ok(guests.fetch_all(conn).await?.into_iter().map(GuestId).collect())
}

/// How it is seen that a guest or environment serves: its guests, and what each must answer.
#[derive(Debug)]
pub struct Proof {
    /// Those that would be given requests, each with its node.
    pub guests: Vec<(NodeId, GuestName, Ipv4Addr)>,
    /// What they are asked for; `/` when none is given.
    pub path: Option<CheckPath>,
    /// The status that they must answer.
    pub status: u16,
}

/// The same of a guest, or of the environment that it leads.
pub async fn proof(conn: &mut PgConnection, leader: GuestId, environment: Option<Environment>) -> sqlx::Result<Proof> {
    let rows = sqlx::query!(
        r#"select g.node_id, g.name, g.ip as "ip!",
             (select c -> 'value' from environment_guests l cross join jsonb_array_elements(l.configuration) c
              where l.guest_id = $1 and $2::boolean and c ->> 'key' = 'checks' limit 1) as checks
           from guests g left join environment_guests eg on eg.guest_id = g.id
           left join environment_guests l on l.guest_id = $1
           where g.routed and g.ip is not null and g.state = 'running'
             and (g.id = $1 or ($2::boolean and eg.project_id = l.project_id and eg.environment = l.environment
                                and eg.state = 'ready' and eg.out_since is null
                                and (eg.live is not null or l.live is null)))
           order by g.name"#,
        leader.0,
        environment.is_some(),
    );
    let (mut guests, mut found) = (Vec::new(), None);
    for row in rows.fetch_all(conn).await? {
        guests.push((NodeId(row.node_id), word(&row.name)?, word(&row.ip)?));
        found = row.checks;
    }
    // Under which name is known: that of the one that is switched.
    let any: DnsName = word("name.invalid")?;
    let check = check(found, &any);
    let status = check.as_ref().map_or(200, |check| check.status);
    Ok(Proof { guests, path: check.map(|check| check.path), status })
}

/// Sets how requests are spread.
pub async fn set(
    conn: &mut PgConnection,
    (project, environment): (ProjectId, Environment),
    policy: BalancePolicy,
    stickiness: Stickiness,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update environments set balance_policy = $3, stickiness = $4 where project_id = $1 and environment = $2",
        project.0,
        environment.as_str(),
        policy.as_str(),
        stickiness.as_str(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The balance of an environment as it is shown, without what its guests are asked for.
pub async fn shown(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<Option<Balance>> {
    let set = sqlx::query!(
        "select balance_policy, stickiness from environments where project_id = $1 and environment = $2",
        project.0,
        environment.as_str(),
    );
    let Some(set) = set.fetch_optional(&mut *conn).await? else { return Ok(None) };
    let names = sqlx::query!(
        "select id, name from dns_names where project_id = $1 and environment = $2 order by created_at, name limit 20",
        project.0,
        environment.as_str(),
    );
    let mut shown = Vec::new();
    for row in names.fetch_all(&mut *conn).await? {
        shown.push((DnsNameId(row.id), word(&row.name)?));
    }
    let members = members(conn, project, environment).await?;
    Ok(Some(Balance::of(word(&set.balance_policy)?, word(&set.stickiness)?, shown, members)))
}

/// The guests of an environment, the leader first, each with whether it takes part.
async fn members(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<Vec<BalanceMember>> {
    let rows = sqlx::query!(
        r#"select eg.guest_id, g.name, g.state as guest_state, eg.state, eg.out_since, eg.out_reason,
             coalesce(m.active, false) as "active!", eg.live is null as "nothing!",
             (select r from jsonb_array_elements(n.reading -> 'members') r where r ->> 'guest' = g.name limit 1) as seen,
             n.reading_at
           from environment_guests eg join guests g on g.id = eg.guest_id join nodes n on n.id = g.node_id
           left join balance_members m on m.guest_id = eg.guest_id
           where eg.project_id = $1 and eg.environment = $2
           order by eg.role = 'leader' desc, g.name"#,
        project.0,
        environment.as_str(),
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let seen: Option<MemberReading> = json_opt(row.seen)?;
        // A job that is over keeps nobody out, even where it did not bring it back.
        let is_out = !row.active && row.out_since.is_some();
        let why = match (&row.out_reason, &seen) {
            (Some(reason), _) if is_out => Some(reason.clone()),
            _ if row.state != "ready" => Some(format!("it is {}", row.state.replace('_', " "))),
            _ if row.guest_state != "running" => Some(format!("it is {}", row.guest_state)),
            _ if !row.active && row.nothing => Some("what is live on the leader is not live there".to_owned()),
            (_, Some(seen)) if row.active && !seen.takes => Some(seen.seen.clone()),
            _ => None,
        };
        Ok(BalanceMember {
            guest: GuestId(row.guest_id),
            name: word(&row.name)?,
            in_balance: row.active && why.is_none(),
            why,
            since: row.out_since.filter(|_| is_out),
            requests: seen.as_ref().map(|seen| seen.requests),
            seen_at: row.reading_at.filter(|_| seen.is_some()),
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_page_of_the_checks_is_asked_for() {
        let main: DnsName = "shop.example.org".parse().unwrap();
        let of = |checks: Value| check(Some(checks), &main);
        let found =
            of(json!([{ "tcp": 5432 }, { "http": { "path": "/health", "contains": "ok" }, "within": 3 }])).unwrap();
        assert_eq!((found.host.as_str(), found.path.as_str(), found.status), ("shop.example.org", "/health", 200));
        let found = of(json!([{ "http": { "path": "/", "status": 204, "host": "www.example.org" } }])).unwrap();
        assert_eq!((found.host.as_str(), found.status), ("www.example.org", 204));
        for none in [
            json!([]),
            json!("x"),
            json!([{ "tcp": 1 }]),
            json!([{ "http": { "path": "/a\n    server x 10.5.0.99:80" } }]),
            json!([{ "http": { "path": "/", "status": 7 } }]),
        ] {
            assert_eq!(of(none.clone()), None, "{none}");
        }
        assert_eq!(check(None, &main), None);
    }
}
