//! Room on nodes: where a guest fits, by what all guests were promised.
//!
//! A guest is counted from its request on. Whoever adds to a node's promises holds the node's row
//! and asks again under that lock, so two requests at once never take the same room.

use corpus_api::sizes::{Making, SizeRoom};
use corpus_domain::{Backing, Bytes, Driver, Environment, Factor, GuestId, NodeId, Room, SizeProfile};
use sqlx::PgConnection;

use super::{backings, number, word};

/// What is to be placed.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// On a node that takes guests of it.
    pub environment: Environment,
    /// On this one only.
    pub only: Option<NodeId>,
    /// On another one than this.
    pub besides: Option<NodeId>,
    /// On none that has files of this guest still, which went on elsewhere when it was lost.
    pub moved: Option<GuestId>,
    /// What it needs.
    pub needed: Room,
    /// On a node that can make such a guest.
    pub driver: Driver,
    /// With its files on this.
    pub backing: Backing,
}

impl Wanted {
    fn making(&self) -> String {
        format!("{}/{}", self.driver, self.backing)
    }
}

/// The node with room for the most guests like this one, in the pool that its backing has there if it has one, or the one asked for if it has room;
/// only one that takes guests of the environment now, and can make this one.
pub async fn pick(conn: &mut PgConnection, wanted: Wanted) -> sqlx::Result<Option<NodeId>> {
    let Wanted { environment, only, besides, moved, needed, .. } = wanted;
    let found = sqlx::query_scalar!(
        "select n.id
         from nodes n
         left join node_promises t on t.node_id = n.id
         left join lateral (
             select (n.pools ->> $9)::bigint as room, coalesce(sum(p.storage), 0)::bigint as promised
             from node_tallies p where p.node_id = n.id and p.backing = $9) pool on n.pools ? $9
         cross join lateral (
             select guests_that_fit(n.slots, n.memory, n.cpu_millis, coalesce(pool.room, n.storage), n.memory_overcommit,
                 n.cpu_overcommit, n.storage_overcommit, coalesce(t.guests, 0), coalesce(t.memory, 0),
                 coalesce(t.cpu_millis, 0), coalesce(pool.promised, t.storage, 0), $3, $4, $5) as more) room
         where n.state = 'ready' and n.reachability = 'reachable' and $1 = any(n.environments)
           and ($2::uuid is null or n.id = $2) and $6 = any(n.makes) and room.more > 0
           and n.id is distinct from $7
           and not exists (select from left_behind l where l.node_id = n.id and l.guest_id = $8)
         order by room.more desc, n.id limit 1",
        environment.as_str(),
        only.map(|id| id.0),
        amount(needed.memory.0),
        amount(needed.cpu_millis),
        amount(needed.storage.0),
        wanted.making(),
        besides.map(|id| id.0),
        moved.map(|id| id.0),
        wanted.backing.as_str(),
    );
    Ok(found.fetch_optional(conn).await?.map(NodeId))
}

/// What the nodes that take guests now can make, that of the most nodes first.
pub async fn makings(conn: &mut PgConnection) -> sqlx::Result<Vec<Making>> {
    let rules = backings::all(&mut *conn).await?;
    let not_in = |backing: Backing| {
        let unwanted = rules.iter().filter(|rule| !rule.allowed.contains(&backing));
        unwanted.map(|rule| rule.environment).collect()
    };
    let rows = sqlx::query!(
        r#"with node as (select makes, holds from nodes where state = 'ready' and reachability = 'reachable')
         select split_part(making, '/', 1) as "driver!", split_part(making, '/', 2) as "backing!",
             bool_and(making = any(n.holds)) as "holds!", count(*) as "nodes!", (select count(*) from node) as "of!"
         from node n cross join lateral unnest(n.makes) as making
         group by making order by count(*) desc, making"#
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let backing = word(&row.backing)?;
        Ok(Making {
            driver: word(&row.driver)?,
            backing,
            not_in: not_in(backing),
            holds_size: row.holds,
            nodes: number(row.nodes)?,
            of: number(row.of)?,
        })
    });
    rows.collect()
}

/// Whether any node can make such a guest, now or when it is ready again; where none has told yet what it can, who knows.
pub async fn is_made(conn: &mut PgConnection, driver: Driver, backing: Backing) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select exists (select from nodes where $1 = any(makes)) or not exists (select from nodes where facts is not null)
           as "made!""#,
        format!("{driver}/{backing}"),
    );
    found.fetch_one(conn).await
}

/// The first of these that some node makes, or the first of them.
pub async fn first_made(conn: &mut PgConnection, driver: Driver, backings: &[Backing]) -> sqlx::Result<Backing> {
    for backing in backings {
        if is_made(conn, driver, *backing).await? {
            return Ok(*backing);
        }
    }
    Ok(backings.first().copied().unwrap_or(Backing::Overlayfs))
}

/// For each of these amounts, how many nodes of each environment have room for one more guest that needs so much, of how
/// many that take guests now, and a few of those that have it.
pub async fn with_room(conn: &mut PgConnection, needed: &[Room]) -> sqlx::Result<Vec<Vec<SizeRoom>>> {
    let memory: Vec<i64> = needed.iter().map(|room| amount(room.memory.0)).collect();
    let cpu: Vec<i64> = needed.iter().map(|room| amount(room.cpu_millis)).collect();
    let storage: Vec<i64> = needed.iter().map(|room| amount(room.storage.0)).collect();
    let rows = sqlx::query!(
        r#"with node as (
             select n.*, coalesce(t.guests, 0) as guests, coalesce(t.memory, 0) as promised_memory,
                 coalesce(t.cpu_millis, 0) as promised_cpu, coalesce(t.storage, 0) as promised_storage
             from nodes n
             left join node_promises t on t.node_id = n.id
             where n.state = 'ready' and n.reachability = 'reachable'
         )
         select asked.place as "place!", e.environment as "environment!", count(*) as "of!",
             count(*) filter (where room.more > 0) as "nodes!",
             coalesce((array_agg(coalesce(n.name, n.address) order by room.more desc, n.id)
                 filter (where room.more > 0))[:3], '{}') as "on!"
         from unnest($1::bigint[], $2::bigint[], $3::bigint[]) with ordinality as asked (memory, cpu, storage, place)
         cross join node n cross join lateral unnest(n.environments) as e (environment)
         cross join lateral (
             select guests_that_fit(n.slots, n.memory, n.cpu_millis, n.storage, n.memory_overcommit, n.cpu_overcommit,
                 n.storage_overcommit, n.guests, n.promised_memory, n.promised_cpu, n.promised_storage, asked.memory,
                 asked.cpu, asked.storage) as more) room
         group by asked.place, e.environment"#,
        &memory,
        &cpu,
        &storage,
    );
    let mut found: Vec<Vec<SizeRoom>> = vec![Vec::new(); needed.len()];
    for row in rows.fetch_all(conn).await? {
        let (environment, nodes, of) = (word(&row.environment)?, number(row.nodes)?, number(row.of)?);
        let place = usize::try_from(row.place).ok().and_then(|place| place.checked_sub(1));
        if let Some(room) = place.and_then(|place| found.get_mut(place)) {
            room.push(SizeRoom { environment, nodes, of, on: row.on });
        }
    }
    for room in &mut found {
        room.sort_unstable_by_key(|room| Environment::ALL.iter().position(|one| *one == room.environment));
    }
    Ok(found)
}

/// A number as the database takes it, to divide by.
pub(super) fn amount(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX).max(1)
}

/// The room of three columns; none when one of them is not known.
pub(super) fn of(memory: Option<i64>, cpu_millis: Option<i64>, storage: Option<i64>) -> sqlx::Result<Option<Room>> {
    let (Some(memory), Some(cpu_millis), Some(storage)) = (memory, cpu_millis, storage) else { return Ok(None) };
    Ok(Some(Room { memory: Bytes(number(memory)?), cpu_millis: number(cpu_millis)?, storage: Bytes(number(storage)?) }))
}

/// A factor from its column.
pub(super) fn factor(percent: i32) -> sqlx::Result<Factor> {
    number::<u32>(percent)?.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// What is shown as slots: the guests that are there and how many more of size `small` fit, no more than `most`.
pub(super) fn slots(most: u32, guests: u32, free: Option<Room>) -> u32 {
    let size = SizeProfile::Small;
    let small = Room::of_guest(size.limits(), Backing::Overlayfs, size);
    let more = free.map_or(u64::from(u32::MAX), |free| free.holds(small));
    u32::try_from(u64::from(guests).saturating_add(more)).unwrap_or(u32::MAX).min(most.max(guests))
}

#[cfg(test)]
mod tests;
