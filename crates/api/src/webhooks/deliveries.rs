//! What was sent to a webhook, and what came back.

use chrono::{DateTime, Utc};
use corpus_domain::{DeliveryState, ProjectName, WebhookDeliveryId, WebhookEvent, WebhookId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::WebhookSending;
use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Role, Scope, Write, get, post};
use crate::words::Limit;

/// Lists what was sent to a webhook lately, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListWebhookDeliveries {
    /// Of which project.
    pub project: ProjectName,
    /// To which webhook.
    pub webhook: WebhookId,
    /// Only those that stand so.
    pub state: Option<DeliveryState>,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListWebhookDeliveries {
    type Kind = Read;
    type Output = WebhookDeliveryPage;
    const META: Meta<Read> =
        get("list_webhook_deliveries", "/projects/{project}/webhooks/{webhook}/deliveries").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Sends once more what was sent to a webhook: another delivery, of the same event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResendWebhookDelivery {
    /// Of which project.
    pub project: ProjectName,
    /// To which webhook.
    pub webhook: WebhookId,
    /// What is sent once more.
    pub delivery: WebhookDeliveryId,
}
impl Operation for ResendWebhookDelivery {
    type Kind = Write;
    type Output = WebhookSending;
    const META: Meta<Write> =
        post("resend_webhook_delivery", "/projects/{project}/webhooks/{webhook}/deliveries/{delivery}/resend")
            .needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// A delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookDelivery {
    /// Its id, which its request says in `Corpus-Delivery`.
    pub id: WebhookDeliveryId,
    /// What it tells of.
    pub event: WebhookEvent,
    /// How it stands.
    pub state: DeliveryState,
    /// How often it was tried.
    pub attempts: u32,
    /// The status of the last answer, if there was one.
    pub status: Option<u16>,
    /// How long the last try took, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// Why the last try failed.
    pub error: Option<String>,
    /// The body of its request.
    pub request: String,
    /// The beginning of the body of the last answer.
    pub response: Option<String>,
    /// When it was enqueued.
    pub created_at: DateTime<Utc>,
    /// When it was tried last.
    pub tried_at: Option<DateTime<Utc>>,
    /// When it is tried again, while it waits.
    pub next_try_at: Option<DateTime<Utc>>,
}

crate::page!(
    /// A page of deliveries.
    WebhookDeliveryPage, WebhookDelivery
);
