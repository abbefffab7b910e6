//! HTTP to a directory: bounded in time and size, without redirects, and with what `Retry-After` said.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use thiserror::Error;
use url::Url;

use crate::AcmeError;

/// How long one request may take.
const LIMIT: Duration = Duration::from_secs(20);
/// How long it may take until there is a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// What is read of an answer; a chain of certificates is a few KiB.
pub const ANSWER_LIMIT: usize = 256 * 1024;
/// When it is asked again for how long a certificate is good, where it does not say.
const USUAL_WAIT: Duration = Duration::from_hours(6);
/// No directory is waited for longer than that by a header: whoever adds it to the time can.
const LONGEST_WAIT: Duration = Duration::from_hours(30 * 24);
/// Addresses of which it is known how long they asked to wait.
const MAX_WAITS: usize = 1000;

/// Why a request had no answer that is worth reading.
#[derive(Debug, Error)]
pub(crate) enum HttpFailure {
    #[error("{host} can't be reached")]
    Unreachable { host: String, source: reqwest::Error },
    #[error("{host} did not answer in time")]
    Slow { host: String },
    #[error("status {status}: {text}")]
    Failing { status: u16, text: String, retry_after: Option<Duration> },
    #[error("too many requests: {text}")]
    Limited { text: String, retry_after: Option<Duration> },
    #[error("the answer is too long")]
    TooLong,
    #[error("the answer is no HTTP")]
    Invalid(#[source] http::Error),
}

/// A client for one directory.
#[derive(Clone)]
pub(crate) struct Http {
    client: reqwest::Client,
    /// What `Retry-After` of the last answer said, of each address where there was one: many orders share a client.
    waits: Arc<Mutex<HashMap<String, Duration>>>,
}

impl Http {
    /// `roots` are PEM certificates to trust instead of the system's.
    pub fn new(directory: &Url, roots: Option<Vec<reqwest::Certificate>>) -> Result<Self, AcmeError> {
        // The process may have chosen one already; there is one to choose from.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = reqwest::Client::builder()
            .timeout(LIMIT)
            .connect_timeout(CONNECT_LIMIT)
            .redirect(reqwest::redirect::Policy::none())
            .https_only(directory.scheme() == "https")
            .user_agent(concat!("corpus/", env!("CARGO_PKG_VERSION")));
        if let Some(roots) = roots {
            client = client.tls_certs_only(roots);
        }
        Ok(Self { client: client.build().map_err(AcmeError::Client)?, waits: Arc::default() })
    }

    /// The longest that the last answers of these addresses asked to wait; it is told once.
    pub fn asked_to_wait<'a>(&self, addresses: impl IntoIterator<Item = &'a str>) -> Option<Duration> {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.into_iter().filter_map(|address| waits.remove(address)).max()
    }

    fn note_wait(&self, address: String, wait: Option<Duration>) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        match wait {
            Some(wait) => {
                // Nobody asked for these any more.
                if waits.len() >= MAX_WAITS {
                    waits.clear();
                }
                waits.insert(address, wait);
            }
            None => drop(waits.remove(&address)),
        }
    }

    async fn send(&self, request: Request<BodyWrapper<Bytes>>) -> Result<Response<Full<Bytes>>, HttpFailure> {
        let (parts, body) = request.into_parts();
        let host = parts.uri.authority().map(ToString::to_string).unwrap_or_default();
        let Ok(body) = body.collect().await;
        let failed = |error: reqwest::Error| {
            if error.is_timeout() {
                HttpFailure::Slow { host: host.clone() }
            } else {
                HttpFailure::Unreachable { host: host.clone(), source: error.without_url() }
            }
        };
        let address = parts.uri.to_string();
        // All but what needs no account: the directory itself, and when to renew.
        let is_of_account = parts.method != http::Method::GET;
        let sent = self.client.request(parts.method, &address).headers(parts.headers).body(body.to_bytes());
        let mut answer = sent.send().await.map_err(&failed)?;
        let status = answer.status();
        let retry_after =
            answer.headers().get(http::header::RETRY_AFTER).and_then(|value| wait_of(value.to_str().ok()?));
        if is_of_account {
            self.note_wait(address, retry_after);
        }
        let mut headers = std::mem::take(answer.headers_mut());
        say_wait(&mut headers, retry_after.or((!is_of_account).then_some(USUAL_WAIT)));
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.chunk().await.map_err(&failed)? {
            if body.len() + chunk.len() > ANSWER_LIMIT {
                return Err(HttpFailure::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_server_error() {
            return Err(HttpFailure::Failing { status: status.as_u16(), text: said(&body), retry_after });
        }
        if status == http::StatusCode::TOO_MANY_REQUESTS {
            return Err(HttpFailure::Limited { text: said(&body), retry_after });
        }
        let mut response =
            Response::builder().status(status).body(Full::new(body.freeze())).map_err(HttpFailure::Invalid)?;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let http = self.clone();
        Box::pin(async move {
            match http.send(request).await {
                Ok(response) => Ok(BytesResponse::from(response)),
                Err(failure) => Err(Error::Other(Box::new(failure))),
            }
        })
    }
}

/// What a failure says: the detail of a problem document, else the text itself.
fn said(body: &[u8]) -> String {
    let detail = serde_json::from_slice::<serde_json::Value>(body)
        .ok()
        .and_then(|problem| problem.get("detail").and_then(|detail| detail.as_str().map(str::to_owned)));
    detail.unwrap_or_else(|| String::from_utf8_lossy(body.get(..body.len().min(400)).unwrap_or_default()).into_owned())
}

/// What the library reads of it: it takes no answer about a renewal that has none, and adds any number to the time.
fn say_wait(headers: &mut http::HeaderMap, wait: Option<Duration>) {
    match wait {
        Some(wait) => drop(headers.insert(http::header::RETRY_AFTER, wait.as_secs().into())),
        None => drop(headers.remove(http::header::RETRY_AFTER)),
    }
}

/// Seconds, or a date.
fn wait_of(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds).min(LONGEST_WAIT));
    }
    let at = chrono::DateTime::parse_from_rfc2822(text).ok()?;
    SystemTime::from(at).duration_since(SystemTime::now()).ok().map(|wait| wait.min(LONGEST_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(wait_of("120"), Some(Duration::from_mins(2)));
        let in_an_hour =
            (chrono::Utc::now() + chrono::TimeDelta::hours(1)).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let wait = wait_of(&in_an_hour).unwrap();
        assert!((3500..=3600).contains(&wait.as_secs()), "{wait:?}");
        assert_eq!(wait_of(&u64::MAX.to_string()), Some(LONGEST_WAIT));
        assert_eq!(wait_of("Fri, 31 Dec 9999 23:59:59 GMT"), Some(LONGEST_WAIT));
        assert_eq!(wait_of("soon"), None);
        assert_eq!(wait_of("Fri, 31 Dec 1999 23:59:59 GMT"), None);
    }
}
