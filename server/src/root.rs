//! The door of the root that signs certificates of names: public, as every root is, and the same until the authority ends.
//! Who is to trust it has no account here: a visitor of a guest's site.

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};

use crate::web::Web;

/// Where it is.
pub const PATH: &str = "/certificates/root.pem";

/// Answers it as a file.
pub async fn root(State(web): State<Web>) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/x-pem-file")),
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"corpus-root.pem\"")),
        (CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600")),
    ];
    (headers, web.controller.certificate_root().to_owned()).into_response()
}
