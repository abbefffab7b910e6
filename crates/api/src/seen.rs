//! Whether what was released is reached: what was last seen of the guests that have it, and how old that is.
//!
//! One judgement for all that say so (environments, projects, deployments, each as a page, in a list and as JSON):
//! of several guests the worst decides, and what nobody looked at for a while counts as not seen.

use chrono::{DateTime, TimeDelta, Utc};
use corpus_domain::{EnvironmentState, GuestName, GuestRole, GuestState, Reachability};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::environments::{EnvironmentGuest, EnvironmentSummary};
use crate::names::SiteAnswer;

/// What was seen longer ago than this may be otherwise by now: each minute it is looked again.
pub const SEEN_FOR: TimeDelta = TimeDelta::minutes(3);

/// Whether nobody has looked lately.
pub fn is_old(seen_at: DateTime<Utc>) -> bool {
    Utc::now() - seen_at > SEEN_FOR
}

/// Whether visitors reach what was released, the better before the worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// They do: the guest runs, and its site answers, if it has a name and was asked.
    Live,
    /// They did when somebody looked last, which is a while ago.
    NotSeen,
    /// The guest is starting or stopping.
    GuestRestarting,
    /// The guest does not run.
    GuestDown,
    /// The guest's node does not answer, or is not the one that was linked.
    NodeUnreachable,
    /// The site answers that its server fails, or nothing.
    SiteFails,
}

/// What was seen of the guest that decides whether what was released is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Seen {
    /// Whether visitors reach it.
    pub reached: Reached,
    /// The guest: of several the one for which that is worst.
    pub guest: GuestName,
    /// Whether it leads its environment.
    pub role: GuestRole,
    /// What it is doing.
    pub guest_state: GuestState,
    /// Whether its node answers.
    pub node_reachability: Reachability,
    /// What the site of its main name answers, once it was asked.
    pub site: Option<SiteAnswer>,
    /// When what decides was seen; none, if it never was.
    pub seen_at: Option<DateTime<Utc>>,
}

impl Seen {
    /// What is seen of a guest; `guest_seen_at` is when its node last told what it is doing.
    pub fn of(
        (guest, role): (GuestName, GuestRole),
        (guest_state, node_reachability): (GuestState, Reachability),
        guest_seen_at: Option<DateTime<Utc>>,
        site: Option<SiteAnswer>,
    ) -> Self {
        let unreachable = matches!(node_reachability, Reachability::Unreachable | Reachability::HostKeyChanged);
        let asked_at = site.as_ref().map(|site| site.checked_at);
        let is_up = site.as_ref().is_none_or(SiteAnswer::is_up);
        let (reached, seen_at) = match guest_state {
            _ if unreachable => (Reached::NodeUnreachable, guest_seen_at),
            GuestState::Starting | GuestState::Stopping => (Reached::GuestRestarting, guest_seen_at),
            GuestState::Running => {
                let seen_at = asked_at.or(guest_seen_at);
                let reached = match is_up {
                    _ if seen_at.is_none_or(is_old) => Reached::NotSeen,
                    true => Reached::Live,
                    false => Reached::SiteFails,
                };
                (reached, seen_at)
            }
            _ => (Reached::GuestDown, guest_seen_at),
        };
        Self { reached, guest, role, guest_state, node_reachability, site, seen_at }
    }

    /// The worst of several; of those that are alike the one that was seen longest ago, then the first.
    pub fn worst(guests: impl IntoIterator<Item = Self>) -> Option<Self> {
        guests.into_iter().reduce(|worst, one| {
            let is_worse = (one.reached, worst.seen_at) > (worst.reached, one.seen_at);
            if is_worse { one } else { worst }
        })
    }
}

impl EnvironmentGuest {
    /// What is seen of it, if something was released to it.
    pub fn seen(&self, role: GuestRole) -> Option<Seen> {
        let state = (self.guest_state, self.node_reachability);
        let seen = || Seen::of((self.name.clone(), role), state, self.guest_seen_at, self.site.clone());
        self.live.as_ref().map(|_| seen())
    }
}

impl EnvironmentSummary {
    /// The same with what is seen of its guests: of the leader, and of the followers that are deployed to. Nothing,
    /// while the leader has no release.
    #[must_use]
    pub fn judged(self) -> Self {
        let leader = self.leader.seen(GuestRole::Leader);
        let ready = self.followers.iter().filter(|follower| follower.state == EnvironmentState::Ready);
        let followers = ready.filter_map(|follower| follower.seen(GuestRole::Follower));
        let seen = leader.and_then(|leader| Seen::worst(std::iter::once(leader).chain(followers)));
        Self { seen, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ago(seconds: i64) -> DateTime<Utc> {
        Utc::now() - TimeDelta::seconds(seconds)
    }

    /// A status, and how long ago the site was asked.
    fn site((status, asked): (u16, i64)) -> SiteAnswer {
        SiteAnswer { status: Some(status), problem: None, since: ago(86_400), checked_at: ago(asked) }
    }

    fn seen(name: &str, state: GuestState, node: Reachability, told: i64, asked: Option<(u16, i64)>) -> Seen {
        Seen::of((name.parse().unwrap(), GuestRole::Leader), (state, node), Some(ago(told)), asked.map(site))
    }

    #[test]
    fn what_is_seen_is_judged_by_the_evidence_that_decides_and_by_its_age() {
        use GuestState::{Running, Stopped, Stopping};
        use Reachability::{HostKeyChanged, Reachable, Unreachable};
        let of = |state, node, told, asked| {
            let seen = seen("a.example.org", state, node, told, asked);
            (seen.reached, seen.seen_at.map(|at| (Utc::now() - at).num_seconds()))
        };
        for (state, node, told, asked, expected) in [
            (Running, Reachable, 5, None, (Reached::Live, Some(5))),
            (Running, Reachable, 5, Some((200, 30)), (Reached::Live, Some(30))),
            (Running, Reachable, 5, Some((404, 30)), (Reached::Live, Some(30))),
            (Running, Reachable, 5, Some((503, 30)), (Reached::SiteFails, Some(30))),
            (Running, Reachable, 5, Some((200, 720)), (Reached::NotSeen, Some(720))),
            (Running, Reachable, 5, Some((503, 720)), (Reached::NotSeen, Some(720))),
            (Running, Reachable, 720, None, (Reached::NotSeen, Some(720))),
            (Running, Unreachable, 720, Some((200, 1)), (Reached::NodeUnreachable, Some(720))),
            (Running, HostKeyChanged, 5, Some((200, 1)), (Reached::NodeUnreachable, Some(5))),
            (Stopped, Reachable, 5, Some((200, 1)), (Reached::GuestDown, Some(5))),
            (Stopping, Reachable, 5, Some((200, 1)), (Reached::GuestRestarting, Some(5))),
        ] {
            assert_eq!(of(state, node, told, asked), expected, "{state} {node}");
        }
    }

    #[test]
    fn the_worst_guest_decides() {
        use GuestState::{Running, Stopped};
        use Reachability::Reachable;
        let fine = seen("a.example.org", Running, Reachable, 5, Some((200, 5)));
        let older = seen("b.example.org", Running, Reachable, 5, Some((200, 50)));
        let stopped = seen("c.example.org", Stopped, Reachable, 5, None);
        let worst = |all: &[&Seen]| Seen::worst(all.iter().map(|one| (*one).clone())).map(|one| one.guest.to_string());
        assert_eq!(worst(&[]), None);
        assert_eq!(worst(&[&fine, &older]).as_deref(), Some("b.example.org"), "what is said is as old as the oldest");
        assert_eq!(worst(&[&older, &fine]).as_deref(), Some("b.example.org"));
        assert_eq!(worst(&[&fine, &stopped, &older]).as_deref(), Some("c.example.org"));
    }
}
