//! Webhooks of a project: added, shown, removed, tried.

use std::sync::Arc;

use chrono::Utc;
use corpus_api::webhooks::deliveries::{ListWebhookDeliveries, ResendWebhookDelivery, WebhookDeliveryPage};
use corpus_api::webhooks::{
    CreateWebhook, GetWebhook, ListWebhooks, NewWebhook, RemoveWebhook, ResumeWebhook, TestWebhook, Webhook,
    WebhookChanged, WebhookPage, WebhookRemoved, WebhookSending,
};
use corpus_api::{Cursor, Denied};
use corpus_domain::{WebhookEvent, WebhookId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use url::Url;
use uuid::Uuid;

use super::{after, lines, page};
use crate::Controller;
use crate::seal::Purpose;
use crate::services::internal;
use crate::store::webhooks::NewRow;
use crate::store::{webhook_deliveries, webhooks};
use crate::webhooks::{body, destination, new_secret};

/// The lists, for their cursors.
const LIST: &str = "webhooks by name";
const DELIVERIES: &str = "deliveries, the newest first";
/// Webhooks of a project, at most.
const MAX_WEBHOOKS: i64 = 20;
/// Deliveries that a person sent and that wait, at most.
const MAX_BY_HAND: i64 = 20;

impl Handle<ListWebhooks> for Controller {
    async fn handle(&self, permit: Permit<ListWebhooks>) -> Result<WebhookPage> {
        let (limit, rows) = lines(permit.limit);
        let beyond: Option<String> = after(permit.cursor.as_ref(), LIST)?;
        let (project, mut conn) = (permit.project()?, permit.connection().await?);
        let found = webhooks::page(&mut conn, project, beyond.as_deref().unwrap_or_default(), rows).await?;
        let (items, next) = page(found, limit, |one| Cursor::after(LIST, &one.name));
        Ok(WebhookPage { items, next })
    }
}

impl Handle<GetWebhook> for Controller {
    async fn handle(&self, permit: Permit<GetWebhook>) -> Result<Webhook> {
        let found = webhooks::get(&mut *permit.connection().await?, permit.project()?, permit.webhook).await?;
        Ok(found.ok_or(Denied::NotFound)?)
    }
}

impl Handle<CreateWebhook> for Controller {
    async fn handle(&self, mut change: Change<CreateWebhook>) -> Result<Committed<CreateWebhook>> {
        let (asked, project, who) = (change.operation(), change.project()?, change.who());
        let events = events(&asked)?;
        self.may_lead(&change, &asked).await?;
        let (id, secret) = (WebhookId(Uuid::now_v7()), new_secret());
        let sealed = self.services.seal.seal(&secret, &Purpose::of("webhook-secret", id.0));
        let sealed = sealed.map_err(|error| internal("the secret could not be sealed", error))?.to_bytes();
        let tx = change.transaction().await?;
        if webhooks::count(tx, project).await? >= MAX_WEBHOOKS {
            return Err(Error::Conflict(format!("A project has {MAX_WEBHOOKS} webhooks at most. Remove one first.")));
        }
        let (name, url) = (asked.name.as_str(), asked.url.as_str());
        let new = NewRow { id, project, name, url, events: &events, secret: &sealed, by: who.id };
        let taken = "Another webhook of this project has this name. Choose another one.";
        webhooks::insert(tx, &new).await.map_err(|error| Error::taken(error, "name", taken))?;
        // What follows the host may be a secret of the other side.
        let host = Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let detail = json!({ "webhook": name, "host": host, "events": events });
        let entry = Entry::new("webhook.create", asked.project.as_str()).id(id.0).detail(detail);
        change.commit(entry, NewWebhook { id, name: name.to_owned(), secret: secret.into() }).await
    }
}

fn events(asked: &Arc<CreateWebhook>) -> Result<Vec<WebhookEvent>> {
    let mut events: Vec<WebhookEvent> = asked.events.to_vec();
    events.sort_unstable();
    events.dedup();
    if events.contains(&WebhookEvent::Ping) {
        return Err(Error::field("events", "A ping is sent when you send a test, and tells of nothing."));
    }
    if events.is_empty() {
        return Err(Error::field("events", "Choose at least one."));
    }
    Ok(events)
}

impl Controller {
    /// Whether a webhook may lead there, as of now; it is judged again whenever something is sent.
    async fn may_lead(&self, change: &Change<CreateWebhook>, asked: &CreateWebhook) -> Result<()> {
        let url = Url::parse(asked.url.as_str()).map_err(|_| Error::field("url", "This is no address."))?;
        let to = destination::resolve(&url).await.unwrap_or_default();
        let surroundings = &self.services.settings.surroundings;
        if destination::judge(&mut *change.connection().await?, surroundings, &to).await? {
            return Ok(());
        }
        Err(Error::field("url", format!("No webhook leads there: {}.", destination::REFUSED)))
    }
}

impl Handle<RemoveWebhook> for Controller {
    async fn handle(&self, mut change: Change<RemoveWebhook>) -> Result<Committed<RemoveWebhook>> {
        let (asked, project) = (change.operation(), change.project()?);
        let name =
            webhooks::remove(change.transaction().await?, project, asked.webhook).await?.ok_or(Denied::NotFound)?;
        let entry = Entry::new("webhook.remove", asked.project.as_str()).id(asked.webhook.0);
        let removed = WebhookRemoved { project: asked.project.clone(), webhook: asked.webhook };
        change.commit(entry.detail(json!({ "webhook": name })), removed).await
    }
}

impl Handle<ResumeWebhook> for Controller {
    async fn handle(&self, mut change: Change<ResumeWebhook>) -> Result<Committed<ResumeWebhook>> {
        let (asked, project) = (change.operation(), change.project()?);
        let name =
            webhooks::resume(change.transaction().await?, project, asked.webhook).await?.ok_or(Denied::NotFound)?;
        let entry = Entry::new("webhook.resume", asked.project.as_str()).id(asked.webhook.0);
        let changed = WebhookChanged { project: asked.project.clone(), webhook: asked.webhook };
        change.commit(entry.detail(json!({ "webhook": name })), changed).await
    }
}

impl Handle<TestWebhook> for Controller {
    async fn handle(&self, mut change: Change<TestWebhook>) -> Result<Committed<TestWebhook>> {
        let (asked, project, webhook) = (change.operation(), change.project()?, change.webhook);
        let tx = change.transaction().await?;
        let one = webhooks::get(tx, project, webhook).await?.ok_or(Denied::NotFound)?;
        has_room(webhook_deliveries::by_hand(tx, webhook).await?)?;
        let payload = json!({
            "id": Uuid::now_v7(), "event": WebhookEvent::Ping, "at": Utc::now(), "project": asked.project,
            "webhook": { "id": webhook, "name": one.name }, "path": format!("/projects/{}/webhooks/{webhook}", asked.project),
        });
        let delivery = webhooks::enqueue_one(tx, (project, webhook), WebhookEvent::Ping, &payload).await?;
        let entry = Entry::new("webhook.test", asked.project.as_str()).id(webhook.0);
        let sending = WebhookSending { project: asked.project.clone(), webhook, delivery };
        change.commit(entry.detail(json!({ "webhook": one.name })), sending).await
    }
}

impl Handle<ListWebhookDeliveries> for Controller {
    async fn handle(&self, permit: Permit<ListWebhookDeliveries>) -> Result<WebhookDeliveryPage> {
        let (limit, rows) = lines(permit.limit);
        let (beyond, project, webhook) =
            (after(permit.cursor.as_ref(), DELIVERIES)?, permit.project()?, permit.webhook);
        let mut conn = permit.connection().await?;
        webhooks::get(&mut conn, project, webhook).await?.ok_or(Denied::NotFound)?;
        let request = |payload: &serde_json::Value| body(payload, &self.services.settings.public_url);
        let found = webhook_deliveries::page(&mut conn, webhook, permit.state, beyond, rows, request).await?;
        let (found, next) = page(found, limit, |(position, _)| Cursor::after(DELIVERIES, position));
        Ok(WebhookDeliveryPage { items: found.into_iter().map(|(_, one)| one).collect(), next })
    }
}

impl Handle<ResendWebhookDelivery> for Controller {
    async fn handle(&self, mut change: Change<ResendWebhookDelivery>) -> Result<Committed<ResendWebhookDelivery>> {
        let (asked, project, webhook) = (change.operation(), change.project()?, change.webhook);
        let tx = change.transaction().await?;
        let told = webhook_deliveries::told(tx, (project, webhook), asked.delivery).await?;
        let (event, payload) = told.ok_or(Denied::NotFound)?;
        has_room(webhook_deliveries::by_hand(tx, webhook).await?)?;
        let delivery = webhooks::enqueue_one(tx, (project, webhook), event, &payload).await?;
        let entry = Entry::new("webhook.resend", asked.project.as_str()).id(webhook.0);
        let sending = WebhookSending { project: asked.project.clone(), webhook, delivery };
        change.commit(entry.detail(json!({ "event": event, "delivery": asked.delivery })), sending).await
    }
}

fn has_room(waiting: i64) -> Result<()> {
    if waiting < MAX_BY_HAND {
        return Ok(());
    }
    Err(Error::Conflict(format!("{MAX_BY_HAND} that were sent by hand wait already. See what comes of them first.")))
}
