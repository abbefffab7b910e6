//! Who asks at the API: the member of a token, or of the session of a browser that is signed in.
//!
//! A token counts here and nowhere else. What is refused is a problem, never a page: a program reads it.
//! Wrong tokens are counted by address, so that who tries them in heaps is not looked up each time.

use std::net::IpAddr;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use corpus_api::tokens::TokenText;
use corpus_api::{Principal, Problem};
use corpus_domain::Door;
use tower_sessions::Session;

use super::PREFIX;
use super::json::Refused;
use crate::member::{self, Who};
use crate::quota::seconds;
use crate::web::Web;

/// The token that a request came with.
#[derive(Debug, Clone)]
pub struct Bearer(pub TokenText);

/// Why a request is refused, and when to come again.
struct Denial(Problem, Option<Duration>);

impl From<Problem> for Denial {
    fn from(problem: Problem) -> Self {
        Self(problem, None)
    }
}

impl IntoResponse for Denial {
    fn into_response(self) -> Response {
        let mut response = Refused(self.0).into_response();
        let wait = self.1.and_then(|wait| HeaderValue::try_from(seconds(wait).max(1).to_string()).ok());
        if let Some(wait) = wait {
            response.headers_mut().insert(RETRY_AFTER, wait);
        }
        response
    }
}

/// Lets through who may ask at all, as fast as they may.
pub async fn admit(State(web): State<Web>, session: Session, mut request: Request, next: Next) -> Response {
    let who = match who(&web, &session, &mut request).await {
        Ok(who) => who,
        Err(denial) => return denial.into_response(),
    };
    let left = web.quota.take(who.id);
    let mut response = match left.wait {
        None => answer(&web, who, request, next).await,
        wait => {
            let why = "You send more requests than one may. The headers of each answer say how many are left.";
            Denial(Problem::too_many_requests(why), wait).into_response()
        }
    };
    left.write(response.headers_mut());
    response
}

async fn answer(web: &Web, who: Principal, mut request: Request, next: Next) -> Response {
    let Some(_turn) = web.turns.wait(who.id).await else {
        let why = "Too many of your requests wait to be answered. Try again in a few seconds.";
        return Denial::from(Problem::too_many_requests(why)).into_response();
    };
    request.extensions_mut().insert(Who(Some(who)));
    next.run(request).await
}

async fn who(web: &Web, session: &Session, request: &mut Request) -> Result<Principal, Denial> {
    if !request.headers().contains_key(AUTHORIZATION) {
        let found = member::principal(web, session).await.map_err(|error| told(&error))?;
        let why = "Send a token as Authorization: Bearer corpus_…; members make them on the page Tokens.";
        return found.map(|who| who.by(Door::Api)).ok_or_else(|| Problem::unauthenticated(why).into());
    }
    let address = member::address(&web.settings, request.extensions(), request.headers());
    let text = bearer(request.headers()).ok_or_else(|| Denial::from(wrong()))?;
    let who = of_token(web, &text, address).await?;
    request.extensions_mut().insert(Bearer(text));
    Ok(who)
}

/// The member of a token. One that is none of ours is looked up only now and then.
async fn of_token(web: &Web, token: &TokenText, address: IpAddr) -> Result<Principal, Denial> {
    let text = token.expose();
    let too_many = |wait| {
        let why = "Too many wrong tokens came from your address. Wait, and send one that is good.";
        Denial(Problem::too_many_requests(why), Some(wait))
    };
    web.login.tokens.has_room(text, address).map_err(too_many)?;
    let Some(who) = web.controller.principal_of_token(text).await.map_err(|error| told(&error))? else {
        web.login.tokens.count_wrong(text, address);
        return Err(wrong().into());
    };
    Ok(who)
}

fn wrong() -> Problem {
    Problem::unauthenticated(
        "This is no token, or one that has expired or was revoked. Make another one on the page Tokens.",
    )
}

fn told(error: &corpus_controller::Error) -> Problem {
    crate::pages::log_failure(error);
    Problem::from(error)
}

/// The token of a request, if it has the shape of one.
fn bearer(headers: &HeaderMap) -> Option<TokenText> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().parse().ok()).flatten()
}

/// Whether a path is one of the API.
pub fn is_api(path: &str) -> bool {
    path.strip_prefix(PREFIX).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a request is judged by a token and nothing else. A browser adds none by itself, so no other
/// site can have sent it.
pub fn is_by_token(request: &Request) -> bool {
    is_api(request.uri().path()) && request.headers().contains_key(AUTHORIZATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_the_api() {
        assert!(is_api("/api/v1") && is_api("/api/v1/jobs"));
        assert!(!is_api("/api/v10/jobs") && !is_api("/jobs") && !is_api("/x/api/v1"));
    }

    #[test]
    fn a_bearer_is_a_token_of_ours() {
        let good = format!("corpus_{}", "A".repeat(43));
        let found = |text: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(text).unwrap())]);
            bearer(&headers).is_some()
        };
        assert!(found(&format!("Bearer {good}")) && found(&format!("bearer  {good}")));
        assert!(!found(&good) && !found(&format!("Basic {good}")) && !found("Bearer x") && !found(""));
    }
}
