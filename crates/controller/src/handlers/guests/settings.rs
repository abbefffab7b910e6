//! What of a guest is changed later: whether it starts at boot, and the lines of its configuration, of those that operators
//! allow.

use corpus_api::Denied;
use corpus_api::guests::{GetGuestSettings, GuestConf, GuestSettings, RequestGuest, SetGuestSettings};
use corpus_api::jobs::JobAccepted;
use corpus_api::lxc_lines::{SetTwice, set_twice};
use corpus_domain::{GuestId, JobKind, LxcLineName};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Permit, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;

use super::{is_settled, row};
use crate::sagas::guest_configure;
use crate::store::guests;
use crate::store::lxc_lines::{self, Settings};
use crate::{Controller, changed};

impl Handle<GetGuestSettings> for Controller {
    async fn handle(&self, permit: Permit<GetGuestSettings>) -> Result<GuestSettings> {
        now(&mut *permit.connection().await?, permit.guest).await
    }
}

impl Handle<SetGuestSettings> for Controller {
    async fn handle(&self, mut change: Change<SetGuestSettings>) -> Result<Committed<SetGuestSettings>> {
        let (id, asked) = (change.guest, change.operation());
        let to = GuestSettings::of(asked.autostart, asked.conf.to_vec());
        guests::hold(change.transaction().await?, id).await?;
        let guest = row(&mut change, id).await?;
        is_settled(&guest)?;
        let tx = change.transaction().await?;
        if guests::is_being(tx, id, JobKind::GuestConfigure).await? {
            let message =
                format!("The settings of {} are just being changed. Try again when that is done.", guest.name);
            return Err(Error::Conflict(message));
        }
        let was = now(tx, id).await?;
        if asked.version != was.version {
            return Err(changed::by_others(tx, "guest.configure", id.0, told).await);
        }
        if to == was {
            return Err(Error::field("autostart", "These are its settings already: change one of them."));
        }
        can_be_had(tx, &to.conf).await?;
        lxc_lines::set_settings(tx, id, &Settings { autostart: to.autostart, conf: to.conf.clone() }).await?;
        let from = Settings { autostart: was.autostart, conf: was.conf.clone() };
        let job = self.queue(&mut change, guest_configure::job(&guest, from)).await?;
        let entry = Entry::new("guest.configure", guest.name.as_str()).id(id.0);
        change.commit(entry.detail(json!({ "from": was.text(), "to": to.text() })), JobAccepted { job }).await
    }
}

async fn now(conn: &mut PgConnection, id: GuestId) -> Result<GuestSettings> {
    let Settings { autostart, conf } = lxc_lines::settings(conn, id).await?.ok_or(Denied::NotFound)?;
    Ok(GuestSettings::of(autostart, conf))
}

/// Keeps the lines that a guest is asked for with.
pub(in crate::handlers) async fn begin(conn: &mut PgConnection, id: GuestId, wanted: &RequestGuest) -> Result<()> {
    if wanted.conf.is_empty() {
        return Ok(());
    }
    can_be_had(conn, &wanted.conf).await?;
    let settings = Settings { autostart: wanted.autostart, conf: wanted.conf.to_vec() };
    Ok(lxc_lines::set_settings(conn, id, &settings).await?)
}

/// The lines of a request, and of those of its profile the ones whose keys it says nothing of.
pub(in crate::handlers) async fn with_those_of(
    conn: &mut PgConnection,
    profile: &[LxcLineName],
    wanted: &GuestConf,
) -> Result<GuestConf> {
    let said = lxc_lines::named(conn, wanted).await?;
    let usual = lxc_lines::named(conn, profile).await?;
    let more = usual.into_iter().filter(|line| !said.iter().any(|one| one.key == line.key)).map(|line| line.name);
    let all: Vec<LxcLineName> = wanted.iter().cloned().chain(more).collect();
    GuestConf::try_from(all).map_err(|message| Error::field("conf", message))
}

/// Refused where operators allow no such line, and where two of them set the same.
pub(in crate::handlers) async fn can_be_had(conn: &mut PgConnection, names: &[LxcLineName]) -> Result<()> {
    let lines = lxc_lines::named(conn, names).await?;
    if let Some(unknown) = names.iter().find(|name| !lines.iter().any(|line| line.name == **name)) {
        return Err(Error::field("conf", format!("Operators allow no line {unknown}.")));
    }
    match set_twice(&lines) {
        Some(SetTwice { key, lines: [one, other] }) => {
            Err(Error::field("conf", format!("Both {one} and {other} set {key}: choose one of them.")))
        }
        None => Ok(()),
    }
}

/// What a change of them was.
fn told(detail: &Value) -> Option<String> {
    changed::parts([("what it is", changed::read::<String>(detail, "from")?, changed::read::<String>(detail, "to")?)])
}
