//! What a node may tell of requests at most. Their methods and paths are strangers' words even on an honest node.

use corpus_domain::plain_line;
use corpus_protocol::{
    ACCESS_CAUSE, ACCESS_METHOD, ACCESS_PATH, AccessLine, LINES_AT_ONCE, Latency, TRAFFIC_AT_ONCE, TRAFFIC_ERRORS,
    TrafficError, TrafficMinute, TrafficReading,
};

use super::answer::HUGE;
use super::report::{span, time};

/// No node answers more requests in a minute: 2^32.
const MOST_REQUESTS: u64 = 1 << 32;
/// The longest of addresses and their networks: `2001:db8:ffff::/48`.
const ADDRESS: usize = 50;
const A_MINUTE_MS: u64 = 60_000;

/// Bounds what was counted.
pub(super) fn reading(reading: &mut TrafficReading) {
    reading.minutes.truncate(TRAFFIC_AT_ONCE);
    reading.lost_lines = reading.lost_lines.min(MOST_REQUESTS);
    reading.minutes.iter_mut().for_each(minute);
}

fn minute(minute: &mut TrafficMinute) {
    let TrafficMinute { at_ms, requests, statuses, bytes_in, bytes_out, latency, errors, .. } = minute;
    time(at_ms);
    *at_ms -= *at_ms % A_MINUTE_MS;
    for count in statuses.iter_mut().chain([requests]) {
        *count = (*count).min(MOST_REQUESTS);
    }
    for bytes in [bytes_in, bytes_out] {
        *bytes = (*bytes).min(HUGE);
    }
    let counts: Vec<u64> = latency.counts().iter().map(|count| (*count).min(MOST_REQUESTS)).collect();
    *latency = Latency::try_from(counts).unwrap_or_default();
    errors.truncate(TRAFFIC_ERRORS);
    for TrafficError { at_ms, method, path, status, took_ms, cause } in errors {
        time(at_ms);
        span(took_ms);
        of_status(status);
        words(method, path, cause);
    }
}

/// Bounds what who follows is told.
pub(super) fn lines(lines: &mut Vec<AccessLine>, left_out: &mut u64) {
    *left_out = (*left_out).min(MOST_REQUESTS);
    lines.truncate(LINES_AT_ONCE);
    for AccessLine { at_ms, method, path, status, bytes_out, took_ms, from, cause, .. } in lines {
        time(at_ms);
        span(took_ms);
        of_status(status);
        *bytes_out = (*bytes_out).min(HUGE);
        words(method, path, cause);
        *from = from.take().map(|text| plain_line(&text, ADDRESS));
    }
}

fn words(method: &mut String, path: &mut String, cause: &mut String) {
    *method = plain_line(method, ACCESS_METHOD);
    *path = plain_line(path, ACCESS_PATH);
    *cause = plain_line(cause, ACCESS_CAUSE);
}

/// What is none is told as 0, as of a request that was given up.
fn of_status(status: &mut u16) {
    *status = if (100..=599).contains(status) { *status } else { 0 };
}
