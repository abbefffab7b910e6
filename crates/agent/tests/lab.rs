//! What every driver and the node must do, on a real node over a real SSH line.
//!
//! Runs when `CORPUS_LAB_NODE1` (address), `CORPUS_LAB_NODE_KEY` (private key for root) and
//! `CORPUS_LAB_IMAGE` (archive of an image) are set, as the lab's `env` prints them; so it is
//! ignored where there is no lab. `CORPUS_AGENT_BINARY` is the binary that is copied over; the one of this build
//! when unset. Times are printed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests may fail loudly, and play the controller's part"
)]

#[path = "lab/balance.rs"]
mod balance;
#[path = "lab/btrfs.rs"]
mod btrfs;
#[path = "lab/certificates.rs"]
mod certificates;
#[path = "lab/confined.rs"]
mod confined;
#[path = "lab/crowd.rs"]
mod crowd;
#[path = "lab/firewall.rs"]
mod firewall;
#[path = "lab/firewalld.rs"]
mod firewalld;
#[path = "lab/limits.rs"]
mod limits;
#[path = "lab/line.rs"]
mod line;
#[path = "lab/mail.rs"]
mod mail;
#[path = "lab/names.rs"]
mod names;
#[path = "lab/network.rs"]
mod network;
#[path = "lab/projects.rs"]
mod projects;
#[path = "lab/rotation.rs"]
mod rotation;
#[path = "lab/settings.rs"]
mod settings;
#[path = "lab/signs.rs"]
mod signs;
#[path = "lab/size.rs"]
mod size;
#[path = "lab/snapshots.rs"]
mod snapshots;
#[path = "lab/suite.rs"]
mod suite;
#[path = "lab/traffic.rs"]
mod traffic;
#[path = "lab/trees.rs"]
mod trees;
#[path = "lab/volumes.rs"]
mod volumes;
#[path = "lab/world.rs"]
mod world;

use std::time::Duration;

use corpus_domain::{Backing, Driver};
use world::World;

#[test]
#[ignore = "needs the lab"]
fn guests_are_themselves_and_go_where_they_may() {
    let world = World::from_environment().expect("scripts/test starts a lab and sets CORPUS_LAB_NODE1 and the others");
    let other = std::env::var("CORPUS_LAB_NODE2").expect("the lab has two nodes");
    let mut line = world.line();
    suite::node_is_set_up(&world, &mut line);
    let two = network::Two::new(&world, &mut line);
    two.nobody_else();
    two.goes_where_it_may(&mut line, &other);
    two.lets_in(&mut line);
    two.sees_who_knocks(&mut line, &other);
    two.keeps_out_who_knocked(&mut line, &other);
    two.resolves(&mut line, &other);
    two.sends_mail(&mut line, &other, suite::drift);
    names::comes_back(&world);
    two.serves_certificates(&mut line, &other);
    two.counts_visitors(&mut line);
    two.share_a_name(&mut line, &other);
    two.drift_is_told(&mut line, suite::drift);
    two.is_brought_to_a_proxy_that_starts(&mut line);
    two.names_a_port_in_use(&mut line, &other);
    let certificate = two.serves_one(&mut line);
    line.close();
    two.outlives_a_reboot();
    two.still_serves(&certificate);
    let mut line = world.line();
    two.end(&mut line);
    suite::node_is_given_back(&world, &mut line);
}

/// What a node bears, which takes long to try.
#[test]
#[ignore = "needs the lab"]
fn a_crowded_node() {
    let world = World::from_environment().expect("scripts/test starts a lab and sets CORPUS_LAB_NODE1 and the others");
    let other = std::env::var("CORPUS_LAB_NODE2").expect("the lab has two nodes");
    let mut line = world.line();
    suite::node_is_set_up(&world, &mut line);
    let two = network::Two::new(&world, &mut line);
    two.rotates_many(&mut line, &other);
    line.close();
    two.one_guest_fills_nothing(&other);
    // The crowd may have cost the line from outside; Corpus opens another one, too.
    let mut line = world.line();
    two.end(&mut line);
    suite::node_is_given_back(&world, &mut line);
}

#[test]
#[ignore = "needs the lab"]
fn a_node_that_has_firewalld() {
    let world = World::from_environment().expect("scripts/test starts a lab and sets CORPUS_LAB_NODE1 and the others");
    let other = std::env::var("CORPUS_LAB_NODE2").expect("the lab has two nodes");
    firewalld::beside(&world, &other);
}

#[test]
#[ignore = "needs the lab"]
fn a_guest_is_held_to_its_limits() {
    let world = World::from_environment().expect("scripts/test starts a lab and sets CORPUS_LAB_NODE1 and the others");
    let mut line = world.line();
    suite::node_is_set_up(&world, &mut line);
    limits::hold(&world, &mut line);
    line.close();
}

#[test]
#[ignore = "needs the lab"]
fn a_guest_has_its_settings() {
    let world = World::from_environment().expect("scripts/test starts a lab and sets CORPUS_LAB_NODE1 and the others");
    let mut line = world.line();
    suite::node_is_set_up(&world, &mut line);
    settings::apply(&world, &mut line);
    line.close();
}

#[test]
#[ignore = "needs the lab"]
fn on_a_real_node() {
    let world = World::from_environment().expect("scripts/test starts a lab and sets CORPUS_LAB_NODE1 and the others");
    let mut line = world.line();
    suite::node_is_set_up(&world, &mut line);
    suite::node_is_checked(&world, &mut line);
    for backing in [Backing::Overlayfs, Backing::Loop, Backing::Dir] {
        suite::conforms(&world, &mut line, Driver::Lxc, backing);
    }
    confined::is_told(&mut line);
    confined::names_are_exact(&world, &mut line);
    let line = confined::holds(&world, line);
    let line = size::is_real(&world, line, Backing::Loop);
    line.close();
    size::outlives_the_agent(&world, Backing::Loop, (0..6).map(|step| Duration::from_millis(step * 60)));
    let mut line = world.line();
    suite::hostile_guest(&world, &mut line);
    suite::fencing(&world, &mut line);
    suite::unknown_guest(&world, &mut line);
    suite::cancel(&world, &mut line);
    suite::cut(&world);
    let mut line = btrfs::goes_where_it_can(&world, line);
    suite::node_is_given_back(&world, &mut line);
    btrfs::is_left_empty(&world);
}

/// What needs a kernel of its own, on a node that is a virtual machine.
#[test]
#[ignore = "needs the virtual machine of the lab"]
fn a_machine_with_lvm() {
    has_volumes(&volumes::LVM);
}

#[test]
#[ignore = "needs the virtual machine of the lab"]
fn a_machine_with_zfs() {
    has_volumes(&volumes::ZFS);
}

#[test]
#[ignore = "needs the virtual machine of the lab"]
fn a_machine_with_projects_for_overlayfs() {
    has_projects(Backing::Overlayfs);
}

#[test]
#[ignore = "needs the virtual machine of the lab"]
fn a_machine_with_projects_for_dir() {
    has_projects(Backing::Dir);
}

fn has_projects(backing: Backing) {
    let world =
        World::from_environment().expect("scripts/test starts a machine and sets CORPUS_LAB_NODE1 and the others");
    let mut line = world.line();
    suite::node_is_set_up(&world, &mut line);
    let mut line = projects::are_held(&world, line, backing);
    suite::node_is_given_back(&world, &mut line);
}

fn has_volumes(place: &volumes::Place) {
    let world =
        World::from_environment().expect("scripts/test starts a machine and sets CORPUS_LAB_NODE1 and the others");
    let mut line = world.line();
    suite::node_is_set_up(&world, &mut line);
    let line = place.goes_where_it_can(&world, line);
    let mut line = place.holds(&world, line);
    suite::node_is_given_back(&world, &mut line);
    line.close();
    place.is_left_empty(&world);
}
