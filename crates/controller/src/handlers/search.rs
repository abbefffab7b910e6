//! Everything that has a name, found by it.

use corpus_api::search::{Found, Search};
use corpus_api::zones::GetZone;
use corpus_gate::{Handle, Permit, Result};

use crate::Controller;
use crate::store::search::{Terms, find};

impl Handle<Search> for Controller {
    async fn handle(&self, permit: Permit<Search>) -> Result<Found> {
        let (terms, zones) = (Terms::of(permit.q.as_str()), permit.who().can::<GetZone>(None));
        let found = find(&mut *permit.connection().await?, &terms, permit.visible().as_deref(), zones).await?;
        Ok(Found { items: found })
    }
}
