//! Reading signs of intrusion, and blocking addresses by hand.

use corpus_api::intrusion::{
    AddressBlocked, BlockAddress, BlockedAddressPage, IntrusionSigns, LiftBlock, ListBlockedAddresses,
    ListIntrusionSigns,
};
use corpus_api::{Cursor, Denied};
use corpus_domain::BlockId;
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use uuid::Uuid;

use super::{after, lines, page};
use crate::Controller;
use crate::store::intrusion::{self, blocks};

/// The list, for its cursors.
const LIST: &str = "blocked addresses, the newest first";

impl Handle<ListIntrusionSigns> for Controller {
    async fn handle(&self, permit: Permit<ListIntrusionSigns>) -> Result<IntrusionSigns> {
        let settings = &self.services.settings.intrusion;
        let mut conn = permit.connection().await?;
        let intrusion::Signs { nodes, guests, addresses } = intrusion::signs(&mut conn, settings.window()).await?;
        let blocked = blocks::count(&mut conn).await?;
        Ok(IntrusionSigns { nodes, guests, addresses, blocked, rules: settings.rules() })
    }
}

impl Handle<ListBlockedAddresses> for Controller {
    async fn handle(&self, permit: Permit<ListBlockedAddresses>) -> Result<BlockedAddressPage> {
        let (limit, rows) = lines(permit.limit);
        let before = after(permit.cursor.as_ref(), LIST)?;
        let ended = permit.ended == Some(true);
        let found = blocks::list(&mut *permit.connection().await?, ended, before, rows).await?;
        let (items, next) = page(found, limit, |block| Cursor::after(LIST, &block.id));
        Ok(BlockedAddressPage { items, next })
    }
}

impl Handle<BlockAddress> for Controller {
    async fn handle(&self, mut change: Change<BlockAddress>) -> Result<Committed<BlockAddress>> {
        let (asked, by) = (change.operation(), change.who().id);
        let (address, minutes) = (asked.address, u32::try_from(asked.minutes.get()).unwrap_or(u32::MAX));
        let id = BlockId(Uuid::now_v7());
        let tx = change.transaction().await?;
        if let Some(net) = blocks::spared(tx, &self.services.settings.intrusion.never_block).await?.holds(address) {
            let message = format!("{address} is never blocked: {net} is of Corpus itself, of guests, or trusted.");
            return Err(Error::field("address", message));
        }
        if blocks::hold_adding(tx).await?.0 == 0 {
            return Err(Error::Conflict("There are as many blocked addresses as can be: lift one.".to_owned()));
        }
        let why = asked.reason.as_str();
        let block = blocks::NewBlock { id, address, why, minutes, by: Some(by), node: None };
        let until = blocks::insert(tx, &block).await;
        let until = until.map_err(|error| Error::taken(error, "address", format!("{address} is blocked already.")))?;
        let subject = address.to_string();
        let detail = json!({ "minutes": minutes, "until": until, "reason": why });
        let entry = Entry::new("address.block", &subject).id(id.0).detail(detail);
        let committed = change.commit(entry, AddressBlocked { block: id }).await?;
        self.services.surroundings_changed.notify_one();
        Ok(committed)
    }
}

impl Handle<LiftBlock> for Controller {
    async fn handle(&self, mut change: Change<LiftBlock>) -> Result<Committed<LiftBlock>> {
        let (id, by) = (change.block, change.who().id);
        let tx = change.transaction().await?;
        let address = blocks::lift(tx, id, by).await?.ok_or(Denied::NotFound)?;
        intrusion::forgive(tx, address).await?;
        let subject = address.to_string();
        let entry = Entry::new("address.unblock", &subject).id(id.0);
        let committed = change.commit(entry, AddressBlocked { block: id }).await?;
        self.services.surroundings_changed.notify_one();
        Ok(committed)
    }
}
