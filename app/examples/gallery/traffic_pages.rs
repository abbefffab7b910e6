//! The page of traffic, with sample values: a day with a bad hour, and one of which nothing is known yet.

use chrono::TimeDelta;
use corpus_api::traffic::{Traffic, TrafficCounts, TrafficError, TrafficPoint, UnreadNode};
use corpus_app::layout::Page;
use corpus_app::pages::traffic::traffic_view;
use corpus_app::route::Route;
use corpus_domain::{Environment, NodeId, TrafficSpan};

use crate::project_samples::{before, id, word};

/// The page of a route, if it is this one; `variant` is `empty`, or nothing.
pub fn page(route: &Route, variant: &str) -> Option<Page> {
    let Route::Traffic(..) = route else { return None };
    let view = traffic_view(&traffic(variant == "empty"));
    Some(Page::new("traffic", "Traffic of carto-api prod", view).under("Projects", "/projects"))
}

/// What visitors asked for in a day.
pub fn traffic(is_empty: bool) -> Traffic {
    let span = TrafficSpan::Day;
    let (first, step) = (before(24 * 3_600), TimeDelta::seconds(i64::from(span.step_s())));
    let points: Vec<TrafficPoint> = (0..span.points())
        .map(|place| {
            let at = first + step * i32::try_from(place).unwrap_or_default();
            TrafficPoint { at, counts: if is_empty { TrafficCounts::default() } else { counts(u64::from(place)) } }
        })
        .collect();
    let sum = |of: fn(&TrafficCounts) -> u64| points.iter().map(|point| of(&point.counts)).sum();
    let totals = TrafficCounts {
        requests: sum(|counts| counts.requests),
        status_1xx: 0,
        status_2xx: sum(|counts| counts.status_2xx),
        status_3xx: sum(|counts| counts.status_3xx),
        status_4xx: sum(|counts| counts.status_4xx),
        status_5xx: sum(|counts| counts.status_5xx),
        bytes_in: sum(|counts| counts.bytes_in),
        bytes_out: sum(|counts| counts.bytes_out),
        p50_ms: (!is_empty).then_some(30),
        p95_ms: (!is_empty).then_some(700),
    };
    Traffic {
        project: word("carto-api"),
        environment: Environment::Prod,
        span,
        step_s: span.step_s(),
        points,
        totals,
        errors: if is_empty { Vec::new() } else { errors() },
        names: if is_empty { 0 } else { 3 },
        read_at: (!is_empty).then(|| before(40)),
        not_read: if is_empty { Vec::new() } else { vec![unread()] },
        lost_at: None,
    }
}

/// A night without anybody, a busy day, and an hour in which the guest failed.
fn counts(place: u64) -> TrafficCounts {
    if place < 12 {
        return TrafficCounts::default();
    }
    let requests = 200 + 37 * (place % 24);
    let is_bad = (60..64).contains(&place);
    let (moved, wrong, failed) = (requests / 12, requests / 20, if is_bad { requests / 3 } else { 0 });
    TrafficCounts {
        requests,
        status_1xx: 0,
        status_2xx: requests - moved - wrong - failed - 1,
        status_3xx: moved,
        status_4xx: wrong,
        status_5xx: failed,
        bytes_in: requests * 600,
        bytes_out: requests * 14_000,
        p50_ms: Some(if is_bad { 300 } else { 20 + 10 * (place % 2) }),
        p95_ms: Some(if is_bad { 3_000 } else { 100 }),
    }
}

fn errors() -> Vec<TrafficError> {
    let error = |seconds, path: &str, status, took_ms, cause: &str| TrafficError {
        at: before(seconds),
        name: "www.carto.example.net".to_owned(),
        method: "GET".to_owned(),
        path: path.to_owned(),
        status,
        took_ms,
        cause: cause.to_owned(),
    };
    vec![
        error(31_000, "/tiles/12/2048/1361.png", 503, 3_001, "sC"),
        error(31_004, "/", 502, 31, "SH"),
        error(31_020, "/search", 504, 50_000, "sH"),
    ]
}

fn unread() -> UnreadNode {
    UnreadNode { node: NodeId(id(2)), address: word("192.0.2.8"), since: Some(before(700)) }
}
