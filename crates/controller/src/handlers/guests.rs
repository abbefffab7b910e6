//! Guests as members see them. What is done to them is in the files below.

mod backup_files;
mod backup_proofs;
mod backups;
mod before_deployments;
mod environment_backups;
mod limits;
mod modes;
mod move_preview;
mod moves;
mod power;
mod preview;
pub(super) mod request;
mod secrets;
pub(super) mod settings;
mod snapshots;
#[cfg(test)]
mod tests;

use corpus_api::guests::{
    GetGuest, GetGuestLimits, Guest, GuestEnvironment, GuestLimits, GuestOrder, GuestPage, ListGuests, MoveGuest,
    StopGuest,
};
use corpus_api::names::{AttachName, ListNames};
use corpus_api::{Cursor, Denied, Operation, Write};
use corpus_domain::{GuestId, GuestState};
use corpus_gate::{Change, Error, Handle, Permit, Result};
use sqlx::PgConnection;

pub(crate) use self::before_deployments::Kept;
pub(super) use self::request::node_for;
use super::{after, lines, page};
use crate::Controller;
use crate::store::guest_storage;
use crate::store::guests::{self, GuestRow};
use crate::store::{Seen, environments, move_times, names, project_end};

/// The lists, for their cursors.
const BY_NAME: &str = "guests by name";
const NEWEST: &str = "guests, the newest first";
/// The most names that are shown with a guest.
const NAMES: i64 = 200;

impl Handle<ListGuests> for Controller {
    async fn handle(&self, permit: Permit<ListGuests>) -> Result<GuestPage> {
        let (limit, rows) = lines(permit.limit);
        let (projects, environments) = (permit.visible(), permit.environments());
        let seen = Seen { projects: projects.as_deref(), environments: environments.as_deref() };
        let (cursor, order) = (permit.cursor.as_ref(), permit.sort.unwrap_or_default());
        let mut conn = permit.connection().await?;
        let (found, next) = match order {
            GuestOrder::Name => {
                let after: Option<String> = after(cursor, BY_NAME)?;
                let found = guests::by_name(&mut conn, &permit, seen, after.as_deref(), rows).await?;
                page(found, limit, |guest| Cursor::after(BY_NAME, &guest.name))
            }
            GuestOrder::Newest => {
                let before = after(cursor, NEWEST)?;
                let found = guests::newest(&mut conn, &permit, seen, before, rows).await?;
                page(found, limit, |guest| Cursor::after(NEWEST, &guest.id))
            }
        };
        let found: Vec<GuestId> = found.into_iter().map(|guest| guest.id).collect();
        Ok(GuestPage { items: guests::lines(&mut conn, &found).await?, next })
    }
}

impl Handle<GetGuest> for Controller {
    async fn handle(&self, permit: Permit<GetGuest>) -> Result<Guest> {
        let (id, who, project) = (permit.guest, permit.who(), Some(permit.project()?));
        let mut conn = permit.connection().await?;
        let guest = guests::whole(&mut conn, id).await?.ok_or(Denied::NotFound)?;
        let of_guest = ListNames { guest: Some(id), ..ListNames::default() };
        let names = names::list(&mut conn, &of_guest, None, None, NAMES).await?;
        self.services.looked_at.note_names(names.iter().map(|name| name.id));
        self.services.looked_at.note_nodes([guest.line.node]);
        let storage = guest_storage::of_guest(&mut conn, id).await?;
        let placement = environments::on_guest(&mut conn, id).await?;
        let deployed_to = placement.map(|on| GuestEnvironment { state: on.state, is_leader: on.is_leader() });
        // Of a project that is being destroyed nothing is changed.
        let stays = project_end::leaving(&mut conn, permit.project()?).await?.is_none();
        let may_operate = stays && who.can::<StopGuest>(project);
        let may_change = stays && who.can::<AttachName>(project);
        let may_move = stays && who.can::<MoveGuest>(project) && (who.ops || guest.line.privileged.is_none());
        let last_move = move_times::last(&mut conn, id).await?;
        Ok(Guest { storage, names, deployed_to, last_move, may_operate, may_change, may_move, ..guest })
    }
}

impl Handle<GetGuestLimits> for Controller {
    async fn handle(&self, permit: Permit<GetGuestLimits>) -> Result<GuestLimits> {
        let guest = guests::get(&mut *permit.connection().await?, permit.guest).await?;
        Ok(guest.ok_or(Denied::NotFound)?.limits.into())
    }
}

/// The guest that is to be changed.
async fn row<O: Operation<Kind = Write>>(change: &mut Change<O>, id: GuestId) -> Result<GuestRow> {
    Ok(guests::get(change.transaction().await?, id).await?.ok_or(Denied::NotFound)?)
}

/// Moves a guest to a state in which a job is on it.
async fn move_guest(conn: &mut PgConnection, guest: &GuestRow, from: &[GuestState], to: GuestState) -> Result<()> {
    if guests::set_state(conn, guest.id, from, to, None).await? { Ok(()) } else { Err(wrong_state(guest)) }
}

fn wrong_state(guest: &GuestRow) -> Error {
    Error::Conflict(format!("{} is {} now; this can't be done in that state.", guest.name, guest.state))
}

/// Whether nothing is on its way with it.
fn is_settled(guest: &GuestRow) -> Result<()> {
    let settled = matches!(guest.state, GuestState::Running | GuestState::Stopped);
    if settled { Ok(()) } else { Err(wrong_state(guest)) }
}
