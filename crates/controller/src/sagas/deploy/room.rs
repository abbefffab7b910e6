//! More storage for a guest whose deployment needs it for its archive.
//!
//! The guest waits a while for it and then goes on without: so nothing here fails a deployment. How
//! much it needs is its own word, and its node's disk is shared with others: it grows as far as the
//! environment's maintainers let it (`storage_limit` of its settings), within its project's quota, and no further
//! by itself.

use std::time::Duration;

use corpus_domain::{Bytes, Door, JobKind, Room, SizeProfile};
use corpus_protocol::Request;
use serde_json::json;

use super::Ctx;
use crate::jobs::StepError;
use crate::quotas::More;
use crate::sagas::guest_calls::{On, placement};
use crate::sagas::node_calls::ask_once;
use crate::store::audit::{self, Author};
use crate::store::guests::GuestRow;
use crate::store::{guest_storage, guests, nodes};
use crate::{project_settings, quotas, store};

/// Longer than the guest waits there is no use in trying.
const LIMIT: Duration = Duration::from_secs(40);

/// Gives the guest storage of the next size that has so many bytes more, if it can have it.
pub async fn make(ctx: &Ctx, on: &On, missing: Bytes) -> Result<(), StepError> {
    let placement = placement(ctx, on).await?;
    let mut conn = ctx.services().db.acquire().await?;
    let Some(guest) = guests::get(&mut conn, on.guest).await? else { return Ok(()) };
    let is_held = guest_storage::is_held(&mut conn, &guest).await?;
    drop(conn);
    if !is_held {
        return Ok(());
    }
    let limit = project_settings::storage_limit(&placement.settings);
    let Some(size) = next(guest.size, missing, limit) else {
        ctx.log(format!(
            "{} needs {} more storage: refused, since {} is all that it gets by itself (storage_limit of the \
             environment's settings); a maintainer enlarges it on its page, or raises the limit",
            guest.name,
            missing.gib(),
            limit.storage().gb()
        ));
        return Ok(());
    };
    if let Some(refused) = promise(ctx, &guest, size).await? {
        ctx.log(format!("{} needs {} more storage: refused, since {refused}", guest.name, missing.gib()));
        return Ok(());
    }
    ctx.log(format!("{} needs {} more storage: it gets {size}, {}", guest.name, missing.gib(), size.storage().gb()));
    let request = Request::EnsureSize { name: guest.name.clone(), size, shrink: false };
    match ask_once(ctx, guest.node_id, request, LIMIT).await {
        Ok(_) => keep(ctx, on, &guest, size).await,
        Err(error) => {
            ctx.log(format!("it did not get it: {error}"));
            take_back(ctx, &guest).await
        }
    }
}

/// Promises the guest its next size, as a maintainer's request would: else why not.
async fn promise(ctx: &Ctx, guest: &GuestRow, size: SizeProfile) -> Result<Option<String>, StepError> {
    let mut tx = ctx.begin().await?;
    store::quotas::hold(&mut tx, guest.project_id).await?;
    nodes::lock(&mut tx, guest.node_id).await?;
    guests::hold(&mut tx, guest.id).await?;
    let Some(guest) = guests::get(&mut tx, guest.id).await? else { return Ok(Some("it is gone".to_owned())) };
    let node = nodes::get(&mut tx, guest.node_id).await?;
    if let Some(refused) = node.and_then(|node| guest.storage_free(&node, size).err()) {
        return Ok(Some(refused));
    }
    let room = Room { storage: guest.storage_more(size), ..Room::default() };
    let more = More { room, ..More::default() };
    if let Some(excess) = quotas::now(&mut tx, guest.project_id, more).await?.pop() {
        return Ok(Some(format!("{}; an operator can raise its quota", excess.text)));
    }
    guests::promise_storage(&mut tx, guest.id, size).await?;
    tx.commit().await?;
    Ok(None)
}

/// It is not promised any more what it did not get, unless a member enlarges it meanwhile.
async fn take_back(ctx: &Ctx, guest: &GuestRow) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    if !guests::is_being(&mut tx, guest.id, JobKind::GuestEnlarge).await? {
        guests::settle_storage(&mut tx, guest.id).await?;
    }
    Ok(tx.commit().await?)
}

/// The next size that has so many bytes more, within the limit.
fn next(size: SizeProfile, missing: Bytes, limit: SizeProfile) -> Option<SizeProfile> {
    let wanted = Bytes(size.storage().0.saturating_add(missing.0));
    size.next_with(wanted).filter(|next| next.storage() <= limit.storage())
}

async fn keep(ctx: &Ctx, on: &On, guest: &GuestRow, size: SizeProfile) -> Result<(), StepError> {
    let mut tx = ctx.begin().await?;
    guests::set_size(&mut tx, guest.id, size).await?;
    let detail = json!({ "from": guest.size, "to": size, "deployment": ctx.params().deployment, "project": on.name });
    let entry = audit::Entry::new("guest.enlarge", guest.name.as_str()).id(guest.id.0);
    let author = Author::new(ctx.created_by(), on.name.as_str(), Door::Job);
    audit::write(&mut tx, author, entry.of_project(on.project).detail(detail)).await?;
    Ok(tx.commit().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_the_limit_and_no_further() {
        let (small, large) = (SizeProfile::Small, SizeProfile::Large);
        assert_eq!(next(small, Bytes(1), large), Some(SizeProfile::Medium));
        assert_eq!(next(small, Bytes(15_000_000_000), large), Some(large));
        for too_much in [15_000_000_001, 1_000_000_000_000, u64::MAX] {
            assert_eq!(next(small, Bytes(too_much), large), None, "{too_much}");
        }
        assert_eq!(next(SizeProfile::Xtrem, Bytes(1), large), None, "what a maintainer gave it stays");
    }
}
