//! Backups of Corpus itself.

use chrono::{TimeDelta, Utc};
use corpus_api::controller_backups::{ControllerBackup, ControllerBackups, ControllerRestore};
use corpus_domain::{Bytes, ControllerBackupId, ControllerBackupState};
use uuid::Uuid;

/// Backups of Corpus: one that is being taken, one that failed, and those before; or none, where none is configured.
pub fn of_controller(empty: bool) -> ControllerBackups {
    let now = Utc::now();
    let one = |number: u128, hours: i64, state| {
        let at = now - TimeDelta::hours(hours);
        let whole = state == ControllerBackupState::Done;
        let over = whole || state == ControllerBackupState::Failed;
        ControllerBackup {
            id: ControllerBackupId(Uuid::from_u128(number)),
            state,
            wanted_by: (number == 1).then(|| "alice".to_owned()),
            wanted_at: at,
            began_at: Some(at),
            ended_at: over.then(|| at + TimeDelta::milliseconds(3_400)),
            snapshot: whole.then(|| "4f".repeat(32)),
            bytes: whole.then_some(Bytes(48_200_000)),
            added_bytes: whole.then_some(Bytes(412_000)),
            error: (over && !whole).then(|| "pg_dump failed: No space left on device".to_owned()),
        }
    };
    let items = [ControllerBackupState::Running, ControllerBackupState::Failed, ControllerBackupState::Done];
    let items =
        items.into_iter().zip([(1, 0), (2, 3), (3, 27)]).map(|(state, (number, hours))| one(number, hours, state));
    ControllerBackups {
        place: (!empty).then(|| "/mnt/backup/corpus".to_owned()),
        every_hours: (!empty).then_some(24),
        newest_at: (!empty).then(|| now - TimeDelta::hours(27)),
        is_old: empty,
        restored: (!empty)
            .then(|| ControllerRestore { restored_at: now - TimeDelta::days(9), taken_at: now - TimeDelta::days(10) }),
        items: if empty { Vec::new() } else { items.collect() },
    }
}
