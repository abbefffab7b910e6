//! What would come of a request for a guest: the rules of the request, without its locks.

use corpus_api::guests::{GuestPreview, PreviewGuest, PreviewedNode};
use corpus_api::{Denied, Wrong};
use corpus_domain::{GuestName, Room};
use corpus_gate::{Error, Handle, Permit, Result};
use sqlx::PgConnection;

use super::super::profiles;
use super::request::{making, more, no_node, quota_field, supported};
use crate::store::nodes::Node;
use crate::store::{guests, nodes, room};
use crate::{Controller, quotas, store};

impl Handle<PreviewGuest> for Controller {
    async fn handle(&self, permit: Permit<PreviewGuest>) -> Result<GuestPreview> {
        let mut conn = permit.connection().await?;
        let mut wrong = Vec::new();
        if let Some(name) = &permit.name {
            note(&mut wrong, self.may_have_name(&mut conn, &permit, name).await)?;
        }
        let asked = permit.request(NAMELESS.parse()?);
        let mut request = match note(&mut wrong, profiles::filled(&mut conn, asked.clone()).await)? {
            Some(filled) => filled,
            None => asked,
        };
        let judged = making(&mut conn, &request).await;
        let making = if let Some(making) = note(&mut wrong, judged)? {
            making
        } else {
            // What is wrong with its backing is said; the rest is judged as if none were asked for.
            request.backing = None;
            making(&mut conn, &request).await?
        };
        note(&mut wrong, supported(&mut conn, &making).await)?;
        note(&mut wrong, self.image(&mut conn, (&request, permit.project()?)).await)?;
        let quota = store::quotas::get(&mut conn, permit.project()?).await?.ok_or(Denied::NotFound)?;
        let beyond = quotas::beyond(&quota, more(&request, making.needed));
        note(&mut wrong, quotas::refuse(&beyond, permit.who().ops, quota_field))?;
        let node = note(&mut wrong, place(&mut conn, making.placed(permit.environment, permit.node)).await)?;
        let Room { memory, cpu_millis, storage } = making.needed;
        Ok(GuestPreview { wrong, node, memory, cpu_millis, storage, quota })
    }
}

/// What a guest is called whose name was not typed yet.
const NAMELESS: &str = "unnamed.invalid";

impl Controller {
    async fn may_have_name(
        &self,
        conn: &mut PgConnection,
        permit: &Permit<PreviewGuest>,
        name: &GuestName,
    ) -> Result<()> {
        self.is_free_for_guest(conn, &permit.who(), permit.project()?, name).await?;
        if guests::is_there(conn, name).await? {
            return Err(Error::field("name", format!("{name} is taken already; choose another name.")));
        }
        Ok(())
    }
}

/// Keeps what is wrong with a field; what fails otherwise, fails.
fn note<T>(wrong: &mut Vec<Wrong>, judged: Result<T>) -> Result<Option<T>> {
    match judged {
        Ok(good) => Ok(Some(good)),
        Err(Error::Field { field, message, .. }) => {
            wrong.push(Wrong::new(field, corpus_gate::sentence(&message)));
            Ok(None)
        }
        Err(Error::Fields(all)) => {
            wrong.extend(all);
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

async fn place(conn: &mut PgConnection, wanted: room::Wanted) -> Result<PreviewedNode> {
    let Some(id) = room::pick(conn, wanted).await? else {
        return Err(no_node(&nodes::list(conn, wanted.only).await?, wanted));
    };
    let node = nodes::get(conn, id).await?.ok_or(Denied::NotFound)?;
    let fits = fits(&node, wanted);
    let why = match wanted.only {
        Some(_) => "You chose it.",
        None => "It has room for the most guests like this one.",
    };
    Ok(PreviewedNode { id, address: node.address, fits, why: why.to_owned() })
}

/// How many such guests a node has room for.
fn fits(node: &Node, wanted: room::Wanted) -> u64 {
    let slots = u64::from(node.slots.saturating_sub(node.guests));
    node.free_on(wanted.backing).map_or(slots, |free| free.holds(wanted.needed).min(slots))
}
