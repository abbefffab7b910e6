//! Profiles of guests: what operators make them say, and what a request has of one.

use corpus_api::Denied;
use corpus_api::guests::RequestGuest;
use corpus_api::profiles::{
    CreateProfile, GetProfile, ListProfiles, Profile, ProfileRemoved, Profiles, RemoveProfile, SetProfile,
};
use corpus_api::words::Label;
use corpus_domain::{Environment, GuestProfileName};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use super::guests::settings;
use crate::store::backings;
use crate::store::profiles::{self, Kept};
use crate::{Controller, changed};

impl Handle<ListProfiles> for Controller {
    async fn handle(&self, permit: Permit<ListProfiles>) -> Result<Profiles> {
        let kept = profiles::list(&mut *permit.connection().await?, None).await?;
        Ok(Profiles { items: kept.into_iter().map(|one| one.profile).collect() })
    }
}

impl Handle<GetProfile> for Controller {
    async fn handle(&self, permit: Permit<GetProfile>) -> Result<Profile> {
        Ok(known(&mut *permit.connection().await?, &permit.profile).await?.profile)
    }
}

impl Handle<CreateProfile> for Controller {
    async fn handle(&self, mut change: Change<CreateProfile>) -> Result<Committed<CreateProfile>> {
        let (asked, by, id) = (change.operation(), change.who().id, Uuid::now_v7());
        let tx = change.transaction().await?;
        if profiles::are_full(tx).await? {
            return Err(Error::Conflict(format!("There are {} profiles already: remove one.", profiles::MOST)));
        }
        let comment = asked.comment.as_ref().map(Label::as_str);
        let inserted = profiles::insert(tx, (id, &asked.name), comment, by).await;
        inserted.map_err(|error| Error::taken(error, "name", format!("There is a profile {} already.", asked.name)))?;
        let made = known(tx, &asked.name).await?.profile;
        change.commit(Entry::new("profile.create", asked.name.as_str()).id(id), made).await
    }
}

impl Handle<SetProfile> for Controller {
    async fn handle(&self, mut change: Change<SetProfile>) -> Result<Committed<SetProfile>> {
        let asked = change.operation();
        if let Some(image) = asked.image.as_ref().filter(|image| !self.services.settings.images.has(image)) {
            return Err(Error::field("image", format!("There is no image {image}.")));
        }
        let tx = change.transaction().await?;
        profiles::hold(tx).await?;
        let Kept { id, profile: was } = known(tx, &asked.profile).await?;
        if was.version != asked.version {
            return Err(changed::by_others(tx, "profile.set", id, said).await);
        }
        let defaults = asked.defaults();
        for environment in asked.usual_in.iter() {
            let allowed = backings::of(tx, *environment).await?.allowed;
            if let Some(backing) = defaults.backing.filter(|backing| !allowed.contains(backing)) {
                let message =
                    format!("It can't be usual in {environment}: operators want no guests on {backing} there.");
                return Err(Error::field("usual_in", message));
            }
        }
        settings::can_be_had(tx, &defaults.conf).await?;
        profiles::set(tx, id, asked.comment.as_ref().map(Label::as_str), &defaults, &asked.usual_in).await?;
        let now = known(tx, &asked.profile).await?.profile;
        if now.version == was.version {
            return change.unchanged(now).await;
        }
        let detail = json!({ "from": was.defaults.text(), "to": now.defaults.text(), "usual_in": now.usual_in });
        change.commit(Entry::new("profile.set", asked.profile.as_str()).id(id).detail(detail), now).await
    }
}

impl Handle<RemoveProfile> for Controller {
    async fn handle(&self, mut change: Change<RemoveProfile>) -> Result<Committed<RemoveProfile>> {
        let profile = change.profile.clone();
        let tx = change.transaction().await?;
        profiles::hold(tx).await?;
        let Kept { id, profile: was } = known(tx, &profile).await?;
        profiles::delete(tx, id).await?;
        let detail = json!({ "said": was.defaults.text(), "usual_in": was.usual_in });
        let entry = Entry::new("profile.remove", profile.as_str()).id(id).detail(detail);
        change.commit(entry, ProfileRemoved { profile: was.name }).await
    }
}

async fn known(conn: &mut PgConnection, name: &GuestProfileName) -> Result<Kept> {
    Ok(profiles::get(conn, name).await?.ok_or(Denied::NotFound)?)
}

/// What a change of it was.
fn said(detail: &Value) -> Option<String> {
    changed::parts([("what it says", changed::read::<String>(detail, "from")?, changed::read::<String>(detail, "to")?)])
}

/// The request with what its profile says, and with that profile's name: the one that it asks for, or the one that is
/// usual in its environment.
pub(in crate::handlers) async fn filled(conn: &mut PgConnection, wanted: RequestGuest) -> Result<RequestGuest> {
    let environment = wanted.environment;
    let profile = match &wanted.profile {
        Some(name) => {
            let none = || Error::field("profile", format!("There is no profile {name}."));
            Some(profiles::get(conn, name).await?.ok_or_else(none)?.profile)
        }
        None => profiles::usual(conn, environment).await?,
    };
    let Some(profile) = profile else { return Ok(wanted) };
    if wanted.backing.is_none() {
        is_wanted_in(conn, environment, &profile).await?;
    }
    let lines = settings::with_those_of(conn, &profile.defaults.conf, &wanted.conf).await?;
    Ok(RequestGuest { profile: Some(profile.name), conf: lines, ..profile.defaults.under(wanted) })
}

/// Refused where operators don't want what it says any more.
async fn is_wanted_in(conn: &mut PgConnection, environment: Environment, profile: &Profile) -> Result<()> {
    let Some(backing) = profile.defaults.backing else { return Ok(()) };
    if backings::of(conn, environment).await?.allowed.contains(&backing) {
        return Ok(());
    }
    let Profile { name, .. } = profile;
    let message =
        format!("{name} has guests lie on {backing}, which operators don't want in {environment}. Choose a backing.");
    Err(Error::field("profile", message))
}
