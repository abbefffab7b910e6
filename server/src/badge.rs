//! The door of badges: how an environment stands, as a picture, for who has its address and nobody else. It is fetched by a
//! README's reader or their host's proxy, so there is no session; a wrong key, a wrong name and a project without badges
//! are answered alike.

use axum::extract::{Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use corpus_controller::store::badges::Shown;
use corpus_domain::{CommitId, DeploymentState, Environment};

use crate::web::Web;

/// How long it may be kept: a README is not looked at to see a deployment run.
const KEPT: HeaderValue = HeaderValue::from_static("public, max-age=30");
/// The longest key that is looked for.
const LONGEST_KEY: usize = 64;

/// Answers the badge of an environment.
pub async fn badge(
    State(web): State<Web>,
    Path((project, environment, file)): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Response {
    let key = file.strip_suffix(".svg").filter(|key| key.len() <= LONGEST_KEY);
    let (Some(key), Ok(environment)) = (key, environment.parse::<Environment>()) else { return nothing() };
    match web.controller.badge(&project, environment, key).await {
        Ok(Some(shown)) => picture(environment, &shown, &headers),
        Ok(None) => nothing(),
        Err(error) => {
            crate::pages::log_failure(&error);
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

fn nothing() -> Response {
    (StatusCode::NOT_FOUND, [(CACHE_CONTROL, "no-store")], "There is no such badge.").into_response()
}

fn picture(environment: Environment, shown: &Shown, asked: &HeaderMap) -> Response {
    let (words, colour) = words(shown);
    // What is shown is what it says.
    let version = format!("\"{environment}-{}\"", words.replace(' ', "-"));
    let etag = HeaderValue::try_from(version).unwrap_or(HeaderValue::from_static("\"\""));
    let mut response = if asked.get(IF_NONE_MATCH) == Some(&etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let kind = HeaderValue::from_static("image/svg+xml; charset=utf-8");
        ([(CONTENT_TYPE, kind)], svg(environment.as_str(), &words, colour)).into_response()
    };
    response.headers_mut().insert(ETAG, etag);
    response.headers_mut().insert(CACHE_CONTROL, KEPT);
    response
}

/// What is said, and in which colour. Each is dark enough for white letters.
fn words(shown: &Shown) -> (String, &'static str) {
    use DeploymentState::{Broken, RolledBack, RollingBack, Running, Waiting};
    match (shown.newest, shown.is_live) {
        (Some(Waiting | Running | RollingBack), _) => ("deploying".to_owned(), "#1f5fbf"),
        (Some(RolledBack | Broken), _) => ("failed".to_owned(), "#b3261e"),
        (_, true) => {
            let commit = shown.live.as_ref().map_or_else(String::new, |commit| format!(" {}", CommitId::short(commit)));
            (format!("live{commit}"), "#1e7a3c")
        }
        (_, false) => ("not deployed".to_owned(), "#5f6368"),
    }
}

/// A picture of two fields with text.
fn svg(left: &str, right: &str, colour: &str) -> String {
    let (a, b) = (width(left), width(right));
    let (all, middle_a, middle_b) = (a + b, a / 2, a + b / 2);
    let (left, right) = (escaped(left), escaped(right));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all}\" height=\"20\" role=\"img\" aria-label=\"{left}: {right}\">\
         <title>{left}: {right}</title>\
         <rect width=\"{all}\" height=\"20\" rx=\"3\" fill=\"{colour}\"/><path d=\"M3 0h{inner}v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z\" fill=\"#30363d\"/>\
         <g fill=\"#fff\" text-anchor=\"middle\" font-family=\"Verdana,Geneva,DejaVu Sans,sans-serif\" font-size=\"11\">\
         <text x=\"{middle_a}\" y=\"14\">{left}</text><text x=\"{middle_b}\" y=\"14\">{right}</text></g></svg>\n",
        inner = a - 3,
    )
}

/// About as wide as a text is, with room beside it.
fn width(text: &str) -> usize {
    text.chars().count() * 7 + 14
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(newest: Option<DeploymentState>, live: Option<&str>) -> Shown {
        Shown { live: live.map(|commit| commit.parse().unwrap()), is_live: live.is_some(), newest }
    }

    #[test]
    fn the_words_of_a_badge() {
        let commit = Some("77b02de9be2465188c3e0a4d96f7b2e5a10c4d81");
        let of = |newest, live| words(&shown(newest, live)).0;
        assert_eq!(of(None, None), "not deployed");
        assert_eq!(of(Some(DeploymentState::Live), commit), "live 77b02de");
        assert_eq!(of(Some(DeploymentState::RolledBack), commit), "failed");
        assert_eq!(of(Some(DeploymentState::Broken), None), "failed");
        assert_eq!(of(Some(DeploymentState::Running), commit), "deploying");
    }

    #[test]
    fn what_stands_in_a_picture_is_text() {
        let picture = svg("<a>", "\"b\" & 'c'", "#000");
        assert!(
            !picture.contains("<a>")
                && picture.contains("&lt;a&gt;")
                && picture.contains("&quot;b&quot; &amp; &#39;c&#39;")
        );
    }
}
