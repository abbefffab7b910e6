//! Reading the audit.

use corpus_api::Cursor;
use corpus_api::audit::{AuditPage, ListAudit};
use corpus_gate::{Handle, Permit, Result};

use super::{after, lines, page};
use crate::Controller;
use crate::store::audit;

/// The list, for its cursors.
const LIST: &str = "audit";

impl Handle<ListAudit> for Controller {
    async fn handle(&self, permit: Permit<ListAudit>) -> Result<AuditPage> {
        let (limit, rows) = lines(permit.limit);
        let before = after(permit.cursor.as_ref(), LIST)?;
        let found = audit::list(&mut *permit.connection().await?, &permit, before, rows).await?;
        let (found, next) = page(found, limit, |row| Cursor::after(LIST, &row.id));
        Ok(AuditPage { items: found.into_iter().map(|row| row.entry).collect(), next })
    }
}
