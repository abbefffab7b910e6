//! Webhooks: what happens in a project is sent to an address of the project's choice, signed.
//! [`deliveries`] is what was sent.

pub mod deliveries;

use std::fmt;

use chrono::{DateTime, Utc};
use corpus_domain::{Invalid, ProjectName, WebhookDeliveryId, WebhookEvent, WebhookId, WebhookUrl};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::Cursor;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post};
use crate::words::{Label, Limit};

/// Lists the webhooks of a project, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListWebhooks {
    /// Of which project.
    pub project: ProjectName,
    /// Where the page begins.
    pub cursor: Option<Cursor>,
    /// 50 unless said.
    pub limit: Option<Limit>,
}
impl Operation for ListWebhooks {
    type Kind = Read;
    type Output = WebhookPage;
    const META: Meta<Read> = get("list_webhooks", "/projects/{project}/webhooks").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Shows a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetWebhook {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub webhook: WebhookId,
}
impl Operation for GetWebhook {
    type Kind = Read;
    type Output = Webhook;
    const META: Meta<Read> = get("get_webhook", "/projects/{project}/webhooks/{webhook}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

crate::several!(
    /// What a webhook tells of.
    WebhookEvents, WebhookEvent, 10
);

/// Adds a webhook to a project. The secret that its deliveries are signed with is in the answer, and nowhere afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreateWebhook {
    /// To which project.
    pub project: ProjectName,
    /// What it is called; others of the project have other names.
    pub name: Label,
    /// Where it leads.
    pub url: WebhookUrl,
    /// What it tells of.
    #[serde(default)]
    pub events: WebhookEvents,
}
impl Operation for CreateWebhook {
    type Kind = Write;
    type Output = NewWebhook;
    const META: Meta<Write> = post("create_webhook", "/projects/{project}/webhooks").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Removes a webhook, with its deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveWebhook {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub webhook: WebhookId,
}
impl Operation for RemoveWebhook {
    type Kind = Write;
    type Output = WebhookRemoved;
    const META: Meta<Write> =
        delete("remove_webhook", "/projects/{project}/webhooks/{webhook}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Switches a webhook on again that was switched off since it failed for days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ResumeWebhook {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub webhook: WebhookId,
}
impl Operation for ResumeWebhook {
    type Kind = Write;
    type Output = WebhookChanged;
    const META: Meta<Write> =
        post("resume_webhook", "/projects/{project}/webhooks/{webhook}/resume").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// Sends a `ping` to a webhook, to see whether it arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TestWebhook {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub webhook: WebhookId,
}
impl Operation for TestWebhook {
    type Kind = Write;
    type Output = WebhookSending;
    const META: Meta<Write> =
        post("test_webhook", "/projects/{project}/webhooks/{webhook}/test").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Project(self.project.clone())
    }
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Its project.
    pub project: ProjectName,
    /// What it is called.
    pub name: String,
    /// Where it leads.
    pub url: WebhookUrl,
    /// What it tells of.
    pub events: Vec<WebhookEvent>,
    /// When it was added.
    pub created_at: DateTime<Utc>,
    /// Since when nothing that was sent to it was answered with success; none when the last one was.
    pub failing_since: Option<DateTime<Utc>>,
    /// When it was switched off since it failed for days.
    pub off_at: Option<DateTime<Utc>>,
}
impl Reply for Webhook {}

crate::page!(
    /// A page of webhooks.
    WebhookPage, Webhook
);

/// A webhook that was just added.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct NewWebhook {
    /// Its id.
    pub id: WebhookId,
    /// What it is called.
    pub name: String,
    /// What its deliveries are signed with. It is shown only now.
    pub secret: WebhookSecret,
}
impl Reply for NewWebhook {
    const STATUS: u16 = 201;
    const SECRET: bool = true;
}

/// A webhook was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookRemoved {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub webhook: WebhookId,
}
impl Reply for WebhookRemoved {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}/webhooks", self.project))
    }
}

/// A webhook was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookChanged {
    /// Of which project.
    pub project: ProjectName,
    /// Which.
    pub webhook: WebhookId,
}
impl Reply for WebhookChanged {
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}/webhooks/{}", self.project, self.webhook))
    }
}

/// Something is being sent to a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookSending {
    /// Of which project.
    pub project: ProjectName,
    /// To which webhook.
    pub webhook: WebhookId,
    /// The delivery.
    pub delivery: WebhookDeliveryId,
}
impl Reply for WebhookSending {
    const STATUS: u16 = 202;
    const HAS_LOCATION: bool = true;
    fn location(&self) -> Option<String> {
        Some(format!("/projects/{}/webhooks/{}", self.project, self.webhook))
    }
}

/// What deliveries are signed with: shown once, and in no log.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct WebhookSecret(SecretString);

impl WebhookSecret {
    /// The text, for who signs or checks.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}
impl From<SecretString> for WebhookSecret {
    fn from(secret: SecretString) -> Self {
        Self(secret)
    }
}
impl TryFrom<String> for WebhookSecret {
    type Error = Invalid;
    fn try_from(given: String) -> Result<Self, Invalid> {
        Ok(Self(given.into()))
    }
}
impl std::str::FromStr for WebhookSecret {
    type Err = Invalid;
    fn from_str(given: &str) -> Result<Self, Invalid> {
        given.to_owned().try_into()
    }
}
/// It is answered once.
impl Serialize for WebhookSecret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.expose_secret())
    }
}
impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
impl PartialSchema for WebhookSecret {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Password);
        let text = ObjectBuilder::new().schema_type(Type::String).format(Some(format));
        text.description(Some("The secret that deliveries are signed with")).into()
    }
}
impl ToSchema for WebhookSecret {}
