//! Who is signed in, who was refused, and what the directory says of members meanwhile.
//!
//! A member who is disabled has no role and no session from the same transaction on. Whenever
//! what a member may enter changes, the nodes of the guests concerned get a job that brings
//! the keys there, so nobody stays in a guest, or out of it, by a key that was left behind.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use corpus_domain::{Door, GuestId, NodeId, UserId, UserName};
use serde_json::{Value, json};
use sqlx::PgTransaction;

use crate::store::audit::{self, Author};
use crate::store::logins::{self, RefusedLogins};
use crate::store::users::SignIn;
use crate::store::{keys, users};
use crate::{Controller, Result};
use corpus_api::Principal;

impl Controller {
    /// The member of a session; none when the account is gone or disabled.
    pub async fn principal(&self, id: UserId) -> Result<Option<Principal>> {
        let mut conn = self.services.db.acquire().await?;
        Ok(users::principal(&mut conn, id).await?)
    }

    /// The member of a session that began in this epoch; none when the account is gone or
    /// disabled, or its sessions were ended since.
    pub async fn principal_since(&self, id: UserId, epoch: i32) -> Result<Option<Principal>> {
        let mut conn = self.services.db.acquire().await?;
        let found = users::principal_now(&mut conn, id).await?;
        // No session is a robot's, whatever one says.
        Ok(found.filter(|(who, now)| *now == epoch && who.robot.is_none()).map(|(principal, _)| principal))
    }

    /// The epoch that a session of the member begins in now; none when the account is disabled, or a robot's.
    pub async fn epoch(&self, id: UserId) -> Result<Option<i32>> {
        let mut conn = self.services.db.acquire().await?;
        let found = users::principal_now(&mut conn, id).await?;
        Ok(found.filter(|(who, _)| who.robot.is_none()).map(|(_, epoch)| epoch))
    }

    /// Takes over what the directory said of a member who just proved to be that member, at a page.
    pub async fn sign_in(&self, who: SignIn, from: &str) -> Result<UserId> {
        self.sign_in_by(Door::Page, who, from).await
    }

    /// The same by another door.
    pub async fn sign_in_by(&self, door: Door, who: SignIn, from: &str) -> Result<UserId> {
        let mut tx = self.services.begin().await?;
        let before = match users::hold(&mut tx, who.realm, &who.login).await? {
            Some(id) => keys::guests_of_user(&mut tx, id).await?,
            None => BTreeSet::new(),
        };
        let id = users::sign_in(&mut tx, &who).await?;
        self.keys_follow(&mut tx, id, &before).await?;
        let detail = json!({ "realm": who.realm, "from": from, "ops": who.ops });
        let entry = audit::Entry::new("login", who.login.as_str()).id(id.0).detail(detail);
        audit::write(&mut tx, Author::new(Some(id), who.login.as_str(), door), entry).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// The members of the directory who are not disabled, oldest first.
    pub async fn ldap_members(&self) -> Result<Vec<(UserId, UserName)>> {
        let mut conn = self.services.db.acquire().await?;
        Ok(users::of_directory(&mut conn).await?)
    }

    /// Takes over what the directory says now of one of its members: `None` disables, anything
    /// else updates. Answers whether that was a change; a member disabled already stays so.
    pub async fn directory_says(&self, id: UserId, who: Option<SignIn>) -> Result<bool> {
        let mut tx = self.services.begin().await?;
        let Some(known) = users::hold_of_directory(&mut tx, id).await? else { return Ok(false) };
        let before = keys::guests_of_user(&mut tx, id).await?;
        let (action, detail) = match who {
            None => ("member.disable", json!({ "sessions": users::disable(&mut tx, id).await? })),
            Some(who) => {
                let Some(change) = difference(&known, &who) else { return Ok(false) };
                users::update(&mut tx, id, &who).await?;
                change
            }
        };
        let entry = audit::Entry::new(action, known.login.as_str()).id(id.0).detail(detail);
        audit::write(&mut tx, Author::new(None, "directory", Door::Corpus), entry).await?;
        self.keys_follow(&mut tx, id, &before).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Queues the jobs that bring a member's keys to where the member may enter now, and take
    /// them from where not any more. The caller holds the member's row.
    pub(crate) async fn keys_follow(
        &self,
        tx: &mut PgTransaction<'_>,
        id: UserId,
        before: &BTreeSet<(NodeId, GuestId)>,
    ) -> Result<()> {
        let after = keys::guests_of_user(tx, id).await?;
        // Who has no key yet brings one with a job of its own. What is lost is always cleaned.
        let gained = keys::has_any(tx, id).await?;
        let gained = after.difference(before).filter(|_| gained);
        let nodes = before.difference(&after).chain(gained).map(|(node, _)| *node).collect();
        self.queue_keys_sync(tx, nodes, None).await
    }

    /// Notes a logout.
    pub async fn sign_out(&self, principal: &Principal) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let entry = audit::Entry::new("logout", principal.login.as_str()).id(principal.id.0);
        Ok(audit::write(&mut conn, principal, entry).await?)
    }

    /// Counts logins that were refused.
    pub async fn count_refused_logins(&self, new: &[RefusedLogins]) -> Result<()> {
        let mut tx = self.services.begin().await?;
        logins::refused(&mut tx, new).await?;
        Ok(tx.commit().await?)
    }

    /// Keeps that a member signed in from a network: what others try from elsewhere keeps nobody out there.
    pub async fn signed_in_from(&self, login: &UserName, network: &str) -> Result<()> {
        let mut tx = self.services.begin().await?;
        logins::signed_in_from(&mut tx, login, network).await?;
        Ok(tx.commit().await?)
    }

    /// Whether a member signed in from a network before.
    pub async fn knows_place(&self, login: &UserName, network: &str) -> Result<bool> {
        let mut conn = self.services.db.acquire().await?;
        Ok(logins::knows_place(&mut conn, login, network).await?)
    }
}

/// What is new, as an action and its detail for the audit; none when nothing is.
fn difference(known: &SignIn, who: &SignIn) -> Option<(&'static str, Value)> {
    let (was, now) = (known.strongest(), who.strongest());
    if (known.ops, &was) != (who.ops, &now) {
        let entry = json!({ "ops": who.ops, "roles": now, "before": { "ops": known.ops, "roles": was } });
        return Some(("member.roles", entry));
    }
    let same = (&known.display_name, &known.mail) == (&who.display_name, &who.mail);
    (!same).then(|| ("member.profile", json!({ "name": who.display_name, "mail": who.mail })))
}
