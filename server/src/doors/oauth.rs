//! How a program comes to a token: let in by a member at a browser (RFC 8628), or by a login and a password
//! (RFC 6749, 4.3); and how it gives the token back (RFC 7009).
//!
//! Nobody is signed in here, so none of it is an operation; the token itself is made by one. A password is
//! tried under the same limits as on the page. Fields, answers and errors are those of the RFCs.

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, COOKIE, ORIGIN, RETRY_AFTER};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::post;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use chrono::Utc;
use corpus_api::Problem;
use corpus_api::tokens::{CreateToken, NewToken, RevokeToken, TokenBytes};
use corpus_api::words::Label;
use corpus_controller::{Error, Standing};
use corpus_domain::{Door, Grant};
use serde_json::{Value, json};

use crate::forms::Form;
use crate::login::Refusal;
use crate::member::network;
use crate::quota::seconds;
use crate::web::Web;

/// Where all of it is.
const FOLDER: &str = "/oauth/";
/// How often a program asks whether it is let in.
const INTERVAL: Duration = Duration::from_secs(2);
/// The grant of RFC 8628.
const DEVICE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// For how many days a token is good that was asked for with a password.
const DAYS: &str = "1";

/// The routes.
pub fn router() -> Router<Web> {
    Router::new()
        .route("/oauth/device", post(begin))
        .route("/oauth/token", post(token))
        .route("/oauth/revoke", post(revoke))
}

/// Whether a request comes from a program, for which this is made. A browser says from which page it asks.
pub fn is_by_program(request: &Request) -> bool {
    let of_browser = [ORIGIN, COOKIE, HeaderName::from_static("sec-fetch-site")];
    let is_by_browser = of_browser.iter().any(|name| request.headers().contains_key(name));
    request.uri().path().starts_with(FOLDER) && !is_by_browser
}

/// Why a program gets nothing (RFC 6749, 5.2).
struct Refused {
    status: StatusCode,
    error: &'static str,
    why: String,
    wait: Option<Duration>,
}

impl Refused {
    fn new(error: &'static str, why: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, error, why: why.into(), wait: None }
    }

    fn later(status: StatusCode, why: impl Into<String>, wait: Duration) -> Self {
        Self { status, error: "temporarily_unavailable", why: why.into(), wait: Some(wait) }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        crate::pages::log_failure(&error);
        Problem::from(&error).into()
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let why = problem.text().to_owned();
        match problem.status {
            500.. => Self::later(StatusCode::SERVICE_UNAVAILABLE, why, Duration::from_secs(5)),
            _ => Self::new("invalid_request", why),
        }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let why = refusal.to_string();
        match refusal {
            Refusal::WrongPassword | Refusal::Disabled | Refusal::Ambiguous => Self::new("invalid_grant", why),
            Refusal::TooMany(wait) => Self::later(StatusCode::TOO_MANY_REQUESTS, why, wait),
            _ => Self::later(StatusCode::SERVICE_UNAVAILABLE, why, Duration::from_secs(5)),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.error, "error_description": self.why });
        let mut response = (self.status, answered(body)).into_response();
        let wait = self.wait.and_then(|wait| HeaderValue::try_from(seconds(wait).max(1).to_string()).ok());
        if let Some(wait) = wait {
            response.headers_mut().insert(RETRY_AFTER, wait);
        }
        response
    }
}

/// What is answered is for this program only.
fn answered(body: Value) -> Response {
    ([(CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

/// A program begins to wait, and is told what its person must type where.
async fn begin(posted: Form) -> Result<Response, Refused> {
    let (client, grant) = (client(&posted)?, scope(&posted)?);
    let from = network(posted.address).to_string();
    let Some(waiting) = posted.web.controller.begin_device_login(&client, &from, grant).await? else {
        let why = "Too many programs wait to be let in. Wait until some are, or ten minutes.";
        return Err(Refused::later(StatusCode::TOO_MANY_REQUESTS, why, Duration::from_mins(1)));
    };
    let page = posted.web.settings.public_url.join("/device").map(String::from).unwrap_or_default();
    Ok(answered(json!({
        "device_code": BASE64_URL_SAFE_NO_PAD.encode(waiting.code),
        "user_code": waiting.user_code.to_string(),
        "verification_uri": page,
        "verification_uri_complete": format!("{page}?code={}", waiting.user_code),
        "expires_in": (waiting.expires_at - Utc::now()).num_seconds(),
        "interval": INTERVAL.as_secs(),
    })))
}

/// A token, for a program that was let in or for a password.
async fn token(posted: Form) -> Result<Response, Refused> {
    let new = match posted.fields.raw("grant_type") {
        DEVICE => for_device(&posted).await,
        "password" => for_password(&posted).await,
        _ => Err(Refused::new("unsupported_grant_type", format!("grant_type is password or {DEVICE}."))),
    }?;
    Ok(answered(json!({
        "access_token": new.token.expose(),
        "token_type": "Bearer",
        "expires_in": (new.expires_at - Utc::now()).num_seconds(),
        "scope": new.scope,
    })))
}

async fn for_device(posted: &Form) -> Result<NewToken, Refused> {
    let code = BASE64_URL_SAFE_NO_PAD.decode(posted.fields.raw("device_code")).ok();
    let code: Option<TokenBytes> = code.and_then(|bytes| bytes.try_into().ok());
    let expired = || Refused::new("expired_token", "The program waits no more. Begin again.");
    match posted.web.controller.device_login(&code.ok_or_else(expired)?).await? {
        Standing::Approved(token) => Ok(*token),
        Standing::Refused => Err(Refused::new("access_denied", "It was refused.")),
        Standing::Pending => Err(Refused::new("authorization_pending", "Nobody has decided yet.")),
        Standing::TooSoon => Err(Refused::new("slow_down", "Ask less often.")),
        Standing::Expired => Err(expired()),
    }
}

async fn for_password(posted: &Form) -> Result<NewToken, Refused> {
    let (web, fields) = (&posted.web, &posted.fields);
    let (login, password) = (fields.raw("username").trim(), fields.secret("password"));
    let (name, scope) = (client(posted)?, scope(posted)?);
    let password = password.ok_or_else(|| Refused::new("invalid_request", "username and password are needed."))?;
    let person = web.login.sign_in(login, &password, None, posted.address).await?;
    let (realm, login) = (person.realm, person.login.clone());
    let id = web.controller.sign_in_by(Door::Api, person.into(), &posted.address.to_string()).await?;
    let who = web.controller.principal(id).await?.ok_or(Refusal::Disabled)?.by(Door::Api);
    let days = DAYS.parse().ok();
    let asked = CreateToken { name, scope, days, until: None, replace: Some(true) };
    let new = web.controller.call(&who, asked, None).await?;
    // A password that is reset meanwhile leaves no token behind.
    if let Err(refusal) = web.login.is_still(realm, &login, &password).await {
        web.controller.call(&who, RevokeToken { token: new.id }, None).await?;
        return Err(refusal.into());
    }
    Ok(new)
}

/// Whoever holds a token may end it. What is none is over already.
async fn revoke(posted: Form) -> Result<Response, Refused> {
    let (web, text) = (&posted.web, posted.fields.raw("token"));
    web.login.tokens.has_room(text, posted.address).map_err(Refusal::TooMany)?;
    match web.controller.holder_of(text).await? {
        Some((who, token)) => drop(web.controller.call(&who, RevokeToken { token }, None).await?),
        None => web.login.tokens.count_wrong(text, posted.address),
    }
    Ok(answered(json!({})))
}

/// What a program says it is.
fn client(posted: &Form) -> Result<Label, Refused> {
    let given = posted.fields.text("client_id").unwrap_or("a program");
    given.parse().map_err(|error: corpus_domain::Invalid| Refused::new("invalid_client", error.to_string()))
}

/// What its token is to be good for.
fn scope(posted: &Form) -> Result<Grant, Refused> {
    let Some(given) = posted.fields.text("scope") else { return Ok(Grant::All) };
    given.parse().map_err(|error: corpus_domain::Invalid| Refused::new("invalid_scope", error.to_string()))
}
