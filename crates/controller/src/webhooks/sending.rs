//! Sending what is enqueued.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use corpus_domain::plain;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, redirect};
use secrecy::SecretString;
use serde_json::Value;
use url::Url;

use super::destination::{self, REFUSED};
use super::signature::signature;
use crate::events;
use crate::seal::{Purpose, SealKeys, Sealed};
use crate::store::Db;
use crate::store::webhooks::{self, Due, Tried};
use crate::surroundings::Surroundings;

/// How often a delivery is tried.
pub const MAX_ATTEMPTS: i32 = 10;
/// How long a webhook may take to answer, from its name on.
const LIMIT: Duration = Duration::from_secs(10);
/// What is kept of an answer, in bytes.
const MAX_RESPONSE: usize = 2 * 1024;

/// What a delivery is sent with.
pub(crate) struct Sender<'a> {
    pub db: &'a Db,
    pub seal: &'a SealKeys,
    pub surroundings: &'a Surroundings,
    /// What the addresses of the pages begin with.
    pub public_url: &'a str,
}

/// The body of a delivery: what happened, with the address of its page.
pub(crate) fn body(payload: &Value, public_url: &str) -> String {
    let mut payload = payload.clone();
    if let Some(Value::Object(fields)) = Some(&mut payload)
        && let Some(Value::String(path)) = fields.remove("path")
    {
        fields.insert("url".to_owned(), format!("{public_url}{path}").into());
    }
    payload.to_string()
}

/// What came of a try.
struct Outcome {
    status: Option<u16>,
    response: Option<String>,
    error: Option<String>,
}

impl Outcome {
    fn failed(error: impl Into<String>) -> Self {
        Self { status: None, response: None, error: Some(error.into()) }
    }
}

impl Sender<'_> {
    /// Sends one, and notes what came of it.
    pub async fn send(&self, due: &Due) -> sqlx::Result<()> {
        let began = Instant::now();
        let sent = tokio::time::timeout(LIMIT, self.tried(due)).await;
        let Outcome { status, response, error } = match sent {
            Ok(outcome) => outcome?,
            Err(_) => Outcome::failed(format!("it did not answer within {} seconds", LIMIT.as_secs())),
        };
        let elapsed_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
        let tried = Tried { status: status.map(i32::from), elapsed_ms, error, response };
        let mut tx = self.db.begin().await?;
        if tried.error.is_none() {
            webhooks::delivered(&mut tx, due, &tried).await?;
        } else if webhooks::not_delivered(&mut tx, due, &tried, MAX_ATTEMPTS).await? {
            tracing::warn!(webhook = %due.webhook, "a webhook failed for days and is switched off");
            events::webhook_off(&mut tx, due, tried.error.as_deref()).await?;
        }
        tx.commit().await
    }

    async fn tried(&self, due: &Due) -> sqlx::Result<Outcome> {
        let Ok(url) = Url::parse(&due.url) else { return Ok(Outcome::failed("its address is none")) };
        let Some(to) = destination::resolve(&url).await else { return Ok(Outcome::failed(REFUSED)) };
        if !destination::judge(&mut *self.db.acquire().await?, self.surroundings, &to).await? {
            return Ok(Outcome::failed(REFUSED));
        }
        let Some(secret) = self.secret(due) else {
            return Ok(Outcome::failed("its secret could not be opened with the seal keys that are configured"));
        };
        Ok(post(url, to, due, &secret, body(&due.payload, self.public_url)).await)
    }

    fn secret(&self, due: &Due) -> Option<SecretString> {
        let purpose = Purpose::of("webhook-secret", due.webhook.0);
        let opened = Sealed::from_bytes(&due.secret).and_then(|sealed| self.seal.open(&sealed, &purpose));
        opened.inspect_err(|error| tracing::error!(webhook = %due.webhook, %error, "a webhook's secret")).ok()
    }
}

/// Sends it to the very addresses that were judged.
async fn post(url: Url, to: Vec<SocketAddr>, due: &Due, secret: &SecretString, body: String) -> Outcome {
    // Fails only when a provider is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .dns_resolver(Arc::new(Judged(to)))
        .no_proxy()
        .redirect(redirect::Policy::none())
        .pool_max_idle_per_host(0)
        .http1_only()
        .timeout(LIMIT)
        .user_agent(concat!("Corpus-Webhook/", env!("CARGO_PKG_VERSION")))
        .build();
    let client = match client {
        Ok(client) => client,
        Err(error) => return Outcome::failed(cause(&error)),
    };
    let request = client
        .post(url)
        .header(CONTENT_TYPE, "application/json")
        .header("Corpus-Event", due.event.as_str())
        .header("Corpus-Delivery", due.id.to_string())
        .header("Corpus-Signature", signature(secret, Utc::now().timestamp(), &body))
        .body(body);
    match request.send().await {
        Ok(response) => answered(response).await,
        Err(error) => Outcome::failed(cause(&error)),
    }
}

/// Reads as much of an answer as is kept.
async fn answered(mut response: Response) -> Outcome {
    let (status, mut bytes) = (response.status(), Vec::new());
    while bytes.len() < MAX_RESPONSE
        && let Ok(Some(chunk)) = response.chunk().await
    {
        bytes.extend_from_slice(chunk.get(..chunk.len().min(MAX_RESPONSE - bytes.len())).unwrap_or_default());
    }
    let text = plain(&String::from_utf8_lossy(&bytes)).into_owned();
    let error = match status.as_u16() {
        200..=299 => None,
        300..=399 => Some(format!("it answered {status}: a redirect is not followed")),
        _ => Some(format!("it answered {status}")),
    };
    Outcome { status: Some(status.as_u16()), response: Some(text).filter(|text| !text.is_empty()), error }
}

/// Why, without the address, which may hold a secret of its own.
fn cause(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(next) = last.source() {
        last = next;
    }
    let what = match error {
        error if error.is_timeout() => return format!("it did not answer within {} seconds", LIMIT.as_secs()),
        error if error.is_connect() => "no connection was made",
        _ => "the request failed",
    };
    let last: String = last.to_string().chars().take(200).collect();
    format!("{what}: {}", plain(&last))
}

/// Whatever name is asked for, these are its addresses.
struct Judged(Vec<SocketAddr>);

impl Resolve for Judged {
    fn resolve(&self, _: Name) -> Resolving {
        let judged: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(judged)))
    }
}
