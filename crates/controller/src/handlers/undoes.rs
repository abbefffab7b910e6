//! Undoing what one has changed oneself.
//!
//! Nothing of it has rules of its own: the reverse is judged, done and audited as the operation that it is, and the
//! change that is undone is used up in the same transaction.

use corpus_api::environments::SetEnvironmentSettings;
use corpus_api::environments::balance::AttachEnvironmentName;
use corpus_api::keys::AddKey;
use corpus_api::names::{AttachName, SwitchName};
use corpus_api::projects::members::SetMember;
use corpus_api::undoes::{ListUndoes, Undo, UndoPage, Undone};
use corpus_api::{Denied, Operation, Write};
use corpus_domain::{DnsName, GuestId};
use corpus_gate::audit::{self, Entry};
use corpus_gate::{Ask, Change, Committed, Error, Handle, Instead, Last, Permit, Result};

use super::lines;
use crate::ssh_keys::{KeyRefused, MemberKey};
use crate::store::undoes::{self, Kept, Reverse};
use crate::store::{keys, names};
use crate::{Controller, changed};

impl Handle<ListUndoes> for Controller {
    async fn handle(&self, permit: Permit<ListUndoes>) -> Result<UndoPage> {
        let (limit, _) = lines(permit.limit);
        let (who, visible, limit) = (permit.who().id, permit.visible(), i64::try_from(limit).unwrap_or(50));
        let mut conn = permit.connection().await?;
        let items = undoes::list(&mut conn, who, visible.as_deref(), &permit, limit).await?;
        Ok(UndoPage { items, next: None })
    }
}

impl Handle<Undo> for Controller {
    async fn handle(&self, change: Change<Undo>) -> Result<Committed<Undo>> {
        let (id, who) = (change.undo, change.who().id);
        let kept = undoes::get(&mut *change.connection().await?, who, id).await?.ok_or(Denied::NotFound)?;
        match kept.reverse.clone() {
            Reverse::Key { line } => {
                let key: MemberKey = line.parse().map_err(|error: KeyRefused| Error::Conflict(error.to_string()))?;
                let reverse = AddKey { line: line.parse()? };
                let (mut change, instead) = self.reverse(change, kept, reverse).await?;
                is_nobodys(&mut change, &key).await?;
                Ok(instead.done(self.keep_key(change, &key).await?))
            }
            Reverse::Member { project, login, role } => {
                let (change, instead) = self.reverse(change, kept, SetMember { project, login, role }).await?;
                Ok(instead.done(self.give_back(change).await?))
            }
            Reverse::Name { guest, name, environment: Some((project, environment)) } => {
                let reverse = AttachEnvironmentName { project, environment, name: name.clone() };
                let (change, instead) = self.reverse(change, kept, reverse).await?;
                is_detached(&change, guest, &name).await?;
                Ok(instead.done(Handle::<AttachEnvironmentName>::handle(self, change).await?))
            }
            Reverse::Switch { name, guest, environment } => {
                let reverse = SwitchName { name, guest, environment };
                let (change, instead) = self.reverse(change, kept, reverse).await?;
                Ok(instead.done(self.switch(change, false).await?))
            }
            Reverse::Name { guest, name, environment: None } => {
                let reverse = AttachName { guest, name: name.clone(), wildcard: false };
                let (change, instead) = self.reverse(change, kept, reverse).await?;
                is_detached(&change, guest, &name).await?;
                Ok(instead.done(Handle::<AttachName>::handle(self, change).await?))
            }
            Reverse::Settings { project, environment, settings, version } => {
                let reverse = SetEnvironmentSettings { project, environment, settings: None, version };
                let (change, instead) = self.reverse(change, kept, reverse).await?;
                let set = self.configure(change, settings, false).await;
                Ok(instead.done(set.map_err(changed::nothing_undone)?))
            }
        }
    }
}

impl Controller {
    /// Goes on as the reverse, if they may do that now.
    async fn reverse<P: Ask<Kind = Write>>(
        &self,
        change: Change<Undo>,
        Kept { said, path, .. }: Kept,
        reverse: P,
    ) -> Result<(Change<P>, Instead<Undo, P>)> {
        let (undo, who) = (change.undo, change.who());
        let last: Last = Box::new(move |conn, _| {
            Box::pin(async move {
                if !undoes::spend(conn, undo).await? {
                    return Err(Error::Conflict("This is undone already.".to_owned()));
                }
                Ok(audit::write(conn, &*who, Entry::new("undo", &said).id(undo.0)).await?)
            })
        });
        change.instead(&self.gate, reverse, Undone { undo, path }, last).await
    }
}

/// Refuses a key that somebody added meanwhile.
async fn is_nobodys<O: Operation<Kind = Write>>(change: &mut Change<O>, key: &MemberKey) -> Result<()> {
    let who = change.who().id;
    match keys::owner(change.transaction().await?, key.fingerprint()).await? {
        None => Ok(()),
        Some(owner) if owner == who => Err(Error::Conflict("You have added this key again already.".to_owned())),
        Some(_) => Err(Error::Conflict("Another account has added this key meanwhile.".to_owned())),
    }
}

/// Refuses a name that still leads to its guest: the job that detaches it is on its way, or failed.
async fn is_detached<O: Operation<Kind = Write>>(change: &Change<O>, guest: GuestId, name: &DnsName) -> Result<()> {
    let connection = change.connection();
    let still = names::of_guest(&mut *connection.await?, guest)
        .await?
        .into_iter()
        .any(|one| one.name == *name && !one.wildcard);
    if still { Err(Error::Conflict(format!("{name} is not detached yet; undo it when it is."))) } else { Ok(()) }
}
