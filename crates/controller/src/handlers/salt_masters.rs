//! Which Salt masters of the controller there are.

use corpus_api::Cursor;
use corpus_api::salt_masters::{ListSaltMasters, SaltMasterPage};
use corpus_gate::{Handle, Permit, Result};

use super::{after, lines, page};
use crate::Controller;
use crate::store::salt_masters;

/// The list, for its cursors.
const LIST: &str = "Salt masters by name";

impl Handle<ListSaltMasters> for Controller {
    async fn handle(&self, permit: Permit<ListSaltMasters>) -> Result<SaltMasterPage> {
        let (limit, rows) = lines(permit.limit);
        let from: Option<String> = after(permit.cursor.as_ref(), LIST)?;
        let found = salt_masters::list(&mut *permit.connection().await?, from.as_deref(), rows).await?;
        let (items, next) = page(found, limit, |master| Cursor::after(LIST, &master.name));
        Ok(SaltMasterPage { items, next })
    }
}
