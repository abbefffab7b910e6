//! Following requests of visitors as they end: asked of each node that serves names of the environment, told as one
//! stream.
//!
//! It ends after ten minutes, and as soon as other names lead to the environment than those that are followed: so who
//! gives a name away hears nothing of it a few seconds later, and who comes back follows the names of then. A node that
//! does not answer is asked again. Nobody's line waits for a slow follower: what finds no room is counted.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use corpus_api::Problem;
use corpus_api::traffic::{AccessEvent, AccessLine, FollowAccess};
use corpus_domain::NodeId;
use corpus_gate::{Error, HandleStream, Permit, Result};
use corpus_protocol::{Event, FOLLOW_LIMIT_S, FOLLOWED_NAMES, RoutedName};
use futures::stream::{self, Stream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Controller;
use crate::access_followers::{Followed, Following, Full};
use crate::nodes::{Call, NodeEndpoint};
use crate::store::nodes;
use crate::store::traffic::{self, shown};

/// How long somebody follows at most.
const LIMIT: Duration = Duration::from_mins(10);
/// How often it is looked whether the same names still lead there.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// When a node is asked again that did not answer.
const AGAIN: Duration = Duration::from_secs(5);
/// A node says by itself when the time is over, so much later at the latest.
const MARGIN: Duration = Duration::from_secs(10);
/// Names of a node that are followed.
const NAMES_OF_NODE: i64 = 200;
/// Requests that follow, on all nodes together.
const REQUESTS: usize = 32;
/// Events that wait for the follower.
const EVENTS_KEPT: usize = 16;

/// The requests of an environment's visitors.
pub type AccessEvents = Pin<Box<dyn Stream<Item = Result<AccessEvent>> + Send>>;

impl HandleStream<FollowAccess> for Controller {
    type Events = AccessEvents;

    async fn follow(&self, permit: Permit<FollowAccess>) -> Result<AccessEvents> {
        let (asked, project) = (permit.operation(), permit.project()?);
        let what = (project, asked.environment);
        let place = self.services.access_followers.take(what, permit.who().id).map_err(refused)?;
        let names = self.names_of(what).await?;
        let (out, events) = mpsc::channel(EVENTS_KEPT);
        let told =
            Telling { out, left_out: Arc::default(), stop: CancellationToken::new(), until: Instant::now() + LIMIT };
        for (node, names) in self.asked_of(&names).await? {
            tokio::spawn(self.clone().follow_on(node, names, told.clone()));
        }
        let end = told.stop.clone().drop_guard();
        let (left_out, controller) = (Arc::clone(&told.left_out), self.clone());
        tokio::spawn(async move { controller.end_with_the_names(what, names, told).await });
        let number = asked.after.and_then(|after| i64::try_from(after.get()).ok()).unwrap_or_default();
        let follower = Follower { events, left_out, number, _place: place, _end: end };
        Ok(Box::pin(stream::unfold(follower, Follower::next)))
    }
}

fn refused(full: Full) -> Error {
    let why = match full {
        Full::Environment => "As many follow this environment as can. Try again when one of them has stopped.",
        Full::Member => "You follow as many environments as one can. Stop following one.",
    };
    Error::Refused(Box::new(Problem::too_many_requests(why)))
}

/// Who follows; when they go, so does what was asked of nodes.
struct Follower {
    events: mpsc::Receiver<(Vec<AccessLine>, u64)>,
    left_out: Arc<AtomicU64>,
    number: i64,
    _place: Following,
    _end: DropGuard,
}

impl Follower {
    async fn next(mut self) -> Option<(Result<AccessEvent>, Self)> {
        let (lines, left_out) = self.events.recv().await?;
        let left_out = left_out.saturating_add(self.left_out.swap(0, Ordering::Relaxed));
        self.number = self.number.saturating_add(1);
        Some((Ok(AccessEvent { number: self.number, lines, left_out }), self))
    }
}

/// How a node's requests come to who follows.
#[derive(Clone)]
struct Telling {
    out: mpsc::Sender<(Vec<AccessLine>, u64)>,
    /// What found no room.
    left_out: Arc<AtomicU64>,
    stop: CancellationToken,
    until: Instant,
}

impl Telling {
    /// Hands on what a node told of the names that it was asked for.
    fn tell(&self, names: &[RoutedName], event: Event) {
        let Event::Access { lines, left_out } = event else { return };
        let lines: Vec<_> = lines.into_iter().filter(|line| names.contains(&line.name)).map(shown_line).collect();
        if lines.is_empty() && left_out == 0 {
            return;
        }
        let more = left_out.saturating_add(u64::try_from(lines.len()).unwrap_or(u64::MAX));
        if self.out.try_send((lines, left_out)).is_err() {
            self.left_out.fetch_add(more, Ordering::Relaxed);
        }
    }
}

fn shown_line(line: corpus_protocol::AccessLine) -> AccessLine {
    let at = i64::try_from(line.at_ms).ok().and_then(DateTime::from_timestamp_millis);
    AccessLine {
        at: at.unwrap_or_else(Utc::now),
        name: shown::called(&line.name.name, line.name.wildcard),
        method: line.method,
        path: line.path,
        status: Some(line.status).filter(|status| *status > 0),
        bytes_out: line.bytes_out,
        took_ms: line.took_ms,
        from: line.from,
        cause: line.cause,
    }
}

/// The names of an environment, by the node that serves them.
type Names = Vec<(NodeId, RoutedName)>;

impl Controller {
    async fn names_of(&self, (project, environment): Followed) -> Result<Names> {
        let mut conn = self.services.db.acquire().await?;
        Ok(traffic::names_of(&mut conn, project, environment, NAMES_OF_NODE).await?)
    }

    /// What is asked of which node.
    async fn asked_of(&self, names: &Names) -> Result<Vec<(NodeEndpoint, Vec<RoutedName>)>> {
        let mut of_nodes: BTreeMap<NodeId, Vec<RoutedName>> = BTreeMap::new();
        for (node, name) in names {
            of_nodes.entry(*node).or_default().push(name.clone());
        }
        let (mut conn, mut asked) = (self.services.db.acquire().await?, Vec::new());
        for (id, names) in of_nodes {
            let node = nodes::get(&mut conn, id).await?;
            let Some(endpoint) = node.and_then(|node| node.endpoint().ok()) else { continue };
            asked.extend(names.chunks(FOLLOWED_NAMES).map(|names| (endpoint.clone(), names.to_vec())));
        }
        asked.truncate(REQUESTS);
        Ok(asked)
    }

    /// Follows names on a node until it is over.
    async fn follow_on(self, node: NodeEndpoint, names: Vec<RoutedName>, told: Telling) {
        while !told.stop.is_cancelled() {
            let left = told.until.saturating_duration_since(Instant::now());
            let limit_s = u32::try_from(left.as_secs()).unwrap_or(FOLLOW_LIMIT_S).min(FOLLOW_LIMIT_S);
            if limit_s == 0 {
                return;
            }
            let addresses = self.services.settings.access_addresses;
            let request = corpus_protocol::Request::FollowAccess { names: names.clone(), addresses, limit_s };
            let call = Call::new(request, left + MARGIN).observing().cancelled_by(told.stop.clone());
            if let Err(error) = self.services.nodes.call(&node, call, |event| told.tell(&names, event)).await {
                tracing::debug!(node.id = %node.id, error = &error as &dyn std::error::Error, "requests could not be followed");
            }
            tokio::select! {
                () = told.stop.cancelled() => {}
                () = sleep(AGAIN) => {}
            }
        }
    }

    /// Ends it when the time is over, or other names lead there. While the database does not answer nothing ends.
    async fn end_with_the_names(&self, what: Followed, names: Names, told: Telling) {
        loop {
            tokio::select! {
                () = told.stop.cancelled() => return,
                () = sleep_until(told.until) => break,
                () = sleep(LOOK_EVERY) => {}
            }
            if self.names_of(what).await.is_ok_and(|now| now != names) {
                break;
            }
        }
        told.stop.cancel();
    }
}
