//! Reading which logins were refused.

use corpus_api::Cursor;
use corpus_api::logins::{ListRefusedLogins, RefusedLoginPage};
use corpus_gate::{Handle, Permit, Result};

use super::{after, lines, page};
use crate::Controller;
use crate::store::logins;

/// The list, for its cursors.
const LIST: &str = "refused logins, the newest first";

impl Handle<ListRefusedLogins> for Controller {
    async fn handle(&self, permit: Permit<ListRefusedLogins>) -> Result<RefusedLoginPage> {
        let (limit, rows) = lines(permit.limit);
        let before = after(permit.cursor.as_ref(), LIST)?;
        let found = logins::list(&mut *permit.connection().await?, &permit, before, rows).await?;
        let (found, next) = page(found, limit, |row| Cursor::after(LIST, &row.place()));
        Ok(RefusedLoginPage { items: found.into_iter().map(|row| row.login).collect(), next })
    }
}
