//! Drift: what a node should be, and what of it is not so.
//!
//! A difference is certain when it is there a second time, or was known before.

use chrono::{DateTime, Utc};
use corpus_domain::{GuestState, ImageName, NodeId};
use corpus_protocol::{Answer, AuthorizedKeys, Difference, GuestCheck, NodePlan, Request};

use crate::nodes::{NodeEndpoint, NodeError};
use crate::services::Services;
use crate::store::backup_proofs;
use crate::store::drift::{self, Finding, Wanted};
use crate::store::guest_users::WithKeys;

/// What a node should be, with all that is on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Expected {
    plan: NodePlan,
    guests: Vec<GuestCheck>,
    /// Those that guests stand on. What new ones are made from comes by itself.
    pub images: Vec<ImageName>,
}

impl Expected {
    /// From the rows; none when the node is not linked.
    pub async fn read(services: &Services, node: NodeId) -> sqlx::Result<Option<Self>> {
        let mut conn = services.db.acquire().await?;
        let Some(plan) = drift::plan(&mut conn, node, services.around()).await? else { return Ok(None) };
        let wanted = drift::wanted(&mut conn, node).await?;
        let mut images: Vec<ImageName> = wanted.iter().filter_map(|guest| guest.stands_on.clone()).collect();
        images.sort();
        images.dedup();
        let mut guests: Vec<_> = wanted.iter().map(|guest| guest_check(guest, &services.control_public_line)).collect();
        for tried in backup_proofs::on_node(&mut conn, node).await? {
            let name = backup_proofs::name(tried.id).map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
            // It is as its job has it.
            guests.push(GuestCheck { name, id: Some(tried.id), there: false, running: None, keys: None });
        }
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
        id: Some(guest.id),
        there: settled || guest.state == GuestState::Failed,
        running: settled.then_some(guest.should_run),
        keys: settled.then(|| authorized_keys(control, &guest.keys, guest.users.clone())),
    }
}

/// The keys of a guest: root is the controller's, the members enter as sysadmin, and who the project wants as themselves.
pub(crate) fn authorized_keys(control: &str, members: &[String], users: Vec<WithKeys>) -> AuthorizedKeys {
    let of = |account: &str, lines: Vec<String>| account.parse().ok().map(|account| (account, lines));
    let own = [of("root", vec![control.to_owned()]), of("sysadmin", members.to_vec())].into_iter().flatten();
    // Nobody of a project takes one of these two.
    users.into_iter().map(|user| (user.name, user.keys)).chain(own).collect()
}

/// Whether something differs that was not known before.
pub(crate) fn is_new(known: &[Finding], found: &[Difference]) -> bool {
    found.iter().any(|one| !known.iter().any(|before| before.is(one)))
}

/// What is certain to differ: what was found last, if it was found or known before too.
pub(crate) fn certain(
    known: &[Finding],
    before: &[Difference],
    last: &[Difference],
    now: DateTime<Utc>,
) -> Vec<Finding> {
    let certain = last.iter().filter_map(|one| {
        let since = known.iter().find(|before| before.is(one)).map(|before| before.since);
        let since = since.or_else(|| before.contains(one).then_some(now))?;
        Some(Finding { kind: one.kind, guest: one.guest.clone(), text: one.text.clone(), since })
    });
    certain.collect()
}

/// The differences in an answer.
pub(crate) fn differences(node: &NodeEndpoint, answer: Answer) -> Result<Vec<Difference>, NodeError> {
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
        let known = [Finding { kind: DriftKind::Route, guest: None, text: "old".into(), since: before }];
        assert!(!is_new(&known, &[found("old")]) && is_new(&known, &[found("old"), found("new")]));
        let told = |first: &[Difference], last: &[Difference]| -> Vec<(String, DateTime<Utc>)> {
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
            environment: corpus_domain::Environment::Dev,
            should_run: true,
            limits: corpus_domain::SizeProfile::Small.limits(),
            stands_on: None,
            keys: vec!["ssh-ed25519 AAAA mia".to_owned()],
            users: Vec::new(),
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
