//! The pipeline of projects as root in a real container with systemd: what deploys, what fails,
//! and that nothing of a failure is left.
//!
//! Runs when `CORPUS_LAB_IMAGE` (archive of an image) is set, as the lab's `env` prints it; so it
//! is ignored where there is no lab. `CORPUS_AGENT_BINARY` is the binary that is copied over; the
//! one of this build when unset. Times are printed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests may fail loudly, and play the controller's part"
)]

#[path = "projects/failures.rs"]
mod failures;
#[path = "projects/hostile.rs"]
mod hostile;
#[path = "projects/story.rs"]
mod story;
#[path = "projects/world.rs"]
mod world;

use world::Guest;

#[test]
#[ignore = "needs the lab"]
fn on_a_guest_the_pipeline() {
    let guest = Guest::from_environment().expect("scripts/test starts a lab and sets CORPUS_LAB_IMAGE");
    story::init(&guest);
    story::first_failure(&guest);
    story::deploys(&guest);
    story::dumps(&guest);
    story::one_phase(&guest);
    story::around_archive(&guest);
    failures::in_each_phase(&guest);
    failures::each_kind(&guest);
    failures::agent_killed(&guest);
    failures::guest_restarted(&guest);
    failures::killed_once_all_is_back(&guest);
    failures::without_systemd(&guest);
    hostile::links(&guest);
    hostile::much_output(&guest);
    hostile::secrets(&guest);
    story::queue(&guest);
    story::cancel(&guest);
    story::restore_and_drill(&guest);
    story::failures_push_no_release_out(&guest);
    story::rotation(&guest);
    story::dev(&guest);
    failures::full_disk(&guest);
    story::gone(&guest);
}
