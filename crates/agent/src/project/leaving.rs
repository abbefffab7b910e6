//! A guest whose visitors are spread over several leaves the balance before a deployment changes what they see.
//!
//! The guest asks for it with a line of its journal, and waits for a file beside the order, which the controller has
//! written when no visitor comes any more. Where nobody answers, a deployment in two phases ends before anything was
//! changed, since nobody could commit it either; what a person runs by hand goes on, and so does a rollback.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use corpus_domain::DeploymentId;
use corpus_protocol::{DeploymentEvent, Turn};

use crate::failure::Failure;
use crate::project::followers::there;
use crate::project::layout::Layout;
use crate::project::order;
use crate::project::run::{Run, with_reserve};
use crate::project::saved;
use crate::project::steps::Stop;

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Another deployment may have to bring its guest back first, and requests that are under way are awaited.
const LONGEST: Duration = Duration::from_mins(5);
/// By hand, or back: what is to be done does not wait for a controller that is away.
const SHORT: Duration = Duration::from_mins(1);

fn path(layout: &Layout, id: DeploymentId, turn: Turn) -> PathBuf {
    layout.deployment(id).join(match turn {
        Turn::Forward => "out-forward.json",
        Turn::Back => "out-back.json",
    })
}

/// Notes that no visitor comes any more; tells whether that is new.
pub fn out(layout: &Layout, id: DeploymentId, turn: Turn) -> Result<bool, Failure> {
    there(layout, id)?;
    if order::is_over(layout, id) {
        return Ok(false);
    }
    with_reserve(layout, id, || saved::write_first(&path(layout, id, turn), &saved::now()))
}

impl Run<'_> {
    /// Asks to leave the balance, and waits until that is so.
    pub fn leave_balance(&self, turn: Turn) -> Result<(), Stop> {
        if !self.plan.balanced {
            return Ok(());
        }
        let must = turn == Turn::Forward && self.is_two_phase();
        self.wait_until_out(turn, if must { LONGEST } else { SHORT }, must)
    }

    fn wait_until_out(&self, turn: Turn, limit: Duration, must: bool) -> Result<(), Stop> {
        let (path, end) = (path(self.layout, self.id(), turn), Instant::now() + limit);
        if path.exists() {
            return Ok(());
        }
        self.journal().tell(DeploymentEvent::LeavesBalance { turn });
        while !path.exists() {
            if self.cancel.is_set() {
                return Err(Stop::from(Failure::Cancelled));
            }
            if Instant::now() > end {
                let late = format!("it did not leave the balance within {} s", limit.as_secs());
                if must {
                    return Err(Stop::new(late));
                }
                self.journal().note(format!("{late}; it goes on all the same"));
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Whether it was proven and back in the balance, so that visitors come while everything is put back.
    pub fn may_be_visited(&self) -> bool {
        self.journal().progress().phases.iter().any(|report| report.phase == corpus_domain::Phase::Followers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_once_for_each_turn_and_not_after_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path(), &"shop".parse().unwrap());
        let id = DeploymentId::from(uuid::Uuid::now_v7());
        assert!(out(&layout, id, Turn::Forward).unwrap_err().to_string().contains("no deployment"));
        std::fs::create_dir_all(layout.deployment(id)).unwrap();
        saved::write(&layout.order(id), &1).unwrap();
        assert!(out(&layout, id, Turn::Forward).unwrap());
        assert!(!out(&layout, id, Turn::Forward).unwrap());
        assert!(!path(&layout, id, Turn::Back).exists());
        assert!(out(&layout, id, Turn::Back).unwrap());
        saved::write(&layout.report(id), &1).unwrap();
        assert!(!out(&layout, id, Turn::Back).unwrap());
    }
}
