//! What must be so before an environment is worked with: it is set up, and its guests run. Each refusal says
//! what to do about it.

use corpus_domain::{EnvironmentState, GuestState};
use corpus_gate::{Error, Result};

use crate::store::environments::Placement;

/// An environment that can be worked with.
pub(crate) fn is_ready(placement: &Placement) -> Result<()> {
    if placement.state == EnvironmentState::Ready {
        return Ok(());
    }
    let (name, environment, state) = (&placement.name, placement.environment, placement.state);
    Err(Error::Conflict(match state {
        EnvironmentState::SettingUp => format!("{name}'s {environment} is still being set up; try again in a moment."),
        EnvironmentState::Leaving => format!("{name}'s {environment} is being removed."),
        _ => format!("{name}'s {environment} is {state}; remove it and set it up again."),
    }))
}

/// The guest of an environment must run for what is asked of it now.
pub(crate) fn runs(placement: &Placement) -> Result<()> {
    if placement.guest_state == GuestState::Running {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "{}, the guest of {}'s {}, is {}; start it first.",
        placement.guest_name, placement.name, placement.environment, placement.guest_state
    )))
}

/// So must those of its followers: what can't go live on one of them goes live on none.
pub(crate) fn followers_run(followers: &[Placement]) -> Result<()> {
    let Some(down) = followers.iter().find(|follower| follower.guest_state != GuestState::Running) else {
        return Ok(());
    };
    Err(Error::Conflict(format!(
        "{}, a guest of {}'s {}, is {}; start it, or take it from the environment.",
        down.guest_name, down.name, down.environment, down.guest_state
    )))
}
