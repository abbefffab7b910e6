//! Pushes to a real guest: git, sudo, sshd, systemd, Salt and Python as in the image.
//!
//! A container of the image, without a network but its own loopback, is the guest; whoever
//! pushes is an account in it, and comes over SSH, to the guest itself as a member does and as
//! root as the controller does. Needs root, LXC and `CORPUS_LAB_IMAGE`; `CORPUS_AGENT_BINARY` is
//! the agent (static, else that of this build), `CORPUS_SALT_BUNDLE` what scripts/salt-bundle made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests may fail loudly, and play the parts of members and controller"
)]

#[path = "push/brought.rs"]
mod brought;
#[path = "push/examples.rs"]
mod examples;
#[path = "push/guest.rs"]
mod guest;
#[path = "push/makina.rs"]
mod makina;
#[path = "push/measured.rs"]
mod measured;
#[path = "push/mode.rs"]
mod mode;
#[path = "push/pushes.rs"]
mod pushes;
#[path = "push/room.rs"]
mod room;
#[path = "push/two.rs"]
mod two;
#[path = "push/two_phase.rs"]
mod two_phase;

use guest::Guest;

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_a_push_deploys_or_is_refused() {
    let guest = Guest::start("push");
    pushes::good_and_bad(&guest);
    pushes::not_deployed(&guest);
    pushes::pillars(&guest);
    pushes::by_the_controller(&guest);
}

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_pushes_are_lost_or_meet() {
    let guest = Guest::start("meet");
    pushes::lost(&guest);
    pushes::two_at_once(&guest);
}

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_a_push_is_too_large() {
    pushes::too_large(&Guest::start("large"));
}

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_a_two_phase_commit() {
    let guest = Guest::start("followers");
    two_phase::committed(&guest);
    two_phase::aborted(&guest);
    two_phase::by_hand(&guest);
    two_phase::killed(&guest);
    two_phase::decided_in_between(&guest);
    two_phase::not_heard_of(&guest);
}

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_a_follower_is_deployed_to() {
    let (leader, follower) = (Guest::start("leader"), Guest::start("follower"));
    brought::only_the_leader_is_deployed_to(&follower);
    brought::brought(&leader, &follower);
    brought::badly_brought(&follower);
}

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_others_give_it_room() {
    let guest = Guest::start("room");
    room::for_an_archive(&guest);
    room::for_decisions(&guest);
}

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_the_examples() {
    let guest = Guest::start("examples");
    examples::static_site(&guest);
    examples::python_app(&guest);
    examples::salt_app(&guest);
}

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_a_project_of_makina_states() {
    let guest = Guest::start("makina");
    makina::deploys_unchanged(&guest);
    makina::is_changed_and_comes_back(&guest);
    makina::formulas_are_named(&guest);
    makina::bad_values_are_refused(&guest);
    makina::is_forgotten(&guest);
}

#[test]
#[ignore = "needs the lab"]
fn as_fast_as_a_shell_hook() {
    measured::measure(&Guest::start("measured"));
}
