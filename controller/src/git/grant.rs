//! What a connection and its channels were let do, and that they may not any more.
//!
//! A right is asked for at each request, and again every few seconds as long as the request runs;
//! see [`recheck`](super::recheck). Who loses it is told why on the channel, which then ends.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

use crate::ops::GitAccess;

/// Cancelled with a reason; what hangs on it is cancelled with it.
#[derive(Debug, Default)]
pub(super) struct Revocation {
    token: CancellationToken,
    why: OnceLock<String>,
}

impl Revocation {
    /// Takes the right; the first reason counts.
    pub(super) fn revoke(&self, why: impl Into<String>) {
        drop(self.why.set(why.into()));
        self.token.cancel();
    }

    /// The reason, as soon as it is taken.
    pub(super) async fn revoked(&self) -> String {
        self.token.cancelled().await;
        self.why.get().cloned().unwrap_or_default()
    }
}

/// What a channel does by the right of its connection's member.
#[derive(Debug)]
pub(super) struct Grant {
    /// What it does.
    pub(super) access: GitAccess,
    own: Revocation,
}

impl Grant {
    pub(super) fn new(access: GitAccess) -> Self {
        Self { access, own: Revocation::default() }
    }

    /// Takes this right, and leaves the connection as it is.
    pub(super) fn revoke(&self, why: impl Into<String>) {
        self.own.revoke(why);
    }

    /// The reason, as soon as this right or the whole `connection` is taken.
    pub(super) async fn revoked(&self, connection: &Revocation) -> String {
        tokio::select! {
            biased;
            why = connection.revoked() => why,
            why = self.own.revoked() => why,
        }
    }
}
