//! The jobs of Corpus, one file each: parameters, steps in order, and beside each step what
//! takes it back. The words of kinds and steps are stored and stay the same across releases.

mod balance;
mod files_across;
mod files_back;
mod guest_calls;
mod hooks;
mod node_calls;

pub mod backup;
pub mod backup_check;
pub mod backup_prove;
pub mod backup_restore;
pub mod certificate_issue;
pub mod deploy;
pub mod environment_configure;
pub mod environment_remove;
pub mod environment_set_up;
pub mod firewall_apply;
pub mod guest_configure;
pub mod guest_create;
pub mod guest_destroy;
pub mod guest_enlarge;
pub mod guest_evacuate;
pub mod guest_limit;
pub mod guest_mode;
pub mod guest_move;
pub mod guest_point;
pub mod guest_power;
pub mod guest_shrink;
pub mod guest_states;
pub mod guest_users;
pub mod image_make;
pub mod keys_sync;
pub mod name_attach;
pub mod name_configure;
pub mod name_detach;
pub mod name_switch;
pub mod node_baseline;
pub mod node_images;
pub mod node_initialize;
pub mod node_link;
pub mod node_reboot;
pub mod node_repair;
pub mod node_unlink;
pub mod other_place;
pub mod project_destroy;
pub mod snapshot;
pub mod snapshot_restore;

use crate::jobs::Registry;
use crate::services::Services;

/// All kinds of jobs.
pub fn registry() -> Registry<Services> {
    Registry::new()
        .with(node_link::steps())
        .with(node_initialize::steps())
        .with(node_repair::steps())
        .with(node_images::steps())
        .with(node_reboot::steps())
        .with(node_baseline::steps())
        .with(node_unlink::steps())
        .with(guest_create::steps())
        .with(guest_power::start_steps())
        .with(guest_power::stop_steps())
        .with(guest_power::restart_steps())
        .with(guest_enlarge::steps())
        .with(guest_shrink::steps())
        .with(guest_limit::steps())
        .with(guest_configure::steps())
        .with(guest_mode::steps())
        .with(guest_states::steps())
        .with(guest_users::steps())
        .with(snapshot::take_steps())
        .with(snapshot_restore::steps())
        .with(snapshot::remove_steps())
        .with(backup::take_steps())
        .with(backup_restore::steps())
        .with(backup::remove_steps())
        .with(backup_check::steps())
        .with(backup_prove::steps())
        .with(image_make::steps())
        .with(guest_move::steps())
        .with(guest_evacuate::steps())
        .with(guest_destroy::steps())
        .with(name_attach::steps())
        .with(name_detach::steps())
        .with(name_switch::steps())
        .with(guest_point::steps())
        .with(firewall_apply::steps())
        .with(name_configure::steps())
        .with(certificate_issue::steps())
        .with(keys_sync::steps())
        .with(environment_set_up::steps())
        .with(environment_configure::steps())
        .with(environment_remove::steps())
        .with(deploy::steps())
        .with(project_destroy::steps())
        .around(hooks::Hooks)
}

#[cfg(test)]
mod tests;
