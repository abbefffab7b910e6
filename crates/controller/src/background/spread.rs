//! Where names lead whose guests are on several nodes.
//!
//! Such a name has the addresses of all these nodes, and that changes without anybody asking for it: a guest joins or
//! leaves on another node, or a node is lost. The database notes the names that such a change is about; every few seconds
//! what these should lead to is compared with what they were last said to, by whichever server comes first, and what differs
//! is written. A node that does not answer is left out
//! while another one serves, and is back when it answers: browsers go on to the next address by themselves, but only after
//! a while.
//!
//! Names that were switched to other nodes are taken from the former ones here too, once resolvers have forgotten these, and
//! so are those of guests that were moved.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::store::spread::Noted;
use crate::store::{moves, name_switches, spread};
use crate::{Controller, Result};

/// How often it is compared.
const INTERVAL: Duration = Duration::from_secs(3);
/// Names that are written at a look.
const AT_ONCE: i64 = 200;

impl Controller {
    /// Compares and writes until `stop`.
    pub(crate) async fn spread_names(self, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(INTERVAL) => {}
            }
            if let Err(error) = self.spread_all().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "where names lead could not be compared");
            }
            if let Err(error) = self.end_switches().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "names could not be taken from their former nodes"
                );
            }
        }
    }

    /// Brings the names that were noted to where they should lead; one that fails is tried again, and keeps no other from it.
    pub(crate) async fn spread_all(&self) -> Result<()> {
        let noted = spread::noted(&mut *self.services.db.acquire().await?, AT_ONCE).await?;
        let mut done = Vec::new();
        for Noted { name, notes, is_due } in noted {
            match if is_due { self.services.spread(name).await } else { Ok(()) } {
                Ok(()) => done.extend(notes),
                Err(error) => {
                    tracing::warn!(name.id = %name, error = &error as &dyn std::error::Error, "a name does not lead to all of its nodes");
                }
            }
        }
        if !done.is_empty() {
            spread::forget(&mut *self.services.db.acquire().await?, &done).await?;
        }
        Ok(())
    }

    /// Ends the switches and moves whose former nodes nobody is sent to any more; the nodes are told with what else they missed.
    pub(crate) async fn end_switches(&self) -> Result<()> {
        let over = name_switches::over(&mut *self.services.db.acquire().await?, AT_ONCE).await?;
        for name in over {
            let mut tx = self.services.begin().await?;
            name_switches::end(&mut tx, name).await?;
            tx.commit().await?;
        }
        let over = moves::over(&mut *self.services.db.acquire().await?, AT_ONCE).await?;
        for guest in over {
            let mut tx = self.services.begin().await?;
            moves::end(&mut tx, guest).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}
