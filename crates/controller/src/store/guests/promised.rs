//! What a guest may take of its node, and what it was promised of it.

use corpus_domain::{Bytes, GuestId, Invalid, Limits, SizeProfile};
use sqlx::PgConnection;

use crate::store::number;

/// Limits as the database has them.
pub(super) struct Columns {
    pub memory: i64,
    pub cpu_millis: i32,
    pub processes: i32,
    pub io_weight: i16,
}

impl From<Limits> for Columns {
    fn from(limits: Limits) -> Self {
        Self {
            memory: bytes(limits.memory.bytes()),
            cpu_millis: limits.cpu.get().try_into().unwrap_or(i32::MAX),
            processes: limits.processes.get().try_into().unwrap_or(i32::MAX),
            io_weight: limits.io_weight.get().try_into().unwrap_or(i16::MAX),
        }
    }
}

/// Limits from their columns.
pub fn limits(memory: i64, cpu_millis: i32, processes: i32, io_weight: i16) -> sqlx::Result<Limits> {
    let invalid = |error: Invalid| sqlx::Error::Decode(Box::new(error));
    Ok(Limits {
        memory: number::<u64>(memory)?.try_into().map_err(invalid)?,
        cpu: number::<u64>(cpu_millis)?.try_into().map_err(invalid)?,
        processes: number::<u64>(processes)?.try_into().map_err(invalid)?,
        io_weight: number::<u64>(io_weight)?.try_into().map_err(invalid)?,
    })
}

pub(super) fn bytes(amount: Bytes) -> i64 {
    amount.0.try_into().unwrap_or(i64::MAX)
}

/// Keeps that the guest's storage has grown to this size; tells whether it was smaller until now.
pub async fn set_size(conn: &mut PgConnection, id: GuestId, size: SizeProfile) -> sqlx::Result<bool> {
    let smaller = SizeProfile::ALL.iter().filter(|one| one.storage() < size.storage());
    let smaller: Vec<String> = smaller.map(ToString::to_string).collect();
    // Only storage that is held to its size grows, so all of it is promised.
    let update = sqlx::query!(
        "update guests set size = $2, storage = $4 where id = $1 and size = any($3)",
        id.0,
        size.as_str(),
        &smaller,
        bytes(size.storage()),
    );
    update.execute(conn).await.map(|done| done.rows_affected() == 1)
}

/// Sets what the guest may take of its node; what it was promised goes with it.
pub async fn set_limits(conn: &mut PgConnection, id: GuestId, to: Limits) -> sqlx::Result<()> {
    let to = Columns::from(to);
    sqlx::query!(
        "update guests set memory = $2, cpu_millis = $3, processes = $4, io_weight = $5 where id = $1",
        id.0,
        to.memory,
        to.cpu_millis,
        to.processes,
        to.io_weight,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whether a job is changing the guest's limits.
pub async fn is_being_limited(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        "select exists (select from jobs where guest_id = $1 and kind = 'guest_limit'
             and state in ('waiting', 'running', 'undoing', 'stuck')) as \"found!\"",
        id.0,
    );
    found.fetch_one(conn).await
}
