//! Starting, stopping and restarting guests, and destroying them.

use corpus_api::guests::{DestroyGuest, RestartGuest, StartGuest, StopGuest};
use corpus_api::jobs::JobAccepted;
use corpus_domain::GuestState;
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};

use super::{move_guest, row};
use crate::Controller;
use crate::sagas::{guest_destroy, guest_power};
use crate::store::environments;

/// From which state to which, and the job that does it.
macro_rules! power {
    ($operation:ty, $action:literal, $from:ident -> $to:ident, $job:path) => {
        impl Handle<$operation> for Controller {
            async fn handle(&self, mut change: Change<$operation>) -> Result<Committed<$operation>> {
                let (id, who) = (change.guest, change.who());
                let guest = row(&mut change, id).await?;
                move_guest(change.transaction().await?, &guest, &[GuestState::$from], GuestState::$to).await?;
                let job = self.queue(&mut change, $job(&guest)).await?;
                if GuestState::$to == GuestState::Starting {
                    self.environment_follows(change.transaction().await?, &who, id).await?;
                }
                change.commit(Entry::new($action, guest.name.as_str()).id(id.0), JobAccepted { job }).await
            }
        }
    };
}

power!(StartGuest, "guest.start", Stopped -> Starting, guest_power::start);
power!(StopGuest, "guest.stop", Running -> Stopping, guest_power::stop);
power!(RestartGuest, "guest.restart", Running -> Starting, guest_power::restart);

impl Handle<DestroyGuest> for Controller {
    async fn handle(&self, mut change: Change<DestroyGuest>) -> Result<Committed<DestroyGuest>> {
        let id = change.guest;
        let guest = row(&mut change, id).await?;
        let from = [GuestState::Running, GuestState::Stopped, GuestState::Failed];
        let tx = change.transaction().await?;
        move_guest(tx, &guest, &from, GuestState::Destroying).await?;
        if let Some(stands) = environments::on_guest(tx, id).await? {
            return Err(Error::Conflict(format!(
                "{}'s {} stands on {}. Remove that environment first; then the guest can be destroyed.",
                stands.name, stands.environment, guest.name
            )));
        }
        let job = self.queue(&mut change, guest_destroy::job(&guest)).await?;
        change.commit(Entry::new("guest.destroy", guest.name.as_str()).id(id.0), JobAccepted { job }).await
    }
}
