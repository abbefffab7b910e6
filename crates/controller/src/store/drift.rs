//! Drift: which nodes are to be checked, what they should be, and what was found to differ.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use corpus_domain::{Backing, DriftKind, Environment, GuestId, GuestName, GuestState, ImageName, Limits, NodeId};
use corpus_protocol::{Difference, NodePlan};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;

use super::guest_users::{self, WithKeys};
use super::{guests, json_opt, keys, plan, word};
use crate::surroundings::Around;

/// Something of a node that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What it concerns.
    pub kind: DriftKind,
    /// The guest it concerns, if one.
    pub guest: Option<GuestName>,
    /// What was found, for a person.
    pub text: String,
    /// When it was first found.
    pub since: DateTime<Utc>,
}

impl Finding {
    /// Whether this is the same finding.
    pub fn is(&self, found: &Difference) -> bool {
        (self.kind, &self.guest, &self.text) == (found.kind, &found.guest, &found.text)
    }
}

/// Takes up to `room` nodes that are due for a check, so that no other server takes them too:
/// those not taken for `every_s` seconds, and those on which a job has ended since.
pub async fn take_due(conn: &mut PgConnection, room: i64, every_s: f64) -> sqlx::Result<Vec<NodeId>> {
    let rows = sqlx::query_scalar!(
        "update nodes set check_due_at = now() + make_interval(secs => $2) where id in (
             select n.id from nodes n
             where n.state in ('ready', 'draining') and n.reachability = 'reachable'
               and (n.check_due_at <= now() or exists (
                   select 1 from (select ended_at from jobs where node_id = n.id order by queue_order desc limit 20) j
                   where j.ended_at > n.check_due_at - make_interval(secs => $2)))
             order by n.check_due_at limit $1 for update skip locked)
         returning id",
        room,
        every_s,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(NodeId).collect())
}

/// The node is due again after so many seconds.
pub async fn postpone(conn: &mut PgConnection, node: NodeId, seconds: f64) -> sqlx::Result<()> {
    sqlx::query!("update nodes set check_due_at = now() + make_interval(secs => $2) where id = $1", node.0, seconds)
        .execute(conn)
        .await
        .map(drop)
}

/// Whether a job works on the node or one of its guests, or is about to: what differs then is
/// on its way.
pub async fn is_changing(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        "select exists (select 1 from job_locks l join jobs j on j.id = l.job_id
             where l.resource = 'node:' || $1::uuid and j.state in ('waiting', 'running', 'undoing')) as \"any!\"",
        node.0,
    )
    .fetch_one(conn)
    .await
}

/// A guest of a node as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its id.
    pub id: GuestId,
    /// Its name.
    pub name: GuestName,
    /// Which environment it is of.
    pub environment: Environment,
    /// Its state, as a job left it or as it was observed.
    pub state: GuestState,
    /// Whether it should run, as the last job left it.
    pub should_run: bool,
    /// What it may take of its node.
    pub limits: Limits,
    /// What it is a clone of, if it can't be without that.
    pub stands_on: Option<ImageName>,
    /// The keys of the members who may enter it.
    pub keys: Vec<String>,
    /// The users that its project wants.
    pub users: Vec<WithKeys>,
}

/// The guests of a node as they should be, by name.
pub async fn wanted(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<Wanted>> {
    let mut lines: HashMap<GuestId, Vec<String>> = HashMap::new();
    for (guest, line) in keys::lines_on_node(conn, node).await? {
        lines.entry(guest).or_default().push(line);
    }
    let mut users: HashMap<GuestId, Vec<WithKeys>> = HashMap::new();
    for (guest, user) in guest_users::keys_on_node(conn, node).await? {
        users.entry(guest).or_default().push(user);
    }
    let rows = sqlx::query!(
        "select id, name, environment, state, should_run, image, backing, memory, cpu_millis, processes, io_weight
         from guests where node_id = $1 order by name",
        node.0
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let id = GuestId(row.id);
            let image = word(&row.image)?;
            Ok(Wanted {
                id,
                name: word(&row.name)?,
                environment: word(&row.environment)?,
                state: word(&row.state)?,
                should_run: row.should_run,
                limits: guests::limits(row.memory, row.cpu_millis, row.processes, row.io_weight)?,
                stands_on: (word::<Backing>(&row.backing)? == Backing::Overlayfs).then_some(image),
                keys: lines.remove(&id).unwrap_or_default(),
                users: users.remove(&id).unwrap_or_default(),
            })
        })
        .collect()
}

/// The node's plan as it is, without a new revision; none when the node is not linked.
pub async fn plan(conn: &mut PgConnection, node: NodeId, around: Around<'_>) -> sqlx::Result<Option<NodePlan>> {
    plan::current(conn, node, around).await
}

/// What was last found to differ.
pub async fn known(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<Finding>> {
    let found = sqlx::query_scalar!("select drift from nodes where id = $1", node.0).fetch_optional(conn).await?;
    Ok(json_opt(found)?.unwrap_or_default())
}

/// The guests of a node that findings name, where there are such.
pub async fn guests_named(
    conn: &mut PgConnection,
    node: NodeId,
    found: &[Finding],
) -> sqlx::Result<HashMap<GuestName, GuestId>> {
    let names: Vec<String> = found.iter().filter_map(|one| one.guest.as_ref()).map(ToString::to_string).collect();
    let rows = sqlx::query!("select id, name from guests where node_id = $1 and name = any($2)", node.0, &names);
    rows.fetch_all(conn).await?.into_iter().map(|row| Ok((word(&row.name)?, GuestId(row.id)))).collect()
}

/// Keeps what was found to differ just now.
pub async fn keep(conn: &mut PgConnection, node: NodeId, drift: &[Finding]) -> sqlx::Result<()> {
    sqlx::query!(
        "update nodes set drift = $2, checked_at = now() where id = $1",
        node.0,
        serde_json::to_value(drift).map_err(|error| sqlx::Error::Encode(Box::new(error)))?,
    )
    .execute(conn)
    .await
    .map(drop)
}

#[cfg(test)]
mod tests;
