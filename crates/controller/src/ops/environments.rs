//! Environments for who works with their guests: whether one can be worked with, and that its guest is told.

use corpus_domain::{EnvironmentState, GuestId};
use sqlx::PgTransaction;

use crate::sagas::environment_configure;
use crate::store::environments::{self, Placement};
use crate::{Controller, Error, Result};
use corpus_api::Principal;

impl Controller {
    /// Queues the job that tells a guest what its project should know now, if an environment
    /// stands on it: behind the jobs that are on the guest, so it reads what they left.
    pub(crate) async fn environment_follows(
        &self,
        tx: &mut PgTransaction<'_>,
        principal: &Principal,
        guest: GuestId,
    ) -> Result<()> {
        if let Some(placement) = environments::on_guest(tx, guest).await? {
            self.submit(tx, principal, environment_configure::job(&placement)).await?;
        }
        Ok(())
    }
}

/// An environment that can be worked with.
pub(crate) fn is_ready(placement: &Placement) -> Result<()> {
    if placement.state == EnvironmentState::Ready {
        return Ok(());
    }
    let (name, environment, state) = (&placement.name, placement.environment, placement.state);
    Err(Error::Conflict(match state {
        EnvironmentState::SettingUp => format!("{name}'s {environment} is still being set up; try again in a moment."),
        EnvironmentState::Leaving => format!("{name}'s {environment} is being removed."),
        _ => format!("{name}'s {environment} is {state}; remove it and set it up again."),
    }))
}
