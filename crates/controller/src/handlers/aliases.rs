//! Names that are another name for one of the same project.

use corpus_api::Denied;
use corpus_api::names::{AttachAlias, NameAccepted};
use corpus_domain::{DnsNameId, GuestState, NameState};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::json;
use sqlx::PgConnection;

use crate::Controller;
use crate::quotas::{self, More};
use crate::sagas::name_attach;
use crate::store::guests::{self, GuestRow};
use crate::store::names::NameRow;
use crate::store::{names, not_created};

/// How many aliases a name has at most: they are switched with it, in one step.
const MOST: usize = 20;

impl Handle<AttachAlias> for Controller {
    async fn handle(&self, mut change: Change<AttachAlias>) -> Result<Committed<AttachAlias>> {
        let (id, alias, who, project) = (change.name, change.alias.clone(), change.who(), change.project()?);
        self.dns()?;
        self.is_nobody_elses(&mut change, project, (&alias, false)).await.map_err(at_alias)?;
        let more = More { names: 1, ..More::default() };
        quotas::take(&mut change, project, more, |_| "alias").await?;
        let is_approved = change.approval().is_some();
        let tx = change.transaction().await?;
        let (target, guest) = target(tx, id).await?;
        let zone = self.zone_for(tx, (&who, is_approved), project, &alias).await.map_err(at_alias)?;
        if zone.name == alias {
            let why = format!("{alias} is the zone itself, which has records of its own: it can be no alias.");
            return Err(Error::field("alias", why));
        }
        let attached = names::insert_alias(tx, &alias, zone.id, id, who.id)
            .await
            .map_err(|error| Error::taken(error, "alias", format!("{alias} is attached to a guest already.")))?;
        not_created::attached_again(tx, project, &alias, who.id).await?;
        let job = name_attach::alias_job(attached, &alias, &target, &guest, !who.ops);
        let job = self.queue(&mut change, job).await?;
        let tx = change.transaction().await?;
        self.certificate_follows(tx, (attached, &alias), (guest.node_id, project)).await?;
        match target.environment {
            Some(environment) => self.environment_is_told(tx, &who, (project, environment)).await?,
            None => self.environment_follows(tx, &who, guest.id).await?,
        }
        let detail = json!({ "guest": guest.name, "alias_of": target.name });
        let entry = Entry::new("name.attach", alias.as_str()).id(attached.0).detail(detail);
        change.commit(entry, NameAccepted { name: attached, job }).await
    }
}

/// What can have one more alias, and the guest that it leads to; held until the transaction ends.
async fn target(conn: &mut PgConnection, id: DnsNameId) -> Result<(NameRow, GuestRow)> {
    names::hold(conn, id).await?;
    let name = names::get(conn, id).await?.ok_or(Denied::NotFound)?;
    let guest = guests::get(conn, name.guest_id).await?.ok_or(Denied::NotFound)?;
    let why = if let Some(target) = &name.alias_of {
        format!("{} is an alias itself, of {}: make the name an alias of that one.", name.name, target.name)
    } else if name.wildcard {
        format!("*.{} is all names below one: a name can be an alias of one only.", name.name)
    } else if name.held.is_none() {
        format!("{} is of a zone that others hold, who may have it lead elsewhere at any time.", name.name)
    } else if name.state != NameState::Attached {
        format!("{} is {}; it can have aliases once it is attached.", name.name, name.state)
    } else if matches!(guest.state, GuestState::Creating | GuestState::Destroying | GuestState::Failed) {
        format!("{} is {}; a name can be attached once it is there.", guest.name, guest.state)
    } else if names::aliases(conn, id).await?.len() >= MOST {
        format!("{} has {MOST} aliases, which is the most.", name.name)
    } else {
        return Ok((name, guest));
    };
    Err(Error::Conflict(why))
}

/// The rules for names call the field of the name so.
fn at_alias(error: Error) -> Error {
    match error {
        Error::Field { field: "name", message } => Error::field("alias", message),
        other => other,
    }
}
