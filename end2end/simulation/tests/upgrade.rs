//! Upgrades: a job that the previous release began is finished by this one, or undone cleanly.
//!
//! `recorded/<release>/<kind>.json` has, for each kind of job, the rows that a job of that release
//! leaves, all events of its log in order, and what its node and rows were like before each of
//! them. Here each such log is cut at every place, as if the server had died there: rows go into a
//! database as that release made it, the migrations since then run, and the engine of this build
//! goes on over a simulated node that is as it was at that moment. Once it is let go on, and must
//! end `done`; once it was cancelled meanwhile, and must end `undone` (or `done`, when it was past
//! the point of no return). One that was cancelled and died while it was undone must end `undone` too.
//! Then node and database must agree.
//!
//! A release records its own logs once, before it is published, by `scripts/record-jobs`; they
//! stay for ever.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

#[path = "upgrade/agreement.rs"]
mod agreement;
#[path = "upgrade/fixture.rs"]
#[allow(dead_code, reason = "examples/record writes what this reads")]
mod fixture;
#[path = "upgrade/names.rs"]
mod names;
#[path = "upgrade/own.rs"]
mod own;
#[path = "upgrade/replay.rs"]
mod replay;

use corpus_domain::JobKind;
use sqlx::PgPool;

macro_rules! replayed {
    ($($test:ident: $name:literal),+ $(,)?) => {$(
        #[sqlx::test(migrations = false)]
        async fn $test(db: PgPool) {
            replay::all_releases(db, $name).await;
        }
    )+};
}

replayed!(
    node_link: "node_link",
    node_initialize: "node_initialize",
    node_repair: "node_repair",
    node_unlink: "node_unlink",
    guest_create: "guest_create",
    guest_start: "guest_start",
    guest_stop: "guest_stop",
    guest_restart: "guest_restart",
    guest_destroy: "guest_destroy",
    name_attach: "name_attach",
    name_detach: "name_detach",
    keys_sync: "keys_sync",
    node_link_undone: "node_link.undone",
    node_initialize_undone: "node_initialize.undone",
    guest_create_undone: "guest_create.undone",
    name_attach_undone: "name_attach.undone",
);

/// Kinds whose agent is a guest's own or runs Salt, or that change or copy a guest's storage, or change its limits or settings: simulated hosts have neither, so
/// they are not recorded.
const ON_GUESTS: [JobKind; 23] = [
    JobKind::EnvironmentSetUp,
    JobKind::EnvironmentConfigure,
    JobKind::EnvironmentRemove,
    JobKind::Deploy,
    JobKind::GuestEnlarge,
    JobKind::GuestShrink,
    JobKind::GuestLimit,
    JobKind::GuestConfigure,
    JobKind::GuestMode,
    JobKind::GuestStates,
    JobKind::GuestUsers,
    JobKind::NodeBaseline,
    JobKind::SnapshotTake,
    JobKind::SnapshotRestore,
    JobKind::SnapshotRemove,
    JobKind::BackupTake,
    JobKind::BackupRestore,
    JobKind::BackupRemove,
    JobKind::BackupCheck,
    JobKind::BackupProve,
    JobKind::ImageMake,
    JobKind::GuestMove,
    JobKind::GuestEvacuate,
];

/// Kinds that are newer than what was recorded of a release: no server of it had one open. They are recorded with the
/// next one (`scripts/record-jobs`).
const NEWER: [(&str, JobKind); 8] = [
    ("0.1.0", JobKind::ProjectDestroy),
    ("0.1.0", JobKind::NameConfigure),
    ("0.1.0", JobKind::CertificateIssue),
    ("0.1.0", JobKind::NameSwitch),
    ("0.1.0", JobKind::GuestPoint),
    ("0.1.0", JobKind::FirewallApply),
    ("0.1.0", JobKind::NodeImages),
    ("0.1.0", JobKind::NodeReboot),
];

#[test]
fn every_kind_of_job_is_recorded() {
    for release in fixture::releases() {
        let recorded: Vec<String> = fixture::kinds(&release);
        for kind in JobKind::ALL.iter().filter(|kind| !ON_GUESTS.contains(kind)) {
            if NEWER.contains(&(release.as_str(), *kind)) {
                continue;
            }
            assert!(recorded.contains(&kind.to_string()), "{release} has no recorded {kind}");
        }
    }
    assert!(fixture::releases().contains(&env!("CARGO_PKG_VERSION").to_owned()), "scripts/record-jobs");
}
