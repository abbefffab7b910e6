//! The first thing that goes wrong while something is saved, known to all who take part in it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::BackupError;

/// The first thing that went wrong.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<BackupError>>>);

impl Fault {
    /// Notes what went wrong, unless something has before.
    pub(crate) fn set(&self, error: BackupError) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(crate) fn take(&self) -> Option<BackupError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
