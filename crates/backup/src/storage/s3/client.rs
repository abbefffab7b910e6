//! Requests to an S3 server: signed, tried again where that helps, and their errors in words.
//!
//! A signature stands in the query of the address, so who has the address can do what is asked: it is shown nowhere, is good
//! for minutes, and each try has one of its own. What is signed are the method, the path, the query and the time, not the
//! content: HTTPS keeps that as it is on its way, and all of a repository is encrypted and authenticated, so who reads it
//! finds out what was changed nevertheless.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderName, IF_NONE_MATCH, RANGE};
use reqwest::{Method, Response, StatusCode};
use rusty_s3::S3Action as _;
use tokio::time::{sleep, timeout};
use url::Url;

use super::super::{Result, StorageError};
use super::{S3, answer};

/// How long a signature is good: until the request has come, by clocks that may differ a little.
const SIGNED_FOR: Duration = Duration::from_mins(5);
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
const TIME: &str = ": is the time of this machine right?";

/// What a server does.
#[derive(Clone, Copy)]
pub(super) enum Action<'a> {
    /// A part of the names that begin so: the one that follows this token, or the first.
    List(Option<&'a str>),
    Get,
    Put,
    Delete,
}

/// What is asked of a server.
pub(super) struct Ask<'a> {
    pub doing: &'static str,
    pub action: Action<'a>,
    /// The object; what names begin with, of a list.
    pub key: &'a str,
    /// A header besides.
    pub header: Option<(HeaderName, String)>,
    pub content: &'a [Bytes],
    /// As much is read of what is answered.
    pub answer_bytes: u64,
}

impl<'a> Ask<'a> {
    pub fn new(doing: &'static str, action: Action<'a>, key: &'a str) -> Self {
        Self { doing, action, key, header: None, content: &[], answer_bytes: 0 }
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

impl S3 {
    /// Asks, and gives the whole answer.
    pub(super) async fn asked(&self, ask: &Ask<'_>) -> std::result::Result<Bytes, Declined> {
        let unreachable = |why| StorageError::Unreachable { server: self.access.server(), why };
        let refused = |why| self.refused(ask, why);
        // Its parts are put together once, not for each try.
        let content = if let [one] = ask.content { one.clone() } else { ask.content.concat().into() };
        let mut wait = FIRST_WAIT;
        let mut tried = 1;
        loop {
            let (error, may_help) = match self.send(ask, content.clone()).await {
                Ok(answer) if answer.status().is_success() => match whole(answer, ask.answer_bytes).await {
                    Ok(body) => return Ok(body),
                    Err(why) => (unreachable(why), true),
                },
                Ok(answer) => {
                    let status = answer.status();
                    let (code, message) = answer::error(&beginning(answer).await);
                    match (status, code.as_str()) {
                        (StatusCode::NOT_FOUND, "NoSuchBucket") => {
                            let why = "there is no such bucket: make it, Corpus does not".to_owned();
                            return Err(Declined::Failed(refused(why)));
                        }
                        (StatusCode::NOT_FOUND, _) => {
                            return Err(Declined::Missing(refused("there is none".to_owned())));
                        }
                        (StatusCode::PRECONDITION_FAILED, _) => return Err(Declined::There),
                        (StatusCode::NOT_IMPLEMENTED, _) => return Err(Declined::Unknown),
                        _ => (refused(words(status, &code, &message)), is_passing(status, &code)),
                    }
                }
                Err(why) => (unreachable(why), true),
            };
            if !may_help || tried >= TRIES {
                return Err(Declined::Failed(error));
            }
            sleep(wait).await;
            (wait, tried) = (wait * 2, tried + 1);
        }
    }

    /// What the server did not do, and why.
    pub(super) fn refused(&self, ask: &Ask<'_>, why: String) -> StorageError {
        let path = format!("{}/{}", self.place.bucket, ask.key);
        StorageError::Refused { server: self.access.server(), doing: ask.doing, path, why }
    }

    async fn send(&self, ask: &Ask<'_>, content: Bytes) -> std::result::Result<Response, String> {
        let limit = LIMIT + Duration::from_secs(content.len() as u64 / SLOWEST);
        let (method, url) = self.signed(ask);
        let mut request = self.access.client.request(method, url);
        if let Some((name, value)) = &ask.header {
            request = request.header(name, value);
        }
        if matches!(ask.action, Action::Put) {
            request = request.body(content);
        }
        timeout(limit, request.send()).await.map_err(|_| SLOW.to_owned())?.map_err(cause)
    }

    fn signed(&self, ask: &Ask<'_>) -> (Method, Url) {
        let (bucket, by) = (&self.bucket, Some(&self.access.credentials));
        match ask.action {
            Action::List(from) => {
                let mut list = bucket.list_objects_v2(by);
                list.with_prefix(ask.key);
                if let Some(token) = from {
                    list.with_continuation_token(token);
                }
                (Method::GET, list.sign(SIGNED_FOR))
            }
            Action::Get => (Method::GET, bucket.get_object(by, ask.key).sign(SIGNED_FOR)),
            Action::Put => (Method::PUT, bucket.put_object(by, ask.key).sign(SIGNED_FOR)),
            Action::Delete => (Method::DELETE, bucket.delete_object(by, ask.key).sign(SIGNED_FOR)),
        }
    }
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
        "AccessDenied" if message.contains("expired") || message.contains("yet") => TIME,
        "RequestTimeTooSkewed" | "ExpiredToken" => TIME,
        "InvalidAccessKeyId" => ": is s3.access_key_id right?",
        "AccessDenied" => ": may the key of s3.access_key_id list, read, write and delete there?",
        "PermanentRedirect" | "AuthorizationQueryParametersError" | "AuthorizationHeaderMalformed" => {
            ": are s3.endpoint and s3.region those of the bucket?"
        }
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

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use secrecy::SecretString;

    use super::*;
    use crate::{S3Access, S3Options};

    fn opened(endpoint: &str, bucket_in_host: bool) -> Result<S3> {
        let (endpoint, region, key_id) = (endpoint.parse().unwrap(), "eu-west-1".to_owned(), "AKID".to_owned());
        let secret = SecretString::from("the-secret");
        let options = S3Options { endpoint, region, key_id, secret, bucket_in_host, authorities: None };
        let crate::Place::S3(place) = "s3://backups/a".parse().unwrap() else { unreachable!() };
        S3::new(place, S3Access::new(options).unwrap().into())
    }

    #[test]
    fn requests_are_signed_for_minutes() {
        let s3 = opened("https://s3.example.org:9000", false).unwrap();
        let token = "a/b+c= &d";
        let (method, url) = s3.signed(&Ask::new("listing", Action::List(Some(token)), "a/data/"));
        assert_eq!((method, url.path()), (Method::GET, "/backups/"));
        let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
        for (name, value) in [
            ("list-type", "2"),
            ("prefix", "a/data/"),
            ("continuation-token", token),
            ("X-Amz-Expires", "300"),
            ("X-Amz-SignedHeaders", "host"),
        ] {
            assert_eq!(query[name], value, "{url}");
        }
        assert!(query["X-Amz-Credential"].starts_with("AKID/") && query["X-Amz-Credential"].contains("/eu-west-1/s3/"));
        for (action, method) in [(Action::Get, "GET"), (Action::Put, "PUT"), (Action::Delete, "DELETE")] {
            let (made, url) = s3.signed(&Ask::new("", action, "a/keys/0_1-2.x"));
            assert_eq!((made.as_str(), url.path()), (method, "/backups/a/keys/0_1-2.x"));
            assert!(url.query().unwrap().contains("X-Amz-Expires=300&"), "{url}");
        }
    }

    #[test]
    fn a_bucket_may_be_in_the_host() {
        let s3 = opened("https://s3.example.org", true).unwrap();
        let (_, url) = s3.signed(&Ask::new("reading", Action::Get, "a/config"));
        assert!(url.as_str().starts_with("https://backups.s3.example.org/a/config?X-Amz-"), "{url}");
        let error = opened("https://127.0.0.1", true).unwrap_err();
        assert!(error.to_string().contains("s3.bucket_in_host: 127.0.0.1"), "{error}");
    }

    #[test]
    fn a_time_that_is_wrong_is_told_from_a_key_that_may_not() {
        let said = |code, message| words(StatusCode::FORBIDDEN, code, message);
        for (code, message) in [("AccessDenied", "Request has expired"), ("AccessDenied", "Request is not yet valid")] {
            assert!(said(code, message).ends_with(TIME));
        }
        assert!(said("AccessDenied", "Access Denied").contains("s3.access_key_id"));
        assert!(said("AuthorizationQueryParametersError", "wrong region").contains("s3.region"));
    }
}
