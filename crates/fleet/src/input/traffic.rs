//! What a reading of the access log may be at most, and a line of it. Visitors chose what they say, and a node may lie
//! about them.

use corpus_domain::plain_line;
use corpus_protocol::{
    ACCESS_CAUSE, ACCESS_METHOD, ACCESS_PATH, AccessLine, LINES_AT_ONCE, TRAFFIC_AT_ONCE, TRAFFIC_ERRORS, TrafficError,
    TrafficReading,
};

/// No proxy counts more requests, bytes or milliseconds in a minute.
const MOST: u64 = 1 << 44;
/// An address with its prefix: the longest of IPv6 has 43 characters.
const ADDRESS: usize = 48;

/// Bounds what a node has counted.
pub(super) fn reading(reading: &mut TrafficReading) {
    let TrafficReading { minutes, lost_lines, .. } = reading;
    minutes.truncate(TRAFFIC_AT_ONCE);
    at_most(lost_lines);
    for minute in minutes {
        [&mut minute.requests, &mut minute.bytes_in, &mut minute.bytes_out].into_iter().for_each(at_most);
        minute.statuses.iter_mut().for_each(at_most);
        minute.errors.truncate(TRAFFIC_ERRORS);
        for TrafficError { method, path, status, took_ms, cause, .. } in &mut minute.errors {
            texts(method, path, cause);
            *status = (*status).clamp(500, 999);
            at_most(took_ms);
        }
    }
}

/// Bounds requests that are followed; what is cut off was left out.
pub(super) fn lines(lines: &mut Vec<AccessLine>, left_out: &mut u64) {
    let more = u64::try_from(lines.len().saturating_sub(LINES_AT_ONCE)).unwrap_or(MOST);
    *left_out = left_out.saturating_add(more).min(MOST);
    lines.truncate(LINES_AT_ONCE);
    for AccessLine { method, path, status, bytes_out, took_ms, from, cause, .. } in lines {
        texts(method, path, cause);
        *status = (*status).min(999);
        at_most(bytes_out);
        at_most(took_ms);
        *from = from.take().map(|from| plain_line(&from, ADDRESS));
    }
}

fn texts(method: &mut String, path: &mut String, cause: &mut String) {
    *method = plain_line(method, ACCESS_METHOD);
    *path = plain_line(path, ACCESS_PATH);
    *cause = plain_line(cause, ACCESS_CAUSE);
}

fn at_most(number: &mut u64) {
    *number = (*number).min(MOST);
}
