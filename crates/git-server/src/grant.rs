//! What a connection and its channels were permitted to do, and that they may not any more.
//!
//! A right is asked for at each request, and again every few seconds as long as the request runs;
//! see [`recheck`](crate::recheck). Who loses it is told why on the channel, which then ends.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

use crate::access::Access;

/// Cancelled with a reason; what hangs on it is cancelled with it.
#[derive(Debug, Default)]
pub(crate) struct Revocation {
    token: CancellationToken,
    reason: OnceLock<String>,
}

impl Revocation {
    /// Takes the right; the first reason counts.
    pub(crate) fn revoke(&self, reason: impl Into<String>) {
        drop(self.reason.set(reason.into()));
        self.token.cancel();
    }

    /// The reason, as soon as it is taken.
    pub(crate) async fn revoked(&self) -> String {
        self.token.cancelled().await;
        self.reason.get().cloned().unwrap_or_default()
    }
}

/// What a channel does by the right of its connection's member.
#[derive(Debug)]
pub(crate) struct Grant {
    /// What it does.
    pub(crate) access: Access,
    own: Revocation,
}

impl Grant {
    pub(crate) fn new(access: Access) -> Self {
        Self { access, own: Revocation::default() }
    }

    /// Takes this right, and leaves the connection as it is.
    pub(crate) fn revoke(&self, reason: impl Into<String>) {
        self.own.revoke(reason);
    }

    /// The reason, as soon as this right or the whole `connection` is taken.
    pub(crate) async fn revoked(&self, connection: &Revocation) -> String {
        tokio::select! {
            biased;
            reason = connection.revoked() => reason,
            reason = self.own.revoked() => reason,
        }
    }
}
