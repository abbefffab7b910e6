//! One client: who it is, and what it opens.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use russh::keys::{Algorithm, HashAlg, PublicKey};
use russh::server::{self, Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelOpenFailure, Pty};
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::backend::Member;
use crate::exec::serve_channel;
use crate::grant::{Grant, Revocation};
use crate::quota::ConnectionSlot;
use crate::server::Shared;

/// The only user there is.
const USER: &str = "git";

/// Who a connection was authenticated as.
#[derive(Debug)]
pub(crate) struct Identity {
    /// The member, as they were then: what is asked for later is decided anew.
    pub(crate) member: Member,
    /// The key that opened the connection.
    pub(crate) fingerprint: String,
}

/// What is known of a client, for all who work for it.
#[derive(Debug)]
pub(crate) struct Session {
    /// Where it comes from.
    pub(crate) peer: SocketAddr,
    /// Who it is, once it is authenticated.
    pub(crate) identity: OnceLock<Arc<Identity>>,
    /// Cancelled when it is authenticated.
    pub(crate) authenticated: CancellationToken,
    /// Cancelled when it must go, or has gone.
    pub(crate) closed: CancellationToken,
    /// The channels that are open.
    pub(crate) channels: AtomicUsize,
    /// Why it is not served, if so; each channel is told.
    pub(crate) rejection: OnceLock<String>,
    /// Taken when the key is no member's any more, and with it all that its channels do.
    pub(crate) revocation: Revocation,
    grants: Mutex<Grants>,
    slot: OnceLock<ConnectionSlot>,
    offered_keys: AtomicU32,
}

/// What channels were permitted to do.
#[derive(Debug, Default)]
struct Grants {
    current: Vec<Arc<Grant>>,
    last: Option<Access>,
}

impl Session {
    pub(crate) fn new(peer: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            peer,
            identity: OnceLock::new(),
            authenticated: CancellationToken::new(),
            closed: CancellationToken::new(),
            channels: AtomicUsize::new(0),
            rejection: OnceLock::new(),
            revocation: Revocation::default(),
            grants: Mutex::default(),
            slot: OnceLock::new(),
            offered_keys: AtomicU32::new(0),
        })
    }

    /// What its channels do now.
    pub(crate) fn grants(&self) -> Vec<Arc<Grant>> {
        self.lock().current.clone()
    }

    /// What was done by it last, if nothing is done now.
    pub(crate) fn last_access(&self) -> Option<Access> {
        let grants = self.lock();
        grants.last.clone().filter(|_| grants.current.is_empty())
    }

    /// One more that a channel does, until it is [released](Self::release).
    pub(crate) fn grant(&self, access: Access) -> Arc<Grant> {
        let grant = Arc::new(Grant::new(access));
        self.lock().current.push(Arc::clone(&grant));
        grant
    }

    /// One less.
    pub(crate) fn release(&self, grant: &Arc<Grant>) {
        let mut grants = self.lock();
        grants.current.retain(|one| !Arc::ptr_eq(one, grant));
        grants.last = Some(grant.access.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers what a client sends. What it asks for on a channel is done by a task of the channel's
/// own, which takes everything from it: so that nothing a client sends can block this one.
pub(crate) struct SessionHandler {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: Arc<Session>,
}

impl SessionHandler {
    /// The member who has the key; none counts as a failure.
    async fn identify(&self, user: &str, key: &PublicKey, algorithm: &Algorithm) -> Option<Identity> {
        if user != USER || *algorithm == (Algorithm::Rsa { hash: None }) {
            return None;
        }
        let fingerprint = key.fingerprint(HashAlg::Sha256).to_string();
        match self.shared.backend.member(&fingerprint).await {
            Ok(found) => found.map(|member| Identity { member, fingerprint }),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "git: a key could not be looked up");
                None
            }
        }
    }
}

impl Handler for SessionHandler {
    type Error = russh::Error;

    async fn auth_publickey_offered(&mut self, user: &str, offer: PublicKeyOffer<'_>) -> Result<Auth, Self::Error> {
        if self.session.offered_keys.fetch_add(1, Ordering::Relaxed) >= self.shared.limits.offered_keys {
            return Err(russh::Error::Disconnect);
        }
        let known = self.identify(user, offer.public_key, offer.algorithm).await;
        Ok(if known.is_some() { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_publickey(&mut self, user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        let Some(identity) = self.identify(user, key.public_key, key.algorithm).await else {
            return Ok(Auth::reject());
        };
        let (session, member) = (&self.session, &identity.member);
        tracing::debug!(peer = %session.peer, login = %member.login, "git: authenticated");
        match self.shared.quotas.connect(member.id, session.peer.ip()) {
            Ok(slot) => drop(session.slot.set(slot)),
            Err(exceeded) => drop(session.rejection.set(exceeded.to_string())),
        }
        drop(session.identity.set(Arc::new(identity)));
        self.shared.sessions.add(session);
        session.authenticated.cancel();
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut server::Session,
    ) -> Result<(), Self::Error> {
        let open = self.session.channels.load(Ordering::Relaxed);
        let Some(identity) = self.session.identity.get().filter(|_| open < self.shared.limits.channels) else {
            reply.reject(ChannelOpenFailure::ResourceShortage).await;
            return Ok(());
        };
        self.session.channels.fetch_add(1, Ordering::Relaxed);
        let (shared, session, identity) = (Arc::clone(&self.shared), Arc::clone(&self.session), Arc::clone(identity));
        tokio::spawn(async move {
            // What is dropped here closes the channel, and the guest's side of it.
            tokio::select! {
                biased;
                () = session.closed.cancelled() => {}
                () = serve_channel(&shared, &session, &identity, channel) => {}
            }
            session.channels.fetch_sub(1, Ordering::Relaxed);
        });
        reply.accept().await;
        Ok(())
    }

    // Requests that lead to an answer in words succeed, so that the client reads them; all others fail.

    async fn exec_request(
        &mut self,
        id: ChannelId,
        _: &[u8],
        session: &mut server::Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(id)
    }

    async fn shell_request(&mut self, id: ChannelId, session: &mut server::Session) -> Result<(), Self::Error> {
        session.channel_success(id)
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        _: &str,
        session: &mut server::Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(id)
    }

    async fn env_request(
        &mut self,
        id: ChannelId,
        _: &str,
        _: &str,
        session: &mut server::Session,
    ) -> Result<(), Self::Error> {
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
        session: &mut server::Session,
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
        session: &mut server::Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(id)
    }
}
