//! Programs without a browser, let in by a member who has one.
//!
//! The code that a person types lets nobody in by itself: it names what waits. The program's own code,
//! which is long and told to nobody else, fetches the token, once. The token is made when it is fetched, by
//! the same operation as on the page, with what its member may then.

use chrono::{DateTime, TimeDelta, Utc};
use corpus_api::device_logins::{
    ApproveDeviceLogin, DeviceLogin, DeviceLoginDecided, GetDeviceLogin, RefuseDeviceLogin, UserCode,
};
use corpus_api::tokens::{CreateToken, NewToken, TokenBytes};
use corpus_api::words::Label;
use corpus_api::{Denied, Problem};
use corpus_domain::{Door, Grant};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Handle, Permit, Result};
use rand::RngExt;
use serde_json::json;

use super::tokens::hash;
use crate::Controller;
use crate::store::device_logins::{self, Decided};

/// How long a program waits.
const LIFETIME: TimeDelta = TimeDelta::minutes(10);

/// What a program is told when it begins to wait.
#[derive(Debug)]
pub struct Waiting {
    /// What it fetches its token with.
    pub code: TokenBytes,
    /// What a person types.
    pub user_code: UserCode,
    /// Until when it waits.
    pub expires_at: DateTime<Utc>,
}

/// How it stands with a program that waits.
#[derive(Debug)]
pub enum Standing {
    /// It was let in: its token.
    Approved(Box<NewToken>),
    /// It was refused, or who let it in has been shut out since.
    Refused,
    /// Nobody decided yet.
    Pending,
    /// The same, and it asks too often.
    TooSoon,
    /// It waits no more.
    Expired,
}

impl Controller {
    /// Lets a program wait; none when too many do.
    pub async fn begin_device_login(&self, client: &Label, network: &str, grant: Grant) -> Result<Option<Waiting>> {
        let (code, user_code): (TokenBytes, _) = (rand::rng().random(), UserCode::of(rand::rng().random()));
        let expires_at = Utc::now() + LIFETIME;
        let new = device_logins::New { hash: &hash(&code), code: &user_code, client, network, grant, expires_at };
        let mut tx = self.services.begin().await?;
        let has_room = device_logins::begin(&mut tx, new).await?;
        tx.commit().await?;
        Ok(has_room.then_some(Waiting { code, user_code, expires_at }))
    }

    /// What became of a program that waits. Its token is made here, and told once.
    pub async fn device_login(&self, code: &TokenBytes) -> std::result::Result<Standing, Problem> {
        let Some(decided) = self.decided(code).await? else { return Ok(self.still_waits(code).await?) };
        let Some((user, days)) = decided.approved else { return Ok(Standing::Refused) };
        let Some(who) = self.principal(user).await? else { return Ok(Standing::Refused) };
        let (name, scope) = (decided.client, decided.grant);
        let asked = CreateToken { name, scope, days: Some(days), until: None, replace: Some(true) };
        self.call(&who.by(Door::Api), asked, None).await.map(Box::new).map(Standing::Approved)
    }

    async fn decided(&self, code: &TokenBytes) -> Result<Option<Decided>> {
        let mut tx = self.services.begin().await?;
        let decided = device_logins::take_decided(&mut tx, &hash(code)).await?;
        tx.commit().await?;
        Ok(decided)
    }

    async fn still_waits(&self, code: &TokenBytes) -> Result<Standing> {
        let mut conn = self.services.db.acquire().await?;
        Ok(match device_logins::note_asked(&mut conn, &hash(code)).await? {
            Some(true) => Standing::TooSoon,
            Some(false) => Standing::Pending,
            None => Standing::Expired,
        })
    }
}

impl Handle<GetDeviceLogin> for Controller {
    async fn handle(&self, permit: Permit<GetDeviceLogin>) -> Result<DeviceLogin> {
        let found = device_logins::waiting(&mut *permit.connection().await?, &permit.code).await?;
        found.ok_or_else(|| Denied::NotFound.into())
    }
}

impl Handle<ApproveDeviceLogin> for Controller {
    async fn handle(&self, mut change: Change<ApproveDeviceLogin>) -> Result<Committed<ApproveDeviceLogin>> {
        let (asked, user) = (change.operation(), change.who().id);
        let granted = Some((asked.scope, asked.days));
        let decided = device_logins::decide(change.transaction().await?, &asked.code, user, granted).await?;
        let client = decided.ok_or(Denied::NotFound)?;
        let detail = json!({ "scope": asked.scope, "days": asked.days });
        let entry = Entry::new("device_login.approve", &client).detail(detail);
        change.commit(entry, DeviceLoginDecided { client: client.clone(), approved: true }).await
    }
}

impl Handle<RefuseDeviceLogin> for Controller {
    async fn handle(&self, mut change: Change<RefuseDeviceLogin>) -> Result<Committed<RefuseDeviceLogin>> {
        let (asked, user) = (change.operation(), change.who().id);
        let decided = device_logins::decide(change.transaction().await?, &asked.code, user, None).await?;
        let client = decided.ok_or(Denied::NotFound)?;
        let entry = Entry::new("device_login.refuse", &client);
        change.commit(entry, DeviceLoginDecided { client: client.clone(), approved: false }).await
    }
}
