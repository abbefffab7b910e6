//! Requests to a Corpus.

use corpus_api::operation::BodyFile;
use corpus_api::{Operation, Problem, Wire, wire};
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, IF_MATCH};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::places::Place;

/// Where the API begins.
const PREFIX: &str = "/api/v1";

/// What speaks with one Corpus.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: String,
    debug: bool,
}

impl Client {
    /// For a place.
    pub fn new(place: &Place, debug: bool) -> Result<Self, Failure> {
        let base = format!("{}{PREFIX}", place.url.as_str().trim_end_matches('/'));
        Ok(Self { http: http()?, base, token: place.token.clone(), debug })
    }

    /// Asks for an operation. What changes something has a key of its own, so that it is done once
    /// however often it is sent.
    pub async fn call<O: Operation>(&self, operation: &O) -> Result<O::Output, Failure> {
        let answer = self.value(wire(operation)).await?;
        serde_json::from_value(answer).map_err(|error| unreadable_answer(&error))
    }

    /// Sends a request; what comes back, as JSON.
    pub async fn value(&self, wire: Wire) -> Result<Value, Failure> {
        let body = self.send(wire).await?.bytes().await.map_err(|error| self.unreachable(&error))?;
        serde_json::from_slice(&body).map_err(|error| unreadable_answer(&error))
    }

    /// Sends a request, and once more when the line was lost.
    pub async fn send(&self, wire: Wire) -> Result<Response, Failure> {
        let changes = !matches!(wire.method, corpus_api::Method::Get);
        let key = changes.then(|| uuid::Uuid::new_v4().to_string());
        let first = self.request(&wire, key.as_deref()).send().await;
        let response = match first {
            Err(error) if error.is_connect() || error.is_timeout() => Err(self.unreachable(&error)),
            Err(_) => self.request(&wire, key.as_deref()).send().await.map_err(|error| self.unreachable(&error)),
            Ok(response) => Ok(response),
        }?;
        if self.debug {
            eprintln!("< {}", response.status());
        }
        if response.status().is_success() { Ok(response) } else { Err(refused(response).await) }
    }

    /// Sends a file, while it is read: once, since it takes as long as the line.
    pub async fn upload(&self, wire: Wire, path: &str, as_what: BodyFile) -> Result<Value, Failure> {
        let unreadable = |error: std::io::Error| Failure::usage(format!("{path} can't be read: {error}"));
        let file = tokio::fs::File::open(path).await.map_err(unreadable)?;
        let about = file.metadata().await.map_err(unreadable)?;
        if about.len() > as_what.limit {
            let most = as_what.limit / 1_000_000_000;
            return Err(Failure::usage(format!("{path} is too large: {most} GB at most")));
        }
        let wire = Wire { body: None, ..wire };
        let request =
            self.request(&wire, None).header(CONTENT_TYPE, as_what.media_types.first().copied().unwrap_or_default());
        // With its length, what is too large is refused before it is sent.
        let request = if about.is_file() { request.header(CONTENT_LENGTH, about.len()) } else { request };
        let response =
            request.body(reqwest::Body::from(file)).send().await.map_err(|error| self.unreachable(&error))?;
        let response = if response.status().is_success() { response } else { return Err(refused(response).await) };
        let body = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        serde_json::from_slice(&body).map_err(|error| unreadable_answer(&error))
    }

    fn request(&self, wire: &Wire, key: Option<&str>) -> RequestBuilder {
        let method = match wire.method {
            corpus_api::Method::Get => Method::GET,
            corpus_api::Method::Post => Method::POST,
            corpus_api::Method::Put => Method::PUT,
            corpus_api::Method::Delete => Method::DELETE,
        };
        let url = format!("{}{}", self.base, wire.target);
        if self.debug {
            eprintln!("> {method} {url}");
        }
        let mut request = self.http.request(method, url).bearer_auth(&self.token);
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        if let Some(version) = &wire.if_match {
            request = request.header(IF_MATCH, version);
        }
        match &wire.body {
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(body.to_string()),
            None => request,
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        unreachable(&self.base, error)
    }
}

/// What asks, as this program.
pub fn http() -> Result<reqwest::Client, Failure> {
    let http = reqwest::Client::builder().user_agent(concat!("corpus-cli/", env!("CARGO_PKG_VERSION")));
    http.build().map_err(|error| Failure::new(Exit::Refused, error.to_string()))
}

/// A server that does not answer.
pub fn unreachable(base: &str, error: &reqwest::Error) -> Failure {
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    Failure::new(Exit::Unreachable, format!("{base} does not answer: {cause}"))
}

async fn refused(response: Response) -> Failure {
    let status = response.status();
    let body = response.bytes().await.unwrap_or_default();
    match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) if problem.status == 401 => {
            Failure::new(Exit::Refused, format!("{} Run `corpus login URL`.", problem.text()))
        }
        Ok(problem) => problem.into(),
        Err(_) => Failure::new(Exit::Refused, format!("this is no answer of Corpus: {status}")),
    }
}

fn unreadable_answer(error: &serde_json::Error) -> Failure {
    Failure::new(Exit::Refused, format!("the answer can't be read; is this `corpus` of another release? {error}"))
}
