//! How a guest's configuration is managed: switched, applied, and what became of it.

use corpus_api::guests::{ApplyGuestStates, GetGuestStates, GuestStates, SwitchGuestMode};
use corpus_api::jobs::JobAccepted;
use corpus_domain::{GuestState, JobKind, Mode};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::json;
use sqlx::PgConnection;

use super::{row, wrong_state};
use crate::Controller;
use crate::sagas::{guest_mode, guest_states as states_job};
use crate::store::guests::GuestRow;
use crate::store::{guest_states, guests, salt_masters};

impl Handle<GetGuestStates> for Controller {
    async fn handle(&self, permit: Permit<GetGuestStates>) -> Result<GuestStates> {
        let (who, id) = (permit.who(), permit.guest);
        let mut conn = permit.connection().await?;
        let guest = guests::get(&mut conn, id).await?.ok_or(corpus_api::Denied::NotFound)?;
        let last = guest_states::last(&mut conn, id).await?;
        let master = salt_masters::of(&mut conn, id).await?.map(|followed| followed.master);
        Ok(GuestStates {
            guest: id,
            name: guest.name,
            project: guest.project,
            environment: guest.environment,
            state: guest.state,
            mode: guest.mode,
            master,
            last,
            may_change: who.can::<SwitchGuestMode>(Some(guest.project_id)),
        })
    }
}

impl Handle<SwitchGuestMode> for Controller {
    async fn handle(&self, mut change: Change<SwitchGuestMode>) -> Result<Committed<SwitchGuestMode>> {
        let (id, mode) = (change.guest, change.mode);
        can_be_had(change.transaction().await?, mode).await?;
        let guest = self.held(&mut change, id, "Its mode is just being switched").await?;
        let follows = salt_masters::of(change.transaction().await?, id).await?;
        let job = self.queue(&mut change, guest_mode::job(&guest, mode, follows)).await?;
        let detail = json!({ "from": guest.mode, "to": mode });
        let entry = Entry::new("guest.mode", guest.name.as_str()).id(id.0);
        change.commit(entry.detail(detail), JobAccepted { job }).await
    }
}

impl Handle<ApplyGuestStates> for Controller {
    async fn handle(&self, mut change: Change<ApplyGuestStates>) -> Result<Committed<ApplyGuestStates>> {
        let (id, test) = (change.guest, change.test);
        let guest = self.held(&mut change, id, "Its states are just being applied").await?;
        let job = self.queue(&mut change, states_job::job(&guest, test)).await?;
        let entry = Entry::new("guest.states", guest.name.as_str()).id(id.0);
        change.commit(entry.detail(json!({ "test": test })), JobAccepted { job }).await
    }
}

impl Controller {
    /// A guest that runs, held until the change ends; refused while a job of these kinds is under way or waits.
    async fn held<O: crate::Ask<Kind = corpus_api::Write>>(
        &self,
        change: &mut Change<O>,
        id: corpus_domain::GuestId,
        otherwise: &str,
    ) -> Result<GuestRow> {
        self.has_salt()?;
        guests::hold(change.transaction().await?, id).await?;
        let guest = row(change, id).await?;
        if guest.state != GuestState::Running {
            return Err(wrong_state(&guest));
        }
        for kind in [JobKind::GuestMode, JobKind::GuestStates] {
            if guests::is_being(change.transaction().await?, id, kind).await? {
                return Err(Error::Conflict(format!("{otherwise}. Try again when that is done.")));
            }
        }
        Ok(guest)
    }
}

/// Refused where no guest can be managed so now.
pub(in crate::handlers) async fn can_be_had(conn: &mut PgConnection, mode: Mode) -> Result<()> {
    if mode == Mode::Mastersalt && salt_masters::pick(conn).await?.is_none() {
        return Err(Error::field("mode", "No Salt master of the controller is there: operators run one."));
    }
    Ok(())
}
