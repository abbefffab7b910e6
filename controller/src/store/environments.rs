//! Environments of projects: the guest that each stands on, what was set for it here, and what
//! the guest told of it last.

use corpus_domain::{
    Environment, EnvironmentState, GuestId, GuestName, GuestState, JobId, NodeAddress, NodeId, ProjectId, ProjectName,
    SshPort, UserId,
};
use corpus_protocol::{ArchiveEntry, ConfigurationEntry, Live, Mapping};
use sqlx::PgConnection;

use super::{json, json_opt, number, word, word_opt};
use crate::nodes::{GuestEndpoint, HostKey};
use crate::project_views::EnvironmentView;

/// An environment as jobs see it.
#[derive(Debug, Clone)]
pub struct Stands {
    /// The project.
    pub project: ProjectId,
    /// Its name.
    pub name: ProjectName,
    /// Which environment.
    pub environment: Environment,
    /// Its state.
    pub state: EnvironmentState,
    /// What was set here.
    pub settings: Mapping,
    /// The archives that are kept, newest first.
    pub archives: Vec<ArchiveEntry>,
    /// The guest that it stands on.
    pub guest: GuestId,
    /// Its name.
    pub guest_name: GuestName,
    /// Its state.
    pub guest_state: GuestState,
    /// The guest's node.
    pub node: NodeId,
    /// Where the node answers.
    pub address: NodeAddress,
    /// The node's address in the guest's network: its proxy, as the guest reaches it.
    pub gateway: std::net::Ipv4Addr,
    /// The node's port that leads to the guest's SSH.
    pub ssh_port: Option<SshPort>,
    /// The guest's own host key.
    pub host_key: Option<HostKey>,
}

impl Stands {
    /// How the guest is entered; none before it has a port and a host key.
    pub fn endpoint(&self) -> Option<GuestEndpoint> {
        Some(GuestEndpoint {
            id: self.guest,
            address: self.address.clone(),
            port: self.ssh_port?.get(),
            user: "root".parse().ok()?,
            pinned_host_key: self.host_key.clone()?,
        })
    }
}

/// Which environments.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    /// All that can be pushed to.
    Ready,
    /// The one of a project.
    One(ProjectId, Environment),
    /// The one on a guest.
    Guest(GuestId),
}

/// The environments with their guests.
pub async fn list(conn: &mut PgConnection, of: Of) -> sqlx::Result<Vec<Stands>> {
    let (project, environment, guest) = match of {
        Of::Ready => (None, None, None),
        Of::One(project, environment) => (Some(project.0), Some(environment.as_str()), None),
        Of::Guest(guest) => (None, None, Some(guest.0)),
    };
    let rows = sqlx::query!(
        "select e.project_id, p.name, e.environment, e.state, e.settings, e.archives, e.guest_id, g.name as guest,
                g.state as guest_state, g.node_id, n.address, n.network, g.ssh_port, g.host_key
         from environments e join projects p on p.id = e.project_id join guests g on g.id = e.guest_id
         join nodes n on n.id = g.node_id
         where ($1::uuid is null or e.project_id = $1) and ($2::text is null or e.environment = $2)
           and ($3::uuid is null or e.guest_id = $3)
           and ($1::uuid is not null or $3::uuid is not null or (e.state = 'ready' and g.state = 'running'))
         order by p.name, e.environment",
        project,
        environment,
        guest,
    )
    .fetch_all(conn)
    .await?;
    let port = |port: i32| number::<u16>(port)?.try_into().map_err(|error| sqlx::Error::Decode(Box::new(error)));
    rows.into_iter()
        .map(|row| {
            let network: corpus_domain::GuestNetwork = word(&row.network)?;
            Ok(Stands {
                project: ProjectId(row.project_id),
                name: word(&row.name)?,
                environment: word(&row.environment)?,
                state: word(&row.state)?,
                settings: json(row.settings)?,
                archives: json(row.archives)?,
                guest: GuestId(row.guest_id),
                guest_name: word(&row.guest)?,
                guest_state: word(&row.guest_state)?,
                node: NodeId(row.node_id),
                address: word(&row.address)?,
                gateway: network.gateway(),
                ssh_port: row.ssh_port.map(port).transpose()?,
                host_key: word_opt(row.host_key.as_deref())?,
            })
        })
        .collect()
}

/// The one environment.
pub async fn get(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<Option<Stands>> {
    Ok(list(conn, Of::One(project, environment)).await?.pop())
}

/// The environment that stands on a guest.
pub async fn on_guest(conn: &mut PgConnection, guest: GuestId) -> sqlx::Result<Option<Stands>> {
    Ok(list(conn, Of::Guest(guest)).await?.pop())
}

/// The environments of projects as pages show them, without names and jobs; each with its project.
pub async fn views(
    conn: &mut PgConnection,
    projects: &[ProjectId],
    git_url: Option<&str>,
) -> sqlx::Result<Vec<(ProjectId, EnvironmentView)>> {
    let projects: Vec<_> = projects.iter().map(|id| id.0).collect();
    let rows = sqlx::query!(
        "select e.project_id, p.name, e.environment, e.state, e.state_reason, e.guest_id, g.name as guest,
                g.state as guest_state, e.live, d.number as \"live_number?\", e.archives, e.configuration,
                e.observed_at, e.settings
         from environments e join projects p on p.id = e.project_id join guests g on g.id = e.guest_id
         left join deployments d on d.id::text = e.live ->> 'deployment'
         where e.project_id = any($1)
         order by p.name, array_position(array['dev', 'staging', 'prod'], e.environment)",
        &projects,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            let address = git_url.map(|begin| format!("{begin}/{}/{}", row.name, row.environment));
            let view = EnvironmentView {
                environment: word(&row.environment)?,
                state: word(&row.state)?,
                state_reason: row.state_reason,
                guest_id: GuestId(row.guest_id),
                guest: word(&row.guest)?,
                guest_state: word(&row.guest_state)?,
                hosts: Vec::new(),
                pillar_url: address.as_ref().map(|address| format!("{address}/pillar")),
                git_url: address,
                live: json_opt(row.live)?,
                live_number: row.live_number,
                archives: json(row.archives)?,
                configuration: json(row.configuration)?,
                observed_at: row.observed_at,
                settings: json(row.settings)?,
                job: None,
            };
            Ok((ProjectId(row.project_id), view))
        })
        .collect()
}

/// The running guests of a project that no environment stands on, of environments that have none.
pub async fn free_guests(
    conn: &mut PgConnection,
    project: ProjectId,
) -> sqlx::Result<Vec<(GuestId, GuestName, Environment)>> {
    let rows = sqlx::query!(
        "select g.id, g.name, g.environment from guests g
         where g.project_id = $1 and g.state = 'running' and not exists (
             select 1 from environments e
             where e.guest_id = g.id or (e.project_id = g.project_id and e.environment = g.environment))
         order by g.name",
        project.0,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().map(|row| Ok((GuestId(row.id), word(&row.name)?, word(&row.environment)?))).collect()
}

/// Keeps an environment that is being set up. A second one of the project, or on the guest,
/// breaks a unique rule; a guest of another project or environment a foreign key.
pub async fn insert(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
    guest: GuestId,
    by: UserId,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into environments (project_id, environment, guest_id, state, created_by)
         values ($1, $2, $3, 'setting_up', $4)",
        project.0,
        environment.as_str(),
        guest.0,
        by.0,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Moves an environment to a state if it is in one of `from`; tells whether it was.
pub async fn set_state(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
    from: &[EnvironmentState],
    to: EnvironmentState,
    reason: Option<&str>,
) -> sqlx::Result<bool> {
    let from: Vec<String> = from.iter().map(ToString::to_string).collect();
    sqlx::query!(
        "update environments set state = $4, state_reason = $5
         where project_id = $1 and environment = $2 and state = any($3)",
        project.0,
        environment.as_str(),
        &from,
        to.as_str(),
        reason,
    )
    .execute(conn)
    .await
    .map(|done| done.rows_affected() == 1)
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
pub struct Told {
    /// What is live.
    pub live: Option<Live>,
    /// The archives that are kept, newest first.
    pub archives: Vec<ArchiveEntry>,
    /// The merged configuration; none: it was not told.
    pub configuration: Option<Vec<ConfigurationEntry>>,
}

/// Takes over what the guest tells, if the environment still stands there.
pub async fn observe(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
    guest: GuestId,
    told: &Told,
) -> sqlx::Result<()> {
    let encoded = |value: Result<serde_json::Value, serde_json::Error>| {
        value.map_err(|error| sqlx::Error::Encode(Box::new(error)))
    };
    sqlx::query!(
        "update environments set live = $4, archives = $5, configuration = coalesce($6, configuration),
             observed_at = now()
         where project_id = $1 and environment = $2 and guest_id = $3",
        project.0,
        environment.as_str(),
        guest.0,
        told.live.as_ref().map(serde_json::to_value).map(encoded).transpose()?,
        encoded(serde_json::to_value(&told.archives))?,
        told.configuration.as_ref().map(serde_json::to_value).map(encoded).transpose()?,
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Forgets an environment.
pub async fn delete(conn: &mut PgConnection, project: ProjectId, environment: Environment) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from environments where project_id = $1 and environment = $2",
        project.0,
        environment.as_str(),
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Takes an environment back to where it was before a job on it was submitted that never began.
pub async fn left_by(conn: &mut PgConnection, job: JobId) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from environments e using jobs j
         where j.id = $1 and j.kind = 'environment_set_up' and e.guest_id = j.guest_id and e.state = 'setting_up'",
        job.0,
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update environments e set state = 'ready' from jobs j
         where j.id = $1 and j.kind = 'environment_remove' and e.guest_id = j.guest_id and e.state = 'leaving'",
        job.0,
    )
    .execute(conn)
    .await
    .map(drop)
}
