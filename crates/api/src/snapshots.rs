//! Snapshots of guests: what a guest was at some moment, to be brought back.

use chrono::{DateTime, Utc};
use corpus_domain::{
    Bytes, DeploymentId, Environment, GuestId, GuestName, JobId, ProjectName, SnapshotEvery, SnapshotId, SnapshotState,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Version;
use crate::jobs::JobAccepted;
use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, delete, get, post, put};
use crate::words::{Label, SnapshotsKept};

/// The most snapshots of a guest, so a page shows them all.
pub const MOST_SNAPSHOTS: u32 = 16;

/// Lists the snapshots of a guest, the newest first: all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListSnapshots {
    /// Of which guest.
    pub guest: GuestId,
}
impl Operation for ListSnapshots {
    type Kind = Read;
    type Output = Snapshots;
    const META: Meta<Read> = get("list_snapshots", "/guests/{guest}/snapshots").needs(Role::Viewer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Takes a snapshot of a guest, of one moment. A guest whose backing takes none at once stands still meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakeSnapshot {
    /// Of which guest.
    pub guest: GuestId,
    /// What it is for.
    pub comment: Option<Label>,
}
impl Operation for TakeSnapshot {
    type Kind = Write;
    type Output = SnapshotAccepted;
    const META: Meta<Write> = post("take_snapshot", "/guests/{guest}/snapshots").needs(Role::Developer).robots();
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Brings the files of a snapshot back to its guest, which is stopped for it. All that the guest wrote since is gone; the
/// snapshot stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestoreSnapshot {
    /// Of which guest.
    pub guest: GuestId,
    /// Which of its snapshots.
    pub snapshot: SnapshotId,
}
impl Operation for RestoreSnapshot {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> =
        post("restore_snapshot", "/guests/{guest}/snapshots/{snapshot}/restore").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Deletes a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RemoveSnapshot {
    /// Of which guest.
    pub guest: GuestId,
    /// Which of its snapshots.
    pub snapshot: SnapshotId,
}
impl Operation for RemoveSnapshot {
    type Kind = Write;
    type Output = JobAccepted;
    const META: Meta<Write> = delete("remove_snapshot", "/guests/{guest}/snapshots/{snapshot}").needs(Role::Maintainer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// How often a snapshot of a guest is taken by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GetSnapshotSchedule {
    /// Of which guest.
    pub guest: GuestId,
}
impl Operation for GetSnapshotSchedule {
    type Kind = Read;
    type Output = SnapshotSchedule;
    const META: Meta<Read> = get("get_snapshot_schedule", "/guests/{guest}/snapshots/schedule").needs(Role::Viewer);
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// Sets how often a snapshot of a guest is taken by itself, the first one soon, and whether one is taken before each
/// deployment; and how many of these are kept: the oldest goes when there is one more. Those that somebody asked for stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetSnapshotSchedule {
    /// Of which guest.
    pub guest: GuestId,
    /// How often.
    pub every: SnapshotEvery,
    /// How many of those are kept.
    pub keep: SnapshotsKept,
    /// How many are kept of those that are taken before deployments; unless said none is taken then.
    #[serde(default)]
    pub deployments: Option<SnapshotsKept>,
    /// What was set when that was decided.
    pub version: Version,
}
impl Operation for SetSnapshotSchedule {
    type Kind = Write;
    type Output = SnapshotSchedule;
    const META: Meta<Write> =
        put("set_snapshot_schedule", "/guests/{guest}/snapshots/schedule").needs(Role::Maintainer).if_match("version");
    fn scope(&self) -> Scope {
        Scope::Guest(self.guest)
    }
}

/// When a snapshot of a guest is taken by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotSchedule {
    /// How often.
    pub every: SnapshotEvery,
    /// How many of those are kept.
    pub keep: SnapshotsKept,
    /// How many are kept of those that are taken before deployments; none: none is taken then.
    pub deployments: Option<SnapshotsKept>,
    /// When the next one is taken, unless that is never.
    pub next_at: Option<DateTime<Utc>>,
    /// Why none was taken when it was time, for a person.
    pub problem: Option<String>,
    /// What is set.
    pub version: Version,
}
impl Reply for SnapshotSchedule {
    const HAS_VERSION: bool = true;
    fn version(&self) -> Option<&Version> {
        Some(&self.version)
    }
}

/// The snapshots of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Snapshots {
    /// Of this guest.
    pub guest: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Its project.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// The newest first.
    pub items: Vec<Snapshot>,
    /// So many it may have.
    pub most: u32,
    /// Whether the guest goes on while one is taken.
    pub at_once: bool,
    /// Whether the caller may take one.
    pub may_take: bool,
    /// Whether the caller may restore and delete them, and have guests made of them.
    pub may_change: bool,
}
impl Reply for Snapshots {}

/// A snapshot of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// Its id.
    pub id: SnapshotId,
    /// What it is for.
    pub comment: Option<Label>,
    /// What is being done with it.
    pub state: SnapshotState,
    /// How much there is in it, once it was taken.
    pub bytes: Option<Bytes>,
    /// The moment that it is of.
    pub taken_at: Option<DateTime<Utc>>,
    /// When it was asked for.
    pub asked_at: DateTime<Utc>,
    /// By whom: their login, or of who deployed; by nobody where the schedule did.
    pub by: Option<String>,
    /// The deployment before which it was taken by itself.
    pub before: Option<SnapshotBefore>,
}

/// The deployment before which a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotBefore {
    /// Its id.
    pub deployment: DeploymentId,
    /// Its number in the project; none: it did not begin.
    pub number: Option<i64>,
}

/// A snapshot is being taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotAccepted {
    /// Its id.
    pub snapshot: SnapshotId,
    /// The job that takes it.
    pub job: JobId,
}
impl Reply for SnapshotAccepted {}
