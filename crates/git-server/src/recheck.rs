//! Asking again, as long as connections are open, whether their members may still do what they do.
//!
//! All connections of a server together are one question a round, however many they are. A key
//! that was removed, an account that was disabled and sessions that were ended take the whole
//! connection; a role that was lost, or a project that was destroyed, takes the pushes and fetches
//! it was for, and the connection if that was the last it did. While the backend does not answer
//! nobody loses anything, and nobody begins anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::time::{sleep, timeout};

use crate::access::Access;
use crate::backend::{Backend, Standing};
use crate::exec::KEY_REVOKED;
use crate::limits::Limits;
use crate::session::Session;

/// The connections that were authenticated.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Vec<Weak<Session>>>);

impl Sessions {
    /// One more; it is forgotten when it has ended.
    pub(crate) fn add(&self, session: &Arc<Session>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(session));
    }

    fn all(&self) -> Vec<Arc<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }
}

/// Asks again and again, for ever.
pub(crate) async fn recheck(sessions: &Sessions, backend: &dyn Backend, limits: &Limits) {
    loop {
        sleep(limits.recheck).await;
        let sessions = sessions.all();
        if sessions.is_empty() {
            continue;
        }
        let used = used_keys(&sessions);
        match timeout(limits.recheck, backend.recheck(&used)).await {
            Ok(Ok(standings)) => sessions.iter().for_each(|session| judge(session, &used, &standings)),
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "git: open connections could not be looked at");
            }
            Err(_) => tracing::warn!("git: open connections could not be looked at: the backend does not answer"),
        }
    }
}

/// Keys, each with all that is done, or was done last, by its connections.
type UsedKeys = BTreeMap<String, BTreeSet<Access>>;

fn used_keys(sessions: &[Arc<Session>]) -> UsedKeys {
    let mut used = UsedKeys::new();
    for session in sessions {
        let Some(identity) = session.identity.get() else { continue };
        let running = session.grants().into_iter().map(|grant| grant.access.clone());
        used.entry(identity.fingerprint.clone()).or_default().extend(running.chain(session.last_access()));
    }
    used
}

/// Takes from a connection what it has lost. What it began since the backend was asked was decided
/// just then, and waits for the next round.
fn judge(session: &Session, asked: &UsedKeys, standings: &BTreeMap<String, Standing>) {
    let Some(identity) = session.identity.get() else { return };
    let login = &identity.member.login;
    let standing = standings.get(&identity.fingerprint).filter(|now| now.member.id == identity.member.id);
    let Some(standing) = standing else {
        tracing::info!(%login, "git: a key was taken away; its connection ends");
        return session.revocation.revoke(KEY_REVOKED);
    };
    if standing.member.epoch != identity.member.epoch {
        tracing::info!(%login, "git: the sessions of a member were ended; a connection ends");
        return session.revocation.revoke("your sessions were ended; connect again");
    }
    let is_lost = |access: &Access| {
        let asked = asked.get(&identity.fingerprint).is_some_and(|asked| asked.contains(access));
        asked && !standing.permitted.contains(access)
    };
    for grant in session.grants().iter().filter(|grant| is_lost(&grant.access)) {
        let reason = loss(&grant.access);
        tracing::info!(%login, reason, "git: a right was taken away; a channel ends");
        grant.revoke(reason);
    }
    if let Some(access) = session.last_access().filter(is_lost) {
        let reason = loss(&access);
        tracing::info!(%login, reason, "git: a right was taken away; an idle connection ends");
        session.revocation.revoke(reason);
    }
}

/// What the person is told whose right was taken.
fn loss(access: &Access) -> String {
    format!("you may not {} {} any more", access.verb(), access.path)
}

#[cfg(test)]
mod tests {
    use corpus_domain::{Environment, GitService, ProjectId, Repository, UserId};
    use futures::FutureExt;
    use uuid::Uuid;

    use super::*;
    use crate::access::RepositoryPath;
    use crate::backend::Member;
    use crate::session::Identity;

    fn access(service: GitService) -> Access {
        let project = "shop".parse().unwrap();
        let path = RepositoryPath { project, environment: Environment::Prod, repository: Repository::Project };
        Access { project: ProjectId(Uuid::nil()), path, service }
    }

    #[test]
    fn only_what_was_asked_about_is_lost() {
        let session = Session::new(([127, 0, 0, 1], 1).into());
        let member = Member { id: UserId(Uuid::nil()), login: "mia".parse().unwrap(), epoch: 0 };
        let identity = Identity { member: member.clone(), fingerprint: "SHA256:key".to_owned() };
        session.identity.set(Arc::new(identity)).unwrap();
        let before = session.grant(access(GitService::ReceivePack));
        let asked = used_keys(&[Arc::clone(&session)]);
        let since = session.grant(access(GitService::UploadPack));
        let standing = Standing { member, permitted: BTreeSet::new() };
        judge(&session, &asked, &BTreeMap::from([("SHA256:key".to_owned(), standing)]));
        let reason = before.revoked(&session.revocation).now_or_never();
        assert_eq!(reason.as_deref(), Some("you may not push to shop/prod any more"));
        assert_eq!(since.revoked(&session.revocation).now_or_never(), None);
    }
}
