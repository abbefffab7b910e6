//! The word and the tone of each state of the design.

use chrono::{DateTime, Utc};
use corpus_api::deployments::DeploymentLine;
use corpus_api::environments::{EnvironmentGuest, EnvironmentSummary};
use corpus_api::guests::GuestLine;
use corpus_api::jobs::JobLine;
use corpus_api::names::{NameLine, SiteAnswer};
use corpus_api::nodes::NodeLine;
use corpus_api::projects::EnvironmentLine;
use corpus_api::seen::{Reached, Seen, is_old};
use corpus_domain::{
    DeploymentState, EnvironmentState, GuestRole, GuestState, JobState, NameState, NodeState, Outcome, Reachability,
    Trigger,
};
use leptos::prelude::*;

use super::status::{Tone, status};
use super::text::{age, since};
use crate::form::sentence;

/// What a node is, unless it does not answer: then that.
pub fn node_status(node: &NodeLine) -> AnyView {
    let (tone, word) = match node.reachability {
        Reachability::HostKeyChanged => (Tone::Fail, "Host key changed"),
        Reachability::Unreachable => (Tone::Warn, "Unreachable"),
        Reachability::Reachable | Reachability::Unknown => node_look(node.state),
    };
    status(tone, word)
}

const fn node_look(state: NodeState) -> (Tone, &'static str) {
    match state {
        NodeState::Linking => (Tone::Busy, "Linking"),
        NodeState::Linked => (Tone::Off, "Linked"),
        NodeState::Initializing => (Tone::Busy, "Initializing"),
        NodeState::Ready => (Tone::Ok, "Ready"),
        NodeState::Draining => (Tone::Off, "Draining"),
        NodeState::Unlinking => (Tone::Busy, "Unlinking"),
        NodeState::Failed => (Tone::Fail, "Failed"),
    }
}

/// What is being done with a node, for the window's title.
pub fn node_work(node: &NodeLine) -> Option<&'static str> {
    let (tone, word) = node_look(node.state);
    node.is_changing().then_some(if tone == Tone::Busy { word } else { "Busy" })
}

/// What a guest is doing.
pub fn guest_status(guest: &GuestLine) -> AnyView {
    guest_state_status(guest.state)
}

/// The same, of the state alone.
pub fn guest_state_status(state: GuestState) -> AnyView {
    let (tone, word) = guest_look(state);
    status(tone, word)
}

/// The tone and the word of it.
pub const fn guest_look(state: GuestState) -> (Tone, &'static str) {
    match state {
        GuestState::Creating => (Tone::Busy, "Creating"),
        GuestState::Running => (Tone::Ok, "Running"),
        GuestState::Starting => (Tone::Busy, "Starting"),
        GuestState::Stopping => (Tone::Busy, "Stopping"),
        GuestState::Stopped => (Tone::Off, "Stopped"),
        GuestState::Destroying => (Tone::Busy, "Destroying"),
        GuestState::Failed => (Tone::Fail, "Failed"),
    }
}

/// How far a DNS name is.
pub fn name_status(name: &NameLine) -> AnyView {
    match name.state {
        NameState::Wanted => status(Tone::Busy, "Wanted"),
        NameState::Attached if name.unanswered_since.is_some() => status(Tone::Fail, "Not answered"),
        NameState::Attached if name.answered_at.is_some_and(is_old) => {
            status(Tone::Warn, "Attached, not looked up lately")
        }
        NameState::Attached => status(Tone::Ok, "Attached"),
        NameState::Detaching => status(Tone::Busy, "Detaching"),
        NameState::Failed => status(Tone::Fail, "Failed"),
    }
}

/// What the authoritative server and the site of a name answer, and when that was seen.
pub fn name_evidence(name: &NameLine) -> AnyView {
    let answered = name.answered_at.map(|at| view! { <div class="quiet small">"answered "{age(at)}</div> });
    let why = name.unanswered_reason.clone().zip(name.unanswered_since).filter(|_| name.state == NameState::Attached);
    let why =
        why.map(|(why, at)| view! { <div class="quiet small reason">{sentence(&why)}" For "{since(at)}"."</div> });
    let site = name.site.as_ref().filter(|_| name.state == NameState::Attached).map(site_evidence);
    view! { {answered}{why}{site} }.into_any()
}

/// What a site answers, since when, and when it was asked.
pub fn site_evidence(site: &SiteAnswer) -> AnyView {
    let old = is_old(site.checked_at);
    let tone = match site.is_up() {
        _ if old => Tone::Warn,
        true => Tone::Ok,
        false => Tone::Fail,
    };
    let (word, why) = match (site.status, &site.problem) {
        (Some(code), _) if old => (format!("Answered {code}"), None),
        (None, why) if old => ("Did not answer".to_owned(), why.clone()),
        (Some(code), _) => (format!("Answers {code}"), None),
        (None, why) => ("Does not answer".to_owned(), why.clone()),
    };
    let why = why.map(|why| format!("{}, ", why.trim_end_matches('.')));
    view! {
        <div class="small">{status(tone, word)}" "<span class="quiet">{why}"for "{since(site.since)}", asked "{age(site.checked_at)}</span></div>
    }
    .into_any()
}

/// How far a job is.
pub fn job_status(job: &JobLine) -> AnyView {
    let (class, word) = job_look(job);
    view! { <span class=class>{word}</span> }.into_any()
}

/// The class and the word of how far a job is: one that was cancelled has not failed.
pub fn job_look(job: &JobLine) -> (&'static str, &'static str) {
    match job.state {
        JobState::Undone if job.was_cancelled() => ("status off", "Cancelled"),
        state => crate::looks::look(state.as_str()),
    }
}

/// The tone and the word of a deployment's state, whatever it was about.
pub const fn deployment_look(state: DeploymentState) -> (Tone, &'static str) {
    match state {
        DeploymentState::Waiting => (Tone::Wait, "Waiting"),
        DeploymentState::Running => (Tone::Busy, "Running"),
        DeploymentState::RollingBack => (Tone::Busy, "Rolling back"),
        DeploymentState::Live => (Tone::Ok, "Went live"),
        DeploymentState::RolledBack => (Tone::Fail, "Rolled back"),
        DeploymentState::Broken => (Tone::Fail, "Broken"),
        DeploymentState::Superseded => (Tone::Off, "Superseded"),
    }
}

/// The same of one that was set off by this: a drill that was rolled back did what it is for.
pub const fn triggered_look(state: DeploymentState, trigger: Trigger) -> (Tone, &'static str) {
    match (state, trigger) {
        (DeploymentState::RolledBack, Trigger::Drill) => (Tone::Ok, "Drill passed"),
        _ => deployment_look(state),
    }
}

/// The same of one that is known whole: what went live is so now, or was.
pub fn line_look(one: &DeploymentLine) -> (Tone, String) {
    match (one.state, one.is_live, &one.seen) {
        (DeploymentState::Live, true, Some(seen)) => seen_look(seen),
        (DeploymentState::Live, true, None) => (Tone::Warn, "Released, guest not running".to_owned()),
        (DeploymentState::Live, false, _) => (Tone::Off, "Was live".to_owned()),
        _ => {
            let (tone, word) = triggered_look(one.state, one.trigger);
            (tone, word.to_owned())
        }
    }
}

/// The status of one that is known whole.
pub fn line_status(one: &DeploymentLine) -> AnyView {
    let (tone, word) = line_look(one);
    status(tone, word)
}

/// Whether what was released is reached, and if not, why not.
pub fn seen_look(seen: &Seen) -> (Tone, String) {
    let (tone, word) = match (seen.reached, seen.guest_state) {
        (Reached::Live, _) => return (Tone::Ok, "Live now".to_owned()),
        (Reached::NotSeen, _) => (Tone::Warn, not_seen(seen)),
        (Reached::GuestRestarting, _) => (Tone::Busy, format!("{} restarting", guest_word(seen))),
        (Reached::GuestDown, state) => (Tone::Warn, format!("{} {state}", guest_word(seen))),
        (Reached::NodeUnreachable, _) => (Tone::Warn, "node unreachable".to_owned()),
        (Reached::SiteFails, _) => (Tone::Fail, fails(seen)),
    };
    (tone, format!("Released, {word}"))
}

/// A leader is the guest that one knows.
const fn guest_word(seen: &Seen) -> &'static str {
    match seen.role {
        GuestRole::Leader => "guest",
        GuestRole::Follower => "follower",
    }
}

/// `not seen for 12 min`
fn not_seen(seen: &Seen) -> String {
    let for_span = |at: DateTime<Utc>| format!("not seen for {}", crate::age::span((Utc::now() - at).num_seconds()));
    seen.seen_at.map_or_else(|| "not seen yet".to_owned(), for_span)
}

/// `answers 503`
fn fails(seen: &Seen) -> String {
    let whose = if seen.role == GuestRole::Follower { "follower " } else { "" };
    let what = seen.site.as_ref().and_then(|site| site.status).map(|code| format!("answers {code}"));
    format!("{whose}{}", what.unwrap_or_else(|| "does not answer".to_owned()))
}

/// Whether an environment can be pushed to, and has something live that is reached.
pub fn environment_status(environment: &EnvironmentSummary) -> AnyView {
    environment_look(environment.leader.state, environment.seen.as_ref(), is_everywhere(environment))
}

/// The same of one in the list of projects.
pub fn environment_line_status(environment: &EnvironmentLine) -> AnyView {
    environment_look(environment.state, environment.seen.as_ref(), environment.is_everywhere)
}

fn environment_look(state: EnvironmentState, seen: Option<&Seen>, is_everywhere: bool) -> AnyView {
    let (tone, word) = match (state, seen) {
        (EnvironmentState::SettingUp, _) => (Tone::Busy, "Setting up".to_owned()),
        (EnvironmentState::Failed, _) => (Tone::Fail, "Failed".to_owned()),
        (EnvironmentState::Leaving, _) => (Tone::Busy, "Being removed".to_owned()),
        (EnvironmentState::Ready, None) => (Tone::Off, "Nothing live yet".to_owned()),
        (EnvironmentState::Ready, Some(seen)) if seen.reached == Reached::Live && !is_everywhere => {
            (Tone::Warn, "Not live everywhere".to_owned())
        }
        (EnvironmentState::Ready, Some(seen)) => seen_look(seen),
    };
    status(tone, word)
}

/// Whether something else is live on a follower than on the leader.
pub fn is_behind(environment: &EnvironmentSummary, follower: &EnvironmentGuest) -> bool {
    let ready = follower.state == EnvironmentState::Ready;
    ready
        && match (&environment.leader.live, &follower.live) {
            (None, None) => false,
            (Some(leader), Some(here)) => match (leader.number, here.number) {
                (Some(leader), Some(here)) => leader != here,
                _ => leader.commit != here.commit,
            },
            (Some(_), None) | (None, Some(_)) => true,
        }
}

/// Whether the same is live on all its guests, or will be: a job is on one of them.
pub fn is_everywhere(environment: &EnvironmentSummary) -> bool {
    let moves = |follower: &EnvironmentGuest| environment.leader.job.is_some() || follower.job.is_some();
    environment.followers.iter().all(|follower| moves(follower) || !is_behind(environment, follower))
}

/// How a phase, a recipe or a check ended.
pub fn outcome_status(outcome: Outcome) -> AnyView {
    match outcome {
        Outcome::Done => status(Tone::Ok, "Done"),
        Outcome::Failed => status(Tone::Fail, "Failed"),
        Outcome::Skipped => status(Tone::Off, "Not run"),
    }
}
