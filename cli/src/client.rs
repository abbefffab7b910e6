//! Requests to a Corpus.

use corpus_api::{Operation, Problem, Wire, wire};
use reqwest::header::{CONTENT_TYPE, IF_MATCH};
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
        serde_json::from_value(answer).map_err(|error| unreadable(&error))
    }

    /// Sends a request; what comes back, as JSON.
    pub async fn value(&self, wire: Wire) -> Result<Value, Failure> {
        let body = self.send(wire).await?.bytes().await.map_err(|error| self.unreachable(&error))?;
        serde_json::from_slice(&body).map_err(|error| unreadable(&error))
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

fn unreadable(error: &serde_json::Error) -> Failure {
    Failure::new(Exit::Refused, format!("the answer can't be read; is this `corpus` of another release? {error}"))
}
