//! The word and the tone of each state of the design.

use corpus_api::environments::{EnvironmentGuest, EnvironmentSummary};
use corpus_api::guests::GuestLine;
use corpus_api::names::NameLine;
use corpus_api::nodes::NodeLine;
use corpus_api::projects::EnvironmentLine;
use corpus_domain::{
    DeploymentState, EnvironmentState, GuestState, JobState, NameState, NodeState, Outcome, Reachability,
};
use leptos::prelude::*;

use super::status::{Tone, status};

/// What a node is, unless it does not answer: then that.
pub fn node_status(node: &NodeLine) -> AnyView {
    match node.reachability {
        Reachability::HostKeyChanged => status(Tone::Fail, "Host key changed"),
        Reachability::Unreachable => status(Tone::Warn, "Unreachable"),
        Reachability::Reachable | Reachability::Unknown => match node.state {
            NodeState::Linking => status(Tone::Busy, "Linking"),
            NodeState::Linked => status(Tone::Off, "Linked"),
            NodeState::Initializing => status(Tone::Busy, "Initializing"),
            NodeState::Ready => status(Tone::Ok, "Ready"),
            NodeState::Draining => status(Tone::Off, "Draining"),
            NodeState::Unlinking => status(Tone::Busy, "Unlinking"),
            NodeState::Failed => status(Tone::Fail, "Failed"),
        },
    }
}

/// What a guest is doing.
pub fn guest_status(guest: &GuestLine) -> AnyView {
    guest_state_status(guest.state)
}

/// The same, of the state alone.
pub fn guest_state_status(state: GuestState) -> AnyView {
    match state {
        GuestState::Creating => status(Tone::Busy, "Creating"),
        GuestState::Running => status(Tone::Ok, "Running"),
        GuestState::Starting => status(Tone::Busy, "Starting"),
        GuestState::Stopping => status(Tone::Busy, "Stopping"),
        GuestState::Stopped => status(Tone::Off, "Stopped"),
        GuestState::Destroying => status(Tone::Busy, "Destroying"),
        GuestState::Failed => status(Tone::Fail, "Failed"),
    }
}

/// How far a DNS name is.
pub fn name_status(name: &NameLine) -> AnyView {
    match name.state {
        NameState::Wanted => status(Tone::Busy, "Wanted"),
        NameState::Attached => status(Tone::Ok, "Attached"),
        NameState::Detaching => status(Tone::Busy, "Detaching"),
        NameState::Failed => status(Tone::Fail, "Failed"),
    }
}

/// How far a job is.
pub fn job_status(state: JobState) -> AnyView {
    let (class, word) = crate::looks::look(state.as_str());
    view! { <span class=class>{word}</span> }.into_any()
}

/// The tone and the word of a deployment's state.
pub const fn deployment_look(state: DeploymentState) -> (Tone, &'static str) {
    match state {
        DeploymentState::Waiting => (Tone::Warn, "Waiting"),
        DeploymentState::Running => (Tone::Busy, "Running"),
        DeploymentState::RollingBack => (Tone::Busy, "Rolling back"),
        DeploymentState::Live => (Tone::Ok, "Live"),
        DeploymentState::RolledBack => (Tone::Fail, "Rolled back"),
        DeploymentState::Broken => (Tone::Fail, "Broken"),
        DeploymentState::Superseded => (Tone::Off, "Superseded"),
    }
}

/// How far a deployment is, or how it ended.
pub fn deployment_status(state: DeploymentState) -> AnyView {
    let (tone, word) = deployment_look(state);
    status(tone, word)
}

/// Whether an environment can be pushed to, and has something live.
pub fn environment_status(environment: &EnvironmentSummary) -> AnyView {
    let leader = &environment.leader;
    environment_look(leader.state, leader.live.is_some(), is_everywhere(environment))
}

/// The same of one in the list of projects.
pub fn environment_line_status(environment: &EnvironmentLine) -> AnyView {
    environment_look(environment.state, environment.is_live, environment.is_everywhere)
}

fn environment_look(state: EnvironmentState, is_live: bool, is_everywhere: bool) -> AnyView {
    match state {
        EnvironmentState::SettingUp => status(Tone::Busy, "Setting up"),
        EnvironmentState::Failed => status(Tone::Fail, "Failed"),
        EnvironmentState::Leaving => status(Tone::Busy, "Being removed"),
        EnvironmentState::Ready if !is_everywhere => status(Tone::Warn, "Not live everywhere"),
        EnvironmentState::Ready if is_live => status(Tone::Ok, "Live"),
        EnvironmentState::Ready => status(Tone::Off, "Nothing live yet"),
    }
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
