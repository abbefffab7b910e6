//! How large the body of a request may be: no form and no question comes near the usual limit; a file that an operation
//! takes as it is has the limit that the operation says.

use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use corpus_api::{Operation, Plain, Visitor};
use http_body_util::Limited;

use crate::doors::PREFIX;

/// Unless an operation takes a file.
const USUAL: usize = 256 * 1024;

/// The operations that take a file.
static FILES: LazyLock<Vec<Plain>> = LazyLock::new(|| {
    struct Files(Vec<Plain>);
    impl Visitor for Files {
        fn visit<O: Operation>(&mut self) {
            self.0.extend(Some(O::META.plain()).filter(|meta| meta.file.is_some()));
        }
    }
    let mut files = Files(Vec::new());
    corpus_api::walk(&mut files);
    files.0
});

/// The largest body of an operation: as JSON a file takes up to twice the room.
pub fn limit(meta: &Plain) -> usize {
    meta.file.map_or(USUAL, |file| {
        let limit = file.limit.saturating_mul(if file.streamed { 1 } else { 2 });
        usize::try_from(limit).unwrap_or(usize::MAX)
    })
}

/// The largest body of a request.
pub fn limit_of(method: &Method, path: &str) -> usize {
    let Some(path) = path.strip_prefix(PREFIX) else { return USUAL };
    FILES.iter().find(|meta| meta.method.as_str() == method.as_str() && is_at(meta.path, path)).map_or(USUAL, limit)
}

fn is_at(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('/'), path.split('/'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(one), Some(part)) if one.starts_with('{') && !part.is_empty() || one == part => {}
            _ => return false,
        }
    }
}

/// Refuses what says that it is larger, and reads no more of what does not say so.
pub async fn bounded(request: Request, next: Next) -> Response {
    let limit = limit_of(request.method(), request.uri().path());
    let said = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if said.is_some_and(|said| said > limit) {
        return (StatusCode::PAYLOAD_TOO_LARGE, "The request is too large.").into_response();
    }
    next.run(request.map(|body| Body::new(Limited::new(body, limit)))).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_takes_a_file_may_be_large() {
        let at = |method: &Method, path: &str| limit_of(method, path);
        assert_eq!(at(&Method::PUT, "/api/v1/deployments/1/tests/unit"), 16 * 1024 * 1024);
        assert_eq!(at(&Method::PUT, "/api/v1/projects/atlas/images/web/archive"), 10_000_000_000);
        for (method, path) in [
            (Method::POST, "/api/v1/deployments/1/tests/unit"),
            (Method::PUT, "/deployments/1/tests/unit"),
            (Method::PUT, "/api/v1/deployments//tests/unit"),
            (Method::PUT, "/api/v1/deployments/1/tests/unit/more"),
            (Method::POST, "/api/v1/jobs/1/cancel"),
            (Method::POST, "/login"),
        ] {
            assert_eq!(at(&method, path), USUAL, "{method} {path}");
        }
    }
}
