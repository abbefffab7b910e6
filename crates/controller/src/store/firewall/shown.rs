//! Rules as they are shown: with whom they name, what they let through, and the job that is on them.

use chrono::{DateTime, Utc};
use corpus_api::firewall::{FirewallDrop, FirewallRuleLine};
use corpus_domain::{Environment, FirewallRuleId, GuestId, JobId, NodeId, ProjectId, RuleSource};
use sqlx::PgConnection;
use uuid::Uuid;

use super::super::{far, number, word, word_opt};
use super::range;

/// As many are shown; of one thing there are never more, but for published ports of a node.
const MOST: i64 = 500;
/// Guests that are offered as sources.
const OFFERED: i64 = 100;

/// Of what the rules are shown.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    /// All that hold for a guest.
    Guest(GuestId),
    /// Those of an environment.
    Environment(ProjectId, Environment),
    /// All that hold for a node, its published ports too.
    Node(NodeId),
    /// What is kept out everywhere.
    Everywhere,
}

/// The rules, those that are about more last.
pub async fn of(conn: &mut PgConnection, what: Of) -> sqlx::Result<Vec<FirewallRuleLine>> {
    let ids = match what {
        Of::Guest(guest) => {
            sqlx::query_scalar!(
                r#"select r.id as "id!" from (
                   select f.id, 0 as at from firewall_rules f where f.guest_id = $1
                   union all select f.id, 1 from firewall_rules f join guests g on g.id = $1
                   where f.project_id = g.project_id and f.environment = g.environment
                   union all select f.id, 2 from firewall_rules f join guests g on g.id = $1
                   where f.node_id = g.node_id and f.guest_id is null
                   union all select f.id, 3 from firewall_rules f where f.action = 'block' and f.node_id is null) r
               order by r.at, r.id limit $2"#,
                guest.0,
                MOST,
            )
            .fetch_all(&mut *conn)
            .await?
        }
        Of::Environment(project, environment) => {
            sqlx::query_scalar!(
                "select id from firewall_rules where project_id = $1 and environment = $2 order by id limit $3",
                project.0,
                environment.as_str(),
                MOST,
            )
            .fetch_all(&mut *conn)
            .await?
        }
        Of::Node(node) => {
            sqlx::query_scalar!(
                r#"select r.id as "id!" from (
                   select f.id, case when f.guest_id is null then 0 else 2 end as at from firewall_rules f
                   where f.node_id = $1
                   union all select f.id, 1 from firewall_rules f where f.action = 'block' and f.node_id is null) r
               order by r.at, r.id limit $2"#,
                node.0,
                MOST,
            )
            .fetch_all(&mut *conn)
            .await?
        }
        Of::Everywhere => {
            sqlx::query_scalar!(
                "select id from firewall_rules where action = 'block' and node_id is null order by id limit $1",
                MOST
            )
            .fetch_all(&mut *conn)
            .await?
        }
    };
    lines(conn, &ids).await
}

/// These rules, in this order.
async fn lines(conn: &mut PgConnection, ids: &[Uuid]) -> sqlx::Result<Vec<FirewallRuleLine>> {
    let rows = sqlx::query!(
        r#"select r.id, r.action, r.state, p.name as "project?", r.guest_id, g.name as "guest?", r.environment, r.node_id,
               n.address as "node?", r.source, r.network, s.name as "source_guest?", r.source_environment,
               w.name as "source_network?", coalesce(w.networks, '{}') as "networks!", r.protocol, r.first_port,
               r.last_port, r.node_port, r.comment, u.login as "by?", r.created_at,
               (select sum(c.packets)::bigint from firewall_counts c where c.rule_id = r.id) as packets,
               (select sum(c.bytes)::bigint from firewall_counts c where c.rule_id = r.id) as bytes,
               (select count(*) from guests o
                where (r.protocol = 'udp' or r.last_port - r.first_port >= 16) and (o.id = r.source_guest_id
                       or (o.project_id = r.project_id and o.environment = r.source_environment))
                  and not exists (select from guests t
                                  where t.node_id = o.node_id
                                    and (t.id = r.guest_id or (t.project_id = r.project_id
                                         and t.environment = r.environment)))) as "elsewhere!",
               (select j.id from jobs j
                where r.state <> 'in_force' and j.kind = 'firewall_apply'
                  and j.state in ('waiting', 'running', 'undoing', 'stuck')
                  and (j.params -> 'added' ? r.id::text or j.params -> 'removed' ? r.id::text)
                order by j.queue_order desc limit 1) as "job?"
           from firewall_rules r
           left join projects p on p.id = r.project_id left join guests g on g.id = r.guest_id
           left join nodes n on n.id = r.node_id left join guests s on s.id = r.source_guest_id
           left join named_networks w on w.id = r.network_id left join users u on u.id = r.created_by
           where r.id = any($1) order by array_position($1, r.id)"#,
        ids,
    );
    let rows = rows.fetch_all(&mut *conn).await?;
    let mut reached = far::reached(conn, ids).await?;
    let rows = rows.into_iter().map(|row| {
        let from = match row.source.as_str() {
            "addresses" => row.network.clone().unwrap_or_default(),
            "guest" => format!("guest:{}", row.source_guest.clone().unwrap_or_default()),
            "environment" => format!("environment:{}", row.source_environment.clone().unwrap_or_default()),
            "network" => format!("network:{}", row.source_network.clone().unwrap_or_default()),
            anywhere => anywhere.to_owned(),
        };
        Ok(FirewallRuleLine {
            id: FirewallRuleId(row.id),
            action: word(&row.action)?,
            state: word(&row.state)?,
            project: word_opt(row.project.as_deref())?,
            guest: row.guest_id.map(GuestId),
            guest_name: word_opt(row.guest.as_deref())?,
            environment: word_opt(row.environment.as_deref())?,
            node: row.node_id.map(NodeId),
            node_address: word_opt(row.node.as_deref())?,
            from: word(&from)?,
            networks: row.networks.iter().map(|one| word(one)).collect::<sqlx::Result<_>>()?,
            protocol: word_opt(row.protocol.as_deref())?,
            ports: range(row.first_port, row.last_port)?,
            node_port: row.node_port.map(number).transpose()?,
            comment: row.comment,
            by: word_opt(row.by.as_deref())?,
            created_at: row.created_at,
            packets: row.packets.map(number).transpose()?,
            bytes: row.bytes.map(number).transpose()?,
            elsewhere: number(row.elsewhere)?,
            far: reached.remove(&FirewallRuleId(row.id)).unwrap_or_default(),
            job: row.job.map(JobId),
        })
    });
    rows.collect()
}

/// What was kept from a guest last, the newest first.
pub async fn drops(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Vec<FirewallDrop>> {
    let rows = sqlx::query!(
        r#"select d.source, d.protocol, d.port, d.packets, d.last_at,
               (select o.name from guests o
                where o.node_id = g.node_id and o.project_id = g.project_id and o.ip = d.source) as "from_guest?"
           from firewall_drops d join guests g on g.id = d.guest_id
           where d.guest_id = $1 order by d.last_at desc, d.source, d.port limit 20"#,
        guest.0,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(FirewallDrop {
            from: word(&row.source)?,
            from_guest: word_opt(row.from_guest.as_deref())?,
            protocol: word(&row.protocol)?,
            port: number(row.port)?,
            packets: number(row.packets)?,
            last_at: row.last_at,
        })
    });
    rows.collect()
}

/// When a node told what it counted.
pub async fn read_at(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Option<DateTime<Utc>>> {
    let at = sqlx::query_scalar!("select firewall_read_at from nodes where id = $1", node.0);
    Ok(at.fetch_optional(conn).await?.flatten())
}

/// How many ports of a node are published.
pub async fn published_on(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<u32> {
    let count = sqlx::query_scalar!(
        "select count(*) as \"count!\" from firewall_rules where node_id = $1 and action = 'publish'",
        node.0
    );
    number(count.fetch_one(conn).await?)
}

/// Who can be named: anybody, the project's environments, the named networks, and guests of the project. Of what is in
/// other environments than these a robot is told nothing.
pub async fn sources(
    conn: &mut PgConnection,
    project: Option<ProjectId>,
    guest: Option<GuestId>,
    environments: Option<&[String]>,
) -> sqlx::Result<Vec<RuleSource>> {
    let rows = sqlx::query_scalar!(
        r#"select s.source as "source!" from (
               select 0 as at, 'anywhere' as source
               union all select distinct 1, 'environment:' || g.environment from guests g where g.project_id = $1
                   and ($3::text[] is null or g.environment = any($3))
               union all select 2, 'network:' || w.name from named_networks w
               union all (select 3, 'guest:' || g.name from guests g
                   where g.project_id = $1 and g.id is distinct from $2
                     and ($3::text[] is null or g.environment = any($3))
                   order by g.name limit $4)) s
           order by s.at, s.source"#,
        project.map(|id| id.0),
        guest.map(|id| id.0),
        environments,
        OFFERED,
    );
    rows.fetch_all(conn).await?.iter().map(|source| word(source)).collect()
}
