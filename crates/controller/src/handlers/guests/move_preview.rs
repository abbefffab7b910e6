//! What would come of moving a guest, said before it is moved.

use corpus_api::Denied;
use corpus_api::moves::{MovePreview, MovedPointer, PreviewMove};
use corpus_domain::GuestState;
use corpus_gate::{Handle, Permit, Result};
use sqlx::PgConnection;

use super::super::pointers::lost_at;
use crate::Controller;
use crate::store::guests::{self, GuestRow};
use crate::store::{move_times, pointers};

impl Handle<PreviewMove> for Controller {
    async fn handle(&self, permit: Permit<PreviewMove>) -> Result<MovePreview> {
        let mut conn = permit.connection().await?;
        let guest = guests::get(&mut conn, permit.guest).await?.ok_or(Denied::NotFound)?;
        let pointer = pointer(&mut conn, &guest, &permit).await?;
        let downtime = match guest.state {
            GuestState::Running => move_times::expected(&mut conn, guest.id).await?,
            _ => None,
        };
        Ok(MovePreview { downtime, pointer })
    }
}

async fn pointer(conn: &mut PgConnection, guest: &GuestRow, asked: &PreviewMove) -> Result<Option<MovedPointer>> {
    let Some(pointed) = pointers::of_guest(&mut *conn, guest.id).await? else { return Ok(None) };
    let Some(address) = guest.ip else { return Ok(None) };
    let lost_at = lost_at(conn, guest.node_id, asked.node).await?;
    Ok(Some(MovedPointer { address, name: pointed.name, lost_at }))
}
