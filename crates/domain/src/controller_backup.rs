//! Backups of the controller itself.

use crate::text::word_enum;

word_enum!(
    /// How far a backup of the controller is.
    ControllerBackupState, "state of a backup", {
        /// A server will take it.
        Wanted = "wanted",
        /// A server takes it.
        Running = "running",
        /// It is whole.
        Done = "done",
        /// There is none.
        Failed = "failed",
    }
);
