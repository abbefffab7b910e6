//! Guests that are to leave a node: a few at a time of each node are sent on their way, by one server at a time. And what a
//! lost node has of guests that went on elsewhere: when it comes back they are stopped there, before they do what they do
//! elsewhere for long, and removed once somebody wants that.

use std::time::Duration;

use corpus_domain::{Door, GuestId, GuestName, NodeId};
use corpus_gate::audit::Entry;
use corpus_protocol::Request;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::turns::Turn;
use crate::nodes::Call;
use crate::store::audit::{self, Author};
use crate::store::{leaving, nodes};
use crate::{Controller, Error, Result};

/// The lease outlives what one may wait for ([`LIMIT`]).
const TURN: Turn = Turn {
    lease: "leaving",
    every: Duration::from_secs(3),
    lasts: Duration::from_mins(3),
    failed: "guests could not be had to leave their nodes",
};
/// How long a node may take to stop or remove one.
const LIMIT: Duration = Duration::from_mins(2);

impl Controller {
    /// Has guests leave until `stop`.
    pub(super) async fn have_guests_leave(self, stop: CancellationToken) {
        self.take_turns(&TURN, stop, |it| async move { it.have_due_guests_leave().await }).await;
    }

    /// Sends those on their way whose turn it is, and clears what was left behind, if it is this server's turn.
    pub(crate) async fn have_due_guests_leave(&self) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        if !self.has_turn(&mut conn, &TURN).await? {
            return Ok(());
        }
        leaving::settle(&mut conn).await?;
        let (due, left) = (leaving::due(&mut conn).await?, leaving::take_to_clear(&mut conn).await?);
        drop(conn);
        // What fails for one is no reason to forget the others.
        for guest in due {
            if let Err(error) = self.have_leave(guest).await {
                tracing::warn!(%guest, error = &error as &dyn std::error::Error, "a guest could not be had to leave");
            }
        }
        let mut clearing = JoinSet::new();
        for (node, guest, name, removing) in left {
            let controller = self.clone();
            clearing.spawn(async move {
                if let Err(error) = controller.clear(node, (guest, name), removing).await {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(node.id = %node, %guest, error, "what a guest left behind could not be stopped or removed");
                }
            });
        }
        while clearing.join_next().await.is_some() {}
        Ok(())
    }

    async fn clear(&self, node: NodeId, (guest, name): (GuestId, GuestName), removing: bool) -> Result<()> {
        let mut conn = self.services.db.acquire().await?;
        let row = nodes::get(&mut conn, node).await?;
        drop(conn);
        let Some(endpoint) = row.and_then(|row| row.endpoint().ok()) else { return Ok(()) };
        let request = if removing {
            Request::EnsureAbsent { name: name.clone(), id: Some(guest) }
        } else {
            Request::EnsureResting { name: name.clone(), id: guest }
        };
        self.services.nodes.call(&endpoint, Call::new(request, LIMIT).observing(), drop).await.map_err(|error| {
            let message = format!("{} did not clear what {name} left there", endpoint.address);
            Error::Unavailable { message, source: Box::new(error) }
        })?;
        let mut tx = self.services.begin().await?;
        let action = if removing {
            leaving::forget(&mut tx, node, guest).await?;
            "node.left-behind.removed"
        } else {
            leaving::rests(&mut tx, node, guest).await?;
            "node.left-behind.stopped"
        };
        let entry = Entry::new(action, name.as_str()).id(guest.0).detail(json!({ "node": endpoint.address }));
        audit::write(&mut tx, Author::new(None, "corpus", Door::Corpus), entry).await?;
        Ok(tx.commit().await?)
    }
}
