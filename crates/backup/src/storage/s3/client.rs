//! Requests to an S3 server: signed, tried again where that helps, and their errors in words.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chrono::Utc;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{HeaderName, HeaderValue, IF_NONE_MATCH, RANGE};
use reqwest::{Method, Response, StatusCode};
use tokio::time::{sleep, timeout};
use url::Url;

use super::super::{Result, S3Access, StorageError};
use super::answer;
use super::sign::{Request, Signer, authorization, hex_sha256, time};
use crate::place::S3Place;

/// All but what every server leaves as it is in a query.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// How long a server may be silent, besides the time that what is sent to it takes.
const LIMIT: Duration = Duration::from_mins(1);
/// The slowest line that is good enough, in bytes a second.
const SLOWEST: u64 = 32 << 10;
/// So often something is tried that may go well another time.
const TRIES: u32 = 5;
/// How long is waited before the second try; twice as long before each next.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// What is read of an error.
const MAX_ERROR: usize = 64 << 10;
/// As much may be answered to anything.
const LEAST_ANSWER: u64 = 64 << 10;
const SLOW: &str = "it did not answer in time";

/// What is asked of a server.
pub(super) struct Ask<'a> {
    pub doing: &'static str,
    pub method: Method,
    /// The object; none for the bucket.
    pub key: &'a str,
    /// Names and values in the order of names.
    pub query: &'a [(&'a str, &'a str)],
    /// A header besides.
    pub header: Option<(HeaderName, String)>,
    pub content: &'a [Bytes],
    /// As much is read of what is answered.
    pub answer_bytes: u64,
}

impl<'a> Ask<'a> {
    pub fn new(doing: &'static str, method: Method, key: &'a str) -> Self {
        Self { doing, method, key, query: &[], header: None, content: &[], answer_bytes: 0 }
    }

    pub fn range(self, offset: u64, length: u64) -> Self {
        let last = offset.saturating_add(length).saturating_sub(1);
        Self { header: Some((RANGE, format!("bytes={offset}-{last}"))), answer_bytes: length, ..self }
    }

    pub fn unless_there(self) -> Self {
        Self { header: Some((IF_NONE_MATCH, "*".to_owned())), ..self }
    }
}

/// What a server answered that did not do it.
pub(super) enum Declined {
    /// There is no such object.
    Missing(StorageError),
    /// There is one already.
    There,
    /// It does not know how to do that.
    Unknown,
    /// Anything else.
    Failed(StorageError),
}

impl From<Declined> for StorageError {
    fn from(declined: Declined) -> Self {
        match declined {
            Declined::Missing(error) | Declined::Failed(error) => error,
            Declined::There | Declined::Unknown => Self::Taken,
        }
    }
}

/// The address of an object, without its query.
fn address(access: &S3Access, place: &S3Place, key: &str) -> Option<Url> {
    let mut url = access.endpoint.clone();
    if access.bucket_in_host {
        let host = format!("{}.{}", place.bucket, url.host_str()?);
        url.set_host(Some(&host)).ok()?;
        url.set_path(&format!("/{key}"));
    } else {
        url.set_path(&format!("/{}{}{key}", place.bucket, if key.is_empty() { "" } else { "/" }));
    }
    Some(url)
}

/// Asks, and gives the whole answer.
pub(super) async fn ask(access: &S3Access, place: &S3Place, ask: &Ask<'_>) -> std::result::Result<Bytes, Declined> {
    let path = format!("{}/{}", place.bucket, ask.key);
    let server = access.endpoint.host_str().unwrap_or_default().to_owned();
    let refused =
        |why: String| StorageError::Refused { server: server.clone(), doing: ask.doing, path: path.clone(), why };
    let hash = hex_sha256(ask.content.iter().map(AsRef::as_ref));
    // Its parts are put together once, not for each try.
    let content = if let [one] = ask.content { one.clone() } else { ask.content.concat().into() };
    let mut wait = FIRST_WAIT;
    let mut tried = 1;
    loop {
        let (error, may_help) = match send(access, place, ask, &hash, content.clone()).await {
            Ok(answer) if answer.status().is_success() => match whole(answer, ask.answer_bytes).await {
                Ok(body) => return Ok(body),
                Err(why) => (StorageError::Unreachable { server: server.clone(), why }, true),
            },
            Ok(answer) => {
                let status = answer.status();
                let (code, message) = answer::error(&beginning(answer).await);
                match (status, code.as_str()) {
                    (StatusCode::NOT_FOUND, "NoSuchBucket") => {
                        let why = "there is no such bucket: make it, Corpus does not".to_owned();
                        return Err(Declined::Failed(refused(why)));
                    }
                    (StatusCode::NOT_FOUND, _) => return Err(Declined::Missing(refused("there is none".to_owned()))),
                    (StatusCode::PRECONDITION_FAILED, _) => return Err(Declined::There),
                    (StatusCode::NOT_IMPLEMENTED, _) => return Err(Declined::Unknown),
                    _ => (refused(words(status, &code, &message)), is_passing(status, &code)),
                }
            }
            Err(Unsent::NoAddress) => {
                return Err(Declined::Failed(refused("s3.endpoint can't have a bucket in its host".to_owned())));
            }
            Err(Unsent::Failed(why)) => (StorageError::Unreachable { server: server.clone(), why }, true),
        };
        if !may_help || tried >= TRIES {
            return Err(Declined::Failed(error));
        }
        sleep(wait).await;
        (wait, tried) = (wait * 2, tried + 1);
    }
}

enum Unsent {
    NoAddress,
    Failed(String),
}

async fn send(
    access: &S3Access,
    place: &S3Place,
    ask: &Ask<'_>,
    hash: &str,
    content: Bytes,
) -> std::result::Result<Response, Unsent> {
    let mut url = address(access, place, ask.key).ok_or(Unsent::NoAddress)?;
    let query = query(ask.query);
    if !query.is_empty() {
        url.set_query(Some(&query));
    }
    let host = url.host_str().unwrap_or_default();
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    let at = Utc::now();
    let date = time(at);
    let headers = [("host", host.as_str()), ("x-amz-content-sha256", hash), ("x-amz-date", date.as_str())];
    let signed =
        Request { method: ask.method.as_str(), path: url.path(), query: &query, headers: &headers, content: hash };
    let by = Signer { key_id: &access.key_id, secret: &access.secret, region: &access.region };
    let authorization = authorization(by, &signed, at);
    let limit = LIMIT + Duration::from_secs(content.len() as u64 / SLOWEST);
    let mut request =
        access.client.request(ask.method.clone(), url).header("x-amz-content-sha256", hash).header("x-amz-date", date);
    if let Ok(mut value) = HeaderValue::from_str(&authorization) {
        value.set_sensitive(true);
        request = request.header("authorization", value);
    }
    if let Some((name, value)) = &ask.header {
        request = request.header(name, value);
    }
    if ask.method == Method::PUT {
        request = request.body(content);
    }
    let sent = timeout(limit, request.send()).await.map_err(|_| Unsent::Failed(SLOW.to_owned()))?;
    sent.map_err(|error| Unsent::Failed(cause(error)))
}

/// All that is answered, or why it is not had.
async fn whole(mut answer: Response, most: u64) -> std::result::Result<Bytes, String> {
    let mut body = BytesMut::new();
    while let Some(more) = timeout(LIMIT, answer.chunk()).await.map_err(|_| SLOW.to_owned())?.map_err(cause)? {
        body.extend_from_slice(&more);
        if body.len() as u64 > most.max(LEAST_ANSWER) {
            return Err("it answers more than was asked for".to_owned());
        }
    }
    Ok(body.freeze())
}

fn query(pairs: &[(&str, &str)]) -> String {
    pairs.iter().fold(String::new(), |mut text, (name, value)| {
        let between = if text.is_empty() { "" } else { "&" };
        let _ = write!(text, "{between}{name}={}", utf8_percent_encode(value, ENCODED));
        text
    })
}

async fn beginning(mut answer: Response) -> String {
    let mut body = Vec::new();
    while let Ok(Ok(Some(more))) = timeout(LIMIT, answer.chunk()).await {
        body.extend_from_slice(&more);
        if body.len() > MAX_ERROR {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

fn words(status: StatusCode, code: &str, message: &str) -> String {
    let advice = match code {
        "SignatureDoesNotMatch" => {
            ": is the key in s3.secret_access_key_file that of s3.access_key_id, and s3.region right?"
        }
        "InvalidAccessKeyId" => ": is s3.access_key_id right?",
        "AccessDenied" => ": may the key of s3.access_key_id list, read, write and delete there?",
        "RequestTimeTooSkewed" => ": is the time of this machine right?",
        "PermanentRedirect" | "AuthorizationHeaderMalformed" => ": are s3.endpoint and s3.region those of the bucket?",
        _ => "",
    };
    match (code, message) {
        ("", "") => status.to_string(),
        (code, message) => format!("{code} ({message}, {status}){advice}"),
    }
}

/// Whether it may be another answer in a moment.
fn is_passing(status: StatusCode, code: &str) -> bool {
    status.is_server_error()
        || status == StatusCode::TOO_MANY_REQUESTS
        // Somebody else writes the same object just now.
        || status == StatusCode::CONFLICT
        || code == "RequestTimeout"
}

/// What went wrong, without the address of what was asked for.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut why = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        let _ = write!(why, ": {inner}");
        cause = inner.source();
    }
    why
}

/// Of what was answered, that it was.
pub(super) fn done(answer: std::result::Result<Bytes, Declined>) -> Result<()> {
    answer.map(drop).map_err(Into::into)
}
