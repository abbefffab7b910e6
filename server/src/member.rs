//! Who asks: the principal of a request, read anew for each from the id in the session.
//!
//! Who is not signed in sees the login page and nothing else: a page sends them there and
//! remembers the way back, a form is taken along, anything else answers 401. Whether a signed-in member may do what
//! is asked is not decided here but in the controller. The API has its own: [`crate::doors::admit`].

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::{ConnectInfo, FromRequest, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{Extensions, HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use corpus_api::Principal;
use corpus_app::{ENDED, Failure};
use corpus_controller::Error;
use tower_sessions::Session;
use url::form_urlencoded;

use crate::config::Settings;
use crate::doors::PREFIX;
use crate::forms::{Form, ended};
use crate::pages::{self, Extra};
use crate::sessions;
use crate::web::Web;

/// What can be asked without being signed in, besides health and static files.
const PUBLIC: [&str; 3] = ["/login", "/logout", "/theme"];

/// The principal of a request, if signed in; [`admit`] puts it among the request's extensions.
#[derive(Debug, Clone)]
pub struct Who(pub Option<Principal>);

impl Who {
    /// The principal that [`admit`] found.
    pub fn of(extensions: &Extensions) -> Option<Principal> {
        extensions.get::<Self>().and_then(|who| who.0.clone())
    }
}

/// Finds out who asks, and lets only the public paths through for nobody.
pub async fn admit(State(web): State<Web>, session: Session, mut request: Request, next: Next) -> Response {
    let who = match principal(&web, &session).await {
        Ok(who) => who,
        Err(error) => {
            pages::log_failure(&error);
            let failure = Failure::from(&error);
            return pages::render(&web, request.headers(), request.uri(), None, Extra::failure(failure)).await;
        }
    };
    if who.is_none() && !PUBLIC.contains(&request.uri().path()) {
        return to_login(&web, request).await;
    }
    if who.is_some() && request.method() == Method::GET && request.uri().path() == "/login" {
        return Redirect::to("/").into_response();
    }
    let _turn = match &who {
        Some(who) => match web.turns.wait(who.id).await {
            Some(turn) => Some(turn),
            None => return too_many(),
        },
        None => None,
    };
    request.extensions_mut().insert(Who(who));
    next.run(request).await
}

/// More of one's requests wait than any browser sends.
fn too_many() -> Response {
    let why = "Too many of your requests wait to be answered. Try again in a few seconds.";
    (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "5")], why).into_response()
}

/// The member of a session.
pub async fn principal(web: &Web, session: &Session) -> corpus_controller::Result<Option<Principal>> {
    let member = sessions::member(session).await.map_err(|error| Error::Unavailable {
        message: "The database does not answer. Try again in a moment.".to_owned(),
        source: Box::new(error),
    })?;
    match member {
        Some((id, epoch)) => web.controller.principal_since(id, epoch).await,
        None => Ok(None),
    }
}

async fn to_login(web: &Web, request: Request) -> Response {
    let (method, uri, headers) = (request.method(), request.uri(), request.headers());
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_page = method == Method::GET || method == Method::HEAD || method == Method::POST;
    if !is_page
        || accepts.contains("text/event-stream")
        || accepts.contains("json")
        || uri.path().ends_with("/events")
        || uri.path().starts_with(PREFIX)
    {
        return (StatusCode::UNAUTHORIZED, "Sign in first.").into_response();
    }
    if method == Method::POST {
        return match Form::from_request(request, web).await {
            Ok(posted) => ended::sign_in_first(&posted).await,
            Err(refused) => refused,
        };
    }
    let back = uri.path_and_query().map(PathAndQuery::as_str).filter(|back| *back != "/");
    let ended = sessions::is_named(&web.settings, headers).then_some((ENDED, "true"));
    let asked = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(back.map(|back| ("next", back)))
        .extend_pairs(ended)
        .finish();
    Redirect::to(&if asked.is_empty() { "/login".to_owned() } else { format!("/login?{asked}") }).into_response()
}

/// `next` if it leads to a page of ours, else the overview: never to another site.
/// A browser takes `//host` and `/\host` for another host, and drops tabs and newlines.
pub fn local_path(next: &str) -> &str {
    let plain = next.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    if plain && next.starts_with('/') && !next.starts_with("//") { next } else { "/" }
}

/// The address that a request comes from: the peer's, or what a trusted proxy says it is.
pub fn address(settings: &Settings, extensions: &Extensions, headers: &HeaderMap) -> IpAddr {
    let peer = extensions.get::<ConnectInfo<SocketAddr>>().map_or(Ipv4Addr::UNSPECIFIED.into(), |info| info.0.ip());
    if !settings.trusted_proxies.contains(&peer.to_canonical()) {
        return peer;
    }
    let forwarded = headers.get_all("x-forwarded-for").iter().next_back().and_then(|value| value.to_str().ok());
    forwarded.and_then(|value| value.rsplit(',').next()?.trim().parse().ok()).unwrap_or(peer)
}

/// Whoever has one IPv6 address has the whole /64 of it.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
        four @ IpAddr::V4(_) => four,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_never_leaves_the_site() {
        for good in ["/", "/nodes", "/jobs?state=all", "/guests/new#x"] {
            assert_eq!(local_path(good), good);
        }
        for bad in ["", "nodes", "//evil.example", "/\\evil.example", "https://evil.example", "/\t/evil", "/a\nb", "/é"]
        {
            assert_eq!(local_path(bad), "/", "{bad:?}");
        }
    }

    #[test]
    fn only_a_trusted_proxy_is_believed() {
        let proxy = SocketAddr::from(([10, 0, 0, 1], 5));
        let mut extensions = Extensions::new();
        extensions.insert(ConnectInfo(proxy));
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", "1.1.1.1, 192.0.2.7".parse().unwrap());
        let mut settings = Settings::from_parts(None, std::iter::empty()).unwrap();
        assert_eq!(address(&settings, &extensions, &headers), proxy.ip());
        settings.trusted_proxies.push(proxy.ip());
        assert_eq!(address(&settings, &extensions, &headers), IpAddr::from([192, 0, 2, 7]));
    }
}
