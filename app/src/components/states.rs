//! The word and the tone of each state of the design.

use corpus_controller::project_views::{EnvironmentView, OtherGuestView};
use corpus_controller::views::{GuestView, NameView, NodeView};
use corpus_domain::{
    DeploymentState, EnvironmentState, GuestState, JobState, NameState, NodeState, Outcome, Reachability,
};
use leptos::prelude::*;

use super::status::{Tone, status};

/// What a node is, unless it does not answer: then that.
pub fn node_status(node: &NodeView) -> AnyView {
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
pub fn guest_status(guest: &GuestView) -> AnyView {
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
pub fn name_status(name: &NameView) -> AnyView {
    match name.state {
        NameState::Wanted => status(Tone::Busy, "Wanted"),
        NameState::Attached => status(Tone::Ok, "Attached"),
        NameState::Detaching => status(Tone::Busy, "Detaching"),
        NameState::Failed => status(Tone::Fail, "Failed"),
    }
}

/// How far a job is.
pub fn job_status(state: JobState) -> AnyView {
    let (class, word) = crate::live::look(state.as_str());
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
pub fn environment_status(environment: &EnvironmentView) -> AnyView {
    match environment.state {
        EnvironmentState::SettingUp => status(Tone::Busy, "Setting up"),
        EnvironmentState::Failed => status(Tone::Fail, "Failed"),
        EnvironmentState::Leaving => status(Tone::Busy, "Being removed"),
        EnvironmentState::Ready if !is_everywhere(environment) => status(Tone::Warn, "Not live everywhere"),
        EnvironmentState::Ready if environment.live.is_some() => status(Tone::Ok, "Live"),
        EnvironmentState::Ready => status(Tone::Off, "Nothing live yet"),
    }
}

/// Whether something else is live on another guest than on the first.
pub fn is_behind(environment: &EnvironmentView, other: &OtherGuestView) -> bool {
    let ready = other.state == EnvironmentState::Ready;
    ready
        && match (&environment.live, &other.live, environment.live_number, other.live_number) {
            (None, None, ..) => false,
            (Some(_), Some(_), Some(first), Some(here)) => first != here,
            (Some(first), Some(here), ..) => first.commit != here.commit,
            (Some(_), None, ..) | (None, Some(_), ..) => true,
        }
}

/// Whether the same is live on all its guests, or will be: a job is on one of them.
pub fn is_everywhere(environment: &EnvironmentView) -> bool {
    let moves = |other: &OtherGuestView| environment.job.is_some() || other.job.is_some();
    environment.others.iter().all(|other| moves(other) || !is_behind(environment, other))
}

/// How a phase, a recipe or a check ended.
pub fn outcome_status(outcome: Outcome) -> AnyView {
    match outcome {
        Outcome::Done => status(Tone::Ok, "Done"),
        Outcome::Failed => status(Tone::Fail, "Failed"),
        Outcome::Skipped => status(Tone::Off, "Not run"),
    }
}
