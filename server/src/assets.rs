//! Static files: scripts, styles and fonts, compressed when they were built.

use std::path::Path;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use tower_http::services::{ServeDir, ServeFile};

const FOR_EVER: &str = "public, max-age=31536000, immutable";
const AN_HOUR: &str = "public, max-age=3600";

/// Serves `pkg/`, `fonts/` and the icon of the site folder.
pub fn router<S: Clone + Send + Sync + 'static>(site: &Path) -> Router<S> {
    let folder = |name: &str| ServeDir::new(site.join(name)).precompressed_br().precompressed_gzip();
    Router::new()
        .nest_service("/pkg", folder("pkg"))
        .nest_service("/fonts", folder("fonts"))
        .route_service("/favicon.svg", ServeFile::new(site.join("favicon.svg")))
        .layer(from_fn(cache))
}

/// A name that carries a hash never changes its content; the others are asked for again after an hour.
async fn cache(request: Request, next: Next) -> Response {
    let hashed = is_hashed(request.uri().path());
    let mut response = next.run(request).await;
    if matches!(response.status(), StatusCode::OK | StatusCode::NOT_MODIFIED) {
        let value = HeaderValue::from_static(if hashed { FOR_EVER } else { AN_HOUR });
        response.headers_mut().insert(header::CACHE_CONTROL, value);
    }
    response
}

/// Whether a file is called `name.HASH.extension`.
fn is_hashed(path: &str) -> bool {
    let parts: Vec<&str> = path.rsplit('/').next().unwrap_or_default().split('.').collect();
    matches!(parts.as_slice(), [_, hash, _] if hash.len() >= 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hashed_names_are_kept_for_ever() {
        assert!(is_hashed("/pkg/corpus.2fK3_dTb9Q.wasm"));
        assert!(!is_hashed("/pkg/corpus.css"));
        assert!(!is_hashed("/fonts/inter.woff2"));
    }
}
