//! What a job on a guest, or of a firewall, leaves that was cancelled before it began.
//!
//! What it was to do was noted with the request: the guest's row, its state, what it is promised. The undo that takes
//! it back never runs, since nothing began; so it is taken back with the cancel, or it would count for ever.

use corpus_domain::{BackupId, DnsNameId, GuestId, GuestState, JobId, JobKind, NameState};
use sqlx::PgConnection;

use super::{delete, set_limits, set_state, settle_storage};
use crate::store::{
    backups, environments, firewall, json, lxc_lines, made_images, moves, names, pointers, snapshots, word,
};

/// Takes a guest, or a name of it, back to where it was before the job was submitted.
pub async fn left_by(conn: &mut PgConnection, job: JobId) -> sqlx::Result<()> {
    let row = sqlx::query!("select kind, guest_id, params from jobs where id = $1", job.0);
    let Some(row) = row.fetch_optional(&mut *conn).await? else { return Ok(()) };
    let kind = word::<JobKind>(&row.kind)?;
    if kind == JobKind::FirewallApply {
        return firewall::left_by(conn, json(row.params)?).await;
    }
    let param = |name: &str| row.params.get(name).cloned().unwrap_or_default();
    if kind == JobKind::BackupRemove {
        return backups::back(conn, &json::<Vec<BackupId>>(param("ids"))?).await;
    }
    let Some(guest) = row.guest_id.map(GuestId) else { return Ok(()) };
    match kind {
        JobKind::GuestCreate => {
            names::delete_of_guest(conn, guest).await?;
            environments::delete(conn, guest).await?;
            delete(conn, guest).await
        }
        JobKind::GuestStart => back(conn, guest, GuestState::Starting, GuestState::Stopped).await,
        JobKind::GuestStop => back(conn, guest, GuestState::Stopping, GuestState::Running).await,
        JobKind::GuestRestart => back(conn, guest, GuestState::Starting, GuestState::Running).await,
        JobKind::GuestDestroy => kept(conn, guest).await,
        JobKind::GuestEnlarge => settle_storage(conn, guest).await,
        JobKind::SnapshotTake => snapshots::delete(conn, json(param("id"))?).await,
        JobKind::SnapshotRemove => snapshots::back(conn, json(param("id"))?).await,
        JobKind::SnapshotRestore => {
            snapshots::back(&mut *conn, json(param("snapshot"))?).await?;
            back(conn, guest, GuestState::Starting, GuestState::Running).await
        }
        JobKind::BackupTake => backups::delete(conn, &[json(param("id"))?]).await,
        JobKind::ImageMake => made_images::settle(conn, json(param("image"))?).await,
        JobKind::GuestMove | JobKind::GuestEvacuate => moves::settle(conn, guest).await,
        JobKind::GuestLimit => set_limits(conn, guest, json(param("from"))?).await,
        JobKind::GuestConfigure => lxc_lines::set_settings(conn, guest, &json(param("from"))?).await,
        JobKind::NameAttach => names::delete(conn, json::<DnsNameId>(param("id"))?).await,
        JobKind::GuestPoint => {
            let from: Option<pointers::PointedName> = json(param("from"))?;
            pointers::point_back(conn, guest, from.as_ref()).await
        }
        JobKind::NameDetach => names::set_state(conn, json(param("id"))?, NameState::Attached, None).await,
        _ => Ok(()),
    }
}

async fn back(conn: &mut PgConnection, id: GuestId, from: GuestState, to: GuestState) -> sqlx::Result<()> {
    set_state(conn, id, &[from], to, None).await.map(drop)
}

/// A guest that is not destroyed after all is what it should be; the next reading of its node says what it is.
async fn kept(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<()> {
    let keep = sqlx::query!(
        "update guests set state = case when should_run then 'running' else 'stopped' end, state_reason = null,
             state_since = now() where id = $1 and state = 'destroying'",
        id.0,
    );
    keep.execute(conn).await.map(drop)
}
