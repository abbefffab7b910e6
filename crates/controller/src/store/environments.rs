//! Environments of projects: the guests that each stands on, what was set for it here, and what
//! the guests told of it last.
//!
//! An environment has one leader, which is pushed to, and any number of followers. Most functions
//! are about one guest, whichever it is; the environment itself goes with its leader.

use corpus_domain::{
    Environment, EnvironmentState, GuestId, GuestName, GuestRole, GuestState, JobId, JobKind, NodeAddress, NodeId,
    ProjectId, ProjectName, SshPort, UserId,
};
use corpus_protocol::{ArchiveEntry, ConfigurationEntry, Live, Mapping};
use sqlx::PgConnection;

use super::{json, json_opt, node_gateways, number, word, word_opt};
use crate::nodes::{Gateway, GuestEndpoint, HostKey};

/// An environment on one of its guests, as jobs see it.
#[derive(Debug, Clone)]
pub struct Placement {
    /// The project.
    pub project: ProjectId,
    /// Its name.
    pub name: ProjectName,
    /// Which environment.
    pub environment: Environment,
    /// What the guest is among those of the environment.
    pub role: GuestRole,
    /// Its state on this guest.
    pub state: EnvironmentState,
    /// What was set here.
    pub settings: Mapping,
    /// What is live on this guest.
    pub live: Option<Live>,
    /// The archives that it keeps, newest first.
    pub archives: Vec<ArchiveEntry>,
    /// The guest.
    pub guest: GuestId,
    /// Its name.
    pub guest_name: GuestName,
    /// Its state.
    pub guest_state: GuestState,
    /// The guest's node.
    pub node: NodeId,
    /// Where the node answers.
    pub address: NodeAddress,
    /// What the node is reached through, if it does not answer from here.
    pub behind: Option<Box<Gateway>>,
    /// The node's address in the guest's network: its proxy, as the guest reaches it.
    pub gateway: std::net::Ipv4Addr,
    /// The node's port that leads to the guest's SSH.
    pub ssh_port: Option<SshPort>,
    /// The guest's own host key.
    pub host_key: Option<HostKey>,
}

impl Placement {
    /// Whether the guest is the one that is pushed to.
    pub fn is_leader(&self) -> bool {
        self.role == GuestRole::Leader
    }

    /// How the guest is entered; none before it has a port and a host key.
    pub fn endpoint(&self) -> Option<GuestEndpoint> {
        Some(GuestEndpoint {
            id: self.guest,
            address: self.address.clone(),
            port: self.ssh_port?.get(),
            user: "root".parse().ok()?,
            pinned_host_key: self.host_key.clone()?,
            gateway: self.behind.clone(),
        })
    }
}

/// Which environments, on which of their guests.
#[derive(Debug, Clone, Copy)]
pub enum Filter {
    /// All that deploy, on all guests.
    Ready,
    /// The one of a project, on its leader.
    Leader(ProjectId, Environment),
    /// The same on its followers.
    Followers(ProjectId, Environment),
    /// The one on a guest.
    Guest(GuestId),
}

/// The environments with their guests, the leader before its followers.
pub async fn list(conn: &mut PgConnection, filter: Filter) -> sqlx::Result<Vec<Placement>> {
    let of = |project: ProjectId, environment: Environment, role: GuestRole| {
        (Some(project.0), Some(environment.as_str()), None, Some(role.as_str()))
    };
    let (project, environment, guest, role) = match filter {
        Filter::Ready => (None, None, None, None),
        Filter::Leader(project, environment) => of(project, environment, GuestRole::Leader),
        Filter::Followers(project, environment) => of(project, environment, GuestRole::Follower),
        Filter::Guest(guest) => (None, None, Some(guest.0), None),
    };
    let rows = sqlx::query!(
        "select e.project_id, p.name, e.environment, eg.role, eg.state, e.settings, eg.live, eg.archives,
                g.id as guest_id, g.name as guest, g.state as guest_state, g.node_id, n.address, n.network, g.ssh_port,
                g.host_key, (select to_jsonb(w) from node_gateways w where w.node_id = n.id) as behind
         from environment_guests eg
         join environments e on e.project_id = eg.project_id and e.environment = eg.environment
         join projects p on p.id = e.project_id join guests g on g.id = eg.guest_id join nodes n on n.id = g.node_id
         where ($1::uuid is null or eg.project_id = $1) and ($2::text is null or eg.environment = $2)
           and ($3::uuid is null or eg.guest_id = $3) and ($4::text is null or eg.role = $4)
           and ($1::uuid is not null or $3::uuid is not null or (eg.state = 'ready' and g.state = 'running'))
         order by p.name, e.environment, eg.role = 'leader' desc, g.name",
        project,
        environment,
        guest,
        role,
    )
    .fetch_all(conn)
    .await?;
    let port = |port: i32| number::<u16>(port)?.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)));
    rows.into_iter()
        .map(|row| {
            let network: corpus_domain::GuestNetwork = word(&row.network)?;
            Ok(Placement {
                project: ProjectId(row.project_id),
                name: word(&row.name)?,
                environment: word(&row.environment)?,
                role: word(&row.role)?,
                state: word(&row.state)?,
                settings: json(row.settings)?,
                live: json_opt(row.live)?,
                archives: json(row.archives)?,
                guest: GuestId(row.guest_id),
                guest_name: word(&row.guest)?,
                guest_state: word(&row.guest_state)?,
                node: NodeId(row.node_id),
                address: word(&row.address)?,
                behind: node_gateways::read(row.behind)?,
                gateway: network.gateway(),
                ssh_port: row.ssh_port.map(port).transpose()?,
                host_key: word_opt(row.host_key.as_deref())?,
            })
        })
        .collect()
}

/// The one environment, on its leader.
pub async fn get(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<Option<Placement>> {
    Ok(list(conn, Filter::Leader(project, environment)).await?.pop())
}

/// The same on its followers that are deployed to.
pub async fn followers(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<Vec<Placement>> {
    let mut followers = list(conn, Filter::Followers(project, environment)).await?;
    followers.retain(|follower| follower.state == EnvironmentState::Ready);
    Ok(followers)
}

/// The environment that stands on a guest.
pub async fn on_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<Placement>> {
    Ok(list(conn, Filter::Guest(guest)).await?.pop())
}

/// Keeps an environment that is being set up on its leader. A second one of the project, or on the
/// guest, breaks a unique rule; a guest of another project or environment a foreign key.
pub async fn insert(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
    guest: GuestId,
    by: UserId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "with made as (
             insert into environments (project_id, environment, created_by) values ($1, $2, $4)
             returning project_id, environment, created_by
         )
         insert into environment_guests (project_id, environment, guest_id, role, state, created_by)
         select project_id, environment, $3, 'leader', 'setting_up', created_by from made",
        project.0,
        environment.as_str(),
        guest.0,
        by.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Keeps a follower of an environment, which is being set up; the same rules hold.
pub async fn insert_follower(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
    guest: GuestId,
    by: UserId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into environment_guests (project_id, environment, guest_id, role, state, created_by)
         values ($1, $2, $3, 'follower', 'setting_up', $4)",
        project.0,
        environment.as_str(),
        guest.0,
        by.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Moves the environment on a guest to a state if it is in one of `from`; tells whether it was.
pub async fn set_state(
    conn: &mut PgConnection,
    guest: GuestId,
    from: &[EnvironmentState],
    to: EnvironmentState,
    reason: Option<&str>,
) -> sqlx::Result<bool> {
    let from: Vec<String> = from.iter().map(ToString::to_string).collect();
    let moved = sqlx::query!(
        "update environment_guests set state = $3, state_reason = $4 where guest_id = $1 and state = any($2)",
        guest.0,
        &from,
        to.as_str(),
        reason,
    )
    .execute(conn)
    .await?;
    Ok(moved.rows_affected() == 1)
}

/// Keeps what was set for the environment here.
pub async fn set_settings(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
    settings: &Mapping,
) -> sqlx::Result<()> {
    let settings = serde_json::to_value(settings).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    sqlx::query!(
        "update environments set settings = $3 where project_id = $1 and environment = $2",
        project.0,
        environment.as_str(),
        settings,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// What a guest tells of its project.
#[derive(Debug, Clone, Default)]
pub struct ProjectReading {
    /// What is live.
    pub live: Option<Live>,
    /// The archives that are kept, newest first.
    pub archives: Vec<ArchiveEntry>,
    /// The merged configuration; none: it was not told.
    pub configuration: Option<Vec<ConfigurationEntry>>,
}

/// Takes out what the guest tells of other projects' deployments, and tells that it did.
pub async fn own_only(
    conn: &mut PgConnection,
    guest: GuestId,
    live: &mut Option<Live>,
    archives: &mut Vec<ArchiveEntry>,
) -> sqlx::Result<Vec<String>> {
    let kept = archives.iter().flat_map(|archive| [Some(archive.id), archive.release].into_iter().flatten());
    let named: Vec<_> = live.iter().map(|live| live.deployment).chain(kept).map(|id| id.0).collect();
    let foreign = sqlx::query_scalar!(
        "select d.id from deployments d join guests g on g.id = $2
         where d.id = any($1) and d.project_id is distinct from g.project_id",
        &named,
        guest.0,
    )
    .fetch_all(conn)
    .await?;
    live.take_if(|live| foreign.contains(&live.deployment.0));
    archives.retain(|archive| !foreign.contains(&archive.id.0));
    for archive in archives {
        archive.release.take_if(|release| foreign.contains(&release.0));
    }
    let refused = |id| format!("the guest told of deployment {id}, which is another project's: that is not believed");
    Ok(foreign.into_iter().map(refused).collect())
}

/// Takes over what the guest tells, if the environment still stands there.
pub async fn observe(conn: &mut PgConnection, guest: GuestId, reading: &ProjectReading) -> sqlx::Result<()> {
    let encoded = |value: Result<serde_json::Value, serde_json::Error>| {
        value.map_err(|error| sqlx::Error::Encode(Box::new(error)))
    };
    let live = reading.live.as_ref().map(serde_json::to_value).map(encoded).transpose()?;
    let archives = encoded(serde_json::to_value(&reading.archives))?;
    sqlx::query!(
        "update environment_guests set live = $2, archives = $3, configuration = coalesce($4, configuration),
             observed_at = now()
         where guest_id = $1",
        guest.0,
        live,
        archives,
        reading.configuration.as_ref().map(serde_json::to_value).map(encoded).transpose()?,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The branches that are deployed on a guest, as it told last; none: it has not told.
pub async fn branches(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<Vec<String>>> {
    let told = sqlx::query_scalar!(
        r#"select e -> 'value' as "value" from environment_guests, jsonb_array_elements(configuration) e
           where guest_id = $1 and e ->> 'key' = 'branches' limit 1"#,
        guest.0
    );
    let told = told.fetch_optional(conn).await?.flatten();
    // It may tell anything.
    Ok(told.and_then(|value| serde_json::from_value(value).ok()))
}

/// Forgets that an environment stands on a guest; of its leader the environment itself, which must
/// have no followers any more.
pub async fn delete(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<()> {
    sqlx::query!(
        "with gone as (
             delete from environment_guests where guest_id = $1 returning project_id, environment, role
         )
         delete from environments e using gone
         where gone.role = 'leader' and e.project_id = gone.project_id and e.environment = gone.environment",
        guest.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Takes an environment back to where it was before a job on it was submitted that never began.
pub async fn left_by(conn: &mut PgConnection, job: JobId) -> sqlx::Result<()> {
    let row = sqlx::query!("select kind, guest_id from jobs where id = $1", job.0).fetch_optional(&mut *conn).await?;
    let Some((kind, Some(guest))) = row.map(|row| (row.kind, row.guest_id)) else { return Ok(()) };
    let placement = on_guest(conn, GuestId(guest)).await?;
    match (word::<JobKind>(&kind)?, placement.map(|placement| placement.state)) {
        (JobKind::EnvironmentSetUp, Some(EnvironmentState::SettingUp)) => delete(conn, GuestId(guest)).await,
        (JobKind::EnvironmentRemove, Some(from @ EnvironmentState::Leaving)) => {
            set_state(conn, GuestId(guest), &[from], EnvironmentState::Ready, None).await.map(drop)
        }
        _ => Ok(()),
    }
}
