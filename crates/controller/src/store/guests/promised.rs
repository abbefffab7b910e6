//! What a guest may take of its node, and what it was promised of it.

use corpus_domain::{Bytes, GuestId, Invalid, JobKind, Limits, SizeProfile};
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

/// As a column has it.
pub(in crate::store) fn bytes(amount: Bytes) -> i64 {
    amount.0.try_into().unwrap_or(i64::MAX)
}

/// Promises the guest the storage of this size, which it is to grow to.
pub async fn promise_storage(conn: &mut PgConnection, id: GuestId, size: SizeProfile) -> sqlx::Result<()> {
    let storage = bytes(size.storage());
    let promise = sqlx::query!("update guests set storage = $2 where id = $1 and storage < $2", id.0, storage);
    promise.execute(conn).await.map(drop)
}

/// Takes back what the guest, whose storage is held to its size, was promised beyond the size that it has.
pub async fn settle_storage(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<()> {
    let sizes: Vec<String> = SizeProfile::ALL.iter().map(ToString::to_string).collect();
    let amounts: Vec<i64> = SizeProfile::ALL.iter().map(|size| bytes(size.storage())).collect();
    let settle = sqlx::query!(
        "update guests g set storage = s.amount from unnest($2::text[], $3::bigint[]) as s (size, amount)
         where g.id = $1 and g.size = s.size and g.storage > s.amount",
        id.0,
        &sizes,
        &amounts,
    );
    settle.execute(conn).await.map(drop)
}

/// Keeps that the guest's storage has grown to this size; tells whether it was smaller until now.
pub async fn set_size(conn: &mut PgConnection, id: GuestId, size: SizeProfile) -> sqlx::Result<bool> {
    let smaller = SizeProfile::ALL.iter().filter(|one| one.storage() < size.storage());
    let smaller: Vec<String> = smaller.map(ToString::to_string).collect();
    // Only storage that is held to its size grows, so all of it is promised.
    let update = sqlx::query!(
        "update guests set size = $2, storage = greatest(storage, $4) where id = $1 and size = any($3)",
        id.0,
        size.as_str(),
        &smaller,
        bytes(size.storage()),
    );
    update.execute(conn).await.map(|done| done.rows_affected() == 1)
}

/// Keeps that the guest's storage has no more than this size any more, and is promised no more.
pub async fn set_smaller_size(conn: &mut PgConnection, id: GuestId, size: SizeProfile) -> sqlx::Result<()> {
    let update = sqlx::query!(
        "update guests set size = $2, storage = $3 where id = $1",
        id.0,
        size.as_str(),
        bytes(size.storage())
    );
    update.execute(conn).await.map(drop)
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

/// Whether a job of this kind is on the guest.
pub async fn is_being(conn: &mut PgConnection, id: GuestId, kind: JobKind) -> sqlx::Result<bool> {
    let found = sqlx::query_scalar!(
        "select exists (select from jobs where guest_id = $1 and kind = $2
             and state in ('waiting', 'running', 'undoing', 'stuck')) as \"found!\"",
        id.0,
        kind.as_str(),
    );
    found.fetch_one(conn).await
}
