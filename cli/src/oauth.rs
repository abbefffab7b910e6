//! How the command line comes to a token: let in at a browser, or by a login and a password; and how it
//! gives it back.

use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;
use tokio::time::sleep;
use url::Url;

use crate::exit::{Exit, Failure};

/// The grant of RFC 8628.
const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// How much longer each pause is when the server asks for it.
const SLOWER: Duration = Duration::from_secs(5);

/// A token as it is given.
#[derive(Debug, Deserialize)]
pub struct Given {
    /// Its text.
    pub access_token: String,
    /// For how many seconds it is good.
    pub expires_in: u64,
}

#[derive(Deserialize)]
struct Waiting {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: String,
    expires_in: u64,
    interval: u64,
}

#[derive(Deserialize)]
struct ErrorResponse {
    error: String,
    #[serde(default)]
    error_description: String,
}

/// The place where tokens come from.
pub struct Door {
    http: reqwest::Client,
    url: Url,
    debug: bool,
}

impl Door {
    /// Of a Corpus.
    pub fn new(url: Url, debug: bool) -> Result<Self, Failure> {
        Ok(Self { http: crate::client::http()?, url, debug })
    }

    /// Waits until a member lets this program in at a browser.
    pub async fn by_browser(&self, scope: &str) -> Result<Given, Failure> {
        let asked = self.send("oauth/device", &[("client_id", &client_id()), ("scope", scope)]).await?;
        let waiting: Waiting = asked.map_err(|told| refused(&told))?;
        eprintln!("Open {} and type {}", waiting.verification_uri, waiting.user_code);
        eprintln!("or open {}", waiting.verification_uri_complete);
        let given = tokio::time::timeout(Duration::from_secs(waiting.expires_in), self.until_let_in(&waiting)).await;
        given.unwrap_or_else(|_| Err(Failure::new(Exit::TimedOut, "nobody let it in; run it again")))
    }

    async fn until_let_in(&self, waiting: &Waiting) -> Result<Given, Failure> {
        let mut pause = Duration::from_secs(waiting.interval.max(1));
        let asked = [("grant_type", DEVICE), ("device_code", &waiting.device_code), ("client_id", "corpus")];
        loop {
            sleep(pause).await;
            match self.send("oauth/token", &asked).await? {
                Ok(given) => return Ok(given),
                Err(told) if told.error == "authorization_pending" => {}
                Err(told) if told.error == "slow_down" => pause += SLOWER,
                Err(told) => return Err(refused(&told)),
            }
        }
    }

    /// By a login and a password, as the file of old has them.
    pub async fn by_password(&self, login: &str, password: &str) -> Result<Given, Failure> {
        let asked = [("grant_type", "password"), ("username", login), ("password", password)];
        let given = self.send("oauth/token", &[asked.as_slice(), &[("client_id", &client_id())]].concat()).await?;
        given.map_err(|told| refused(&told))
    }

    /// Ends a token.
    pub async fn revoke(&self, token: &str) -> Result<(), Failure> {
        let gone: Result<serde_json::Value, ErrorResponse> = self.send("oauth/revoke", &[("token", token)]).await?;
        gone.map(drop).map_err(|told| refused(&told))
    }

    async fn send<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        fields: &[(&str, &str)],
    ) -> Result<Result<T, ErrorResponse>, Failure> {
        let url = self.url.join(path).map_err(|error| Failure::usage(error.to_string()))?;
        if self.debug {
            eprintln!("> POST {url}");
        }
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.http.post(url).header("content-type", "application/x-www-form-urlencoded").body(body);
        let response = request.send().await.map_err(|error| crate::client::unreachable(self.url.as_str(), &error))?;
        let status = response.status();
        let body = response.bytes().await.unwrap_or_default();
        let unreadable = || Failure::new(Exit::Refused, format!("this is no answer of Corpus: {status}"));
        if status == StatusCode::OK {
            return serde_json::from_slice(&body).map(Ok).map_err(|_| unreadable());
        }
        serde_json::from_slice(&body).map(Err).map_err(|_| unreadable())
    }
}

fn refused(told: &ErrorResponse) -> Failure {
    let text = if told.error_description.is_empty() { &told.error } else { &told.error_description };
    Failure::new(Exit::Refused, text.clone())
}

/// What this program is called, by which its token is found on the page.
fn client_id() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("corpus on {host}").chars().filter(|c| !c.is_control()).take(60).collect()
}
