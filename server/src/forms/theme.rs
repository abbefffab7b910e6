//! The colours a person chose, kept in a cookie.

use axum::http::HeaderValue;
use axum::http::header::SET_COOKIE;
use axum::response::Response;

use super::Form;
use super::form::see_other;
use crate::member::local_path;

const A_YEAR_S: u32 = 31_536_000;

/// `light`, `dark`, or anything else for the system's.
pub async fn choose(posted: Form) -> Response {
    let cookie = match posted.fields.raw("theme") {
        "light" => format!("theme=light; Path=/; SameSite=Lax; Max-Age={A_YEAR_S}"),
        "dark" => format!("theme=dark; Path=/; SameSite=Lax; Max-Age={A_YEAR_S}"),
        _ => "theme=; Path=/; SameSite=Lax; Max-Age=0".to_owned(),
    };
    let mut response = see_other(local_path(posted.fields.raw("next")));
    if let Ok(cookie) = HeaderValue::try_from(cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
