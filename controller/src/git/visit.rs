//! One client: who it is, and what it opens.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use russh::keys::{Algorithm, HashAlg, PublicKey};
use russh::server::{Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelOpenFailure, Pty};
use tokio_util::sync::CancellationToken;

use super::answer::attend;
use super::door::Shared;
use super::grant::{Grant, Revocation};
use super::seats::Seat;
use crate::ops::{GitAccess, KeyHolder};

/// The only user there is.
const USER: &str = "git";

/// A connection that was let in.
#[derive(Debug)]
pub(super) struct Member {
    /// Whose, as it was when it was let in: what is asked for later is decided anew.
    pub(super) holder: KeyHolder,
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
    /// Why it is not served, if so; each channel is told.
    pub(super) turned_away: OnceLock<String>,
    /// Taken when the key is no member's any more, and with it all that its channels do.
    pub(super) revocation: Revocation,
    granted: Mutex<Granted>,
    seat: OnceLock<Seat>,
    offers: AtomicU32,
}

/// What channels were let do.
#[derive(Debug, Default)]
struct Granted {
    now: Vec<Arc<Grant>>,
    last: Option<GitAccess>,
}

impl Visit {
    pub(super) fn new(peer: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            peer,
            member: OnceLock::new(),
            entered: CancellationToken::new(),
            over: CancellationToken::new(),
            channels: AtomicUsize::new(0),
            turned_away: OnceLock::new(),
            revocation: Revocation::default(),
            granted: Mutex::default(),
            seat: OnceLock::new(),
            offers: AtomicU32::new(0),
        })
    }

    /// What its channels do now.
    pub(super) fn grants(&self) -> Vec<Arc<Grant>> {
        self.granted().now.clone()
    }

    /// What was done by it last, if nothing is done now.
    pub(super) fn did_last(&self) -> Option<GitAccess> {
        let granted = self.granted();
        granted.last.clone().filter(|_| granted.now.is_empty())
    }

    /// One more that a channel does, until it is [released](Self::release).
    pub(super) fn grant(&self, access: GitAccess) -> Arc<Grant> {
        let grant = Arc::new(Grant::new(access));
        self.granted().now.push(Arc::clone(&grant));
        grant
    }

    /// One less.
    pub(super) fn release(&self, grant: &Arc<Grant>) {
        let mut granted = self.granted();
        granted.now.retain(|one| !Arc::ptr_eq(one, grant));
        granted.last = Some(grant.access.clone());
    }

    fn granted(&self) -> MutexGuard<'_, Granted> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
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
        match self.shared.keeper.holders(std::slice::from_ref(&fingerprint)).await {
            Ok(mut found) => found.remove(&fingerprint).map(|holder| Member { holder, fingerprint }),
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
        tracing::debug!(peer = %self.visit.peer, login = %member.holder.principal.login, "git: let in");
        match self.shared.seats.sit(member.holder.principal.id, self.visit.peer.ip()) {
            Ok(seat) => drop(self.visit.seat.set(seat)),
            Err(full) => drop(self.visit.turned_away.set(full.to_string())),
        }
        drop(self.visit.member.set(Arc::new(member)));
        self.shared.open.add(&self.visit);
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
                () = attend(&shared, &visit, &member, channel) => {}
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
