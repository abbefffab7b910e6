//! What is looked at to even out nodes: what the fullest and the emptiest nodes have promised, and guests that could go from
//! one to another.
//!
//! Few rows are read, however many nodes and guests there are. A guest that is being moved counts at both of its nodes, so
//! that nobody takes the room; here it counts where it goes to alone.

use corpus_api::moves::Promise;
use corpus_domain::{
    Backing, Bytes, Driver, Environment, GuestId, GuestName, GuestState, NodeAddress, NodeId, NodeName, ProjectName,
    Room,
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::room::amount;
use super::{number, word, word_opt};

/// So many of the fullest and of the emptiest nodes of an environment are looked at, by each thing that they promise.
const NODES: i64 = 20;
/// So many guests of a node are looked at for one move.
const GUESTS: i64 = 50;

/// A node that takes guests, and what it has promised.
#[derive(Debug, Clone)]
pub struct Load {
    /// Which.
    pub id: NodeId,
    /// Where it answers.
    pub address: NodeAddress,
    /// What people call it.
    pub name: Option<NodeName>,
    /// Whose guests it takes.
    pub environments: Vec<Environment>,
    /// What it can make, as `lxc/btrfs`.
    pub makes: Vec<String>,
    /// What it can promise.
    pub can: Room,
    /// What it has promised, without the guests that are leaving it.
    pub promised: Room,
    /// What it has promised to guests that are leaving it.
    pub leaving: Room,
    /// How many more guests it takes at most.
    pub slots: u64,
}

/// The nodes that take guests and answer: of each environment the fullest and the emptiest ones, by the lowest id.
pub async fn loads(conn: &mut PgConnection) -> sqlx::Result<Vec<Load>> {
    let rows = sqlx::query!(
        r#"with leaving as (
             select case when m.moved then m.node_id else g.node_id end as node_id, sum(m.memory)::bigint as memory,
                 sum(m.cpu_millis)::bigint as cpu,
                 sum(m.storage) filter (where not o.pools ? m.backing)::bigint as storage
             from guest_moves m join guests g on g.id = m.guest_id
             join nodes o on o.id = case when m.moved then m.node_id else g.node_id end
             where m.memory > 0 group by 1
         ), node as (
             select n.id, n.address, n.name, n.environments, n.makes,
                 greatest(n.slots - coalesce(t.guests, 0), 0) as slots,
                 n.memory / 100 * n.memory_overcommit + n.memory % 100 * n.memory_overcommit / 100 as memory,
                 n.cpu_millis * n.cpu_overcommit / 100 as cpu,
                 n.storage / 100 * n.storage_overcommit + n.storage % 100 * n.storage_overcommit / 100 as storage,
                 coalesce(t.memory, 0) as of_memory, coalesce(t.cpu_millis, 0) as of_cpu,
                 coalesce(t.storage, 0) as of_storage,
                 coalesce(l.memory, 0) as left_memory, coalesce(l.cpu, 0) as left_cpu,
                 coalesce(l.storage, 0) as left_storage
             from nodes n
             left join node_promises t on t.node_id = n.id
             left join leaving l on l.node_id = n.id
             where n.state = 'ready' and n.reachability = 'reachable' and n.memory > 0 and n.cpu_millis > 0
                 and n.storage > 0
         ), ranked as (
             select n.*, count(*) over e as nodes,
                 row_number() over (e order by (of_memory - left_memory)::float8 / greatest(memory, 1), id) as by_memory,
                 row_number() over (e order by (of_storage - left_storage)::float8 / greatest(storage, 1), id) as by_storage,
                 row_number() over (e order by (of_cpu - left_cpu)::float8 / greatest(cpu, 1), id) as by_cpu
             from node n cross join lateral unnest(n.environments) as of (environment)
             window e as (partition by of.environment)
         )
         select distinct on (id) id, address, name, environments as "environments!", makes, slots as "slots!",
             memory as "memory!", cpu as "cpu!", storage as "storage!", of_memory as "of_memory!", of_cpu as "of_cpu!",
             of_storage as "of_storage!", left_memory as "left_memory!", left_cpu as "left_cpu!",
             left_storage as "left_storage!"
         from ranked
         where least(by_memory, by_storage, by_cpu) <= $1 or greatest(by_memory, by_storage, by_cpu) > nodes - $1
         order by id"#,
        NODES,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let [leaving, of] =
            [[row.left_memory, row.left_cpu, row.left_storage], [row.of_memory, row.of_cpu, row.of_storage]];
        let leaving = room(leaving)?;
        Ok(Load {
            id: NodeId(row.id),
            address: word(&row.address)?,
            name: word_opt(row.name.as_deref())?,
            environments: row.environments.iter().map(|one| word(one)).collect::<sqlx::Result<_>>()?,
            makes: row.makes,
            can: room([row.memory, row.cpu, row.storage])?,
            promised: room(of)?.without(leaving),
            leaving,
            slots: number(row.slots)?,
        })
    });
    rows.collect()
}

fn room([memory, cpu_millis, storage]: [i64; 3]) -> sqlx::Result<Room> {
    Ok(Room { memory: Bytes(number(memory)?), cpu_millis: number(cpu_millis)?, storage: Bytes(number(storage)?) })
}

/// A guest that could be moved.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Which.
    pub id: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// What it does.
    pub state: GuestState,
    /// What it is promised, of storage that in the file system that nodes are compared by.
    pub needed: Room,
    /// What it is promised in a pool of its node, if it lies in one.
    pub pooled: Option<Bytes>,
    /// What made it.
    pub driver: Driver,
    /// Where its files are.
    pub backing: Backing,
}

/// Which guests are looked for.
#[derive(Debug, Clone, Copy)]
pub struct Sought<'a> {
    /// Of which environment.
    pub environment: Environment,
    /// Where they are.
    pub from: &'a Load,
    /// Where they could go.
    pub to: &'a Load,
    /// By what they are told apart.
    pub promise: Promise,
    /// So much of that at most.
    pub most: u64,
    /// None of these.
    pub without: &'a [Uuid],
}

/// The largest guests that could go from one node to another: none that is privileged, that would lose snapshots, that has a
/// job or that leaves its node or its project anyhow.
pub async fn candidates(conn: &mut PgConnection, sought: Sought<'_>) -> sqlx::Result<Vec<Candidate>> {
    let promise = match sought.promise {
        Promise::Memory => "memory",
        Promise::Storage => "storage",
        Promise::Cpu => "cpu",
    };
    let rows = sqlx::query!(
        r#"select g.id, g.name, p.name as project, g.state, g.driver, g.backing, g.memory, g.cpu_millis, g.storage,
               n.pools ? g.backing as "pooled!"
           from guests g join projects p on p.id = g.project_id join nodes n on n.id = g.node_id
           cross join lateral (
             select case $4 when 'memory' then g.memory when 'storage' then g.storage else g.cpu_millis end as amount) size
           where g.node_id = $1 and g.environment = $2 and g.state in ('running', 'stopped')
             and g.privileged_reason is null and size.amount <= $5 and g.driver || '/' || g.backing = any($6)
             and g.id <> all($7) and p.leaving_since is null and not ($4 = 'storage' and n.pools ? g.backing)
             and not exists (select from snapshots s where s.guest_id = g.id)
             and not exists (select from job_locks l where l.resource = 'guest:' || g.id::text)
             and not exists (select from leaving_guests l where l.guest_id = g.id)
             and not exists (select from left_behind l where l.node_id = $3 and l.guest_id = g.id)
           order by size.amount desc, g.name limit $8"#,
        sought.from.id.0,
        sought.environment.as_str(),
        sought.to.id.0,
        promise,
        amount(sought.most),
        &sought.to.makes,
        sought.without,
        GUESTS,
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let all = room([row.memory, row.cpu_millis.into(), row.storage])?;
        let pooled = row.pooled.then_some(all.storage);
        Ok(Candidate {
            id: GuestId(row.id),
            name: word(&row.name)?,
            project: word(&row.project)?,
            state: word(&row.state)?,
            needed: if row.pooled { Room { storage: Bytes(0), ..all } } else { all },
            pooled,
            driver: word(&row.driver)?,
            backing: word(&row.backing)?,
        })
    });
    rows.collect()
}
