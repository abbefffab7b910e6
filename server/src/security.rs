//! What protects the browser's side: no request from another site changes anything, and no
//! page can be framed, sniffed, or made to run what is not ours.

use axum::extract::{Request, State};
use axum::http::header::{self, COOKIE, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use corpus_api::Problem;
use corpus_app::Failure;

use crate::doors::admit::{is_api, is_by_token};
use crate::doors::json::Refused;
use crate::doors::oauth;
use crate::pages::{self, Extra};
use crate::web::Web;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

/// For answers that bring no policy of their own: they are no pages.
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Refuses a request that changes something unless it comes from a page of ours.
///
/// Browsers say where a request comes from: `Sec-Fetch-Site` on https and localhost, `Origin`
/// on every POST. What says neither is no browser of the last years, and is refused too. What comes
/// with a token to the API needs neither: a browser adds no token by itself. Nor does what asks for one.
pub async fn refuse_cross_site(State(web): State<Web>, request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    let safe = reads || is_by_token(&request) || oauth::is_by_program(&request);
    if safe || is_ours(request.headers(), &web.settings.public_url.origin().ascii_serialization()) {
        return next.run(request).await;
    }
    tracing::warn!(path = request.uri().path(), "refused a request from another site");
    if is_api(request.uri().path()) && request.headers().contains_key(COOKIE) {
        let why = "This request was sent from another site. Send it with a token, or from a page here.";
        return Refused(Problem::forbidden(why)).into_response();
    }
    if is_api(request.uri().path()) {
        // Without a session nobody's name can be misused: they are told what is missing.
        return next.run(request).await;
    }
    let message = "This form was sent from another site. Open the page here and send it again.".to_owned();
    let failure = Failure { status: 403, title: "Not permitted".to_owned(), message };
    pages::render(&web, request.headers(), request.uri(), None, Extra::failure(failure)).await
}

fn is_ours(headers: &HeaderMap, public: &str) -> bool {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    match (text(SEC_FETCH_SITE), text(header::ORIGIN)) {
        (Some("same-origin" | "none"), _) => true,
        (_, Some(origin)) if origin == public => true,
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_some() && host == text(header::HOST)
        }
        _ => false,
    }
}

/// Adds the headers that every answer has.
pub async fn headers(State(web): State<Web>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    let mut set = |name, value| {
        headers.insert(name, HeaderValue::from_static(value));
    };
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "same-origin");
    set(header::X_FRAME_OPTIONS, "DENY");
    set(PERMISSIONS_POLICY, "camera=(), geolocation=(), microphone=(), payment=(), usb=()");
    if web.settings.is_https() {
        set(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
    let policy = headers.entry(header::CONTENT_SECURITY_POLICY);
    policy.or_insert(HeaderValue::from_static(POLICY));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_send_a_form() {
        let table: &[(&[(&str, &str)], bool)] = &[
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "https://evil.example"), ("host", "c.example")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "http://c.example"), ("host", "c.example")], false),
            (&[("origin", "https://c.example")], true),
            (&[("origin", "http://10.0.0.1:8080"), ("host", "10.0.0.1:8080")], true),
            (&[("origin", "http://10.0.0.2:8080"), ("host", "10.0.0.1:8080")], false),
            (&[("origin", "null"), ("host", "c.example")], false),
            (&[("host", "c.example")], false),
        ];
        for (given, expected) in table {
            let headers = given.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            assert_eq!(is_ours(&headers, "https://c.example"), *expected, "{given:?}");
        }
    }
}
