//! More storage for a guest whose deployment needs it for its archive.
//!
//! The guest waits a while for it and then goes on without: so nothing here fails a deployment. How
//! much it needs is its own word, and its node's disk is shared with others: it grows as far as the
//! environment's maintainers let it (`storage_limit` of its settings), and no further by itself.

use std::time::Duration;

use corpus_domain::{Bytes, SizeProfile};
use corpus_protocol::Request;
use serde_json::json;

use super::Ctx;
use crate::jobs::StepError;
use crate::project_settings;
use crate::sagas::guest_calls::{On, placement};
use crate::sagas::node_calls::ask_once;
use crate::store::guests::GuestRow;
use crate::store::{audit, guests, nodes};

/// Longer than the guest waits there is no use in trying.
const LIMIT: Duration = Duration::from_secs(40);

/// Gives the guest storage of the next size that has so many bytes more, if it can have it.
pub async fn make(ctx: &Ctx, on: &On, missing: Bytes) -> Result<(), StepError> {
    let placement = placement(ctx, on).await?;
    let mut conn = ctx.services().db.acquire().await?;
    let guest = guests::get(&mut conn, on.guest).await?;
    let node = nodes::get(&mut conn, on.node).await?;
    drop(conn);
    let Some(guest) = guest.filter(|guest| guest.backing.has_size()) else { return Ok(()) };
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
    if let Some(refused) = node.and_then(|node| guest.storage_free(&node, size).err()) {
        ctx.log(format!("{} needs {} more storage: refused, since {refused}", guest.name, missing.gib()));
        return Ok(());
    }
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

/// The next size that has so many bytes more, within the limit.
fn next(size: SizeProfile, missing: Bytes, limit: SizeProfile) -> Option<SizeProfile> {
    let wanted = Bytes(size.storage().0.saturating_add(missing.0));
    size.next_with(wanted).filter(|next| next.storage() <= limit.storage())
}

async fn keep(ctx: &Ctx, on: &On, guest: &GuestRow, size: SizeProfile) -> Result<(), StepError> {
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
