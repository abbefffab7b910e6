//! The HTTP side of the `PowerDNS` API: paths, time limits, and statuses as errors.

use std::time::Duration;

use corpus_domain::DnsName;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::wire::{NewZone, Patch, RrSet, ZoneContents, ZoneSummary, absolute};
use crate::{DnsError, Removal};

/// No call to the API may take longer; `PowerDNS` itself answers in milliseconds.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// At most this much of a server's own words gets into an error.
const MAX_TEXT: usize = 500;

/// Whether what a call is about exists (404).
pub(super) enum Found<T> {
    Yes(T),
    No,
}

impl<T> Found<T> {
    pub(super) fn or_missing(self, zone: &DnsName) -> Result<T, DnsError> {
        match self {
            Self::Yes(found) => Ok(found),
            Self::No => Err(DnsError::ZoneMissing(zone.clone())),
        }
    }
}

#[derive(Debug)]
pub(super) struct Api {
    client: Client,
    server: Url,
}

impl Api {
    /// `url` is the API's root, without or with `/api/v1`.
    pub(super) fn new(url: &Url, server_id: &str, key: &SecretString) -> Result<Self, DnsError> {
        // Fails only when a provider is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut key = HeaderValue::from_str(key.expose_secret()).map_err(|_| DnsError::KeyInvalid)?;
        key.set_sensitive(true);
        let client = Client::builder()
            .default_headers(HeaderMap::from_iter([(reqwest::header::HeaderName::from_static("x-api-key"), key)]))
            .timeout(TIME_LIMIT)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .build()
            .map_err(DnsError::Unavailable)?;
        let mut server = url.clone();
        server
            .path_segments_mut()
            .map_err(|()| DnsError::UrlInvalid(url.to_string()))?
            .pop_if_empty()
            .extend(["api", "v1", "servers", server_id]);
        Ok(Self { client, server })
    }

    pub(super) async fn server(&self) -> Result<(), DnsError> {
        let answer = self.send(self.client.get(self.server.clone())).await?;
        accepted(answer).await.map(drop)
    }

    pub(super) async fn zones(&self) -> Result<Vec<ZoneSummary>, DnsError> {
        let mut url = self.url(&["zones"]);
        // Without it the server looks up the keys of each zone, which takes seconds for thousands.
        url.query_pairs_mut().append_pair("dnssec", "false");
        json(accepted(self.send(self.client.get(url)).await?).await?).await
    }

    pub(super) async fn create_zone(&self, zone: &NewZone) -> Result<(), DnsError> {
        let answer = self.send(self.client.post(self.url(&["zones"])).json(zone)).await?;
        if answer.status() == StatusCode::CONFLICT {
            return Ok(());
        }
        accepted(answer).await.map(drop)
    }

    pub(super) async fn zone(&self, zone: &DnsName) -> Result<Found<ZoneContents>, DnsError> {
        match found(self.send(self.client.get(self.zone_url(zone))).await?).await? {
            Found::Yes(answer) => Ok(Found::Yes(json(answer).await?)),
            Found::No => Ok(Found::No),
        }
    }

    /// The record sets of one name. Servers before 4.7 send the whole zone, so it is sifted here too.
    pub(super) async fn name(&self, zone: &DnsName, name: &str) -> Result<Found<Vec<RrSet>>, DnsError> {
        let mut url = self.zone_url(zone);
        url.query_pairs_mut().append_pair("rrset_name", &absolute(name));
        match found(self.send(self.client.get(url)).await?).await? {
            Found::Yes(answer) => {
                let mut sets = json::<ZoneContents>(answer).await?.rrsets;
                sets.retain(|set| set.is_named(name));
                Ok(Found::Yes(sets))
            }
            Found::No => Ok(Found::No),
        }
    }

    pub(super) async fn patch(&self, zone: &DnsName, patch: &Patch) -> Result<Found<()>, DnsError> {
        match found(self.send(self.client.patch(self.zone_url(zone)).json(patch)).await?).await? {
            Found::Yes(_) => Ok(Found::Yes(())),
            Found::No => Ok(Found::No),
        }
    }

    pub(super) async fn delete_zone(&self, zone: &DnsName) -> Result<Removal, DnsError> {
        match found(self.send(self.client.delete(self.zone_url(zone))).await?).await? {
            Found::Yes(_) => Ok(Removal::Removed),
            Found::No => Ok(Removal::Absent),
        }
    }

    fn zone_url(&self, zone: &DnsName) -> Url {
        self.url(&["zones", &absolute(zone)])
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.server.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path);
        }
        url
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, DnsError> {
        request.send().await.map_err(DnsError::Unavailable)
    }
}

async fn found(answer: Response) -> Result<Found<Response>, DnsError> {
    match answer.status() {
        StatusCode::NOT_FOUND => Ok(Found::No),
        _ => accepted(answer).await.map(Found::Yes),
    }
}

async fn accepted(answer: Response) -> Result<Response, DnsError> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Err(DnsError::KeyRefused);
    }
    let text = words(&answer.text().await.map_err(DnsError::Unavailable)?);
    let status = status.as_u16();
    Err(if status >= 500 { DnsError::Failing { status, text } } else { DnsError::Refused { status, text } })
}

/// The server's own words: its `error` member if the body is the API's JSON, else the body's beginning.
fn words(body: &str) -> String {
    #[derive(Deserialize)]
    struct Failure {
        error: String,
        #[serde(default)]
        errors: Vec<String>,
    }
    let all = match serde_json::from_str::<Failure>(body) {
        Ok(Failure { error, errors }) if errors.is_empty() => error,
        Ok(Failure { error, errors }) => format!("{error}: {}", errors.join("; ")),
        Err(_) => body.trim().to_owned(),
    };
    all.chars().filter(|c| !c.is_control()).take(MAX_TEXT).collect()
}

async fn json<T: DeserializeOwned>(answer: Response) -> Result<T, DnsError> {
    answer
        .json()
        .await
        .map_err(|error| if error.is_decode() { DnsError::NotUnderstood(error) } else { DnsError::Unavailable(error) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::DnsProvider;
    use crate::powerdns_server::PowerDnsServer;

    #[tokio::test]
    async fn the_text_of_a_refusal_is_passed_on() {
        let server = PowerDnsServer::start();
        let zone: DnsName = "example.org".parse().unwrap();
        server.provider().ensure_zone(&zone).await.unwrap();
        let url = format!("http://{}", server.api).parse().unwrap();
        let api = Api::new(&url, "localhost", &SecretString::from("testkey".to_owned())).unwrap();
        let bad = json!({"rrsets": [{"name": "www.example.org.", "type": "A", "ttl": 60, "changetype": "REPLACE",
            "records": [{"content": "no address", "disabled": false}]}]});
        let error =
            accepted(api.send(api.client.patch(api.zone_url(&zone)).json(&bad)).await.unwrap()).await.unwrap_err();
        assert!(matches!(&error, DnsError::Refused { status: 422, text } if text.contains("no address")), "{error:?}");
        assert!(!error.is_transient());
    }

    #[test]
    fn only_words_of_a_failure_are_kept() {
        assert_eq!(words(r#"{"error": "no", "errors": ["a", "b"]}"#), "no: a; b");
        assert_eq!(words(" <html>\n"), "<html>");
        assert_eq!(words(&"x".repeat(10_000)).len(), MAX_TEXT);
    }
}
