//! Backups that are tried: the guests that are made of them for a while, and what became of it.

use std::net::Ipv4Addr;

use chrono::{DateTime, Utc};
use corpus_api::backups::ProvenRestore;
use corpus_domain::{BackupId, GuestId, GuestName, GuestNetwork, ImageName, MacAddress, NodeId};
use sqlx::PgConnection;

use super::guests::{GuestRow, Place, place_of, taken};
use super::{number, word, word_opt};

/// Notes that a backup of the guest is tried on the node, where the guest of it counts from now on, and what that is a
/// clone of. False where one of the project is tried already.
pub async fn begin(
    conn: &mut PgConnection,
    (backup, id): (BackupId, GuestId),
    guest: &GuestRow,
    (node, image): (NodeId, &ImageName),
) -> sqlx::Result<bool> {
    let noted = sqlx::query!(
        "insert into backup_proofs as p (backup_id, project_id, id, node_id, image, memory, cpu_millis, storage, backing)
         select $1, project_id, $2, $4, $5, memory, cpu_millis, storage, backing from guests
         where id = $3 and not exists (select from backup_proofs o
                                       where o.project_id = guests.project_id and o.node_id is not null)
         on conflict (backup_id) do update set id = $2, began_at = now(), ended_at = null, passed = null, told = null,
             node_id = $4, image = $5, memory = excluded.memory, cpu_millis = excluded.cpu_millis,
             storage = excluded.storage, backing = excluded.backing
         where p.ended_at is not null",
        backup.0,
        id.0,
        guest.id.0,
        node.0,
        image.as_str(),
    );
    match noted.execute(conn).await {
        Ok(noted) => Ok(noted.rows_affected() == 1),
        // At the same time.
        Err(sqlx::Error::Database(error)) if error.is_unique_violation() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Gives the guest of it a place on its node; none when something is used up there, or it is not tried any more.
pub async fn choose(
    conn: &mut PgConnection,
    id: GuestId,
    (node, network): (NodeId, GuestNetwork),
) -> sqlx::Result<Option<Place>> {
    if let Some(chosen) = place(&mut *conn, id).await? {
        return Ok(Some(chosen));
    }
    let taken = taken(&mut *conn, node).await?;
    let (Some(ip), Some(port), Some(ids)) = (taken.ip(network, None), taken.port(None), taken.ids()) else {
        return Ok(None);
    };
    sqlx::query!(
        "update backup_proofs set ip = $2, mac = $3, ssh_port = $4, id_range = $5 where id = $1 and node_id is not null",
        id.0,
        ip.to_string(),
        MacAddress::for_ip(ip).to_string(),
        port,
        i64::from(ids.first()),
    )
    .execute(&mut *conn)
    .await?;
    place(conn, id).await
}

async fn place(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<Option<Place>> {
    let row = sqlx::query!("select ip, mac, ssh_port, id_range from backup_proofs where id = $1", id.0);
    let Some(row) = row.fetch_optional(conn).await? else { return Ok(None) };
    place_of(row.ip.as_deref(), row.mac.as_deref(), row.ssh_port, row.id_range)
}

/// Its node lets it be entered, or not any more.
pub async fn set_routed(conn: &mut PgConnection, id: GuestId, routed: bool) -> sqlx::Result<()> {
    let set = sqlx::query!("update backup_proofs set routed = $2 where id = $1 and node_id is not null", id.0, routed);
    set.execute(conn).await.map(drop)
}

/// What was seen so far.
pub async fn tell(conn: &mut PgConnection, id: GuestId, told: &str) -> sqlx::Result<()> {
    let set = sqlx::query!(
        "update backup_proofs set told = left($2, 4000) where id = $1 and node_id is not null",
        id.0,
        told
    );
    set.execute(conn).await.map(drop)
}

/// It was tried, and nothing of the guest is left.
pub async fn end(conn: &mut PgConnection, id: GuestId, passed: bool) -> sqlx::Result<()> {
    if passed {
        sqlx::query!(
            "insert into proven_guests (guest_id, at, taken_at, took_ms)
             select g.id, now(), b.taken_at, extract(epoch from now() - p.began_at) * 1000
             from backup_proofs p join guest_backups b on b.id = p.backup_id join guests g on g.id = b.guest_id
             where p.id = $1 and p.node_id is not null
             on conflict (guest_id) do update set at = excluded.at, taken_at = excluded.taken_at, took_ms = excluded.took_ms",
            id.0
        )
        .execute(&mut *conn)
        .await?;
    }
    let ended = sqlx::query!(
        "update backup_proofs set ended_at = now(), passed = $2, node_id = null, ip = null, mac = null,
             ssh_port = null, id_range = null, image = null, routed = false
         where id = $1 and node_id is not null",
        id.0,
        passed,
    );
    ended.execute(conn).await.map(drop)
}

/// A guest that is on a node because a backup is tried there.
#[derive(Debug, Clone)]
pub struct Tried {
    /// Which.
    pub id: GuestId,
    /// Its address and MAC, and its SSH port once its node is to know them.
    pub routed: Option<(Ipv4Addr, MacAddress, i32)>,
}

/// What the guest of a backup is called that is tried: by a name that is nobody's.
pub fn name(id: GuestId) -> Result<GuestName, corpus_domain::Invalid> {
    format!("proof-{}.invalid", id.0.simple()).parse()
}

/// Those of a node.
pub async fn on_node(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<Tried>> {
    let rows =
        sqlx::query!("select id, ip, mac, ssh_port, routed from backup_proofs where node_id = $1 order by id", node.0);
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        let place = (word_opt(row.ip.as_deref())?, word_opt(row.mac.as_deref())?, row.ssh_port);
        let routed = match place {
            (Some(ip), Some(mac), Some(port)) if row.routed => Some((ip, mac, port)),
            _ => None,
        };
        Ok(Tried { id: GuestId(row.id), routed })
    });
    rows.collect()
}

/// What the guest of a backup that is tried is a clone of.
pub async fn image(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<Option<ImageName>> {
    let found = sqlx::query_scalar!("select image from backup_proofs where id = $1", id.0);
    found.fetch_optional(conn).await?.flatten().map(|image| word(&image)).transpose()
}

/// The latest backup of a guest that is there to be brought back.
pub async fn latest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<BackupId>> {
    let found = sqlx::query_scalar!(
        "select id from guest_backups where guest_id = $1 and state = 'ready' order by taken_at desc limit 1",
        guest.0
    );
    Ok(found.fetch_optional(conn).await?.map(BackupId))
}

/// The moment that a backup is of.
pub async fn taken_at(conn: &mut PgConnection, backup: BackupId) -> sqlx::Result<Option<DateTime<Utc>>> {
    let found = sqlx::query_scalar!("select taken_at from guest_backups where id = $1", backup.0);
    Ok(found.fetch_optional(conn).await?.flatten())
}

/// When it was last shown that the guest can be had back.
pub async fn proven(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<ProvenRestore>> {
    let row = sqlx::query!("select at, taken_at, took_ms from proven_guests where guest_id = $1", guest.0);
    let row = row.fetch_optional(conn).await?;
    row.map(|row| Ok(ProvenRestore { at: row.at, taken_at: row.taken_at, took_ms: number(row.took_ms)? })).transpose()
}
