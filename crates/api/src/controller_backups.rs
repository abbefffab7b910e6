//! Backups of the controller itself: which there are, whether they are recent, and taking one.

use chrono::{DateTime, Utc};
use corpus_domain::{Bytes, ControllerBackupId, ControllerBackupState};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operation::{Meta, Operation, Read, Reply, Role, Scope, Write, get, post};

/// As many backups are listed.
pub const LISTED_BACKUPS: u32 = 50;

/// Lists the backups of the controller that were taken last, 50 at most, and says where they are kept.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListControllerBackups {}
impl Operation for ListControllerBackups {
    type Kind = Read;
    type Output = ControllerBackups;
    const META: Meta<Read> = get("list_controller_backups", "/controller-backups").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// Has a backup of the controller taken: a server begins within 15 seconds.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TakeControllerBackup {}
impl Operation for TakeControllerBackup {
    type Kind = Write;
    type Output = ControllerBackup;
    const META: Meta<Write> = post("take_controller_backup", "/controller-backups").needs(Role::Ops);
    fn scope(&self) -> Scope {
        Scope::Site
    }
}

/// The backups of the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ControllerBackups {
    /// The folder that they are kept in; none: the configuration names none, and none is taken.
    pub place: Option<String>,
    /// After how many hours one is taken without anybody asking; none: only when somebody asks.
    pub every_hours: Option<u16>,
    /// When the newest was begun that is whole; none: there is none.
    pub newest_at: Option<DateTime<Utc>>,
    /// Whether that is longer ago than it should be: more than twice `every_hours`, or a week.
    pub is_old: bool,
    /// When this controller was brought back from a backup, the last time.
    pub restored: Option<ControllerRestore>,
    /// Those that were wanted last, the newest first.
    pub items: Vec<ControllerBackup>,
}
impl Reply for ControllerBackups {}

/// A backup of the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ControllerBackup {
    /// Its id.
    pub id: ControllerBackupId,
    /// How far it is.
    pub state: ControllerBackupState,
    /// Who asked for it; none: it was time for one, or a shell of the controller asked.
    pub wanted_by: Option<String>,
    /// When it was wanted.
    pub wanted_at: DateTime<Utc>,
    /// When it was begun.
    pub began_at: Option<DateTime<Utc>>,
    /// When it was over.
    pub ended_at: Option<DateTime<Utc>>,
    /// What it is called in its repository, 64 hexadecimal digits.
    pub snapshot: Option<String>,
    /// How much is in it.
    pub bytes: Option<Bytes>,
    /// How much of that its repository did not hold before, as it lies there.
    pub added_bytes: Option<Bytes>,
    /// Why there is none.
    pub error: Option<String>,
}
impl Reply for ControllerBackup {}

/// That a controller was brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ControllerRestore {
    /// When.
    pub restored_at: DateTime<Utc>,
    /// What it was then: when the backup was taken.
    pub taken_at: DateTime<Utc>,
}
