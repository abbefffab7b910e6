//! Badges of a project: made, shown to maintainers, renewed, taken away; and what one shows.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use corpus_api::Denied;
use corpus_api::projects::badges::{Badge, Badges, BadgesChanged, GetBadges, RemoveBadges, RenewBadges};
use corpus_domain::{Environment, ProjectId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Handle, Permit, Result};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

use crate::Controller;
use crate::seal::{Purpose, Sealed};
use crate::services::internal;
use crate::store::badges::{self, Shown};

impl Controller {
    /// What a badge shows, for who has its key; nothing by a wrong key, whatever else is right.
    pub async fn badge(&self, project: &str, environment: Environment, key: &str) -> Result<Option<Shown>> {
        let hash = Sha256::digest(key.as_bytes());
        Ok(badges::shown(&mut *self.services.db.acquire().await?, &hash, project, environment).await?)
    }
}

impl Handle<GetBadges> for Controller {
    async fn handle(&self, permit: Permit<GetBadges>) -> Result<Badges> {
        let project = permit.project()?;
        let Some((sealed, made_at)) = badges::key(&mut *permit.connection().await?, project).await? else {
            return Ok(Badges { made_at: None, badges: Vec::new() });
        };
        let opened = Sealed::from_bytes(&sealed).and_then(|sealed| self.services.seal.open(&sealed, &purpose(project)));
        let key = opened.map_err(|error| internal("the key of badges could not be opened", error))?;
        let (begin, key) = (&self.services.settings.public_url, key.expose_secret());
        let url = |environment: &Environment| format!("{begin}/badges/{}/{environment}/{key}.svg", permit.project);
        let one = |environment: &Environment| Badge { environment: *environment, url: url(environment) };
        Ok(Badges { made_at: Some(made_at), badges: Environment::ALL.iter().map(one).collect() })
    }
}

impl Handle<RenewBadges> for Controller {
    async fn handle(&self, mut change: Change<RenewBadges>) -> Result<Committed<RenewBadges>> {
        let (name, project, who) = (change.project.clone(), change.project()?, change.who());
        let bytes: [u8; 24] = rand::random();
        let key = SecretString::from(BASE64_URL_SAFE_NO_PAD.encode(bytes));
        let sealed = self.services.seal.seal(&key, &purpose(project));
        let sealed = sealed.map_err(|error| internal("the key of badges could not be sealed", error))?.to_bytes();
        let hash = Sha256::digest(key.expose_secret().as_bytes());
        badges::set(change.transaction().await?, project, (&hash, &sealed), who.id).await?;
        let entry = Entry::new("badges.renew", name.as_str()).id(project.0);
        change.commit(entry, BadgesChanged { project: name.clone() }).await
    }
}

impl Handle<RemoveBadges> for Controller {
    async fn handle(&self, mut change: Change<RemoveBadges>) -> Result<Committed<RemoveBadges>> {
        let (name, project) = (change.project.clone(), change.project()?);
        if !badges::remove(change.transaction().await?, project).await? {
            return Err(Denied::NotFound.into());
        }
        let entry = Entry::new("badges.remove", name.as_str()).id(project.0);
        change.commit(entry, BadgesChanged { project: name.clone() }).await
    }
}

fn purpose(project: ProjectId) -> Purpose {
    Purpose::of("badge-key", project.0)
}
