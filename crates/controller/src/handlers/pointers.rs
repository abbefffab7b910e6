//! The name that the address of a guest points back to.

use corpus_api::Denied;
use corpus_api::jobs::JobAccepted;
use corpus_api::names::PointGuest;
use corpus_domain::{DnsName, DnsNameId, GuestId, GuestState, NameState, NodeAddress, NodeId, ProjectId};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use serde_json::json;
use sqlx::PgConnection;

use crate::Controller;
use crate::dns::reverse;
use crate::sagas::guest_point;
use crate::store::names::NameRow;
use crate::store::pointers::{self, PointedName};
use crate::store::{guests, names, zones};

impl Handle<PointGuest> for Controller {
    async fn handle(&self, mut change: Change<PointGuest>) -> Result<Committed<PointGuest>> {
        let (id, wanted, project) = (change.guest, change.name, change.project()?);
        self.dns()?;
        let tx = change.transaction().await?;
        let guest = guests::get(tx, id).await?.ok_or(Denied::NotFound)?;
        if matches!(guest.state, GuestState::Creating | GuestState::Destroying | GuestState::Failed) {
            return Err(Error::Conflict(format!(
                "{} is {}; its address can point to a name once it is there.",
                guest.name, guest.state
            )));
        }
        let Some(address) = guest.ip else {
            return Err(Error::Conflict(format!("{} has no address.", guest.name)));
        };
        let to = match wanted {
            Some(name) => Some(may_be_said(tx, (id, project), name).await?),
            None => None,
        };
        if to.is_some() && pointers::is_of_node(tx, &address.to_string()).await? {
            return Err(Error::Conflict(format!(
                "{address} is the address of a node as well: it points to the node's own name."
            )));
        }
        let from = pointers::of_guest(tx, id).await?;
        if to.is_none() && from.is_none() {
            return Err(Error::Conflict(format!("The address of {} points to no name.", guest.name)));
        }
        // Guests of several nodes may have one address; whose the other one is, is nothing for strangers to know of.
        let taken = format!("{address} points to a name of another guest that has this address, on another node.");
        let leads = pointers::point(tx, id, wanted).await.map_err(|error| Error::taken(error, "name", taken))?;
        if !leads {
            return Err(Denied::NotFound.into());
        }
        let to = to.map(|to| PointedName {
            id: to.id,
            name: to.name,
            address: address.to_string(),
            zone: None,
            problem: None,
        });
        let detail = json!({
            "address": address,
            "name": to.as_ref().map(|to| &to.name),
            "before": from.as_ref().map(|from| &from.name),
        });
        let job = self.queue(&mut change, guest_point::job(&guest, address, from, to)).await?;
        let entry = Entry::new("guest.point", guest.name.as_str()).id(id.0).detail(detail);
        change.commit(entry, JobAccepted { job }).await
    }
}

/// A name that the address of a guest may say: one that leads to it, in a zone of ours that takes names of the project
/// still.
async fn may_be_said(
    conn: &mut PgConnection,
    (guest, project): (GuestId, ProjectId),
    id: DnsNameId,
) -> Result<NameRow> {
    let name = names::get(conn, id).await?.filter(|name| name.guest_id == guest);
    let name = name.ok_or_else(|| Error::field("name", "It is no name that leads to this guest."))?;
    let why = if name.wildcard {
        "is all names below one: an address points to a name that is one".to_owned()
    } else if name.state != NameState::Attached {
        format!("is {}; an address can point to it once it is attached", name.state)
    } else if let Some(target) = &name.alias_of {
        format!("is an alias: an address points to the name itself, {}", target.name)
    } else if name.held.is_none() {
        "is of a zone that others hold, who may have it lead elsewhere at any time".to_owned()
    } else if !zones::holding(conn, &name.name, project).await?.is_some_and(|zone| zone.takes) {
        "is in a zone that takes no names of this project any more".to_owned()
    } else {
        return Ok(name);
    };
    Err(Error::field("name", format!("{} {why}.", name.name)))
}

/// Nodes, besides this one, with addresses that no reverse zone of ours holds; all or only this one. A zone holds the network
/// of a node as a whole, or has to be looked at address by address.
pub(super) async fn lost_at(
    conn: &mut PgConnection,
    besides: NodeId,
    only: Option<NodeId>,
) -> Result<Vec<NodeAddress>> {
    let nodes = pointers::networks(&mut *conn, besides, only).await?;
    let reversed = nodes.into_iter().filter_map(|(node, network)| Some((node, reverse(network.gateway().into())?)));
    let (nodes, names): (Vec<NodeAddress>, Vec<DnsName>) = reversed.unzip();
    let held = zones::are_held(conn, &names).await?;
    Ok(nodes.into_iter().zip(held).filter(|(_, held)| !held).map(|(node, _)| node).collect())
}
