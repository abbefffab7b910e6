//! Points in time as the event stream writes them, on both sides.

/// Milliseconds since 1970 of an RFC 3339 text.
#[cfg(target_arch = "wasm32")]
#[expect(clippy::cast_possible_truncation, reason = "milliseconds of dates fit")]
pub fn parse(text: &str) -> Option<i64> {
    let at = js_sys::Date::parse(text);
    at.is_finite().then_some(at as i64)
}

/// Milliseconds since 1970 of an RFC 3339 text.
#[cfg(all(not(target_arch = "wasm32"), feature = "ssr"))]
pub fn parse(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|at| at.timestamp_millis())
}

/// Neither server nor browser: there is no time.
#[cfg(all(not(target_arch = "wasm32"), not(feature = "ssr")))]
pub fn parse(_text: &str) -> Option<i64> {
    None
}

/// Milliseconds since 1970, now.
#[cfg(target_arch = "wasm32")]
#[expect(clippy::cast_possible_truncation, reason = "milliseconds of dates fit")]
pub fn now() -> i64 {
    js_sys::Date::now() as i64
}

/// Milliseconds since 1970, now.
#[cfg(not(target_arch = "wasm32"))]
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// `hh:mm:ss` of an RFC 3339 text, UTC until the browser makes it local.
pub fn clock(text: &str) -> String {
    text.get(11..19).unwrap_or_default().to_owned()
}
