//! Reading the audit.

use corpus_api::Cursor;
use corpus_api::audit::{AuditExport, AuditOrder, AuditPage, ExportAudit, ListAudit};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};

use super::{after, lines, page};
use crate::Controller;
use crate::store::audit::{self, Place, Reader};

/// The list, for its cursors.
const fn list(order: AuditOrder) -> &'static str {
    match order {
        AuditOrder::Newest => "audit by time",
        AuditOrder::Oldest => "audit by time, the oldest first",
    }
}

impl Handle<ListAudit> for Controller {
    async fn handle(&self, permit: Permit<ListAudit>) -> Result<AuditPage> {
        let (limit, rows) = lines(permit.limit);
        let list = list(permit.sort.unwrap_or_default());
        let beyond = after(permit.cursor.as_ref(), list)?;
        let (who, projects) = (permit.who().id, permit.visible());
        let reader = projects.as_deref().map_or(Reader::Ops, |projects| Reader::Member(who, projects));
        let found = audit::list(&mut *permit.connection().await?, reader, &permit, beyond, rows).await?;
        let (items, next) = page(found, limit, |entry| Cursor::after(list, &Place::of(entry)));
        Ok(AuditPage { items, next })
    }
}

/// That it is exported, and what, is in the audit before the first line of the file is sent. A door reads the file, as
/// pages of the list.
impl Handle<ExportAudit> for Controller {
    async fn handle(&self, change: Change<ExportAudit>) -> Result<Committed<ExportAudit>> {
        let (format, asked) = (change.format, change.list());
        let detail = serde_json::to_value(&*change).map_err(|error| Error::Internal {
            message: "what is exported can't be written",
            source: Box::new(error),
        })?;
        let entry = Entry::new("audit.export", "audit").detail(without_null(detail));
        change.commit(entry, AuditExport { format, asked }).await
    }
}

/// What was asked, and nothing of what was not.
fn without_null(mut detail: serde_json::Value) -> serde_json::Value {
    if let Some(fields) = detail.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    detail
}
