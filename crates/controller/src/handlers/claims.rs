//! Claims of DNS names from elsewhere.

use corpus_api::claims::{
    AskNameClaim, ClaimName, GetNameClaim, ListNameClaims, NameClaim, NameClaimPage, NameClaimWithdrawn, NameClaimed,
    WithdrawNameClaim,
};
use corpus_api::{Cursor, Denied};
use corpus_domain::{DnsName, ProjectId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use rand::RngExt;
use serde_json::json;

use super::name_rules::not_free;
use super::{after, lines, page};
use crate::rules::kept_for_nodes;
use crate::store::names::Near;
use crate::store::{claims, guests, names, zones};
use crate::{Controller, quotas};

/// The list, for its cursors.
const LIST: &str = "name-claims";
/// How many claims a project has at once.
const MOST: i64 = 20;

impl Handle<ListNameClaims> for Controller {
    async fn handle(&self, permit: Permit<ListNameClaims>) -> Result<NameClaimPage> {
        let (limit, rows) = lines(permit.limit);
        let before = after(permit.cursor.as_ref(), LIST)?;
        let visible = permit.visible();
        let mut conn = permit.connection().await?;
        let found = claims::list(&mut conn, &permit, visible.as_deref(), before, rows).await?;
        let (items, next) = page(found, limit, |claim| Cursor::after(LIST, &claim.id));
        Ok(NameClaimPage { items, next })
    }
}

impl Handle<GetNameClaim> for Controller {
    async fn handle(&self, permit: Permit<GetNameClaim>) -> Result<NameClaim> {
        Ok(claims::get(&mut *permit.connection().await?, permit.claim).await?.ok_or(Denied::NotFound)?)
    }
}

impl Handle<ClaimName> for Controller {
    async fn handle(&self, mut change: Change<ClaimName>) -> Result<Committed<ClaimName>> {
        let (id, name, who, project) = (change.guest, change.name.clone(), change.who(), change.project()?);
        let more = quotas::More { names: 1, ..quotas::More::default() };
        quotas::take(&mut change, project, more, |_| "name").await?;
        let tx = change.transaction().await?;
        let guest = guests::get(tx, id).await?.ok_or(Denied::NotFound)?;
        self.may_be_claimed(tx, who.ops, project, &name).await?;
        if claims::count(tx, project).await? >= MOST {
            let why = format!("A project has at most {MOST} claims at once: withdraw one that is not needed any more.");
            return Err(Error::field("name", why));
        }
        let token = format!("{:032x}", rand::rng().random::<u128>());
        let claim = claims::insert(tx, &name, id, &token, who.id).await;
        let claim = claim
            .map_err(|error| Error::taken(error, "name", format!("{name} is claimed for this project already.")))?;
        let entry = Entry::new("name.claim", name.as_str()).id(claim.0).detail(json!({ "guest": guest.name }));
        change.commit(entry, NameClaimed { claim }).await
    }
}

impl Handle<AskNameClaim> for Controller {
    async fn handle(&self, mut change: Change<AskNameClaim>) -> Result<Committed<AskNameClaim>> {
        let claim = change.claim;
        let name = claims::ask_now(change.transaction().await?, claim).await?.ok_or(Denied::NotFound)?;
        change.commit(Entry::new("name_claim.ask", name.as_str()).id(claim.0), NameClaimed { claim }).await
    }
}

impl Handle<WithdrawNameClaim> for Controller {
    async fn handle(&self, mut change: Change<WithdrawNameClaim>) -> Result<Committed<WithdrawNameClaim>> {
        let claim = change.claim;
        let name = claims::delete(change.transaction().await?, claim).await?.ok_or(Denied::NotFound)?;
        let entry = Entry::new("name_claim.withdraw", name.as_str()).id(claim.0);
        change.commit(entry, NameClaimWithdrawn { claim }).await
    }
}

impl Controller {
    /// Refuses what is no name from elsewhere, and what nobody's guest may be called.
    async fn may_be_claimed(
        &self,
        conn: &mut sqlx::PgConnection,
        by_ops: bool,
        project: ProjectId,
        name: &DnsName,
    ) -> Result<()> {
        if let Some(zone) = zones::holding(conn, name, project).await? {
            // Which zones there are is nothing for those who may take no name in them.
            let why = if zone.takes {
                format!("{name} is in the zone {}, which is ours: attach it as a name of that zone.", zone.name)
            } else {
                not_free(name)
            };
            return Err(Error::field("name", why));
        }
        if let Some(why) = kept_for_nodes(name) {
            return Err(Error::field("name", why));
        }
        if !by_ops && let Some(why) = self.services.settings.rules.reserved_elsewhere(name) {
            return Err(Error::field("name", why));
        }
        names::hold_all(conn).await?;
        if names::is_of_others(conn, name, project, Near::Proven).await? {
            return Err(Error::field("name", not_free(name)));
        }
        Ok(())
    }
}
