//! One client: who it is, and what it opens.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use russh::keys::{Algorithm, HashAlg, PublicKey};
use russh::server::{Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelOpenFailure, Pty};
use tokio_util::sync::CancellationToken;

use super::answer::attend;
use super::door::Shared;
use crate::authz::Principal;

/// The only user there is.
const USER: &str = "git";

/// A connection that was let in.
#[derive(Debug)]
pub(super) struct Member {
    /// Whose.
    pub(super) principal: Principal,
    /// The key that opened it.
    pub(super) fingerprint: String,
}

/// What is known of a client, for all who work for it.
#[derive(Debug)]
pub(super) struct Visit {
    /// Where it comes from.
    pub(super) peer: SocketAddr,
    /// Who it is, once it is let in.
    pub(super) member: OnceLock<Arc<Member>>,
    /// Cancelled when it is let in.
    pub(super) entered: CancellationToken,
    /// Cancelled when it must go, or has gone.
    pub(super) over: CancellationToken,
    /// The channels that are open.
    pub(super) channels: AtomicUsize,
    offers: AtomicU32,
}

impl Visit {
    pub(super) fn new(peer: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            peer,
            member: OnceLock::new(),
            entered: CancellationToken::new(),
            over: CancellationToken::new(),
            channels: AtomicUsize::new(0),
            offers: AtomicU32::new(0),
        })
    }
}

/// Answers what a client sends. What it asks for on a channel is done by a task of the channel's
/// own, which takes everything from it: so that nothing a client sends can block this one.
pub(super) struct Visitor {
    pub(super) shared: Arc<Shared>,
    pub(super) visit: Arc<Visit>,
}

impl Visitor {
    /// The member who has the key; none counts as a failure.
    async fn member(&self, user: &str, key: &PublicKey, algorithm: &Algorithm) -> Option<Member> {
        if user != USER || *algorithm == (Algorithm::Rsa { hash: None }) {
            return None;
        }
        let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
        match self.shared.keeper.member(&fingerprint).await {
            Ok(found) => found.map(|principal| Member { principal, fingerprint }),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "a key could not be looked up");
                None
            }
        }
    }
}

impl Handler for Visitor {
    type Error = russh::Error;

    async fn auth_publickey_offered(&mut self, user: &str, offer: PublicKeyOffer<'_>) -> Result<Auth, Self::Error> {
        if self.visit.offers.fetch_add(1, Ordering::Relaxed) >= self.shared.limits.offers {
            return Err(russh::Error::Disconnect);
        }
        let known = self.member(user, offer.public_key, offer.algorithm).await;
        Ok(if known.is_some() { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        let Some(member) = self.member(user, key.public_key, key.algorithm).await else { return Ok(Auth::reject()) };
        tracing::debug!(peer = %self.visit.peer, login = %member.principal.login, "git: let in");
        drop(self.visit.member.set(Arc::new(member)));
        self.visit.entered.cancel();
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        let open = self.visit.channels.load(Ordering::Relaxed);
        let Some(member) = self.visit.member.get().filter(|_| open < self.shared.limits.channels) else {
            reply.reject(ChannelOpenFailure::ResourceShortage).await;
            return Ok(());
        };
        self.visit.channels.fetch_add(1, Ordering::Relaxed);
        let (shared, visit, member) = (Arc::clone(&self.shared), Arc::clone(&self.visit), Arc::clone(member));
        tokio::spawn(async move {
            // What is dropped here closes the channel, and the guest's side of it.
            tokio::select! {
                biased;
                () = visit.over.cancelled() => {}
                () = attend(&shared, &member, channel) => {}
            }
            visit.channels.fetch_sub(1, Ordering::Relaxed);
        });
        reply.accept().await;
        Ok(())
    }

    // Requests that lead to an answer in words succeed, so that the client reads them; all others fail.

    async fn exec_request(&mut self, id: ChannelId, _: &[u8], session: &mut Session) -> Result<(), Self::Error> {
        session.channel_success(id)
    }

    async fn shell_request(&mut self, id: ChannelId, session: &mut Session) -> Result<(), Self::Error> {
        session.channel_success(id)
    }

    async fn subsystem_request(&mut self, id: ChannelId, _: &str, session: &mut Session) -> Result<(), Self::Error> {
        session.channel_success(id)
    }

    async fn env_request(&mut self, id: ChannelId, _: &str, _: &str, session: &mut Session) -> Result<(), Self::Error> {
        session.channel_failure(id)
    }

    async fn pty_request(
        &mut self,
        id: ChannelId,
        _: &str,
        _: u32,
        _: u32,
        _: u32,
        _: u32,
        _: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        // There is none: but some clients leave without reading the answer when it is refused.
        session.channel_success(id)
    }

    async fn x11_request(
        &mut self,
        id: ChannelId,
        _: bool,
        _: &str,
        _: &str,
        _: u32,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(id)
    }
}
