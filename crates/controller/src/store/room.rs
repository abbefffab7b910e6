//! Room on nodes: where a guest fits, by what all guests were promised.
//!
//! A guest is counted from its request on. Whoever adds to a node's promises holds the node's row
//! and asks again under that lock, so two requests at once never take the same room.

use corpus_domain::{Backing, Bytes, Environment, Factor, NodeId, Room, SizeProfile};
use sqlx::PgConnection;

use super::number;

/// The node with room for the most guests like this one, or the one asked for if it has room;
/// only one that takes guests of the environment now.
pub async fn pick(
    conn: &mut PgConnection,
    environment: Environment,
    only: Option<NodeId>,
    needed: Room,
) -> sqlx::Result<Option<NodeId>> {
    let found = sqlx::query_scalar!(
        "select n.id
         from nodes n
         left join (
             select node_id, sum(guests) as guests, sum(memory)::bigint as memory,
                 sum(cpu_millis)::bigint as cpu_millis, sum(storage)::bigint as storage
             from node_tallies group by node_id) t on t.node_id = n.id
         cross join lateral (
             select guests_that_fit(n.slots, n.memory, n.cpu_millis, n.storage, n.memory_overcommit,
                 n.cpu_overcommit, n.storage_overcommit, coalesce(t.guests, 0), coalesce(t.memory, 0),
                 coalesce(t.cpu_millis, 0), coalesce(t.storage, 0), $3, $4, $5) as more) room
         where n.state = 'ready' and n.reachability = 'reachable' and $1 = any(n.environments)
           and ($2::uuid is null or n.id = $2) and room.more > 0
         order by room.more desc, n.id limit 1",
        environment.as_str(),
        only.map(|id| id.0),
        amount(needed.memory.0),
        amount(needed.cpu_millis),
        amount(needed.storage.0),
    );
    Ok(found.fetch_optional(conn).await?.map(NodeId))
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
