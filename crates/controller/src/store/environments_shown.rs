//! Environments and their guests as they are shown.

use std::collections::HashMap;

use corpus_api::environments::{
    Archive, ConfigurationValue, EnvironmentGuest, EnvironmentSettings, EnvironmentSummary, LiveRelease,
};
use corpus_api::names::SiteAnswer;
use corpus_api::projects::FreeGuest;
use corpus_domain::{DnsName, Environment, GuestId, GuestRole, JobId, JobKind, NodeId, ProjectId, ProjectName};
use corpus_protocol::{ConfigurationEntry, Mapping};
use sqlx::PgConnection;

use super::{archives_shown, evidence, json_opt, reports, word};

/// The jobs that are on an environment rather than on its guest.
const KINDS: [JobKind; 4] =
    [JobKind::EnvironmentSetUp, JobKind::EnvironmentConfigure, JobKind::EnvironmentRemove, JobKind::Deploy];
/// Free guests that are told at most.
const FREE: i64 = 50;

/// The environments of a project, or one of them, in their order, each with the archives that its leader keeps; what
/// who asks may is not known here.
pub async fn summaries(
    conn: &mut PgConnection,
    project: ProjectId,
    only: Option<Environment>,
    git_url: Option<&str>,
) -> sqlx::Result<Vec<(EnvironmentSummary, Vec<Archive>)>> {
    let places = places(conn, project, only).await?;
    let guests: Vec<_> = places.iter().map(|place| place.guest.guest.0).collect();
    let (mut hosts, jobs) = (hosts(conn, &guests).await?, jobs(conn, &guests).await?);
    let leaders = places.iter().filter(|place| place.role == GuestRole::Leader).map(|place| place.guest.guest.0);
    let mut kept = archives_shown::of_guests(conn, &leaders.collect::<Vec<_>>()).await?;
    let mut all: Vec<(EnvironmentSummary, Vec<Archive>)> = Vec::new();
    for Place { role, project, environment, mut guest } in places {
        let named = hosts.remove(&guest.guest).unwrap_or_default();
        guest.site = named.first().and_then(|main| main.site.clone());
        guest.hosts = named.into_iter().map(|host| host.name).collect();
        guest.job = jobs.get(&guest.guest).copied();
        if let Some((environment, _)) = all.last_mut().filter(|_| role == GuestRole::Follower) {
            environment.followers.push(guest);
            continue;
        }
        let archives = kept.remove(&guest.guest).unwrap_or_default();
        all.push((led_by(guest, project, environment, &archives, git_url), archives));
    }
    Ok(all.into_iter().map(|(environment, archives)| (environment.judged(), archives)).collect())
}

fn led_by(
    leader: EnvironmentGuest,
    project: ProjectName,
    environment: Environment,
    archives: &[Archive],
    git_url: Option<&str>,
) -> EnvironmentSummary {
    let git_url = git_url.map(|begin| format!("{begin}/{project}/{environment}"));
    let pillar_url = git_url.as_ref().map(|address| format!("{address}/pillar"));
    let (followers, may_deploy, may_change) = (Vec::new(), false, false);
    let previous = archives_shown::previous(archives, leader.live.as_ref()).cloned();
    let archives = u32::try_from(archives.len()).unwrap_or(u32::MAX);
    EnvironmentSummary {
        project,
        environment,
        leader,
        followers,
        seen: None,
        git_url,
        pillar_url,
        archives,
        previous,
        may_deploy,
        may_change,
    }
}

/// An environment on one of its guests.
struct Place {
    role: GuestRole,
    project: ProjectName,
    environment: Environment,
    guest: EnvironmentGuest,
}

/// The guests of a project's environments, each leader before its followers.
async fn places(conn: &mut PgConnection, project: ProjectId, only: Option<Environment>) -> sqlx::Result<Vec<Place>> {
    let rows = sqlx::query!(
        r#"
        select p.name as project, eg.environment, eg.role, eg.state, eg.state_reason, eg.guest_id, g.name as guest,
            g.state as guest_state, eg.live, d.number as "number?", eg.observed_at, g.node_id, n.reachability,
            n.reading_at
        from environment_guests eg
        join projects p on p.id = eg.project_id join guests g on g.id = eg.guest_id join nodes n on n.id = g.node_id
        left join deployments d on d.id = (eg.live ->> 'deployment')::uuid
        where eg.project_id = $1 and ($2::text is null or eg.environment = $2)
        order by array_position(array['dev', 'staging', 'prod'], eg.environment), eg.role = 'leader' desc, g.name
        "#,
        project.0,
        only.map(Environment::as_str),
    );
    let rows = rows.fetch_all(conn).await?;
    let places = rows.into_iter().map(|row| {
        let guest = EnvironmentGuest {
            guest: GuestId(row.guest_id),
            name: word(&row.guest)?,
            guest_state: word(&row.guest_state)?,
            node: NodeId(row.node_id),
            node_reachability: word(&row.reachability)?,
            guest_seen_at: row.reading_at,
            site: None,
            state: word(&row.state)?,
            state_reason: row.state_reason,
            hosts: Vec::new(),
            live: release(row.live, row.number)?,
            observed_at: row.observed_at,
            job: None,
        };
        let (project, environment) = (word(&row.project)?, word(&row.environment)?);
        Ok(Place { role: word(&row.role)?, project, environment, guest })
    });
    places.collect()
}

/// What is live by a stored word of a guest.
pub fn release(live: Option<serde_json::Value>, number: Option<i64>) -> sqlx::Result<Option<LiveRelease>> {
    Ok(json_opt(live)?.map(|live| reports::live(live, number)))
}

/// A name that leads to a guest, with what its site answers.
struct Host {
    name: DnsName,
    site: Option<SiteAnswer>,
}

/// The names that lead to guests, the main one first.
async fn hosts(conn: &mut PgConnection, guests: &[uuid::Uuid]) -> sqlx::Result<HashMap<GuestId, Vec<Host>>> {
    let rows = sqlx::query!(
        r#"select d.guest_id, d.name, d.site_status, d.site_problem, d.site_since,
                coalesce(d.site_left_at, n.sites_at) as "site_checked_at?"
         from dns_names d join guests g on g.id = d.guest_id join nodes n on n.id = g.node_id
         where d.guest_id = any($1) and d.state = 'attached' order by d.created_at, d.name"#,
        guests,
    );
    let mut all: HashMap<GuestId, Vec<Host>> = HashMap::new();
    for row in rows.fetch_all(conn).await? {
        let site = evidence::site(row.site_status, row.site_problem, row.site_since, row.site_checked_at)?;
        let host = Host { name: word(&row.name)?, site };
        all.entry(GuestId(row.guest_id)).or_default().push(host);
    }
    Ok(all)
}

/// The newest job on the environment of each guest that is not over.
async fn jobs(conn: &mut PgConnection, guests: &[uuid::Uuid]) -> sqlx::Result<HashMap<GuestId, JobId>> {
    let kinds: Vec<String> = KINDS.iter().map(|kind| kind.as_str().to_owned()).collect();
    let rows = sqlx::query!(
        r#"
        select distinct on (guest_id) guest_id as "guest!", id from jobs
        where guest_id = any($1) and kind = any($2) and state in ('waiting', 'running', 'undoing', 'stuck')
        order by guest_id, queue_order desc
        "#,
        guests,
        &kinds,
    );
    Ok(rows.fetch_all(conn).await?.into_iter().map(|row| (GuestId(row.guest), JobId(row.id))).collect())
}

/// The configuration of an environment, as its leader told it last.
pub async fn configuration(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<Vec<ConfigurationValue>> {
    let told = sqlx::query_scalar!(
        "select configuration from environment_guests
         where project_id = $1 and environment = $2 and role = 'leader'",
        project.0,
        environment.as_str(),
    );
    let told: Option<Vec<ConfigurationEntry>> = json_opt(told.fetch_optional(conn).await?)?;
    Ok(told.unwrap_or_default().into_iter().map(reports::configuration).collect())
}

/// What was set for an environment here.
pub async fn settings(
    conn: &mut PgConnection,
    project: ProjectId,
    environment: Environment,
) -> sqlx::Result<Option<EnvironmentSettings>> {
    let settings = sqlx::query_scalar!(
        "select settings from environments where project_id = $1 and environment = $2",
        project.0,
        environment.as_str(),
    );
    let settings: Option<Mapping> = json_opt(settings.fetch_optional(conn).await?)?;
    Ok(settings.map(EnvironmentSettings::of))
}

/// Holds an environment until the transaction ends, so that what was set stays as it is read.
pub async fn hold(conn: &mut PgConnection, project: ProjectId, environment: Environment) -> sqlx::Result<()> {
    let held = sqlx::query_scalar!(
        "select environment from environments where project_id = $1 and environment = $2 for update",
        project.0,
        environment.as_str(),
    );
    held.fetch_optional(conn).await.map(drop)
}

/// The first running guests of a project that are of no environment.
pub async fn free_guests(conn: &mut PgConnection, project: ProjectId) -> sqlx::Result<Vec<FreeGuest>> {
    let rows = sqlx::query!(
        "select g.id, g.name, g.environment from guests g
         where g.project_id = $1 and g.state = 'running'
           and not exists (select 1 from environment_guests eg where eg.guest_id = g.id)
         order by g.name limit $2",
        project.0,
        FREE,
    );
    let rows = rows.fetch_all(conn).await?;
    let shown = rows.into_iter().map(|row| {
        Ok(FreeGuest { guest: GuestId(row.id), name: word(&row.name)?, environment: word(&row.environment)? })
    });
    shown.collect()
}
