//! Guests: what was requested, what was allocated, and the state they are in.

mod left;
mod places;
mod promised;
mod secrets;
mod shown;

pub use self::left::left_by;
pub use self::places::{Place, allocate, place};
pub(super) use self::places::{of as place_of, taken};
pub(super) use self::promised::limits;
pub use self::promised::{is_being, promise_storage, set_limits, set_size, set_smaller_size, settle_storage};
pub use self::secrets::{confirm_host_key, host_key, note_host_key, password, set_host_key, set_password};
pub use self::shown::{Found, by_name, lines, newest, whole};

use std::net::Ipv4Addr;

use corpus_domain::{
    Backing, Bytes, Driver, Environment, GuestId, GuestName, GuestNetwork, GuestProfileName, GuestState, IdRange,
    ImageName, Limits, MacAddress, Mode, NodeAddress, NodeId, ProjectId, ProjectName, Reason, Room, SizeProfile,
    SshPort, UserId,
};
use sqlx::PgConnection;

use self::promised::Columns;
pub(super) use self::promised::bytes;
use super::{fingerprint, number, word, word_opt};
use crate::nodes::Observation;
use crate::store::nodes::Node;

/// A guest that is requested; what is not given is allocated later.
#[derive(Debug)]
pub struct NewGuest<'a> {
    /// Its id, chosen by the caller.
    pub id: GuestId,
    /// Its name.
    pub name: &'a GuestName,
    /// The node it goes to.
    pub node: NodeId,
    /// Its project.
    pub project: ProjectId,
    /// Its environment.
    pub environment: Environment,
    /// What makes it.
    pub driver: Driver,
    /// What it is a clone of.
    pub image: &'a ImageName,
    /// The profile that said what its request did not.
    pub profile: Option<&'a GuestProfileName>,
    /// Where its root file system lives.
    pub backing: Backing,
    /// Its size profile.
    pub size: SizeProfile,
    /// What it may take of its node.
    pub limits: Limits,
    /// How its configuration is managed.
    pub mode: Mode,
    /// The address asked for.
    pub ip: Option<Ipv4Addr>,
    /// The MAC asked for.
    pub mac: Option<MacAddress>,
    /// The password asked for, sealed.
    pub password_sealed: Option<&'a [u8]>,
    /// Whether the node starts it at boot.
    pub autostart: bool,
    /// Why it is privileged, if it is to be.
    pub privileged: Option<&'a Reason>,
}

/// Keeps a requested guest; a name, address or MAC that is there already breaks a unique rule.
pub async fn insert(conn: &mut PgConnection, guest: &NewGuest<'_>, by: UserId) -> sqlx::Result<()> {
    let limits = Columns::from(guest.limits);
    sqlx::query!(
        "insert into guests (id, name, node_id, project_id, environment, driver, image, backing, size, mode, ip, mac,
             password_sealed, autostart, state, created_by, privileged_reason, memory, cpu_millis, processes, io_weight,
             storage, profile)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 'creating', $15, $16, $17, $18, $19, $20,
             $21, $22)",
        guest.id.0,
        guest.name.as_str(),
        guest.node.0,
        guest.project.0,
        guest.environment.as_str(),
        guest.driver.as_str(),
        guest.image.as_str(),
        guest.backing.as_str(),
        guest.size.as_str(),
        guest.mode.as_str(),
        guest.ip.map(|ip| ip.to_string()),
        guest.mac.map(|mac| mac.to_string()),
        guest.password_sealed,
        guest.autostart,
        by.0,
        guest.privileged.map(Reason::as_str),
        limits.memory,
        limits.cpu_millis,
        limits.processes,
        limits.io_weight,
        bytes(Room::of_guest(guest.limits, guest.backing, guest.size).storage),
        guest.profile.map(GuestProfileName::as_str),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whether a guest is called so.
pub async fn is_there(conn: &mut PgConnection, name: &GuestName) -> sqlx::Result<bool> {
    sqlx::query_scalar!("select exists (select from guests where name = $1) as \"there!\"", name.as_str())
        .fetch_one(conn)
        .await
}

/// A guest as jobs and changes work with it.
#[derive(Debug, Clone)]
pub struct GuestRow {
    /// Its id.
    pub id: GuestId,
    /// Its name.
    pub name: GuestName,
    /// The node it is on.
    pub node_id: NodeId,
    /// Where that node answers.
    pub node_address: NodeAddress,
    /// Its project.
    pub project_id: ProjectId,
    /// Its project's name.
    pub project: ProjectName,
    /// Its environment.
    pub environment: Environment,
    /// What made it.
    pub driver: Driver,
    /// What it is a clone of.
    pub image: ImageName,
    /// Where its root file system lives.
    pub backing: Backing,
    /// How much storage it may fill.
    pub size: SizeProfile,
    /// What it is promised of its node's storage: while it is being enlarged, what it will have.
    pub storage: Bytes,
    /// What it may take of its node.
    pub limits: Limits,
    /// How its configuration is managed.
    pub mode: Mode,
    /// Its address, once allocated.
    pub ip: Option<Ipv4Addr>,
    /// Its MAC, once allocated.
    pub mac: Option<MacAddress>,
    /// The node's port that leads to its SSH, once allocated.
    pub ssh_port: Option<SshPort>,
    /// The network it is in.
    pub network: GuestNetwork,
    /// The bridge it is on.
    pub bridge: String,
    /// Whether the node starts it at boot.
    pub autostart: bool,
    /// Why it is privileged, if it is.
    pub privileged: Option<Reason>,
    /// The fingerprint of its own SSH host key.
    pub host_fingerprint: Option<String>,
    /// Its state.
    pub state: GuestState,
}

impl GuestRow {
    /// How much more it is promised with the storage of this size.
    pub fn storage_more(&self, size: SizeProfile) -> Bytes {
        Bytes(size.storage().0.saturating_sub(self.storage.0))
    }

    /// Whether its node can promise it the storage of this size; the error says what there is.
    pub fn storage_free(&self, node: &Node, size: SizeProfile) -> Result<(), String> {
        let more = self.storage_more(size);
        let Some(free) = node.free_on(self.backing).filter(|free| free.storage < more) else { return Ok(()) };
        let (free, more) = (free.storage.gb(), more.gb());
        Err(format!("{} has {free} of storage free, and {more} more are needed", node.address))
    }
}

/// The one guest.
pub async fn get(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<Option<GuestRow>> {
    Ok(rows(conn, Some(id), None).await?.pop())
}

/// The guests on a node, by name.
pub async fn on_node(conn: &mut PgConnection, node: NodeId) -> sqlx::Result<Vec<GuestRow>> {
    rows(conn, None, Some(node)).await
}

async fn rows(conn: &mut PgConnection, id: Option<GuestId>, node: Option<NodeId>) -> sqlx::Result<Vec<GuestRow>> {
    let rows = sqlx::query!(
        "select g.id, g.name, g.node_id, n.address, n.network, n.bridge, g.project_id, p.name as project,
                g.environment, g.driver, g.image, g.backing, g.size, g.mode, g.ip, g.mac, g.ssh_port, g.autostart, g.host_key,
                g.privileged_reason, g.state, g.memory, g.cpu_millis, g.processes, g.io_weight, g.storage
         from guests g join nodes n on n.id = g.node_id join projects p on p.id = g.project_id
         where g.id = $1 or g.node_id = $2 order by g.name",
        id.map(|id| id.0),
        node.map(|id| id.0),
    );
    let rows = rows.fetch_all(conn).await?.into_iter().map(|row| {
        Ok(GuestRow {
            id: GuestId(row.id),
            name: word(&row.name)?,
            node_id: NodeId(row.node_id),
            node_address: word(&row.address)?,
            project_id: ProjectId(row.project_id),
            project: word(&row.project)?,
            environment: word(&row.environment)?,
            driver: word(&row.driver)?,
            image: word(&row.image)?,
            backing: word(&row.backing)?,
            size: word(&row.size)?,
            storage: Bytes(number(row.storage)?),
            limits: limits(row.memory, row.cpu_millis, row.processes, row.io_weight)?,
            mode: word(&row.mode)?,
            ip: word_opt(row.ip.as_deref())?,
            mac: word_opt(row.mac.as_deref())?,
            ssh_port: row.ssh_port.map(ssh_port).transpose()?,
            network: word(&row.network)?,
            bridge: row.bridge,
            autostart: row.autostart,
            privileged: word_opt(row.privileged_reason.as_deref())?,
            host_fingerprint: row.host_key.as_deref().map(fingerprint).transpose()?,
            state: word(&row.state)?,
        })
    });
    rows.collect()
}

fn id_range(first: Option<i64>) -> sqlx::Result<Option<IdRange>> {
    let range = |first| number::<u32>(first)?.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)));
    first.map(range).transpose()
}

fn ssh_port(port: i32) -> sqlx::Result<SshPort> {
    number::<u16>(port)?.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// Holds the guest's row until the transaction ends, so that its state stays as it is read.
pub async fn hold(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<()> {
    sqlx::query!("select id from guests where id = $1 for update", id.0).fetch_optional(conn).await.map(drop)
}

/// Why a guest is failed whose container is not there any more.
pub const GONE: &str = "its container is gone from the node; destroy the guest to free its name";

/// Moves the guest to a state if it is in one of `from`; tells whether it was. Whether it should
/// run goes with it.
pub async fn set_state(
    conn: &mut PgConnection,
    id: GuestId,
    from: &[GuestState],
    to: GuestState,
    reason: Option<&str>,
) -> sqlx::Result<bool> {
    let from: Vec<String> = from.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "update guests set state = $3, state_reason = $4, state_since = now(),
             should_run = case when $3 in ('creating', 'starting', 'running') then true
                               when $3 in ('stopping', 'stopped') then false else should_run end
         where id = $1 and state = any($2)",
        id.0,
        &from,
        to.as_str(),
        reason,
    )
    .execute(conn)
    .await
    .map(|done| done.rows_affected() == 1)
}

/// Takes over the observed states of guests, of those that no job is working on and whose
/// state is older than the moment at which the reading was asked for. One that was gone and is
/// there again is what it is: a node that shuts down may have let go of the disk with its guests
/// before it stops answering.
pub async fn observe(conn: &mut PgConnection, observations: impl Iterator<Item = &Observation>) -> sqlx::Result<()> {
    let readings = observations.filter_map(|one| Some((one, one.outcome.as_ref().ok()?)));
    let (mut read, mut asked_each) = (Vec::new(), Vec::new());
    let (mut on, mut names, mut states, mut asked) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (one, reading) in readings {
        read.push(one.node.0);
        asked_each.push(one.at - one.elapsed);
        for guest in &reading.guests {
            on.push(one.node.0);
            names.push(guest.name.to_string());
            states.push(guest.state.to_string());
            asked.push(one.at - one.elapsed);
        }
    }
    sqlx::query!(
        "update guests g set state = o.state, state_since = now(), state_reason = null
         from unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[]) as o (node_id, name, state, asked)
         where g.node_id = o.node_id and g.name = o.name and g.state <> o.state and g.state_since < o.asked
           and (g.state in ('running', 'stopped') or g.state = 'failed' and g.state_reason = $5)",
        &on,
        &names,
        &states,
        &asked,
        GONE,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update guests g set state = 'failed', state_since = now(), state_reason = $5
         from unnest($1::uuid[], $2::timestamptz[]) as o (node_id, asked)
         where g.node_id = o.node_id and g.state in ('running', 'stopped') and g.state_since < o.asked
           and (g.node_id, g.name) not in (select * from unnest($3::uuid[], $4::text[]))",
        &read,
        &asked_each,
        &on,
        &names,
        GONE,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Sets whether the node should route the guest's SSH port.
pub async fn set_routed(conn: &mut PgConnection, id: GuestId, routed: bool) -> sqlx::Result<()> {
    sqlx::query!("update guests set routed = $2 where id = $1", id.0, routed).execute(conn).await.map(drop)
}

/// Forgets a guest; a DNS name still on it breaks the foreign key.
pub async fn delete(conn: &mut PgConnection, id: GuestId) -> sqlx::Result<()> {
    sqlx::query!("delete from guests where id = $1", id.0).execute(conn).await.map(drop)
}
