//! The word and the tone of each state of the design.

use corpus_controller::views::{GuestView, NameView, NodeView};
use corpus_domain::{GuestState, JobState, NameState, NodeState, Reachability};
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
    match guest.state {
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
