//! What visitors asked an environment's names for, as the proxies of its nodes counted it, and each request as it ends.

use chrono::{DateTime, Utc};
use corpus_domain::{Environment, NodeAddress, NodeId, ProjectName, TrafficSpan};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, get};
use crate::stream::{Followed, Stream};
use crate::words::After;

/// Shows what visitors asked an environment's names for: how much, how it was answered and how fast, what failed last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetTraffic {
    /// Of which project.
    pub project: ProjectName,
    /// Which environment.
    pub environment: Environment,
    /// How far back; a day unless said.
    pub span: Option<TrafficSpan>,
}
impl Operation for GetTraffic {
    type Kind = Read;
    type Output = Traffic;
    const META: Meta<Read> =
        get("get_traffic", "/projects/{project}/environments/{environment}/traffic").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// Follows the requests of visitors for an environment's names, each as it ends, for ten minutes at most.
///
/// They are kept nowhere: what passes while nobody follows is counted only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FollowAccess {
    /// Of which project.
    pub project: ProjectName,
    /// Which environment.
    pub environment: Environment,
    /// The number of the last event that was seen; `Last-Event-ID` says the same. Those that come are counted on from it.
    pub after: Option<After>,
}
impl Stream for FollowAccess {
    type Item = AccessEvent;
    const META: Meta<Read> = get("follow_access", "/projects/{project}/environments/{environment}/access/events")
        .needs(Role::Viewer)
        .robots();
    fn scope(&self) -> Scope {
        Scope::Environment(self.project.clone(), self.environment)
    }
}

/// What visitors asked an environment's names for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Traffic {
    /// Of which project.
    pub project: ProjectName,
    /// Which environment.
    pub environment: Environment,
    /// How far back.
    pub span: TrafficSpan,
    /// How long one point is, in seconds.
    pub step_s: u32,
    /// All points of the span, the oldest first; the last one is not over yet.
    pub points: Vec<TrafficPoint>,
    /// All of them together.
    pub totals: TrafficCounts,
    /// What failed last, the newest first; however long ago.
    pub errors: Vec<TrafficError>,
    /// How many names lead to its guests.
    pub names: u32,
    /// Until when everything is counted: when that of its nodes was read which was read longest ago. None before the
    /// first time, and without names.
    pub read_at: Option<DateTime<Utc>>,
    /// Those of its nodes that could not be read lately: what they served since then is missing.
    pub not_read: Vec<UnreadNode>,
    /// When one of its nodes told last that it could not count some requests, if that was in the span.
    pub lost_at: Option<DateTime<Utc>>,
}
impl Reply for Traffic {}

/// What was counted from then on, for the length of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrafficPoint {
    /// When it began.
    pub at: DateTime<Utc>,
    /// What was counted.
    pub counts: TrafficCounts,
}

/// Requests, by how they were answered.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrafficCounts {
    /// All of them. One that its visitor gave up before there was an answer is in none of the classes.
    pub requests: u64,
    /// Answered with a status of 100 to 199.
    pub status_1xx: u64,
    /// Answered with a status of 200 to 299.
    pub status_2xx: u64,
    /// Answered with a status of 300 to 399.
    pub status_3xx: u64,
    /// Answered with a status of 400 to 499.
    pub status_4xx: u64,
    /// Answered with a status of 500 to 599.
    pub status_5xx: u64,
    /// Bytes that came from visitors.
    pub bytes_in: u64,
    /// Bytes that went to visitors.
    pub bytes_out: u64,
    /// Milliseconds within which half of them were answered, rounded up to a bound; none without requests.
    pub p50_ms: Option<u64>,
    /// Milliseconds within which 95 of 100 were answered.
    pub p95_ms: Option<u64>,
}

/// A request that was answered with a status of 500 or above.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrafficError {
    /// When it ended.
    pub at: DateTime<Utc>,
    /// For which name; `*.` before it when it was for one below it.
    pub name: String,
    /// Its method, as the visitor sent it.
    pub method: String,
    /// Its path without a query, as the visitor sent it, 200 bytes at most.
    pub path: String,
    /// The status.
    pub status: u16,
    /// How many milliseconds it took to answer.
    pub took_ms: u64,
    /// How the proxy ended it, in haproxy's words: `--` when the guest answered, `sH` when it did not in time.
    pub cause: String,
}

/// A node that could not be read lately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnreadNode {
    /// Which.
    pub node: NodeId,
    /// Where it answers.
    pub address: NodeAddress,
    /// When it was read last; none: never.
    pub since: Option<DateTime<Utc>>,
}

/// Requests that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccessEvent {
    /// Its number.
    pub number: i64,
    /// The requests, the oldest first, as each node tells them.
    pub lines: Vec<AccessLine>,
    /// How many more there were than are told.
    pub left_out: u64,
}
impl Followed for AccessEvent {
    fn number(&self) -> i64 {
        self.number
    }
}

/// A request that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccessLine {
    /// When.
    pub at: DateTime<Utc>,
    /// For which name; `*.` before it when it was for one below it.
    pub name: String,
    /// Its method, as the visitor sent it.
    pub method: String,
    /// Its path without a query, as the visitor sent it, 200 bytes at most.
    pub path: String,
    /// The status; none when the visitor gave it up before there was an answer.
    pub status: Option<u16>,
    /// Bytes that went to the visitor.
    pub bytes_out: u64,
    /// How many milliseconds it took to answer.
    pub took_ms: u64,
    /// The visitor's address as far as this Corpus tells it: a network, a whole one, or none.
    pub from: Option<String>,
    /// How the proxy ended it, in haproxy's words.
    pub cause: String,
}

impl AccessLine {
    /// As one line for a terminal. What the visitor chose stands last, so that it can't look like anything else.
    pub fn text(&self) -> String {
        let Self { name, method, path, bytes_out, took_ms, .. } = self;
        let status = self.status.map_or_else(|| "---".to_owned(), |status| status.to_string());
        let from = self.from.as_deref().unwrap_or("-");
        let at = self.at.format("%H:%M:%S");
        format!("{at} {status} {took_ms} ms {bytes_out} bytes {} {from} {name} {method} {path}", self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_all_of_a_request() {
        let line = AccessLine {
            at: "2026-11-25T10:42:31.120Z".parse().unwrap(),
            name: "www.example.org".to_owned(),
            method: "GET".to_owned(),
            path: "/cart".to_owned(),
            status: Some(502),
            bytes_out: 312,
            took_ms: 31,
            from: Some("192.0.2.0/24".to_owned()),
            cause: "SH".to_owned(),
        };
        assert_eq!(line.text(), "10:42:31 502 31 ms 312 bytes SH 192.0.2.0/24 www.example.org GET /cart");
        let given_up = AccessLine { status: None, from: None, ..line };
        assert_eq!(given_up.text(), "10:42:31 --- 31 ms 312 bytes SH - www.example.org GET /cart");
    }
}
