//! Requesting a guest: everything that can be refused is refused here, at the form.
//!
//! What the project takes is held before the node, so that neither is taken twice, and nobody waits in a circle.

use corpus_api::guests::{GuestRequested, RequestGuest};
use corpus_api::{Denied, Operation, Write};
use corpus_domain::{
    Backing, BackupId, BackupState, Bytes, Driver, Environment, GuestId, ImageName, JobId, Limits, Mode, NodeId,
    NodeState, ProjectId, QuotaOf, Reachability, Room, SizeProfile, SnapshotId, SnapshotState,
};
use corpus_gate::audit::Entry;
use corpus_gate::{Change, Committed, Error, Handle, Result};
use corpus_protocol::Facts;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::super::backings;
use super::super::previews::no_preview;
use super::super::profiles;
use super::{modes, row, settings};
use crate::guest_backups::not_kept;
use crate::quotas::More;
use crate::sagas::guest_create::{self, FromSnapshot};
use crate::store::guests::GuestRow;
use crate::store::nodes::Node;
use crate::store::{backups, guests, made_images, nodes, not_created, room, snapshots};
use crate::{Controller, quotas, store};

/// How often a node is chosen anew when others take its room meanwhile.
const TRIES: u32 = 8;

/// What a guest is made of, as asked or as is usual.
pub(in crate::handlers) struct Making {
    driver: Driver,
    backing: Backing,
    mode: Mode,
    size: SizeProfile,
    limits: Limits,
    pub(in crate::handlers) needed: Room,
}

impl Handle<RequestGuest> for Controller {
    async fn handle(&self, mut change: Change<RequestGuest>) -> Result<Committed<RequestGuest>> {
        let (who, project) = (change.who(), change.project()?);
        let mut wanted = (*change.operation()).clone();
        // What was asked of operators was decided with what its profile said then.
        if change.approval().is_none() {
            wanted = profiles::filled(change.transaction().await?, wanted).await?;
        }
        let making = making(change.transaction().await?, &wanted).await?;
        supported(change.transaction().await?, &making).await?;
        let image = self.image(change.transaction().await?, (&wanted, project)).await?;
        if who.robot.is_some() {
            for_robots(&wanted)?;
        }
        if let Some(backup) = wanted.backup {
            self.can_be_made_of(change.transaction().await?, (backup, project), (&wanted, making.size)).await?;
        }
        let snapshot = match wanted.snapshot {
            Some(snapshot) => {
                Some(of_snapshot(change.transaction().await?, (snapshot, project), (&wanted, making.size)).await?)
            }
            None => None,
        };
        no_preview(change.transaction().await?, project, "its one guest is made with it").await?;
        for name in wanted.names.iter() {
            let free = self.is_nobody_elses(&mut change, project, (name, false)).await;
            free.map_err(|error| at_field(error, "names"))?;
        }
        let node = pick_node(&mut change, &wanted, &making).await?;
        self.can_be_called(change.transaction().await?, &who, project, &wanted.name).await?;
        let id = GuestId(Uuid::now_v7());
        let sealed = wanted.password.as_ref().map(|password| self.services.seal_password(id, password.secret()));
        let sealed = sealed.transpose()?;
        insert(&mut change, &wanted, (id, project, node.id), (&making, &image), sealed.as_deref()).await?;
        let job = self.begin(&mut change, &wanted, (id, &node), snapshot).await?;
        if let Some(failed) = wanted.instead_of {
            let (tx, about) = (change.transaction().await?, not_created::About::Guest(project));
            not_created::dismiss(tx, failed, who.id, Some(about)).await?;
        }
        let entry = Entry::new("guest.request", wanted.name.as_str()).id(id.0).detail(json!({ "node": node.address }));
        change.commit(entry, GuestRequested { guest: id, job }).await
    }
}

/// Keeps the guest's row.
async fn insert<O: Operation<Kind = Write>>(
    change: &mut Change<O>,
    wanted: &RequestGuest,
    (id, project, node): (GuestId, ProjectId, NodeId),
    (making, image): (&Making, &ImageName),
    password_sealed: Option<&[u8]>,
) -> Result<()> {
    let by = change.who().id;
    let new = guests::NewGuest {
        id,
        name: &wanted.name,
        node,
        project,
        environment: wanted.environment,
        driver: making.driver,
        image,
        backing: making.backing,
        profile: wanted.profile.as_ref(),
        size: making.size,
        limits: making.limits,
        mode: making.mode,
        ip: wanted.ip,
        mac: wanted.mac,
        password_sealed,
        autostart: wanted.autostart,
        privileged: wanted.privileged.as_ref(),
    };
    let inserted = guests::insert(change.transaction().await?, &new, by).await;
    inserted.map_err(|error| taken(error, wanted))?;
    settings::begin(change.transaction().await?, id, wanted).await
}

/// A node for the guest of a preview, held until the change is over as what its project takes is.
pub(in crate::handlers) async fn node_for<O: Operation<Kind = Write>>(
    change: &mut Change<O>,
    wanted: &RequestGuest,
) -> Result<Node> {
    let making = making(change.transaction().await?, wanted).await?;
    pick_node(change, wanted, &making).await
}

/// A robot enters no guest, so it chooses no password of one; and what was not created is not its own to dismiss.
fn for_robots(wanted: &RequestGuest) -> Result<()> {
    let asked = [
        ("password", wanted.password.is_some()),
        ("backup", wanted.backup.is_some()),
        ("snapshot", wanted.snapshot.is_some()),
        ("instead_of", wanted.instead_of.is_some()),
    ];
    match asked.into_iter().find(|(_, asked)| *asked) {
        Some((field, _)) => Err(Error::field(field, "This is not for robots.")),
        None => Ok(()),
    }
}

impl Controller {
    /// What the guest will be a clone of: the newest version of the image that is asked for.
    pub(in crate::handlers) async fn image(
        &self,
        conn: &mut PgConnection,
        (wanted, project): (&RequestGuest, ProjectId),
    ) -> Result<ImageName> {
        let images = &self.services.settings.images;
        let name = wanted.image.clone().unwrap_or_else(|| images.usual());
        if !images.has(&name) {
            let made = made_images::newest(conn, project, &name).await?;
            let none = || Error::field("image", format!("There is no image {name}."));
            return made.map(|version| version.label).ok_or_else(none);
        }
        match store::images::newest(conn, &name).await? {
            Some(version) => Ok(version.label),
            // Nodes make this one themselves where the controller has no archive of it.
            None if name == images.usual() => Ok(name),
            None => Err(Error::field("image", format!("There is no archive of the image {name} yet."))),
        }
    }

    /// Refused where the guest could not have the files of the backup. That of another project is none.
    async fn can_be_made_of(
        &self,
        conn: &mut PgConnection,
        (id, project): (BackupId, ProjectId),
        (wanted, size): (&RequestGuest, SizeProfile),
    ) -> Result<()> {
        if self.services.settings.guest_backups.is_none() {
            return Err(not_kept());
        }
        let none = || Error::field("backup", format!("There is no such backup in {}.", wanted.project));
        let (_, state, bytes) = backups::in_project(conn, (id, project)).await?.ok_or_else(none)?;
        let bytes = bytes.filter(|_| state == BackupState::Ready);
        let bytes = bytes.ok_or_else(|| Error::field("backup", format!("It is {state}: it can't be used now.")))?;
        has_room("backup", bytes, size)
    }

    /// Keeps the guest of a preview, and queues the job that makes it.
    pub(in crate::handlers) async fn make_guest<O: Operation<Kind = Write>>(
        &self,
        change: &mut Change<O>,
        wanted: &RequestGuest,
        (preview, node): (ProjectId, NodeId),
    ) -> Result<GuestRow> {
        let id = GuestId(Uuid::now_v7());
        let making = making(change.transaction().await?, wanted).await?;
        let image = self.image(change.transaction().await?, (wanted, preview)).await?;
        insert(change, wanted, (id, preview, node), (&making, &image), None).await?;
        let guest = row(change, id).await?;
        let has_image = store::images::is_on(change.transaction().await?, node, &guest.image).await?;
        self.queue(change, guest_create::job(&guest, wanted, None, has_image)).await?;
        Ok(guest)
    }

    /// Queues the job that makes the guest, and behind it those that attach its names.
    async fn begin(
        &self,
        change: &mut Change<RequestGuest>,
        wanted: &RequestGuest,
        (id, node): (GuestId, &Node),
        snapshot: Option<FromSnapshot>,
    ) -> Result<JobId> {
        if let Some(reason) = &wanted.privileged {
            let detail = json!({ "node": node.address, "reason": reason });
            change.note(Entry::new("guest.privilege", wanted.name.as_str()).id(id.0).detail(detail)).await?;
        }
        let guest = row(change, id).await?;
        let has_image = store::images::is_on(change.transaction().await?, node.id, &guest.image).await?;
        let job = self.queue(change, guest_create::job(&guest, wanted, snapshot, has_image)).await?;
        for name in wanted.names.iter() {
            let attached = self.want_name(change, (&guest, None), (name, false)).await;
            let (attached, _) = attached.map_err(|error| at_field(error, "names"))?;
            let entry = Entry::new("name.attach", name.as_str()).id(attached.0);
            change.note(entry.detail(json!({ "guest": guest.name }))).await?;
        }
        Ok(job)
    }
}

/// The snapshot that the guest is to have the files of. That of another project is none.
async fn of_snapshot(
    conn: &mut PgConnection,
    (id, project): (SnapshotId, ProjectId),
    (wanted, size): (&RequestGuest, SizeProfile),
) -> Result<FromSnapshot> {
    if wanted.backup.is_some() {
        return Err(Error::field("snapshot", "It has the files of a backup or of a snapshot, one of the two."));
    }
    let none = || Error::field("snapshot", format!("There is no such snapshot in {}.", wanted.project));
    let held = snapshots::in_project(conn, (id, project)).await?.ok_or_else(none)?;
    let bytes = held.bytes.filter(|_| held.state == SnapshotState::Ready);
    let bytes =
        bytes.ok_or_else(|| Error::field("snapshot", format!("It is {}: it can't be used now.", held.state)))?;
    has_room("snapshot", bytes, size)?;
    Ok(FromSnapshot { id, guest: held.guest, name: held.name, node: held.node })
}

fn has_room(what: &str, bytes: Bytes, size: SizeProfile) -> Result<()> {
    if bytes <= size.storage() {
        return Ok(());
    }
    Err(Error::field("size", format!("The {what} has {}, more than {size} has room for.", bytes.gb())))
}

impl Making {
    /// The same, to be placed.
    pub(super) fn placed(&self, environment: Environment, only: Option<NodeId>) -> room::Wanted {
        let (needed, driver, backing) = (self.needed, self.driver, self.backing);
        room::Wanted { environment, only, besides: None, moved: None, needed, driver, backing }
    }
}

/// Refused where operators don't want what is asked for in the environment.
pub(in crate::handlers) async fn making(conn: &mut PgConnection, wanted: &RequestGuest) -> Result<Making> {
    let size = wanted.size.unwrap_or(SizeProfile::USUAL);
    let limits = wanted.limits().over(size.limits());
    let driver = wanted.driver.unwrap_or(Driver::Lxc);
    let rules = store::backings::of(conn, wanted.environment).await?;
    let backing = match backings::chosen(&rules, wanted.backing)? {
        Some(backing) => backing,
        None => room::first_made(conn, driver, &rules.allowed).await?,
    };
    Ok(Making {
        driver,
        backing,
        mode: wanted.mode.unwrap_or(Mode::Masterless),
        size,
        limits,
        needed: Room::of_guest(limits, backing, size),
    })
}

/// The node asked for, or of those that take guests of the environment the one with the most room, held
/// until the change is over, as what the project takes is. Between the choice and the lock another request may
/// have taken the room: then the choice is made again.
async fn pick_node<O: Operation<Kind = Write>>(
    change: &mut Change<O>,
    wanted: &RequestGuest,
    making: &Making,
) -> Result<Node> {
    let (project, more) = (change.project()?, more(wanted, making.needed));
    let placed = making.placed(wanted.environment, wanted.node);
    for _ in 0..TRIES {
        quotas::take(change, project, more, quota_field).await?;
        let tx = change.transaction().await?;
        let Some(id) = room::pick(tx, placed).await? else {
            return Err(no_node(&nodes::list(tx, wanted.node).await?, placed));
        };
        nodes::lock(tx, id).await?;
        if room::pick(tx, room::Wanted { only: Some(id), ..placed }).await?.is_none() {
            change.start_over().await?;
            continue;
        }
        let node = nodes::get(tx, id).await?.ok_or(Denied::NotFound)?;
        if let Some(ip) = wanted.ip.filter(|ip| !node.network.takes(*ip)) {
            let message = format!("{ip} is not an address for guests in {}.", node.network);
            return Err(Error::field("ip", message));
        }
        return Ok(node);
    }
    Err(Error::Conflict("Many guests are being requested at once. Try again.".to_owned()))
}

/// What the request takes of its project's quota.
pub(in crate::handlers) fn more(wanted: &RequestGuest, needed: Room) -> More {
    More { guests: 1, room: needed, names: wanted.names.len().try_into().unwrap_or(u64::MAX), ports: 0 }
}

/// The field of the request that says how much it takes.
pub(super) const fn quota_field(of: QuotaOf) -> &'static str {
    match of {
        QuotaOf::Guests => "project",
        QuotaOf::Memory => "memory",
        QuotaOf::Cpu => "cpu",
        QuotaOf::Storage => "size",
        QuotaOf::Names => "names",
        QuotaOf::Ports => "ports",
        QuotaOf::Backups => "backup",
    }
}

/// What nodes tell that they can make, and this release; the rest of the design's words are known and refused.
pub(in crate::handlers) async fn supported(conn: &mut PgConnection, wanted: &Making) -> Result<()> {
    let Making { driver, backing, mode, .. } = *wanted;
    if !room::is_made(conn, driver, backing).await? {
        let is_usual = room::is_made(conn, driver, Backing::Overlayfs).await?;
        let field = if is_usual { "backing" } else { "driver" };
        return Err(Error::field(field, format!("No compute node makes guests with {driver} on {backing}.")));
    }
    modes::can_be_had(conn, mode).await
}

/// Why no node takes the guest: what is the matter with the one asked for, or what the one with the most room lacks.
pub(super) fn no_node(nodes: &[Node], wanted: room::Wanted) -> Error {
    let (obstacle, needed) = (|node: &Node| obstacle(node, wanted), wanted.needed);
    let lacks = |node: &Node| lacks(node, wanted);
    let message = match (wanted.only, nodes) {
        (Some(_), [node]) => obstacle(node).unwrap_or_else(|| lacks(node)),
        (Some(_), _) => return Denied::NotFound.into(),
        (None, _) => {
            let able = nodes.iter().filter(|node| obstacle(node).is_none());
            let best =
                able.max_by_key(|node| node.free_on(wanted.backing).map(|free| (free.holds(needed), free.memory)));
            match best {
                Some(node) => format!("{} Choose less, link another node, or destroy a guest.", lacks(node)),
                None => format!("No node takes guests of {} now. Link or initialize one.", wanted.environment),
            }
        }
    };
    Error::field("node", message)
}

fn lacks(node: &Node, wanted: room::Wanted) -> String {
    let (needed, backing) = (wanted.needed, wanted.backing);
    match node.free_on(backing) {
        Some(free) if free.holds(needed) == 0 => {
            let pool = node.pool(backing).map(|_| format!(" for guests on {backing}")).unwrap_or_default();
            format!("{} has {free} free{pool}, and {needed} are needed: it has no slot for this guest.", node.address)
        }
        _ => format!("{} has no free slot: all {} are in use.", node.address, node.slots),
    }
}

/// Why a node takes no guests of an environment now, whatever they need.
fn obstacle(node: &Node, wanted: room::Wanted) -> Option<String> {
    let room::Wanted { environment, driver, backing, .. } = wanted;
    if node.state != NodeState::Ready {
        return Some(format!("{} is {}, not ready.", node.address, node.state));
    }
    if !node.environments.contains(&environment) {
        return Some(format!("{} takes no guests of {environment}.", node.address));
    }
    if let Some(why) = node.facts.as_ref().and_then(|facts| in_the_way(facts, driver, backing)) {
        return Some(format!("{} makes no guests with {driver} on {backing}: {why}.", node.address));
    }
    match node.reachability {
        Reachability::Reachable => None,
        Reachability::Unknown => Some(format!("{} has not been read yet; try again in a few seconds.", node.address)),
        Reachability::Unreachable | Reachability::HostKeyChanged => {
            Some(format!("{} does not answer now.", node.address))
        }
    }
}

/// What a node says stands in the way of such a guest.
fn in_the_way(facts: &Facts, driver: Driver, backing: Backing) -> Option<String> {
    let told = facts.drivers.iter().find(|fact| fact.driver == driver)?;
    let backing = told.backings.iter().find(|fact| fact.backing == backing);
    told.obstacle.clone().or_else(|| backing?.obstacle.clone())
}

/// Which unique rule was broken, as an error at its field.
fn taken(error: sqlx::Error, wanted: &RequestGuest) -> Error {
    let rule = match &error {
        sqlx::Error::Database(inner) => inner.constraint().unwrap_or_default().to_owned(),
        _ => String::new(),
    };
    match rule.as_str() {
        "guests_node_id_ip_key" => {
            Error::taken(error, "ip", "This address is in use on the node; leave it empty for a free one.")
        }
        "guests_node_id_mac_key" => {
            Error::taken(error, "mac", "This MAC is in use on the node; leave it empty for a free one.")
        }
        _ => Error::taken(error, "name", format!("{} is taken already; choose another name.", wanted.name)),
    }
}

fn at_field(error: Error, field: &'static str) -> Error {
    match error {
        Error::Field { message, .. } => Error::field(field, message),
        other => other,
    }
}
