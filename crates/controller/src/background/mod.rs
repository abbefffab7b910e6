//! What the server does by itself as long as it runs: each task ends when it is told to stop.

mod backups;
mod certificates;
mod chores;
mod drift;
mod elsewhere;
mod evidence;
mod firewalls;
mod forget;
mod guest_mail;
mod images;
mod intrusion;
mod leaving;
mod mail;
mod previews;
mod renewals;
mod seen;
mod snapshots;
mod spread;
mod storage;
mod surroundings;
mod traffic;
mod turns;
mod updates;
mod watch;
mod webhooks;

#[cfg(test)]
pub(crate) use drift::Checked;
