//! Drift: what of a node is not what it should be.
//!
//! Each node in service is checked every minute, when it comes back, and after each job on it.
//! What is shown is certain: nothing is looked at while a job works on the node, what should be
//! must be the same before and after, and a new difference counts when it is there a second
//! time a few seconds later. A node that does not answer keeps what was last found, with the
//! time of that check, and delays no other.

use std::time::Duration;

use corpus_domain::{GuestState, ImageName, NodeId};
use corpus_protocol::{Answer, AuthorizedKeys, Difference, GuestCheck, NodePlan, Request};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::controller::Services;
use crate::nodes::{Call, NodeEndpoint, NodeError};
use crate::sagas::guest_create::IMAGE;
use crate::store::drift::Wanted;
use crate::store::{drift, nodes};
use crate::views::{DriftView, Time};
use crate::{Controller, Error, Result};

/// How often each node is checked.
const EVERY: Duration = Duration::from_mins(1);
/// How soon again while a job works on the node.
const SOON: Duration = Duration::from_secs(5);
/// How often it is looked which nodes are due.
const LOOK: Duration = Duration::from_secs(2);
/// Between the two looks that make a difference certain.
const CERTAIN: Duration = Duration::from_secs(3);
/// How long a node may take to answer.
const LIMIT: Duration = Duration::from_secs(15);
/// Checks at once.
const AT_ONCE: usize = 32;

/// What a node should be, with all that is on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    plan: NodePlan,
    guests: Vec<GuestCheck>,
    pub images: Vec<ImageName>,
}

impl Expected {
    /// From the rows; none when the node is not linked.
    pub async fn read(services: &Services, node: NodeId) -> sqlx::Result<Option<Self>> {
        let mut conn = services.db.acquire().await?;
        let Some(plan) = drift::plan(&mut conn, node, &services.settings.surroundings).await? else { return Ok(None) };
        let wanted = drift::wanted(&mut conn, node).await?;
        let mut images: Vec<ImageName> = wanted.iter().filter_map(|guest| guest.stands_on.clone()).collect();
        images.extend(IMAGE.parse::<ImageName>().ok());
        images.sort();
        images.dedup();
        let guests = wanted.iter().map(|guest| guest_check(guest, &services.control_public_line)).collect();
        Ok(Some(Self { plan, guests, images }))
    }

    /// What is asked of the node to compare it with this.
    pub fn requests(&self) -> [Request; 2] {
        [
            Request::CheckNode { plan: Box::new(self.plan.clone()) },
            Request::CheckGuests { guests: self.guests.clone(), images: self.images.clone() },
        ]
    }
}

/// How a guest should be. What a job is about to change is left alone; a failed one must only
/// be there.
fn guest_check(guest: &Wanted, control: &str) -> GuestCheck {
    let settled = matches!(guest.state, GuestState::Running | GuestState::Stopped);
    GuestCheck {
        name: guest.name.clone(),
        there: settled || guest.state == GuestState::Failed,
        running: settled.then_some(guest.should_run),
        keys: settled.then(|| authorized_keys(control, &guest.keys)),
    }
}

/// The keys of a guest: root is the controller's, the members enter as sysadmin.
fn authorized_keys(control: &str, members: &[String]) -> AuthorizedKeys {
    let of = |account: &str, lines: Vec<String>| account.parse().ok().map(|account| (account, lines));
    [of("root", vec![control.to_owned()]), of("sysadmin", members.to_vec())].into_iter().flatten().collect()
}

/// Whether something differs that was not known before.
fn is_new(known: &[DriftView], found: &[Difference]) -> bool {
    found.iter().any(|one| !known.iter().any(|before| before.is(one)))
}

/// What is certain to differ: what was found last, if it was found or known before too.
pub(crate) fn certain(known: &[DriftView], before: &[Difference], last: &[Difference], now: Time) -> Vec<DriftView> {
    let certain = last.iter().filter_map(|one| {
        let since = known.iter().find(|before| before.is(one)).map(|before| before.since);
        let since = since.or_else(|| before.contains(one).then_some(now))?;
        Some(DriftView { kind: one.kind, guest: one.guest.clone(), text: one.text.clone(), since })
    });
    certain.collect()
}

impl Controller {
    /// Checks the nodes that are due until `stop`.
    pub(crate) async fn check_nodes(self, stop: CancellationToken) {
        let mut look = tokio::time::interval(LOOK);
        let mut checks = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                Some(_) = checks.join_next() => {}
                _ = look.tick() => {
                    for node in self.due(AT_ONCE.saturating_sub(checks.len())).await {
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
            drift::take_due(&mut conn, i64::try_from(room).unwrap_or_default(), EVERY.as_secs_f64()).await
        };
        taken.await.unwrap_or_else(|error: sqlx::Error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "the nodes to check could not be read");
            Vec::new()
        })
    }

    async fn check(&self, node: NodeId) {
        let again = match self.check_node(node).await {
            Ok(Checked::Kept) => return,
            Ok(Checked::Changing) => SOON,
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
            tokio::time::sleep(CERTAIN).await;
            ask(&self.services, &endpoint, &expected).await?
        } else {
            first.clone()
        };
        // Something began to change meanwhile: what differs may only be that.
        match self.before_check(id).await? {
            Some((_, now, _)) if now == expected => {}
            _ => return Ok(Checked::Changing),
        }
        let drift = certain(&known, &first, &last, chrono::Utc::now());
        let mut conn = self.services.db.acquire().await?;
        drift::keep(&mut conn, id, &drift).await?;
        Ok(Checked::Kept)
    }

    /// What a check needs; none while a job works on the node.
    async fn before_check(&self, id: NodeId) -> Result<Option<(NodeEndpoint, Expected, Vec<DriftView>)>> {
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
        let answer = services.nodes.call(node, Call::new(request, LIMIT).observing(), drop).await;
        found.extend(answer.and_then(|answer| differences(node, answer)).map_err(|error| {
            let message = format!("{} was not checked", node.address);
            Error::Unavailable { message, source: Box::new(error) }
        })?);
    }
    Ok(found)
}

/// The differences in an answer.
pub(crate) fn differences(node: &NodeEndpoint, answer: Answer) -> std::result::Result<Vec<Difference>, NodeError> {
    if let Answer::Drift { differences } = answer {
        return Ok(differences);
    }
    let what = "another answer than what differs".to_owned();
    Err(NodeError::Protocol { host: node.host(), what, stderr: Vec::new() })
}

#[cfg(test)]
mod tests {
    use chrono::{TimeDelta, Utc};
    use corpus_domain::DriftKind;

    use super::*;

    fn found(text: &str) -> Difference {
        Difference::of_node(DriftKind::Route, text)
    }

    #[test]
    fn a_new_difference_counts_when_it_is_there_twice() {
        let now = Utc::now();
        let before = now - TimeDelta::minutes(5);
        let known = [DriftView { kind: DriftKind::Route, guest: None, text: "old".into(), since: before }];
        assert!(!is_new(&known, &[found("old")]) && is_new(&known, &[found("old"), found("new")]));
        let told = |first: &[Difference], last: &[Difference]| -> Vec<(String, Time)> {
            certain(&known, first, last, now).into_iter().map(|one| (one.text, one.since)).collect()
        };
        let (old, new) = (("old".to_owned(), before), ("new".to_owned(), now));
        assert_eq!(told(&[found("old"), found("new")], &[found("old"), found("new")]), [old.clone(), new]);
        assert_eq!(told(&[found("new")], &[]), [], "it was only a race");
        assert_eq!(told(&[], &[found("late")]), [], "not certain yet");
        assert_eq!(told(&[], &[found("old")]), [old], "known before");
    }

    #[test]
    fn what_a_job_changes_is_left_alone() {
        let wanted = |state| Wanted {
            id: corpus_domain::GuestId(uuid::Uuid::nil()),
            name: "www.x".parse().unwrap(),
            state,
            should_run: true,
            limits: corpus_domain::SizeProfile::Small.limits(),
            stands_on: None,
            keys: vec!["ssh-ed25519 AAAA mia".to_owned()],
        };
        for state in GuestState::ALL {
            let check = guest_check(&wanted(*state), "ssh-ed25519 BBBB corpus");
            let expected = match state {
                GuestState::Running | GuestState::Stopped => (true, Some(true), true),
                GuestState::Failed => (true, None, false),
                _ => (false, None, false),
            };
            assert_eq!((check.there, check.running, check.keys.is_some()), expected, "{state}");
        }
    }
}
