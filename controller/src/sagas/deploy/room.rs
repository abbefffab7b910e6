//! More storage for a guest whose deployment needs it for its archive.
//!
//! The guest waits a while for it and then goes on without: so nothing here fails a deployment.

use std::time::Duration;

use corpus_domain::{Bytes, SizeProfile};
use corpus_protocol::Request;
use serde_json::json;

use super::Ctx;
use crate::jobs::StepError;
use crate::sagas::guest_calls::On;
use crate::sagas::node_calls::ask_once;
use crate::store::{audit, guests};
use crate::views::GuestView;

/// Longer than the guest waits there is no use in trying.
const LIMIT: Duration = Duration::from_secs(40);

/// Gives the guest storage of the next size that has so many bytes more, if it can have it.
pub async fn make(ctx: &Ctx, on: &On, missing: Bytes) -> Result<(), StepError> {
    let mut conn = ctx.services().db.acquire().await?;
    let guest = guests::get(&mut conn, on.guest).await?;
    drop(conn);
    let Some(guest) = guest.filter(|guest| guest.backing.has_size()) else { return Ok(()) };
    let wanted = Bytes(guest.size.storage().0.saturating_add(missing.0));
    let Some(size) = guest.size.next_with(wanted) else {
        ctx.log(format!("{} needs {} more storage, and has the largest already", guest.name, missing.gib()));
        return Ok(());
    };
    ctx.log(format!("{} needs {} more storage: it gets {size}, {}", guest.name, missing.gib(), size.storage().gb()));
    let request = Request::EnsureSize { name: guest.name.clone(), size };
    match ask_once(ctx, guest.node_id, request, LIMIT).await {
        Ok(_) => keep(ctx, on, &guest, size).await,
        Err(error) => {
            ctx.log(format!("it did not get it: {error}"));
            Ok(())
        }
    }
}

async fn keep(ctx: &Ctx, on: &On, guest: &GuestView, size: SizeProfile) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    guests::set_size(&mut tx, guest.id, size).await?;
    let entry = audit::Entry {
        action: "guest.enlarge",
        subject: guest.name.as_str(),
        subject_id: Some(guest.id.0),
        detail: json!({ "from": guest.size, "to": size, "deployment": ctx.params().deployment, "project": on.name }),
    };
    audit::write_as(&mut tx, ctx.created_by().map(|by| by.0), on.name.as_str(), entry).await?;
    Ok(tx.commit().await?)
}
