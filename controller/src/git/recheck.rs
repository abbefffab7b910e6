//! Asking again, as long as connections are open, whether their members may still do what they do.
//!
//! All connections of a server together cost two queries a round, however many they are. A key
//! that was removed, an account that was disabled and sessions that were ended take the whole
//! connection; a role that was lost, or a project that was destroyed, takes the pushes and fetches
//! it was for, and the connection if that was the last it did. While the database does not answer
//! nobody loses anything, and nobody begins anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use corpus_domain::ProjectId;
use tokio::time::{sleep, timeout};

use super::Limits;
use super::keeper::Keeper;
use super::visit::Visit;
use crate::Result;
use crate::ops::{GitAccess, KeyHolder};

/// The connections that were let in.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<Vec<Weak<Visit>>>);

impl Open {
    /// One more; it is forgotten when it has ended.
    pub(super) fn add(&self, visit: &Arc<Visit>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(visit));
    }

    fn all(&self) -> Vec<Arc<Visit>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
    }
}

/// Asks again and again, for ever.
pub(super) async fn recheck(open: &Open, keeper: &dyn Keeper, limits: &Limits) {
    loop {
        sleep(limits.check).await;
        let visits = open.all();
        if visits.is_empty() {
            continue;
        }
        match timeout(limits.check, Now::read(keeper, &visits)).await {
            Ok(Ok(now)) => visits.iter().for_each(|visit| now.judge(visit)),
            Ok(Err(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "git: open connections could not be looked at"
                );
            }
            Err(_) => tracing::warn!("git: open connections could not be looked at: the database does not answer"),
        }
    }
}

/// What is so now.
struct Now {
    holders: BTreeMap<String, KeyHolder>,
    projects: BTreeMap<ProjectId, bool>,
}

impl Now {
    async fn read(keeper: &dyn Keeper, visits: &[Arc<Visit>]) -> Result<Self> {
        let keys: BTreeSet<_> =
            visits.iter().filter_map(|visit| Some(visit.member.get()?.fingerprint.clone())).collect();
        let running = visits.iter().flat_map(|visit| visit.grants()).map(|grant| grant.access.project);
        let last = visits.iter().filter_map(|visit| visit.did_last()).map(|access| access.project);
        let used: BTreeSet<_> = running.chain(last).collect();
        let holders = keeper.holders(&keys.into_iter().collect::<Vec<_>>()).await?;
        let projects = if used.is_empty() {
            BTreeMap::new()
        } else {
            keeper.projects(&used.into_iter().collect::<Vec<_>>()).await?
        };
        Ok(Self { holders, projects })
    }

    fn judge(&self, visit: &Visit) {
        let Some(member) = visit.member.get() else { return };
        let login = &member.holder.principal.login;
        let holder = match self.holders.get(&member.fingerprint) {
            Some(holder) if holder.principal.id == member.holder.principal.id => holder,
            _ => {
                tracing::info!(%login, "git: a key was taken away; its connection ends");
                return visit.revocation.revoke("your key is not a member's any more");
            }
        };
        if holder.epoch != member.holder.epoch {
            tracing::info!(%login, "git: the sessions of a member were ended; a connection ends");
            return visit.revocation.revoke("your sessions were ended; connect again");
        }
        for grant in visit.grants() {
            if let Some(why) = self.lost(holder, &grant.access) {
                tracing::info!(%login, project = %grant.access.name, why, "git: a right was taken away; a channel ends");
                grant.revoke(why);
            }
        }
        if let Some(why) = visit.did_last().and_then(|access| self.lost(holder, &access)) {
            tracing::info!(%login, why, "git: a right was taken away; a connection that rests ends");
            visit.revocation.revoke(why);
        }
    }

    /// Why the holder may not go on, if so.
    fn lost(&self, holder: &KeyHolder, access: &GitAccess) -> Option<String> {
        let open = self.projects.get(&access.project);
        let may = open.is_some_and(|open| access.permit(&holder.principal, *open).is_ok());
        (!may).then(|| format!("you may not {} {}/{} any more", access.doing(), access.name, access.environment))
    }
}
