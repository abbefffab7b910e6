//! Points in time as the event stream writes them, on both sides.

/// Milliseconds since 1970 of an RFC 3339 text.
#[cfg(target_arch = "wasm32")]
#[expect(clippy::cast_possible_truncation, reason = "milliseconds of dates fit")]
pub fn parse(text: &str) -> Option<i64> {
    let at = js_sys::Date::parse(text);
    at.is_finite().then_some(at as i64)
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

/// As pages and the event stream write it, RFC 3339 with milliseconds.
pub fn text(at: chrono::DateTime<chrono::Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// `hh:mm:ss` of an RFC 3339 text, UTC until the browser makes it local.
pub fn clock(text: &str) -> String {
    text.get(11..19).unwrap_or_default().to_owned()
}
