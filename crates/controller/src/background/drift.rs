//! Checking the nodes for drift.
//!
//! Each node in service is checked every minute, when it comes back, and after each job on it.
//! What is shown is certain: nothing is looked at while a job works on the node, what should be
//! must be the same before and after, and a new difference counts when it is there a second
//! time a few seconds later. A node that does not answer keeps what was last found, with the
//! time of that check, and delays no other.

use std::time::Duration;

use corpus_domain::NodeId;
use corpus_protocol::{Answer, Difference, Facts, Request};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::drift::{Expected, certain, differences, is_new};
use crate::nodes::{Call, NodeEndpoint, NodeError};
use crate::services::Services;
use crate::store::drift::{self, Finding};
use crate::store::nodes;
use crate::{Controller, Error, Result};

/// How often each node is checked.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);
/// How soon again while a job works on the node.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// How often it is looked which nodes are due.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Between the two looks that make a difference certain.
const CONFIRM_DELAY: Duration = Duration::from_secs(3);
/// How long a node may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// Checks at once.
const MAX_CHECKS: usize = 32;

impl Controller {
    /// Checks the nodes that are due until `stop`.
    pub(crate) async fn check_nodes(self, stop: CancellationToken) {
        let mut look = tokio::time::interval(POLL_INTERVAL);
        let mut checks = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = checks.join_next() => {}
                _ = look.tick() => {
                    for node in self.due(MAX_CHECKS.saturating_sub(checks.len())).await {
                        let controller = self.clone();
                        checks.spawn(async move { controller.check(node).await });
                    }
                }
            }
        }
    }

    async fn due(&self, room: usize) -> Vec<NodeId> {
        let taken = async {
            let mut conn = self.services.db.acquire().await?;
            drift::take_due(&mut conn, i64::try_from(room).unwrap_or_default(), CHECK_INTERVAL.as_secs_f64()).await
        };
        taken.await.unwrap_or_else(|error: sqlx::Error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "the nodes to check could not be read");
            Vec::new()
        })
    }

    async fn check(&self, node: NodeId) {
        let again = match self.check_node(node).await {
            Ok(Checked::Kept) => return,
            Ok(Checked::Changing) => RETRY_INTERVAL,
            Err(error) => {
                tracing::debug!(node.id = %node, error = &error as &dyn std::error::Error, "a node was not checked");
                return;
            }
        };
        let postponed = async {
            let mut conn = self.services.db.acquire().await?;
            drift::postpone(&mut conn, node, again.as_secs_f64()).await
        };
        if let Err(error) = postponed.await {
            tracing::debug!(node.id = %node, error = &error as &dyn std::error::Error, "a check was not postponed");
        }
    }

    /// Checks a node once and keeps what is certain.
    pub(crate) async fn check_node(&self, id: NodeId) -> Result<Checked> {
        let Some((endpoint, expected, known)) = self.before_check(id).await? else { return Ok(Checked::Changing) };
        let first = ask(&self.services, &endpoint, &expected).await?;
        let last = if is_new(&known, &first) {
            tokio::time::sleep(CONFIRM_DELAY).await;
            ask(&self.services, &endpoint, &expected).await?
        } else {
            first.clone()
        };
        // Something began to change meanwhile: what differs may only be that.
        match self.before_check(id).await? {
            Some((_, now, _)) if now == expected => {}
            _ => return Ok(Checked::Changing),
        }
        let facts = facts(&self.services, &endpoint).await?;
        let drift = certain(&known, &first, &last, chrono::Utc::now());
        let mut conn = self.services.db.acquire().await?;
        drift::keep(&mut conn, id, &drift).await?;
        nodes::refresh_facts(&mut conn, id, &facts).await?;
        Ok(Checked::Kept)
    }

    /// What a check needs; none while a job works on the node.
    async fn before_check(&self, id: NodeId) -> Result<Option<(NodeEndpoint, Expected, Vec<Finding>)>> {
        let mut conn = self.services.db.acquire().await?;
        if drift::is_changing(&mut conn, id).await? {
            return Ok(None);
        }
        let Some(node) = nodes::get(&mut conn, id).await? else { return Ok(None) };
        drop(conn);
        let Ok(endpoint) = node.endpoint() else { return Ok(None) };
        let expected = Expected::read(&self.services, id).await?;
        Ok(expected.map(|expected| (endpoint, expected, node.drift)))
    }
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checked {
    /// What was found is kept.
    Kept,
    /// A job works on the node: nothing certain can be said now.
    Changing,
}

async fn ask(services: &Services, node: &NodeEndpoint, expected: &Expected) -> Result<Vec<Difference>> {
    let mut found = Vec::new();
    for request in expected.requests() {
        found.extend(
            call(services, node, request)
                .await
                .and_then(|answer| differences(node, answer))
                .map_err(unchecked(node))?,
        );
    }
    Ok(found)
}

/// What the host is and can do now: a file system may have come, or memory.
async fn facts(services: &Services, node: &NodeEndpoint) -> Result<Facts> {
    let answer = call(services, node, Request::Facts).await.map_err(unchecked(node))?;
    if let Answer::Facts(facts) = answer {
        return Ok(*facts);
    }
    let what = "another answer than facts".to_owned();
    Err(unchecked(node)(NodeError::Protocol { host: node.host(), what, stderr: Vec::new() }))
}

async fn call(services: &Services, node: &NodeEndpoint, request: Request) -> std::result::Result<Answer, NodeError> {
    services.nodes.call(node, Call::new(request, ANSWER_TIMEOUT).observing(), drop).await
}

fn unchecked(node: &NodeEndpoint) -> impl Fn(NodeError) -> Error + use<> {
    let message = format!("{} was not checked", node.address);
    move |error| Error::Unavailable { message: message.clone(), source: Box::new(error) }
}
