//! Nodes as they are listed: what a line shows, filtered, sorted and cut to a page by the statement.
//!
//! Facts and readings are long; only the few words of them that a line shows are read. What a member may
//! not know (guests of others, what differs, jobs of others) is left out here, not later.

use corpus_api::nodes::{ListNodes, NodeLine, NodeSort, NodeUse};
use corpus_domain::{Backing, Bytes, JobId, NodeId, ProjectId, Room, SizeProfile};
use sqlx::PgConnection;
use uuid::Uuid;

use super::super::room::amount;
use super::super::{number, word, word_opt};

/// A line with its place in the list.
#[derive(Debug)]
pub struct Line {
    /// Before the address: how few slots are free, when that is the order.
    pub rank: i64,
    /// After the address.
    pub ssh_port: u16,
    /// What is shown.
    pub line: NodeLine,
}

/// The nodes that match, those after a place in their order: rank, address, port. `visible` are the
/// projects of who asks; none for operators, who see all.
pub async fn lines(
    conn: &mut PgConnection,
    asked: &ListNodes,
    visible: Option<&[ProjectId]>,
    after: Option<(i64, String, u16)>,
    limit: i64,
) -> sqlx::Result<Vec<Line>> {
    read(conn, None, asked, visible, after, limit).await
}

/// The line of one node.
pub async fn line(
    conn: &mut PgConnection,
    id: NodeId,
    visible: Option<&[ProjectId]>,
) -> sqlx::Result<Option<NodeLine>> {
    let found = read(conn, Some(id), &ListNodes::default(), visible, None, 1).await?;
    Ok(found.into_iter().next().map(|one| one.line))
}

#[expect(clippy::too_many_lines, reason = "one statement, and its columns")]
async fn read(
    conn: &mut PgConnection,
    only: Option<NodeId>,
    asked: &ListNodes,
    visible: Option<&[ProjectId]>,
    after: Option<(i64, String, u16)>,
    limit: i64,
) -> sqlx::Result<Vec<Line>> {
    let visible: Option<Vec<Uuid>> = visible.map(|projects| projects.iter().map(|project| project.0).collect());
    let states: Vec<String> = asked.state.iter().map(ToString::to_string).collect();
    let reachability: Vec<String> = asked.reachability.iter().map(ToString::to_string).collect();
    let small = Room::of_guest(SizeProfile::Small.limits(), Backing::Overlayfs, SizeProfile::Small);
    let (rank, address, port) = match after {
        Some((rank, address, port)) => (Some(rank), Some(address), Some(i32::from(port))),
        None => (None, None, None),
    };
    let rows = sqlx::query!(
        r#"
        with matching as (
            select n.id, n.address, n.ssh_port, case when $8 and n.state = 'ready' then (
                    select -greatest(0, guests_that_fit(n.slots, n.memory, n.cpu_millis, n.storage, n.memory_overcommit,
                        n.cpu_overcommit, n.storage_overcommit, coalesce(sum(t.guests), 0)::bigint,
                        coalesce(sum(t.memory), 0)::bigint, coalesce(sum(t.cpu_millis), 0)::bigint,
                        coalesce(sum(t.storage), 0)::bigint, $12, $13, $14))
                    from node_promises t where t.node_id = n.id) else 0 end as rank
            from nodes n
            where ($2::uuid is null or n.id = $2)
                and (cardinality($3::text[]) = 0 or n.state = any($3))
                and (cardinality($4::text[]) = 0 or n.reachability = any($4))
                and ($5::text is null or $5 = any(n.environments))
                and ($6::text is null or position(lower($6) in lower(n.address)) > 0
                    or position(lower($6) in lower(n.name)) > 0)
                and ($7::boolean is null or ($1::uuid[] is null and jsonb_array_length(n.drift) > 0) = $7)
        ), picked as (
            select id, rank from matching
            where $9::bigint is null or (rank, address, ssh_port) > ($9, $10::text, $11::integer)
            order by rank, address, ssh_port limit $15
        ), open as (
            select id, node_id, guest_id, project_id, queue_order,
                $1 is null or coalesce(project_id = any($1), false) as known
            from jobs
            where state in ('waiting', 'running', 'undoing', 'stuck') and node_id in (select id from picked)
        )
        select n.id, n.name, n.address, n.ssh_port, n.state, n.reachability, n.reachability_since, n.public_ip, n.environments,
            n.reading_at, l.rank as "rank!",
            (select greatest(0, guests_that_fit(n.slots, n.memory, n.cpu_millis, n.storage, n.memory_overcommit,
                    n.cpu_overcommit, n.storage_overcommit, coalesce(sum(t.guests), 0)::bigint,
                    coalesce(sum(t.memory), 0)::bigint, coalesce(sum(t.cpu_millis), 0)::bigint,
                    coalesce(sum(t.storage), 0)::bigint, $12, $13, $14))
                from node_promises t where t.node_id = n.id) as "free!",
            (select count(*) from guests g
                where g.node_id = n.id and ($1::uuid[] is null or g.project_id = any($1))) as "own!",
            array(select jsonb_array_elements_text(
                jsonb_path_query_array(n.facts, '$.drivers[*] ? (@.obstacle == null).driver'))) as "drivers!",
            (n.reading ->> 'memory_total')::bigint as memory_total,
            (n.reading ->> 'memory_used')::bigint as memory_used,
            (n.reading #>> '{storage,total}')::bigint as storage_total,
            (n.reading #>> '{storage,used}')::bigint as storage_used,
            (n.reading #>> '{storage,promised}')::bigint as storage_promised,
            case when $1 is null then jsonb_array_length(n.drift) else 0 end as "drift!",
            case when $1 is null then (n.drift -> 0 ->> 'since')::timestamptz end as drift_since,
            (select o.id from open o where o.node_id = n.id and o.guest_id is null and o.known
                order by o.queue_order limit 1) as job,
            exists (select from open o where o.node_id = n.id and not o.known) as "busy!"
        from picked l join nodes n on n.id = l.id
        order by l.rank, n.address, n.ssh_port
        "#,
        visible.as_deref(),
        only.map(|id| id.0),
        &states,
        &reachability,
        asked.environment.map(corpus_domain::Environment::as_str),
        asked.q.as_ref().map(corpus_api::words::SearchText::as_str),
        asked.drifted,
        asked.sort == Some(NodeSort::FreeSlots),
        rank,
        address,
        port,
        amount(small.memory.0),
        amount(small.cpu_millis),
        amount(small.storage.0),
        limit,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let (own, free): (u32, u32) = (number(row.own)?, number(row.free)?);
        let bytes = |column: Option<i64>| column.map(number).transpose().map(|known| known.map(Bytes));
        let memory = (bytes(row.memory_total)?, bytes(row.memory_used)?);
        let storage = (bytes(row.storage_total)?, bytes(row.storage_used)?);
        let promised = bytes(row.storage_promised)?.unwrap_or_default();
        let line = NodeLine {
            id: NodeId(row.id),
            name: word_opt(row.name.as_deref())?,
            address: word(&row.address)?,
            state: word(&row.state)?,
            reachability: word(&row.reachability)?,
            reachability_since: row.reachability_since,
            public_ip: row.public_ip,
            environments: row.environments.iter().map(|text| word(text)).collect::<sqlx::Result<_>>()?,
            drivers: row.drivers.iter().map(|text| word(text)).collect::<sqlx::Result<_>>()?,
            guests: own,
            slots: own.saturating_add(free),
            used: used(memory, storage, promised),
            reading_at: row.reading_at,
            drift: number(row.drift)?,
            drift_since: row.drift_since,
            job: row.job.map(JobId),
            busy: row.busy,
        };
        Ok(Line { rank: row.rank, ssh_port: number(row.ssh_port)?, line })
    });
    rows.collect()
}

type Part = (Option<Bytes>, Option<Bytes>);

fn used(
    (memory_total, memory_used): Part,
    (storage_total, storage_used): Part,
    storage_promised: Bytes,
) -> Option<NodeUse> {
    Some(NodeUse {
        memory_total: memory_total?,
        memory_used: memory_used?,
        storage_total: storage_total?,
        storage_used: storage_used?,
        storage_promised,
    })
}
