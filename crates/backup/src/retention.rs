//! What of a repository is removed again.
//!
//! Backups share what is the same in them, so removing one frees nothing by itself: what no other holds is found by
//! reading all that are left, and what lies in one file with what is still held is written anew. That is done seldom, and
//! while nobody else writes: then nothing has to be kept for those who might have begun to use it.

use std::collections::BTreeSet;

use rustic_core::repofile::SnapshotId;
use rustic_core::{KeepOptions, LimitOption, OpenStatus, PruneOptions, Repository as Rustic};

use crate::repository::Result;
use crate::{BackupError, Repository};

const REMOVING: &str = "removing old backups";

/// What is kept when a repository is thinned; the newest always is, and the oldest while there are fewer than these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// The last of each of so many days.
    pub daily: u16,
    /// The last of each of so many weeks.
    pub weekly: u16,
    /// The last of each of so many months.
    pub monthly: u16,
}

impl Repository {
    /// Removes the backups of a label that need not be kept, and what only they held; how many.
    ///
    /// What other labels hold stays. Nobody may save into the repository meanwhile.
    pub fn thin(&self, label: &str, keep: Keep) -> Result<usize> {
        let repository = self.open()?;
        let all = Self::files(&repository, label)?;
        let newest = all.iter().map(|one| one.time.clone()).max();
        let Some(newest) = newest else { return Ok(0) };
        let options = KeepOptions::default()
            .keep_last(1)
            .keep_daily(i32::from(keep.daily))
            .keep_weekly(i32::from(keep.weekly))
            .keep_monthly(i32::from(keep.monthly));
        let judged = options.apply(all, &newest).map_err(BackupError::of(REMOVING))?;
        let old: Vec<_> = judged.into_iter().filter(|one| !one.keep).map(|one| one.snapshot.id).collect();
        if !old.is_empty() {
            repository.delete_snapshots(&old).map_err(BackupError::of(REMOVING))?;
            prune(&repository)?;
        }
        Ok(old.len())
    }

    /// Removes backups; those that are gone already are none to remove. Their room is taken until it is
    /// [pruned](Self::prune).
    pub fn remove(&self, ids: &[String]) -> Result<()> {
        let repository = self.open()?;
        let wanted: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        let held = repository.list::<SnapshotId>().map_err(BackupError::of("listing backups"))?;
        let held: Vec<_> = held.filter(|id| wanted.contains(id.to_hex().as_str())).collect();
        if held.is_empty() {
            return Ok(());
        }
        repository.delete_snapshots(&held).map_err(BackupError::of(REMOVING))
    }

    /// Gives back the room of what no backup holds. Nobody may save into the repository or read it meanwhile.
    pub fn prune(&self) -> Result<()> {
        prune(&self.open()?)
    }
}

fn prune(repository: &Rustic<OpenStatus>) -> Result<()> {
    let failed = || BackupError::of("removing what no backup holds");
    // Without the first it would only be marked, and removed by a later one a day after; without the second a repository
    // that lost most of its backups would shrink by a tenth at a time.
    let options = PruneOptions::default().instant_delete(true).max_repack(LimitOption::Unlimited);
    let plan = repository.prune_plan(&options).map_err(failed())?;
    repository.prune(&options, plan).map_err(failed())
}
