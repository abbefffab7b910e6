//! Whether a project may take something more: what its quota leaves, under the lock of who takes.
//!
//! Quotas hold for whoever asks, operators too: they raise one instead of passing it, so that what a page
//! says is so. What a member asked for and they approved is let beyond one, by itself.

use corpus_api::quotas::ProjectQuota;
use corpus_api::{Denied, Wrong};
use corpus_domain::{ProjectId, QuotaOf, Room};
use corpus_gate::Change;
use corpus_gate::audit::Entry;
use serde_json::json;
use sqlx::PgConnection;

use crate::store::{projects, quotas};
use crate::{Error, Result};

/// What is to be taken more, of each thing.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct More {
    /// Guests.
    pub guests: u64,
    /// What these guests are promised, or what is promised more to those that are there.
    pub room: Room,
    /// DNS names.
    pub names: u64,
    /// Published ports.
    pub ports: u64,
}

impl More {
    const fn of(self, thing: QuotaOf) -> u64 {
        match thing {
            QuotaOf::Guests => self.guests,
            QuotaOf::Memory => self.room.memory.0,
            QuotaOf::Cpu => self.room.cpu_millis,
            QuotaOf::Storage => self.room.storage.0,
            QuotaOf::Names => self.names,
            QuotaOf::Ports => self.ports,
            // How much one will take is known when it was taken.
            QuotaOf::Backups => 0,
        }
    }
}

/// More than a quota leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    /// Of what.
    pub of: QuotaOf,
    /// What is taken, of how much, and what was to be taken more.
    pub text: String,
}

impl Excess {
    /// What to do about it.
    fn next(&self, by_ops: bool) -> String {
        let less = match self.of {
            QuotaOf::Guests => "Destroy a guest that is not needed any more",
            QuotaOf::Memory | QuotaOf::Cpu => "Choose less",
            QuotaOf::Storage => "Choose a smaller size or delete snapshots",
            QuotaOf::Names => "Detach a name that is not needed any more",
            QuotaOf::Ports => "Unpublish a port that is not needed any more",
            QuotaOf::Backups => "Delete backups that are not needed any more",
        };
        let raise = if by_ops { "raise its quota on its page" } else { "ask an operator to raise its quota" };
        format!("{less}, or {raise}.")
    }
}

/// What of this is more than the quota leaves. What takes nothing more of a thing is never refused for it, so that
/// a project whose quota was lowered can still be worked on.
pub fn beyond(quota: &ProjectQuota, more: More) -> Vec<Excess> {
    let excess = |of: &QuotaOf| {
        let (used, more) = (quota.of_thing(*of), more.of(*of));
        let left = used.left.filter(|left| more > *left)?;
        let rest = if left == 0 { "nothing is left".to_owned() } else { format!("{} left", of.amount(left)) };
        let taken = of.taken(used.used, used.limit);
        let text =
            format!("project {} has taken {taken}, and this takes {} more: {rest}", quota.project, of.amount(more));
        Some(Excess { of: *of, text })
    };
    QuotaOf::ALL.iter().filter_map(excess).collect()
}

/// Holds what the project takes until the transaction ends; then what of this is more than its quota leaves. Before
/// any lock of a node, a guest or of names.
pub async fn taking(conn: &mut PgConnection, project: ProjectId, more: More) -> sqlx::Result<Vec<Excess>> {
    quotas::hold(conn, project).await?;
    now(conn, project, more).await
}

/// What of this is more than the quota leaves now; another may take what is left next.
pub async fn now(conn: &mut PgConnection, project: ProjectId, more: More) -> sqlx::Result<Vec<Excess>> {
    let quota = quotas::get(conn, project).await?;
    Ok(quota.map(|quota| beyond(&quota, more)).unwrap_or_default())
}

/// Holds what the project takes, and refuses what is beyond its quota, each at its field. What operators approved is
/// let beyond it, this one alone, and the audit says so.
pub async fn take<O>(
    change: &mut Change<O>,
    project: ProjectId,
    more: More,
    field: impl Fn(QuotaOf) -> &'static str,
) -> Result<()> {
    let excess = taking(change.transaction().await?, project, more).await?;
    if !change.approval().is_some_and(|approval| approval.beyond_quota) {
        return refuse(&excess, change.who().ops, field);
    }
    if !excess.is_empty() {
        let name = projects::name(change.transaction().await?, project).await?.ok_or(Denied::NotFound)?;
        let beyond: Vec<&str> = excess.iter().map(|one| one.text.as_str()).collect();
        change
            .note(Entry::new("quota.exceed", name.as_str()).id(project.0).detail(json!({ "beyond": beyond })))
            .await?;
    }
    Ok(())
}

/// Refuses what is beyond the quota, each at its field.
pub fn refuse(beyond: &[Excess], by_ops: bool, field: impl Fn(QuotaOf) -> &'static str) -> Result<()> {
    if beyond.is_empty() {
        return Ok(());
    }
    let wrong = beyond.iter().map(|one| Wrong::new(field(one.of), format!("{}. {}", one.text, one.next(by_ops))));
    Err(Error::Fields(wrong.collect()))
}

#[cfg(test)]
mod tests {
    use corpus_api::quotas::QuotaUse;
    use corpus_domain::Bytes;

    use super::*;

    fn quota(limit: Option<u64>, used: u64) -> ProjectQuota {
        ProjectQuota::of("atlas".parse().unwrap(), |_| QuotaUse::of(used, limit, false))
    }

    #[test]
    fn what_is_left_can_be_taken_and_no_more() {
        let one = More { guests: 1, ..More::default() };
        assert!(beyond(&quota(None, 1 << 40), one).is_empty());
        assert!(beyond(&quota(Some(5), 4), one).is_empty());
        let refused = beyond(&quota(Some(5), 5), one);
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].text, "project atlas has taken 5 of 5 guests, and this takes 1 more: nothing is left");
        // A quota of before, lowered since.
        assert!(beyond(&quota(Some(2), 5), More::default()).is_empty());
        let gib = 1 << 30;
        let room = Room { memory: Bytes(4 * gib), cpu_millis: 0, storage: Bytes(0) };
        let refused = beyond(&quota(Some(8 * gib), 6 * gib), More { room, ..More::default() });
        assert_eq!(
            refused[0].text,
            "project atlas has taken 6 GiB of 8 GiB of memory, and this takes 4 GiB more: 2 GiB left"
        );
    }

    #[test]
    fn all_that_is_too_much_is_said_at_once() {
        let all =
            More { guests: 1, room: Room { memory: Bytes(1), cpu_millis: 1, storage: Bytes(1) }, names: 1, ports: 1 };
        let refused = beyond(&quota(Some(0), 0), all);
        let Err(Error::Fields(wrong)) = refuse(&refused, false, QuotaOf::as_str) else { panic!("{refused:?}") };
        let fields: Vec<&str> = wrong.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(fields, ["guests", "memory", "cpu", "storage", "names", "ports"]);
        assert!(wrong.iter().all(|one| one.detail.ends_with("or ask an operator to raise its quota.")), "{wrong:?}");
    }
}
